//! Workflows as values: what the attribute makes of a function, and what a worker is given.

use std::fmt;
use std::future::Future;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tickover_core::duration::Millis;

use crate::Ctx;
use crate::error::{Cause, Error, Result};
use crate::options::{OnDrift, WorkflowOptions};

/// A workflow's code: it gets its context and its input.
pub type Body<I, O> = fn(Ctx, I) -> BoxFuture<'static, Result<O>>;

/// What runs when a workflow failed: it gets the same input and the cause. `Some` is the workflow's result
/// after all; with `None` it stays failed.
pub type OnFailure<I, O> = fn(Ctx, I, Cause) -> BoxFuture<'static, Result<Option<O>>>;

/// A workflow from input `I` to output `O`: what becomes of a function under `#[tickover::workflow]`.
pub struct Workflow<I, O> {
    name: &'static str,
    options: WorkflowOptions,
    body: Body<I, O>,
    on_failure: Option<OnFailure<I, O>>,
}

impl<I, O> Workflow<I, O> {
    /// A workflow without timeouts on the queue for workflows. Texts aren't checked here: the attribute does
    /// it, and so does a worker that is given the workflow.
    pub const fn new(name: &'static str, body: Body<I, O>) -> Self {
        Self { name, options: WorkflowOptions::new(), body, on_failure: None }
    }

    /// How long an execution may take over all its runs; at least one second.
    #[must_use]
    pub const fn execution_timeout(mut self, timeout: Millis) -> Self {
        self.options.execution_timeout = Some(timeout);
        self
    }

    /// How long each run may take; at least one second.
    #[must_use]
    pub const fn run_timeout(mut self, timeout: Millis) -> Self {
        self.options.run_timeout = Some(timeout);
        self
    }

    /// The queue its turns are handed out on.
    #[must_use]
    pub const fn queue(mut self, queue: &'static str) -> Self {
        self.options.queue = queue;
        self
    }

    /// What is done where its code doesn't ask for what a run remembers.
    #[must_use]
    pub const fn on_drift(mut self, on_drift: OnDrift) -> Self {
        self.options.on_drift = on_drift;
        self
    }

    /// The changes of its code that running executions may not know yet.
    #[must_use]
    pub const fn patches(mut self, patches: &'static [&'static str]) -> Self {
        self.options.patches = patches;
        self
    }

    /// What runs when it failed.
    #[must_use]
    pub const fn on_failure(mut self, handler: OnFailure<I, O>) -> Self {
        self.on_failure = Some(handler);
        self
    }

    /// How long that may take; at least one second. It is a time of its own, whatever deadline has passed.
    #[must_use]
    pub const fn on_failure_timeout(mut self, timeout: Millis) -> Self {
        self.options.on_failure_timeout = Some(timeout);
        self
    }

    /// The name that executions are started by.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// How it is run.
    pub const fn options(&self) -> WorkflowOptions {
        self.options
    }

    /// Its code.
    pub(crate) const fn body(&self) -> Body<I, O> {
        self.body
    }

    /// What runs when it failed.
    pub(crate) const fn failure_handler(&self) -> Option<OnFailure<I, O>> {
        self.on_failure
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

/// A body's future in the form that [`Body`] and [`OnFailure`] return, whatever its error type.
#[doc(hidden)]
pub fn boxed<T, E: Into<Error>>(
    future: impl Future<Output = std::result::Result<T, E>> + Send + 'static,
) -> BoxFuture<'static, Result<T>> {
    future.map(|outcome| outcome.map_err(Into::into)).boxed()
}
