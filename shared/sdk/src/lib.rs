//! Durable workflows: write an async function, it survives everything.
//!
//! A **step** is an async function whose result is remembered. A **workflow** is an async function that runs
//! steps, sleeps and waits through its [`Ctx`]. When a worker dies, or nothing needs to run for days, the
//! workflow goes on later on another worker: its code runs again from the top, and every step that has a
//! result gives it at once without running again.
//!
//! This crate owns what users write: [`macro@step`], [`macro@workflow`] and the types around them. Rules and
//! records belong to the crates below it.

#[cfg(test)]
extern crate self as tickover;

mod busy;
pub mod client;
mod codec;
mod ctx;
mod error;
mod options;
pub mod prelude;
mod registry;
mod serve;
mod step;
#[cfg(feature = "test")]
pub mod test;
mod turn;
pub mod worker;
mod workflow;

pub use tickover_core::duration::{DurationError, Millis, ZeroRule};
pub use tickover_core::id::QueueName;
pub use tickover_core::payload::Json;
pub use tickover_core::policy::PolicyError;
pub use tickover_core::retry::{Jitter, RetryPolicy};
pub use tickover_core::timeout::OnTimeout;
pub use tickover_macros::{step, workflow};

pub use client::Client;
pub use ctx::{
    AllTasksFailed, Child, Ctx, Elapsed, EventError, Map, Mapping, Select, SelectOk, Settled, StartChild,
    StartedChild, Stored, Timeout, TooManyFailed, Within, forever, within,
};
pub use error::{Cause, DEFAULT_CODE, Error, Failure, Result};
pub use options::{
    DEFAULT_QUEUE, IntoMillis, IntoRetry, OnDrift, Place, Scope, StepOptions, WorkflowOptions,
};
pub use registry::{ErasedStep, ErasedWorkflow, Register, Registry, RegistryError, StepFailed, TIMEOUT_MIN};
pub use serve::{Serve, ServeError, serve};
pub use step::{Step, StepError, StepHandler, StepInfo, StepResult, remote, step, step_info};
pub use tickover_core::execution::ParentClosePolicy;
pub use tickover_core::time::Timestamp;
pub use worker::{Worker, WorkerSettings};
pub use workflow::{Body, OnFailure, Workflow};

/// What the attributes' code needs. No part of what is promised to stay.
#[doc(hidden)]
pub mod __private;
