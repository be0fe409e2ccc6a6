//! Builds and sends the start of an execution.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;

use serde::Serialize;
use tickover_core::duration::ZeroRule;
use tickover_core::execution::command::{CodeTerms, StartPolicy};
use tickover_core::flow::{OnConflict, Priority, UniqueWindow};
use tickover_core::id::{EventId, EventName, ExecutionId, QueueName, WorkflowName};
use tickover_service::transact::Prepared;
use tickover_wire::Word;
use tickover_wire::request::{FirstEvent, StartRequest};

use super::request::{self, payload, with_limits};
use super::{Client, ClientError, Handle, Reads};
use crate::options::IntoMillis;
use crate::options::asked::Asked;
use crate::workflow::Workflow;

/// A start that is sent when it is awaited. The await returns a [`Handle`].
///
/// If an argument is invalid, the await returns the error.
#[must_use = "nothing is started before it is awaited"]
pub struct StartExecution<O> {
    client: Client,
    request: Result<StartRequest, ClientError>,
    asked: Asked,
    _reads: Reads<O>,
}

impl<O> StartExecution<O> {
    pub(super) fn of<I: Serialize>(client: Client, workflow: &Workflow<I, O>, input: &I) -> Self {
        let options = workflow.options();
        let mut start = Self::named(client, workflow.name(), options.queue, input);
        start.asked = workflow.asked(input);
        start.change(|request| {
            // The start has the timeouts, so that they apply even if no worker starts the first turn in time.
            let CodeTerms { timeouts, on_failure, attempts: _ } =
                options.terms(workflow.failure_handler().is_some());
            request.execution_timeout = timeouts.execution.map(Into::into);
            request.run_timeout = timeouts.run.map(Into::into);
            request.on_failure_timeout = on_failure.map(Into::into);
            Ok(())
        });
        start
    }

    pub(super) fn named(client: Client, workflow: &str, queue: &str, input: &impl Serialize) -> Self {
        let request = request(workflow, queue, input);
        Self { client, request, asked: Asked::default(), _reads: PhantomData }
    }

    /// Sets the id. A second start with this id returns the first execution. Random by default.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.change(|request| {
            request.id = Some(ExecutionId::parse(id).map_err(|problem| ClientError::invalid("id", problem))?);
            Ok(())
        });
        self
    }

    /// Sets the queue, instead of the workflow's own.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.change(|request| {
            request.queue = Some(queue_name(queue)?);
            Ok(())
        });
        self
    }

    /// Adds a label, for people and tools to find the execution by.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.change(|request| {
            request::add_label(&mut request.labels, name.into(), value.into());
            Ok(())
        });
        self
    }

    /// Adds a memo: any value that is stored with the execution, for its caller.
    pub fn memo(mut self, memo: impl Serialize) -> Self {
        self.change(|request| {
            request.memo = Some(payload("memo", &memo)?);
            Ok(())
        });
        self
    }

    /// Starts it with an event. If the execution is there already, by its id or its [`unique`](Self::unique) key, it gets
    /// the event instead: one of the two happens, never both. One that has ended refuses it with `already_terminal`.
    ///
    /// The event has a random id, so that the client can repeat the call. See [`event_id`](Self::event_id).
    ///
    /// ```
    /// use tickover::prelude::*;
    /// use tickover::test::TestEnv;
    ///
    /// #[tickover::workflow]
    /// async fn basket(ctx: Ctx, size: u32) -> Result<Vec<String>> {
    ///     let mut items = vec![];
    ///     for _ in 0..size {
    ///         items.push(ctx.wait_for_event("add", forever()).await?);
    ///     }
    ///     Ok(items)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let env = TestEnv::new().workflow(basket);
    /// let add = |item: &str| env.client().start(&basket, 2).id("basket-of-ada").with_event("add", item);
    /// env.submit(add("a lamp")).await?; // starts it
    /// let run = env.submit(add("a chair")).await?; // sends the event
    /// assert_eq!(run.result().await?, ["a lamp", "a chair"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_event(mut self, name: impl Into<String>, value: impl Serialize) -> Self {
        self.change(|request| {
            let name = EventName::parse(name).map_err(|problem| ClientError::invalid("event", problem))?;
            let payload = Some(payload("payload", &value)?);
            request.event = Some(FirstEvent { name, payload, event_id: None });
            Ok(())
        });
        self
    }

    /// Sets the id of the event of [`with_event`](Self::with_event), which goes before this. An event with this id counts
    /// once for the execution, over all its runs and after its end.
    pub fn event_id(mut self, id: impl Into<String>) -> Self {
        self.change(|request| {
            let id = EventId::parse(id).map_err(|problem| ClientError::invalid("event_id", problem))?;
            let event = request.event.as_mut();
            let event = event.ok_or_else(|| ClientError::invalid("event_id", "needs an event before it"))?;
            event.event_id = Some(id);
            Ok(())
        });
        self
    }

    /// Delays the first turn by this long: `"1h 30m"`, or a duration.
    pub fn delay(mut self, delay: impl IntoMillis) -> Self {
        self.change(|request| {
            request.delay = request::unless_zero(request::span("delay", delay, ZeroRule::Allow)?);
            Ok(())
        });
        self
    }

    /// Sets the time limit of all its runs together, instead of the workflow's own; at least one second.
    pub fn execution_timeout(mut self, timeout: impl IntoMillis) -> Self {
        self.change(|request| {
            request.execution_timeout = Some(request::span("execution_timeout", timeout, ZeroRule::Reject)?);
            Ok(())
        });
        self
    }

    /// Sets the time limit of each run, instead of the workflow's own; at least one second.
    pub fn run_timeout(mut self, timeout: impl IntoMillis) -> Self {
        self.change(|request| {
            request.run_timeout = Some(request::span("run_timeout", timeout, ZeroRule::Reject)?);
            Ok(())
        });
        self
    }

    /// Lets at most `limit` executions and tasks of this key be in progress at once; up to three keys. The execution has
    /// its place from its first turn until its outcome is final, also while it waits. Its own steps and children must not
    /// ask for a place at the same key: they would wait for each other.
    pub fn concurrency(self, key: impl fmt::Display, limit: u16) -> Self {
        self.asking(|asked| asked.concurrency(key, limit))
    }

    /// Lets at most `limit` executions of this key start in each `per`, evenly spread.
    pub fn rate(self, key: impl fmt::Display, limit: u32, per: impl IntoMillis) -> Self {
        self.asking(|asked| asked.rate(key, limit, per))
    }

    /// Lets so many of the rate's executions start at once after a quiet time; by default one.
    pub fn burst(self, burst: u32) -> Self {
        self.asking(|asked| asked.burst(burst))
    }

    /// Sets which turns of its queue start first. Its children have the same, and so have its remote steps, unless they
    /// set one of their own. In SQS it needs `Priorities=on`.
    pub fn priority(self, priority: Priority) -> Self {
        self.asking(|asked| asked.priority(priority))
    }

    /// Makes the executions of this key one tenant of their queue, with their remote steps and children: however many
    /// there are, they don't delay those of other keys. At most 256 bytes.
    pub fn fairness_key(self, key: impl fmt::Display) -> Self {
        self.asking(|asked| asked.fairness_key(key))
    }

    /// Starts no second execution beside another one with this key, of at most 256 bytes, within the window: until its
    /// outcome is final, until its first turn, or for a time of at most 30 days.
    pub fn unique(self, key: impl fmt::Display, window: UniqueWindow, on_conflict: OnConflict) -> Self {
        self.asking(|asked| asked.unique(key, window, on_conflict))
    }

    /// Runs only the last execution of a burst with this key: once no other one has been started for `wait`, and at the
    /// latest `at_most` after the first. Both are at most 30 days. It can't have an id of its own.
    pub fn debounce(self, key: impl fmt::Display, wait: impl IntoMillis, at_most: impl IntoMillis) -> Self {
        self.asking(|asked| asked.debounce(key, wait, at_most))
    }

    /// Refuses the start with `id_conflict` if an execution has this id. By default, the start returns that execution.
    pub fn reject_duplicate(mut self) -> Self {
        self.change(|request| {
            request.policy = Some(Word(StartPolicy::Reject));
            Ok(())
        });
        self
    }

    /// Returns the writes that start the execution. The caller commits them in one transaction with its own writes, and
    /// then calls [`Client::announce`]. Only for a client that reaches the service directly.
    pub async fn prepare(self) -> Result<Prepared<ExecutionId>, ClientError> {
        let client = self.client.clone();
        client.api.prepare(&self.finished()?).await
    }

    pub(super) fn finished(self) -> Result<StartRequest, ClientError> {
        let flow = self.asked.checked().map_err(|(field, problem)| ClientError::invalid(field, problem))?;
        let priority = self.asked.given_priority().map(Word);
        Ok(StartRequest { priority, ..with_limits(self.request?, flow) })
    }

    fn asking(mut self, change: impl FnOnce(Asked) -> Asked) -> Self {
        self.asked = change(self.asked);
        self
    }

    /// Keeps the first problem.
    fn change(&mut self, change: impl FnOnce(&mut StartRequest) -> Result<(), ClientError>) {
        if let Ok(request) = &mut self.request
            && let Err(problem) = change(request)
        {
            self.request = Err(problem);
        }
    }
}

impl<O: Send + 'static> IntoFuture for StartExecution<O> {
    type Output = Result<Handle<O>, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let client = self.client.clone();
            let mut request = self.finished()?;
            // A burst's requests become one execution, whose id the answer has.
            if request.id.is_none() && request.debounce.is_none() {
                let id = ExecutionId::parse(request::random_id());
                request.id = Some(id.map_err(|problem| ClientError::invalid("id", problem))?);
            }
            if let Some(event @ FirstEvent { event_id: None, .. }) = &mut request.event {
                let id = EventId::parse(request::random_id());
                event.event_id = Some(id.map_err(|problem| ClientError::invalid("event_id", problem))?);
            }
            let started = client.api.start(&request).await?;
            Ok(Handle::new(client, started.execution.id))
        })
    }
}

impl<O> fmt::Debug for StartExecution<O> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StartExecution").field("client", &self.client).finish_non_exhaustive()
    }
}

fn request(workflow: &str, queue: &str, input: &impl Serialize) -> Result<StartRequest, ClientError> {
    let workflow =
        WorkflowName::parse(workflow).map_err(|problem| ClientError::invalid("workflow", problem))?;
    let (queue, input) = (Some(queue_name(queue)?), Some(payload("input", input)?));
    Ok(StartRequest { queue, input, ..StartRequest::new(workflow) })
}

pub(super) fn queue_name(queue: impl Into<String>) -> Result<QueueName, ClientError> {
    QueueName::parse(queue).map_err(|problem| ClientError::invalid("queue", problem))
}
