//! Steps: the parts of a workflow whose results are stored.
//!
//! Owns what a step is and how it ends. It runs no step: a [`Step`] does nothing until the workflow's context runs it.

mod batch;
mod handler;
mod info;
mod outcome;
mod state;

use std::any::type_name;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use futures::FutureExt as _;
use serde::Serialize;
use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::flow::{FlowRequest, Priority};
use tickover_core::id::{QueueName, StepName, TaskKind};
use tickover_core::kind::Policy;
use tickover_core::limits::SPAN_MAX;
use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;
use tickover_core::timeout::OnTimeout;

pub(crate) use batch::wrong_count;
pub use batch::{BatchAttempt, BatchOutcome, BatchReturned, only_one};
pub use handler::{Attempt, Fallible, StepHandler};
#[cfg(feature = "test")]
pub(crate) use info::running;
pub(crate) use info::{Beat, ProgressSender};
pub use info::{StepInfo, step_info, step_infos};
pub use outcome::{StepError, StepResult};
pub(crate) use state::MISSING_STATE;
pub use state::{LinkedStep, MissingState, StateType, States};

use crate::codec;
use crate::error::Failure;
use crate::options::{self, IntoMillis, IntoRetry, Place, Scope, StepOptions};
use crate::registry::ErasedStep;

/// The code of a step: each call starts an attempt.
pub(crate) type Run<T, E> = Arc<dyn Fn(&States) -> Attempt<T, E> + Send + Sync>;

/// A step with its argument: the return value of a function with the attribute `#[tickover::step]`.
///
/// Invalid options don't panic: running the step returns [`StepError::Invalid`].
#[must_use = "a step does nothing until it is handed to the workflow's context"]
pub struct Step<T, E = Failure> {
    pub(crate) name: String,
    /// The name that workers register its code under. [`Step::named`] doesn't change it.
    pub(crate) kind: String,
    pub(crate) options: StepOptions,
    /// `None` if this program doesn't have the code.
    pub(crate) run: Option<Run<T, E>>,
    /// The types of the states that its code asks for.
    pub(crate) states: Vec<StateType>,
    /// The code without its types, for an item of a map.
    pub(crate) code: Option<ErasedStep>,
    /// The name of its handler's type; empty if it has none.
    pub(crate) type_name: &'static str,
    input: Input,
    problem: Option<String>,
    _outcome: PhantomData<fn() -> (T, E)>,
}

/// A step's argument. An inline step never serialises it.
#[derive(Clone)]
enum Input {
    Written(Result<Json, String>),
    OnDemand(Arc<dyn Fn() -> Result<Json, String> + Send + Sync>),
    /// A closure's captured variables can't be serialised.
    None,
}

/// A step made of a closure, for work that is too small for a function of its own. It runs inline only, because a
/// closure can't be sent to another worker.
///
/// The closure is called once for each attempt.
pub fn step<T, E, C, F>(name: impl Into<String>, closure: C) -> Step<T, E>
where
    C: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    Step::new(
        name.into(),
        StepOptions::default(),
        Input::None,
        Some(Arc::new(move |_| Ok(closure().boxed()))),
    )
}

/// A step whose code is in another program, in any language: a task of this kind, which any worker of its queue can
/// claim.
///
/// `input` is sent to the worker as JSON. The result is read as `T`.
pub fn remote<T>(kind: impl Into<String>, input: impl Serialize) -> Step<T> {
    let written = codec::encode(&input).map_err(|error| error.to_string());
    Step::new(kind.into(), StepOptions::default(), Input::Written(written), None).placed(None)
}

/// A handler's step with its argument. The functions that the attribute generates call this.
#[doc(hidden)]
pub fn step_of<H: StepHandler>(input: H::Input) -> Step<H::Output, H::Error> {
    let input = Arc::new(input);
    let written = Arc::clone(&input);
    let on_demand = move || codec::encode(&*written).map_err(|error| error.to_string());
    let run: Run<H::Output, H::Error> = Arc::new(move |states| H::run(H::Input::clone(&input), states));
    let step = Step::new(H::NAME.to_owned(), H::options(), Input::OnDemand(Arc::new(on_demand)), Some(run));
    Step { states: H::states(), type_name: type_name::<H>(), ..step }
}

impl<T, E> Step<T, E> {
    fn new(kind: String, options: StepOptions, input: Input, run: Option<Run<T, E>>) -> Self {
        let name = kind.clone();
        Self {
            name,
            kind,
            options,
            run,
            states: vec![],
            code: None,
            type_name: "",
            input,
            problem: None,
            _outcome: PhantomData,
        }
    }

    /// A step whose input is JSON already, and whose code has no types.
    pub(crate) fn mapped(kind: String, options: StepOptions, input: Json, code: Option<ErasedStep>) -> Self {
        let states = code.as_ref().map(|code| code.states.clone()).unwrap_or_default();
        Self { states, code, ..Self::new(kind, options, Input::Written(Ok(input)), None) }
    }

    /// Sets the step's name in the run. Its result is stored under this name. So one function can be used for several
    /// steps.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets how often and when the step is retried: a short form such as `"exponential(3, 2s)"`, or a policy. The
    /// numbers of a short form don't count the first attempt.
    pub fn retry(mut self, policy: impl IntoRetry) -> Self {
        match policy.into_retry() {
            Ok(policy) => {
                self.options.note(Policy::Retry, policy == RetryPolicy::none());
                self.options.retry = policy;
            }
            Err(error) => self.refuse(&format!("retry: {error}")),
        }
        self
    }

    /// Makes errors with these codes final, even if attempts are left. A typed error's code is the name of its variant
    /// as serde writes it. Call this after [`Step::retry`], which replaces the whole policy.
    pub fn non_retryable<C: Into<String>>(mut self, codes: impl IntoIterator<Item = C>) -> Self {
        self.options.retry.non_retryable = codes.into_iter().map(Into::into).collect();
        if let Err(error) = self.options.retry.check() {
            self.refuse(&error.to_string());
        }
        self
    }

    /// Limits how long the step may take: `"5m"`, or a duration above zero. This timeout is final, even if attempts are
    /// left. It counts from the start of an inline step's first attempt, or from the scheduling of a remote step: then
    /// the wait for a worker counts too.
    ///
    /// The timeout over all attempts is recorded before the first one begins, so it doesn't begin again if a worker is
    /// lost. That costs a turn at most one write unit: what begins after another step is part of that step's write.
    pub fn timeout(mut self, timeout: impl IntoMillis) -> Self {
        self.options.timeout = self.span("timeout", timeout).or(self.options.timeout);
        self
    }

    /// Sets whether all attempts share the timeout (the default) or each attempt has its own. The timeout is final in
    /// both cases.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.options.scope = scope;
        self
    }

    /// Limits how long each attempt may take from its start: `"30s"`, or a duration above zero. An attempt that takes
    /// longer has failed. Another attempt follows if any are left, unless [`Step::on_timeout`] says otherwise.
    ///
    /// An inline step is stopped where it awaits something. If it blocks its thread, it runs to its end, but a result
    /// after the timeout is discarded.
    pub fn attempt_timeout(mut self, timeout: impl IntoMillis) -> Self {
        self.options.attempt_timeout = self.span("attempt_timeout", timeout).or(self.options.attempt_timeout);
        self
    }

    /// Limits how long an attempt may run without a sign of life from its code: `"30s"`, or a duration above zero. After
    /// that, the attempt is stopped and has failed, and [`Step::on_timeout`] says what follows. The code gives signs of
    /// life by [`StepInfo::heartbeat`] and [`StepInfo::beat`]. That its worker lives is another question, which the lease answers.
    pub fn heartbeat(mut self, timeout: impl IntoMillis) -> Self {
        self.options.heartbeat = self.span("heartbeat", timeout).or(self.options.heartbeat);
        self
    }

    /// Limits how long each attempt of a remote step may wait for a worker, from the instant at which it may start:
    /// `"30s"`, or a duration above zero. An attempt that no worker has claimed until then has failed, and
    /// [`Step::on_timeout`] says what follows.
    ///
    /// An inline step starts with its turn. It would end with [`StepError::Invalid`].
    pub fn schedule_to_start(mut self, timeout: impl IntoMillis) -> Self {
        self.options.schedule_to_start =
            self.span("schedule_to_start", timeout).or(self.options.schedule_to_start);
        self
    }

    /// Sets what follows an attempt that exceeds its [`Step::attempt_timeout`], its [`Step::heartbeat`] or its
    /// [`Step::schedule_to_start`]: another attempt if any are left (the default), or the end of the step. [`Step::timeout`] is final in any case.
    pub fn on_timeout(mut self, on_timeout: OnTimeout) -> Self {
        self.options.on_timeout = on_timeout;
        self
    }

    /// Runs the step as a task, on any worker of its queue.
    pub fn remote(self) -> Self {
        let queue = match &self.options.place {
            Place::Inline => None,
            Place::Remote { queue } => queue.clone(),
        };
        self.placed(queue)
    }

    /// Runs the step as a task on this queue.
    pub fn on_queue(mut self, queue: impl Into<String>) -> Self {
        let queue = queue.into();
        match QueueName::parse(queue.as_str()) {
            Ok(queue) => self.placed(Some(queue)),
            Err(error) => {
                self.refuse(&format!("queue {queue:?}: {error}"));
                self
            }
        }
    }

    /// Records each attempt before it starts. If its worker is lost, the step isn't started again. The same holds after
    /// a timeout, because it isn't known how far the attempt got.
    pub fn at_most_once(mut self) -> Self {
        self.options.at_most_once = true;
        self
    }

    /// Lets at most `limit` tasks of this key run at once, over all queues and workers: 1 to 1,000. A step may have 3 keys
    /// of at most 256 bytes. Of two limits for one key, the later one counts.
    ///
    /// This and the following options are for remote steps: they order and limit the starts of tasks.
    pub fn concurrency(self, key: impl fmt::Display, limit: u16) -> Self {
        self.flow(|flow| options::flow::concurrency(flow, key, limit))
    }

    /// Lets at most `limit` tasks of this key start in each `per`, evenly spread: at most 1,000,000 in at most 24 hours.
    /// Each attempt is a start. Of two rates for one key, that of the task that was scheduled later counts.
    pub fn rate(self, key: impl fmt::Display, limit: u32, per: impl IntoMillis) -> Self {
        self.flow(|flow| options::flow::rate(flow, key, limit, per))
    }

    /// Lets so many tasks start at once after a quiet time: 1 to the limit of the [`Step::rate`] before it.
    pub fn burst(self, burst: u32) -> Self {
        self.flow(|flow| options::flow::burst(flow, burst))
    }

    /// Sets which tasks of the queue, or of those that wait for a key, start first.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.options.note(Policy::Priority, priority == Priority::default());
        self.flow(|flow| {
            flow.priority = priority;
            Ok(())
        })
    }

    /// Makes the tasks of this key one tenant of their queue: they don't delay those of others.
    pub fn fairness_key(self, key: impl fmt::Display) -> Self {
        self.flow(|flow| options::flow::fairness(flow, key))
    }

    /// Leaves the step to workers that provide these, such as `gpu`: at most 8 names.
    pub fn requires<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        let mut step = self.flow(|flow| options::flow::requires(flow, names));
        let is_absent = step.options.flow.requires.is_empty();
        step.options.note(Policy::Requires, is_absent);
        step
    }

    fn flow(mut self, change: impl FnOnce(&mut FlowRequest) -> Result<(), String>) -> Self {
        if let Err(problem) = change(&mut self.options.flow) {
            self.refuse(&problem);
        }
        self
    }

    /// Why the step can't be run: an invalid option, an invalid step name, or, for a remote step, an invalid task kind.
    pub(crate) fn problem(&self) -> Option<String> {
        if let Some(problem) = &self.problem {
            return Some(problem.clone());
        }
        if let Some(problem) = self.options.problem() {
            return Some(problem.to_owned());
        }
        if let Err(error) = StepName::parse(self.name.as_str()) {
            return Some(format!("name {:?}: {error}", excerpt(&self.name)));
        }
        match &self.options.place {
            Place::Inline => None,
            Place::Remote { .. } => TaskKind::parse(self.kind.as_str())
                .err()
                .map(|error| format!("kind {:?}: {error}", excerpt(&self.kind))),
        }
    }

    /// The JSON that is sent to another worker.
    pub(crate) fn input(&self) -> Result<Json, StepError<E>> {
        let written = match &self.input {
            Input::Written(written) => written.clone(),
            Input::OnDemand(write) => write(),
            Input::None => Err("a closure can't be sent to another worker".to_owned()),
        };
        written.map_err(|problem| self.invalid(format!("its input can't be written: {problem}")))
    }

    /// The outcome of a step that can't be run.
    pub(crate) fn invalid(&self, problem: impl Into<String>) -> StepError<E> {
        StepError::Invalid { step: self.name.clone(), problem: problem.into() }
    }

    fn placed(mut self, queue: Option<QueueName>) -> Self {
        if matches!(self.input, Input::None) {
            self.refuse("remote: a closure can't be sent to another worker");
        }
        self.options.place = Place::Remote { queue };
        self
    }

    /// Reads the duration of an option.
    fn span(&mut self, option: &str, span: impl IntoMillis) -> Option<Millis> {
        match span.into_millis(ZeroRule::Reject) {
            Ok(span) if span > SPAN_MAX => {
                self.refuse(&format!("{option}: it can be at most {SPAN_MAX}, not {span}"));
                None
            }
            Ok(span) => Some(span),
            Err(error) => {
                self.refuse(&format!("{option}: {error}"));
                None
            }
        }
    }

    /// Keeps the first problem: later ones may only follow from it.
    fn refuse(&mut self, problem: &str) {
        self.problem.get_or_insert_with(|| problem.to_owned());
    }
}

impl<T, E> Clone for Step<T, E> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            kind: self.kind.clone(),
            options: self.options.clone(),
            run: self.run.clone(),
            states: self.states.clone(),
            code: self.code.clone(),
            type_name: self.type_name,
            input: self.input.clone(),
            problem: self.problem.clone(),
            _outcome: PhantomData,
        }
    }
}

/// Leaves the argument out: its type may not implement `Debug`.
impl<T, E> fmt::Debug for Step<T, E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Step")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The first characters of a caller's text, because errors are stored and logged.
fn excerpt(text: &str) -> String {
    text.chars().take(tickover_core::duration::MAX_QUOTED_CHARS).collect()
}

#[cfg(test)]
mod tests;
