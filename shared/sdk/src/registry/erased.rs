//! Workflows and steps without their types: input and output are JSON.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionOutcome;
use tickover_core::execution::command::CodeTerms;
use tickover_core::execution::journal::TYPED_ERROR;
use tickover_core::payload::Json;
use tickover_core::task;
use tickover_service::{Asks, CodeAsks, WorkflowTerms};

use super::together::Together;
use crate::Ctx;
use crate::codec;
use crate::error::{Cause, Error, Failure, failure_of};
use crate::options::{StepOptions, WorkflowOptions};
use crate::step::{Attempt, MISSING_STATE, MissingState, StateType, States, StepHandler};
use crate::turn::{HANDLER, cause_of};
use crate::workflow::Workflow;

type RunBody = dyn Fn(Ctx, &Json) -> BoxFuture<'static, Result<Json, Error>> + Send + Sync;
type RunOnFailure =
    dyn Fn(Ctx, &Json, Cause) -> BoxFuture<'static, Result<Option<Json>, Error>> + Send + Sync;
type RunOnCancel = dyn Fn(Ctx, &Json) -> BoxFuture<'static, Result<(), Error>> + Send + Sync;
type RunStep = dyn Fn(&Json, &States) -> BoxFuture<'static, Result<Json, StepFailed>> + Send + Sync;

/// A workflow whose input and output are JSON.
#[derive(Clone)]
pub struct ErasedWorkflow {
    /// The name of the workflow.
    pub name: &'static str,
    /// Its options.
    pub options: WorkflowOptions,
    body: Arc<RunBody>,
    on_failure: Option<Arc<RunOnFailure>>,
    on_cancel: Option<Arc<RunOnCancel>>,
    asks: Option<CodeAsks>,
}

impl ErasedWorkflow {
    pub(super) fn new<I, O>(workflow: Workflow<I, O>) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + Send + 'static,
    {
        let name = workflow.name();
        let body = workflow.body();
        let run = move |ctx: Ctx, input: &Json| match read_input(name, input) {
            Ok(input) => body(ctx, input).map(move |output| write_output(name, &output?)).boxed(),
            Err(error) => ctx.refuse_input(error).boxed(),
        };
        let on_failure = workflow.failure_handler().map(|handler| -> Arc<RunOnFailure> {
            Arc::new(move |ctx, input, cause| match read_input(name, input) {
                Ok(input) => handler(ctx, input, cause)
                    .map(move |output| output?.map(|output| write_output(name, &output)).transpose())
                    .boxed(),
                Err(error) => ctx.refuse_input(error).boxed(),
            })
        });
        let on_cancel = workflow.cancel_handler().map(|handler| -> Arc<RunOnCancel> {
            Arc::new(move |ctx, input| match read_input(name, input) {
                Ok(input) => handler(ctx, input),
                Err(error) => ctx.refuse_input(error).boxed(),
            })
        });
        let asks = workflow.asks_anything().then(|| -> CodeAsks {
            Arc::new(move |input| workflow.asked(&codec::decode(input).ok()?).checked().ok().cloned())
        });
        Self { name, options: workflow.options(), body: Arc::new(run), on_failure, on_cancel, asks }
    }

    /// The terms of its executions.
    pub(crate) fn terms(&self) -> CodeTerms {
        self.options.terms(self.has_on_failure())
    }

    /// What a worker's service knows of its executions.
    pub(super) fn known(&self) -> WorkflowTerms {
        WorkflowTerms { code: self.terms(), asks: self.asks.clone().map(Asks::Code) }
    }

    /// Runs the body. An input that doesn't fit its type is an error with the code `invalid_input`. It names the path
    /// of the invalid field. A run that has a journal waits for other code or an operator instead.
    pub fn run(&self, ctx: Ctx, input: &Json) -> BoxFuture<'static, Result<Json, Error>> {
        (self.body)(ctx, input)
    }

    /// Runs the workflow's `on_failure` or, after a cancellation, its `on_cancel`. `None` if it has none.
    pub(crate) fn handler(
        &self,
        ctx: Ctx,
        input: &Json,
        outcome: &ExecutionOutcome,
    ) -> Option<BoxFuture<'static, Result<Option<Json>, Error>>> {
        if let ExecutionOutcome::Cancelled { .. } = outcome {
            let handler = self.on_cancel.as_ref()?;
            return Some(handler(ctx, input).map(|done| done.map(|()| None)).boxed());
        }
        self.on_failure.as_ref().map(|handler| handler(ctx, input, cause_of(outcome)))
    }

    /// How long its `on_cancel` may take, if it has one.
    pub(crate) fn on_cancel_timeout(&self) -> Option<Millis> {
        self.on_cancel.as_ref().map(|_| self.options.on_cancel_timeout.unwrap_or(HANDLER))
    }

    /// Whether the workflow has an `on_failure`.
    pub fn has_on_failure(&self) -> bool {
        self.on_failure.is_some()
    }
}

/// The code of a run, or of a step, whose input doesn't fit its type.
pub(crate) const INVALID_INPUT: &str = "invalid_input";

fn read_input<I: DeserializeOwned>(workflow: &str, input: &Json) -> Result<I, Error> {
    codec::decode(input).map_err(|error| {
        Error::new(INVALID_INPUT, format!("the input doesn't fit workflow `{workflow}`: {error}"))
    })
}

fn write_output<O: Serialize>(workflow: &str, output: &O) -> Result<Json, Error> {
    codec::encode(output).map_err(|error| {
        Error::new("invalid_output", format!("the output of workflow `{workflow}` can't be written: {error}"))
    })
}

impl fmt::Debug for ErasedWorkflow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ErasedWorkflow")
            .field("name", &self.name)
            .field("options", &self.options)
            .field("on_failure", &self.has_on_failure())
            .finish_non_exhaustive()
    }
}

/// A step whose input and output are JSON.
#[derive(Clone)]
pub struct ErasedStep {
    /// The kind of its tasks.
    pub kind: &'static str,
    /// The options that apply unless a workflow sets others.
    pub options: StepOptions,
    /// The types of the states that it asks for.
    pub(crate) states: Vec<StateType>,
    run: Arc<RunStep>,
    /// If its tasks are run together.
    pub(super) together: Option<Together>,
}

/// Why an attempt of a step failed, as it is reported to the workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepFailed {
    /// Code and message.
    pub failure: Failure,
    /// Whether the step's own policy allows a retry: it doesn't list the code as final.
    pub retryable: bool,
    /// The step's own error as JSON, for workflows that know its type. `None` if there is none or it can't be
    /// serialised.
    pub error: Option<Json>,
}

impl ErasedStep {
    pub(crate) fn new<S: StepHandler>() -> Self {
        Self { states: S::states(), together: Together::of::<S>(), ..Self::running::<S>(S::run) }
    }

    /// The same step with other code.
    pub(super) fn running<S: StepHandler>(
        run: impl Fn(S::Input, &States) -> Attempt<S::Output, S::Error> + Send + Sync + 'static,
    ) -> Self {
        let run = move |input: &Json, states: &States| run_step::<S>(&run, input, states);
        Self { kind: S::NAME, options: S::options(), states: vec![], run: Arc::new(run), together: None }
    }

    /// Runs one attempt. An input that doesn't fit its type is a failure with the code `invalid_input`, which isn't
    /// retried. It names the path of the invalid field. A missing state is a failure with the code `missing_state`,
    /// which is retried.
    pub fn run(&self, input: &Json, states: &States) -> BoxFuture<'static, Result<Json, StepFailed>> {
        (self.run)(input, states)
    }
}

fn run_step<S: StepHandler>(
    run: &impl Fn(S::Input, &States) -> Attempt<S::Output, S::Error>,
    input: &Json,
    states: &States,
) -> BoxFuture<'static, Result<Json, StepFailed>> {
    let refused = |refused: StepFailed| futures::future::ready(Err(refused)).boxed();
    let attempt = match codec::decode::<S::Input>(input).map(|input| run(input, states)) {
        Ok(Ok(attempt)) => attempt,
        // Another worker may have the state.
        Ok(Err(missing)) => return refused(StepFailed::missing(S::NAME, missing)),
        Err(error) => return refused(StepFailed::invalid_input(S::NAME, &error)),
    };
    attempt.map(write_outcome::<S>).boxed()
}

/// The outcome of an attempt as JSON.
pub(super) fn write_outcome<S: StepHandler>(
    outcome: Result<S::Output, S::Error>,
) -> Result<Json, StepFailed> {
    match outcome {
        Ok(output) => codec::encode_stored(&output).map_err(|error| {
            let message = format!("the output of step `{}` can't be written: {error}", S::NAME);
            StepFailed::terminal("invalid_output", message)
        }),
        Err(error) => Err(StepFailed::of::<S>(&error)),
    }
}

impl StepFailed {
    /// The failure that the step's task reports. An error with more than a code and a message is sent as JSON in the
    /// message, under the code `TYPED_ERROR`, so that its readers know that.
    pub fn into_task_failure(self) -> task::Failure {
        let plain = codec::encode(&self.failure).ok();
        match self.error {
            Some(error) if Some(&error) != plain.as_ref() => task::Failure::new(TYPED_ERROR, error.as_str()),
            Some(_) | None => self.failure.into(),
        }
    }

    /// The failure of a step with its own error.
    pub(super) fn of<S: StepHandler>(error: &S::Error) -> Self {
        let failure = failure_of(error);
        let retryable = S::options().retry.is_retryable(&failure.code);
        Self { failure, retryable, error: codec::encode(error).ok() }
    }

    pub(super) fn missing(step: &str, missing: MissingState) -> Self {
        Self { retryable: true, ..Self::terminal(MISSING_STATE, format!("step `{step}`: {missing}")) }
    }

    pub(super) fn invalid_input(step: &str, error: &dyn fmt::Display) -> Self {
        Self::terminal(INVALID_INPUT, format!("the input doesn't fit step `{step}`: {error}"))
    }

    pub(super) fn terminal(code: &str, message: String) -> Self {
        Self { failure: Failure::new(code, message), retryable: false, error: None }
    }
}

impl fmt::Debug for ErasedStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ErasedStep")
            .field("kind", &self.kind)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
