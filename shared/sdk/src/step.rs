//! Steps: the pieces of a workflow whose results are remembered.
//!
//! Owns what a step is and how it ends. It runs none: a [`Step`] does nothing until it is handed to the
//! workflow's context.

mod handler;
mod info;
mod outcome;
mod state;

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use futures::FutureExt as _;
use serde::Serialize;
use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::id::{QueueName, StepName, TaskKind};
use tickover_core::limits::SPAN_MAX;
use tickover_core::payload::Json;
use tickover_core::timeout::OnTimeout;

pub use handler::{Attempt, Fallible, StepHandler};
pub(crate) use info::Pulse;
pub use info::{StepInfo, step_info};
pub use outcome::{StepError, StepResult};
pub(crate) use state::MISSING_STATE;
pub use state::{LinkedStep, MissingState, StateType, States};

use crate::codec;
use crate::error::Failure;
use crate::options::{IntoMillis, IntoRetry, Place, Scope, StepOptions};

/// One attempt of a step, as often as it is called.
pub(crate) type Run<T, E> = Arc<dyn Fn(&States) -> Attempt<T, E> + Send + Sync>;

/// A step that is ready to be run, with its argument: what a function under `#[tickover::step]` returns when it
/// is called.
///
/// Options that can't be used don't panic: they come out as [`StepError::Invalid`] when the step is run.
#[must_use = "a step does nothing until it is handed to the workflow's context"]
pub struct Step<T, E = Failure> {
    pub(crate) name: String,
    /// What a worker knows it by: the name it was written under, whatever it is called in the run.
    pub(crate) kind: String,
    pub(crate) options: StepOptions,
    /// `None` where the code isn't here.
    pub(crate) run: Option<Run<T, E>>,
    /// The types of the states that its code asks for.
    pub(crate) states: Vec<StateType>,
    input: Input,
    problem: Option<String>,
    _outcome: PhantomData<fn() -> (T, E)>,
}

/// A step's argument. Steps that run in place never write it.
#[derive(Clone)]
enum Input {
    Written(Result<Json, String>),
    OnDemand(Arc<dyn Fn() -> Result<Json, String> + Send + Sync>),
    /// A closure's surroundings can't be written.
    None,
}

/// A step made of a closure, for what is too small for a function of its own. It runs in place only, since a
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

/// A step that is written elsewhere, in any language: a task of this kind, for whatever worker claims it.
///
/// `input` is what the worker gets, as JSON. The result is read as `T`, which the use of it decides.
pub fn remote<T>(kind: impl Into<String>, input: impl Serialize) -> Step<T> {
    let written = codec::encode(&input).map_err(|error| error.to_string());
    Step::new(kind.into(), StepOptions::default(), Input::Written(written), None).placed(None)
}

/// The step of a handler with its argument: what the functions that the attribute makes call.
#[doc(hidden)]
pub fn step_of<H: StepHandler>(input: H::Input) -> Step<H::Output, H::Error> {
    let input = Arc::new(input);
    let written = Arc::clone(&input);
    let on_demand = move || codec::encode(&*written).map_err(|error| error.to_string());
    let run: Run<H::Output, H::Error> = Arc::new(move |states| H::run(H::Input::clone(&input), states));
    let step = Step::new(H::NAME.to_owned(), H::options(), Input::OnDemand(Arc::new(on_demand)), Some(run));
    Step { states: H::states(), ..step }
}

impl<T, E> Step<T, E> {
    fn new(kind: String, options: StepOptions, input: Input, run: Option<Run<T, E>>) -> Self {
        let name = kind.clone();
        Self { name, kind, options, run, states: vec![], input, problem: None, _outcome: PhantomData }
    }

    /// Under this name in the run, so that one function can be several steps. Its result is remembered by it.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How often and when it is tried again: a short form such as `"exponential(3, 2s)"`, whose numbers count
    /// without the first attempt, or a policy.
    pub fn retry(mut self, policy: impl IntoRetry) -> Self {
        match policy.into_retry() {
            Ok(policy) => self.options.retry = policy,
            Err(error) => self.refuse(&format!("retry: {error}")),
        }
        self
    }

    /// Errors with these codes are final, whatever attempts are left. A typed error's code is the name of its
    /// variant as serde writes it. Comes after [`Step::retry`], which replaces the policy as a whole.
    pub fn non_retryable<C: Into<String>>(mut self, codes: impl IntoIterator<Item = C>) -> Self {
        self.options.retry.non_retryable = codes.into_iter().map(Into::into).collect();
        if let Err(error) = self.options.retry.check() {
            self.refuse(&error.to_string());
        }
        self
    }

    /// How long it may take: `"5m"`, or a duration above zero. It is final, whatever attempts are left.
    pub fn timeout(mut self, timeout: impl IntoMillis) -> Self {
        self.options.timeout = self.span("timeout", timeout).or(self.options.timeout);
        self
    }

    /// Whether the timeout, which is final either way, is shared by all attempts, as it is by default, or anew for
    /// each.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.options.scope = scope;
        self
    }

    /// How long each attempt may take from its start: `"30s"`, or a duration above zero. One that takes longer is a
    /// failed attempt, and another one follows while any are left, unless [`Step::on_timeout`] says otherwise.
    ///
    /// In place, a step is stopped where it awaits something. One that blocks its thread comes to its end, but what it
    /// gives after its time isn't taken.
    pub fn attempt_timeout(mut self, timeout: impl IntoMillis) -> Self {
        self.options.attempt_timeout = self.span("attempt_timeout", timeout).or(self.options.attempt_timeout);
        self
    }

    /// How long an attempt of a remote step may go without a heartbeat of its worker: `"30s"`, or a duration above
    /// zero. Then it is a failed attempt, and [`Step::on_timeout`] says what follows. Workers of this crate send them
    /// by themselves, three times as often.
    ///
    /// A step in place has none, and is refused as [`StepError::Invalid`] where it has one: its worker shows life by
    /// the lease of the turn. Limit its attempts with [`Step::attempt_timeout`].
    pub fn heartbeat(mut self, timeout: impl IntoMillis) -> Self {
        self.options.heartbeat = self.span("heartbeat", timeout).or(self.options.heartbeat);
        self
    }

    /// What follows an attempt that exceeds its [`Step::attempt_timeout`] or goes without a [`Step::heartbeat`]:
    /// another one while any are left, as by default, or the end. [`Step::timeout`] is final in any case.
    pub fn on_timeout(mut self, on_timeout: OnTimeout) -> Self {
        self.options.on_timeout = on_timeout;
        self
    }

    /// As a task of its own, on whatever worker claims it.
    pub fn remote(self) -> Self {
        let queue = match &self.options.place {
            Place::Inline => None,
            Place::Remote { queue } => queue.clone(),
        };
        self.placed(queue)
    }

    /// As a task of its own on this queue.
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

    /// Write each attempt down before it starts, so that one whose worker was lost isn't started again. Neither is one
    /// that timed out: nobody knows how far it had come.
    pub fn at_most_once(mut self) -> Self {
        self.options.at_most_once = true;
        self
    }

    /// Write the timeouts down before the step starts, so that they fire though the worker is lost.
    pub fn durable_timeout(mut self) -> Self {
        self.options.durable_timeout = true;
        self
    }

    /// What keeps the step from being run: an option that can't be used, a name that no step can have, or, for
    /// a remote one, a kind that no task can have.
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

    /// What is sent to another worker.
    pub(crate) fn input(&self) -> Result<Json, StepError<E>> {
        let written = match &self.input {
            Input::Written(written) => written.clone(),
            Input::OnDemand(write) => write(),
            Input::None => Err("a closure can't be sent to another worker".to_owned()),
        };
        written.map_err(|problem| self.invalid(format!("its input can't be written: {problem}")))
    }

    /// The outcome of a step that couldn't be run.
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

    /// A length of time that an option takes.
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

    /// The first problem is kept: what comes after may only follow from it.
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
            input: self.input.clone(),
            problem: self.problem.clone(),
            _outcome: PhantomData,
        }
    }
}

/// Without the argument, which may be anything.
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

/// The first characters of a caller's text: errors are stored and logged.
fn excerpt(text: &str) -> String {
    text.chars().take(tickover_core::duration::MAX_QUOTED_CHARS).collect()
}

#[cfg(test)]
mod tests;
