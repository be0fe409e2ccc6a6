//! Builds and schedules a task.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;

use serde::Serialize;
use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::flow::{FlowRequest, OnConflict, Priority, UniqueWindow};
use tickover_core::id::{QueueName, TaskId, TaskKind};
use tickover_core::kind::Policy;
use tickover_core::retry::RetryPolicy;
use tickover_core::time::Timestamp;
use tickover_core::timeout::{AttemptTimeout, LifeTimeout, OnTimeout, Timeouts};
use tickover_wire::request::{Retry, ScheduleRequest};
use tickover_wire::{IdempotencyKey, Instant, Labels, Verbatim};

use super::TaskHandle;
use crate::client::request::{add_label, payload, random_id, span, unless_zero, with_flow, with_timeouts};
use crate::client::start::queue_name;
use crate::client::{Client, ClientError, Reads};
use crate::options::{DEFAULT_QUEUE, IntoMillis, IntoRetry, Place, Scope, StepOptions, flow};
use crate::step::Step;

/// A task that is scheduled when it is awaited. The await returns a [`TaskHandle`].
///
/// If an argument is invalid, the await returns the error. A length of time is a text such as `"1h 30m"` or a duration,
/// at most a year.
#[must_use = "nothing is scheduled before it is awaited"]
pub struct ScheduleTask<O> {
    client: Client,
    task: Result<NewTask, ClientError>,
    _reads: Reads<O>,
}

struct NewTask {
    kind: TaskKind,
    /// Without one, it is the default queue, or one whose workers provide what the task requires.
    queue: Option<QueueName>,
    input: Verbatim,
    id: Option<TaskId>,
    idempotency_key: Option<String>,
    delay: Option<Millis>,
    run_at: Option<Timestamp>,
    options: StepOptions,
    labels: Option<Labels>,
}

impl<O> ScheduleTask<O> {
    pub(in crate::client) fn named(client: Client, kind: &str, input: &impl Serialize) -> Self {
        let task = payload("input", input).and_then(|input| NewTask::of(kind, input));
        Self { client, task, _reads: PhantomData }
    }

    pub(in crate::client) fn of<E>(client: Client, step: Step<O, E>) -> Self {
        // This isn't an error of the step's own: no code of the step has run.
        let input = || step.input().map_err(|error| error.map(|_| "").to_string());
        let input = step.problem().map_or_else(input, Err);
        let task = input.map_err(|problem| ClientError::invalid("step", problem)).and_then(|input| {
            let task = NewTask::of(&step.kind, input.into())?;
            let queue = match &step.options.place {
                Place::Remote { queue: Some(queue) } => Some(queue.clone()),
                Place::Remote { queue: None } | Place::Inline => task.queue,
            };
            Ok(NewTask { queue, options: step.options, ..task })
        });
        Self { client, task, _reads: PhantomData }
    }

    /// Sets the queue. By default it is [`DEFAULT_QUEUE`], which is also the default of workflows. A task that
    /// [requires](Self::requires) something goes by default to the queue whose workers provide it.
    pub fn queue(self, queue: impl Into<String>) -> Self {
        self.change(|task| Ok(NewTask { queue: Some(queue_name(queue)?), ..task }))
    }

    /// Sets the id. A repeated call returns the same task. If another task has this id, the call is refused with
    /// `id_conflict`. Random by default.
    pub fn id(self, id: impl Into<String>) -> Self {
        self.change(|task| {
            let id = TaskId::parse(id).map_err(|problem| ClientError::invalid("id", problem))?;
            Ok(NewTask { id: Some(id), ..task })
        })
    }

    /// Sets an idempotency key of at most 256 bytes, instead of an id. A call with the same key returns the same task,
    /// for a day and as long as the task is open.
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        self.change(|task| Ok(NewTask { idempotency_key: Some(key.into()), ..task }))
    }

    /// Delays the first attempt by this long.
    pub fn delay(self, delay: impl IntoMillis) -> Self {
        self.change(|task| Ok(NewTask { delay: Some(span("delay", delay, ZeroRule::Allow)?), ..task }))
    }

    /// Sets the instant from which the first attempt may start, at most a year ahead. If it has passed, the attempt may
    /// start at once.
    pub fn run_at(self, instant: Timestamp) -> Self {
        self.change(|task| Ok(NewTask { run_at: Some(instant), ..task }))
    }

    /// Sets the retry policy: a short form such as `"exponential(3, 2s)"`, which doesn't count the first attempt, or a
    /// policy. There are no retries by default.
    pub fn retry(self, policy: impl IntoRetry) -> Self {
        self.options(|options| {
            let retry = policy.into_retry().map_err(|problem| ClientError::invalid("retry", problem))?;
            let mut options = StepOptions { retry, ..options };
            options.note(Policy::Retry, options.retry == RetryPolicy::none());
            Ok(options)
        })
    }

    /// Sets the time limit of the whole task, including waits and retries. It is final, even if attempts are left.
    pub fn timeout(self, timeout: impl IntoMillis) -> Self {
        self.options(|options| Ok(StepOptions { timeout: Some(timeout_of("timeout", timeout)?), ..options }))
    }

    /// Sets whether the timeout limits the whole task, as by default, or each attempt. It is final in both cases.
    pub fn scope(self, scope: Scope) -> Self {
        self.options(|options| Ok(StepOptions { scope, ..options }))
    }

    /// Sets how long each attempt may wait for a worker.
    pub fn schedule_to_start_timeout(self, timeout: impl IntoMillis) -> Self {
        self.options(|options| {
            let timeout = timeout_of("schedule_to_start_timeout", timeout)?;
            Ok(StepOptions { schedule_to_start: Some(timeout), ..options })
        })
    }

    /// Sets how long each attempt may take, from its claim.
    pub fn attempt_timeout(self, timeout: impl IntoMillis) -> Self {
        self.options(|options| {
            let timeout = timeout_of("attempt_timeout", timeout)?;
            Ok(StepOptions { attempt_timeout: Some(timeout), ..options })
        })
    }

    /// Sets the longest time between two heartbeats of an attempt's worker. Workers of this crate send heartbeats
    /// automatically, three times as often.
    pub fn heartbeat(self, timeout: impl IntoMillis) -> Self {
        self.options(|options| {
            Ok(StepOptions { heartbeat: Some(timeout_of("heartbeat", timeout)?), ..options })
        })
    }

    /// Sets what follows when an attempt exceeds one of its own timeouts: another attempt while any are left, as by
    /// default, or the end of the task. With [`OnTimeout::Cancel`] no timeout counts as an error, including that of the
    /// whole task: each of them ends the task as cancelled.
    pub fn on_timeout(self, on_timeout: OnTimeout) -> Self {
        self.options(|options| Ok(StepOptions { on_timeout, ..options }))
    }

    /// Lets at most `limit` tasks of this key run at once: see [`Step::concurrency`].
    pub fn concurrency(self, key: impl fmt::Display, limit: u16) -> Self {
        self.flow("concurrency", |flow| flow::concurrency(flow, key, limit))
    }

    /// Lets at most `limit` tasks of this key start in each `per`: see [`Step::rate`].
    pub fn rate(self, key: impl fmt::Display, limit: u32, per: impl IntoMillis) -> Self {
        self.flow("rate", |flow| flow::rate(flow, key, limit, per))
    }

    /// Lets so many tasks start at once after a quiet time: see [`Step::burst`].
    pub fn burst(self, burst: u32) -> Self {
        self.flow("rate", |flow| flow::burst(flow, burst))
    }

    /// Sets which tasks of the queue, or of those that wait for a key, start first.
    pub fn priority(self, priority: Priority) -> Self {
        self.options(|mut options| {
            options.note(Policy::Priority, priority == Priority::default());
            options.flow.priority = priority;
            Ok(options)
        })
    }

    /// Makes the tasks of this key one tenant of their queue: see [`Step::fairness_key`].
    pub fn fairness_key(self, key: impl fmt::Display) -> Self {
        self.flow("fairness_key", |flow| flow::fairness(flow, key))
    }

    /// Leaves the task to workers that provide these: see [`Step::requires`].
    pub fn requires<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        self.flow("requires", |flow| flow::requires(flow, names)).options(|mut options| {
            let is_absent = options.flow.requires.is_empty();
            options.note(Policy::Requires, is_absent);
            Ok(options)
        })
    }

    /// Schedules no second task beside another one with this key, of at most 256 bytes, within the window. A time is at
    /// most 30 days.
    pub fn unique(self, key: impl fmt::Display, window: UniqueWindow, on_conflict: OnConflict) -> Self {
        self.flow("unique", |flow| flow::unique(flow, key, window, on_conflict))
    }

    /// Runs only the last task of a burst with this key: once no other one has come for `wait`, and at the latest
    /// `at_most` after the first. Both are at most 30 days. It can't have an id of its own.
    pub fn debounce(self, key: impl fmt::Display, wait: impl IntoMillis, at_most: impl IntoMillis) -> Self {
        self.flow("debounce", |flow| flow::debounce(flow, key, wait, at_most))
    }

    fn flow(self, field: &str, change: impl FnOnce(&mut FlowRequest) -> Result<(), String>) -> Self {
        self.options(|mut options| {
            change(&mut options.flow).map_err(|problem| ClientError::invalid(field, problem))?;
            Ok(options)
        })
    }

    /// Adds a label, for people and tools to find the task by.
    pub fn label(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.change(|mut task| {
            add_label(&mut task.labels, name.into(), value.into());
            Ok(task)
        })
    }

    /// The request.
    pub(in crate::client) fn finished(self) -> Result<ScheduleRequest, ClientError> {
        self.task.and_then(NewTask::finished)
    }

    fn options(self, change: impl FnOnce(StepOptions) -> Result<StepOptions, ClientError>) -> Self {
        self.change(|mut task| {
            task.options = change(task.options)?;
            Ok(task)
        })
    }

    /// Keeps the first problem.
    fn change(mut self, change: impl FnOnce(NewTask) -> Result<NewTask, ClientError>) -> Self {
        self.task = self.task.and_then(change);
        self
    }
}

impl NewTask {
    fn of(kind: &str, input: Verbatim) -> Result<Self, ClientError> {
        Ok(Self {
            kind: TaskKind::parse(kind).map_err(|problem| ClientError::invalid("kind", problem))?,
            queue: None,
            input,
            id: None,
            idempotency_key: None,
            delay: None,
            run_at: None,
            options: StepOptions::default(),
            labels: None,
        })
    }

    fn finished(self) -> Result<ScheduleRequest, ClientError> {
        if self.delay.is_some() && self.run_at.is_some() {
            return Err(ClientError::invalid("run_at", "expected only one of delay and run_at"));
        }
        if let Some(problem) = self.options.problem() {
            return Err(ClientError::invalid("timeout", problem));
        }
        let (timeouts, retry) = (self.timeouts(), &self.options.retry);
        let is_given = |policy| self.options.given.contains(&policy);
        let task = ScheduleRequest {
            id: self.id,
            idempotency_key: self.idempotency_key.map(IdempotencyKey),
            input: Some(self.input),
            labels: self.labels,
            retry: (*retry != RetryPolicy::none() || is_given(Policy::Retry)).then(|| Retry::from(retry)),
            delay: self.delay.and_then(unless_zero),
            run_at: self.run_at.map(Instant),
            ..ScheduleRequest::new(queue_name(DEFAULT_QUEUE)?, self.kind)
        };
        let queue = match self.queue {
            None if !self.options.flow.requires.is_empty() => None,
            None => task.queue,
            named @ Some(_) => named,
        };
        let task = ScheduleRequest { queue, ..task };
        Ok(with_flow(with_timeouts(task, &timeouts), &self.options.flow, &self.options.given))
    }

    fn timeouts(&self) -> Timeouts {
        let options = &self.options;
        let is_error = options.on_timeout != OnTimeout::Cancel;
        let each = |timeout: AttemptTimeout| {
            if is_error { timeout } else { AttemptTimeout { on_timeout: OnTimeout::Cancel, ..timeout } }
        };
        Timeouts {
            schedule_to_close: options.all_attempts().map(|after| LifeTimeout { after, is_error }),
            schedule_to_start: options.schedule_to_start(),
            heartbeat: options.heartbeat(),
            start_to_close: options.each_attempt().map(each),
        }
    }
}

fn timeout_of(field: &str, timeout: impl IntoMillis) -> Result<Millis, ClientError> {
    span(field, timeout, ZeroRule::Reject)
}

impl<O: Send + 'static> IntoFuture for ScheduleTask<O> {
    type Output = Result<TaskHandle<O>, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let client = self.client.clone();
            let mut request = self.finished()?;
            // With an idempotency key, the system chooses the id, and so it does for the one task of a burst.
            if request.id.is_none() && request.idempotency_key.is_none() && request.debounce.is_none() {
                let id = TaskId::parse(random_id());
                request.id = Some(id.map_err(|problem| ClientError::invalid("id", problem))?);
            }
            let scheduled = client.api.schedule(&request).await?;
            Ok(TaskHandle::new(client, scheduled.task.id))
        })
    }
}

impl<O> fmt::Debug for ScheduleTask<O> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ScheduleTask").field("client", &self.client).finish_non_exhaustive()
    }
}
