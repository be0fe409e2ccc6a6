//! Workflows as values: the attribute makes one of a function, and a worker is built from them.

use std::fmt;
use std::future::Future;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tickover_core::duration::Millis;

use crate::Ctx;
use crate::error::{Cause, Error, Result};
use crate::options::asked::Asked;
use crate::options::{OnDrift, WorkflowOptions};

/// A workflow's code: it gets its context and its input.
pub type Body<I, O> = fn(Ctx, I) -> BoxFuture<'static, Result<O>>;

/// The code that runs when a workflow has failed: it gets the same input and the cause. `Some` becomes the workflow's
/// result. With `None` the workflow stays failed.
pub type OnFailure<I, O> = fn(Ctx, I, Cause) -> BoxFuture<'static, Result<Option<O>>>;

/// The code that runs when a workflow was cancelled, after its undo steps: it gets the same input. The workflow is
/// cancelled whatever it returns.
pub type OnCancel<I> = fn(Ctx, I) -> BoxFuture<'static, Result<()>>;

/// A workflow with input `I` and output `O`: what `#[tickover::workflow]` makes of a function.
pub struct Workflow<I, O> {
    name: &'static str,
    options: WorkflowOptions,
    body: Body<I, O>,
    on_failure: Option<OnFailure<I, O>>,
    on_cancel: Option<OnCancel<I>>,
    asks: Option<fn(&I) -> Asked>,
}

impl<I, O> Workflow<I, O> {
    /// Creates a workflow without timeouts and retries, on the default queue for workflows. Names aren't checked here: the
    /// attribute checks them, and the worker's registry does too.
    pub const fn new(name: &'static str, body: Body<I, O>) -> Self {
        Self { name, options: WorkflowOptions::new(), body, on_failure: None, on_cancel: None, asks: None }
    }

    /// Limits how long an execution may take over all its runs; at least one second.
    #[must_use]
    pub const fn execution_timeout(mut self, timeout: Millis) -> Self {
        self.options.execution_timeout = Some(timeout);
        self
    }

    /// Limits how long each run may take; at least one second.
    #[must_use]
    pub const fn run_timeout(mut self, timeout: Millis) -> Self {
        self.options.run_timeout = Some(timeout);
        self
    }

    /// Runs a run that failed again, as this policy says: `"exponential(3, 2s)"` or another short form.
    #[must_use]
    pub const fn retry(mut self, policy: &'static str) -> Self {
        self.options.retry = policy;
        self
    }

    /// Sets the codes of errors after which a run isn't run again.
    #[must_use]
    pub const fn non_retryable(mut self, codes: &'static [&'static str]) -> Self {
        self.options.non_retryable = codes;
        self
    }

    /// Sets the queue of its turns.
    #[must_use]
    pub const fn queue(mut self, queue: &'static str) -> Self {
        self.options.queue = queue;
        self
    }

    /// Sets what happens if its code doesn't ask for a stored result.
    #[must_use]
    pub const fn on_drift(mut self, on_drift: OnDrift) -> Self {
        self.options.on_drift = on_drift;
        self
    }

    /// Sets the names of code changes that executions may not know yet if they started before.
    #[must_use]
    pub const fn patches(mut self, patches: &'static [&'static str]) -> Self {
        self.options.patches = patches;
        self
    }

    /// Sets the code that runs when it has failed.
    #[must_use]
    pub const fn on_failure(mut self, handler: OnFailure<I, O>) -> Self {
        self.on_failure = Some(handler);
        self
    }

    /// Limits how long `on_failure` may take; at least one second. Other deadlines don't limit it.
    #[must_use]
    pub const fn on_failure_timeout(mut self, timeout: Millis) -> Self {
        self.options.on_failure_timeout = Some(timeout);
        self
    }

    /// Sets the code that runs when it was cancelled.
    #[must_use]
    pub const fn on_cancel(mut self, handler: OnCancel<I>) -> Self {
        self.on_cancel = Some(handler);
        self
    }

    /// Limits how long `on_cancel` may take; at least one second. Other deadlines don't limit it.
    #[must_use]
    pub const fn on_cancel_timeout(mut self, timeout: Millis) -> Self {
        self.options.on_cancel_timeout = Some(timeout);
        self
    }

    /// Sets what an execution asks of flow control, from its input. The attribute calls this.
    #[doc(hidden)]
    #[must_use]
    pub const fn asks(mut self, asks: fn(&I) -> Asked) -> Self {
        self.asks = Some(asks);
        self
    }

    /// The name of the workflow.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its options.
    pub const fn options(&self) -> WorkflowOptions {
        self.options
    }

    /// Whether its attribute asks anything of flow control.
    pub(crate) const fn asks_anything(&self) -> bool {
        self.asks.is_some()
    }

    /// What an execution with this input asks of flow control.
    pub(crate) fn asked(&self, input: &I) -> Asked {
        self.asks.map_or_else(Asked::default, |asks| asks(input))
    }

    /// Its code.
    pub(crate) const fn body(&self) -> Body<I, O> {
        self.body
    }

    /// Its `on_failure`.
    pub(crate) const fn failure_handler(&self) -> Option<OnFailure<I, O>> {
        self.on_failure
    }

    /// Its `on_cancel`.
    pub(crate) const fn cancel_handler(&self) -> Option<OnCancel<I>> {
        self.on_cancel
    }
}

/// What stands for a workflow in a call: the function that the attribute makes, `&fulfil`, or its value, `&fulfil()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a workflow",
    note = "a workflow is a function with the attribute `#[tickover::workflow]`"
)]
pub trait AsWorkflow {
    /// Its input.
    type Input;
    /// Its output.
    type Output;

    /// The workflow itself.
    fn as_workflow(&self) -> Workflow<Self::Input, Self::Output>;
}

impl<I, O> AsWorkflow for Workflow<I, O> {
    type Input = I;
    type Output = O;

    fn as_workflow(&self) -> Self {
        *self
    }
}

#[diagnostic::do_not_recommend]
impl<F: Fn() -> Workflow<I, O>, I, O> AsWorkflow for F {
    type Input = I;
    type Output = O;

    fn as_workflow(&self) -> Workflow<I, O> {
        self()
    }
}

impl<I, O> Clone for Workflow<I, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I, O> Copy for Workflow<I, O> {}

impl<I, O> fmt::Debug for Workflow<I, O> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Workflow")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Boxes a body's future as [`Body`], [`OnFailure`] and [`OnCancel`] return it, and converts its error.
#[doc(hidden)]
pub fn boxed<T, E: Into<Error>>(
    future: impl Future<Output = std::result::Result<T, E>> + Send + 'static,
) -> BoxFuture<'static, Result<T>> {
    future.map(|outcome| outcome.map_err(Into::into)).boxed()
}
