//! Durable workflows: async functions that go on after crashes, deployments and months of waiting.
//!
//! A **step** is an async function whose result is stored. A **workflow** is an async function that runs steps,
//! sleeps and waits through its [`Ctx`]. If a worker dies, or nothing can be done for days, the workflow goes on
//! later on another worker: its code runs again from its first line, and each step that has a result returns it at
//! once and doesn't run again.
//!
//! ```no_run
//! use tickover::prelude::*;
//!
//! #[tickover::step(retry = "exponential(3, 2s)", timeout = "5m")]
//! async fn charge(cents: u32) -> Result<String, Failure> {
//!     Ok(format!("charge of {cents}")) // a real one calls the payment service
//! }
//!
//! #[tickover::workflow(timeout = "30d")]
//! async fn order(ctx: Ctx, cents: u32) -> Result<String> {
//!     let charge = ctx.step(charge(cents)).await?; // the result is stored
//!     ctx.sleep("settle", "1h").await?; // nothing runs during this hour
//!     let carrier = ctx.wait_for_event::<String>("shipped", within("7d")).await?;
//!     Ok(format!("{charge}, shipped by {carrier}"))
//! }
//!
//! #[tokio::main]
//! async fn main() {
//!     tickover::serve(order).await;
//! }
//! ```
//!
//! `cargo run` starts it with the whole system in its own process, on port 7070. Inside Lambda, or where AWS is
//! configured, the same program is a worker there.
//!
//! **The [guide] explains everything, one page a topic**: [your first workflow](guide::first_workflow),
//! [steps and retries](guide::steps), [deadlines](guide::deadlines), [events and timers](guide::events_and_timers),
//! [fan-out](guide::fan_out), [testing](guide::testing), [versions and deployment](guide::versions),
//! [operating](guide::operating), [errors](guide::errors), [tasks without a workflow](guide::tasks).
//!
//! | to | see |
//! |---|---|
//! | run steps, sleep, wait, start others | [`Ctx`] |
//! | say how a step is retried and how long it may take | [`Step`], [`StepOptions`] |
//! | give steps a connection or a client of the worker's | `#[state]` of [`macro@step`], [`Serve::state`] |
//! | undo what was done if the workflow fails | [`Ctx::on_undo`], `on_failure` of [`macro@workflow`] |
//! | tell a step's own error from an end by the framework | [`StepError`] |
//! | build a worker | [`serve`](serve()) |
//! | start and steer executions, schedule tasks, make crons | [`Client`] |
//! | test in virtual time and without a network | `tickover::test`, with the feature `test` |
//!
//! | feature | brings |
//! |---|---|
//! | `embedded`, on by default | the whole system in the worker's process |
//! | `lambda` | a worker inside AWS Lambda |
//! | `aws` | a worker that polls its queues on AWS, from anywhere |
//! | `client-http` | [`Client`] over HTTP |
//! | `test` | the test kit |
//! | `log` | what libraries say through the crate `log` is logged as well |
//!
//! This crate owns what users write: [`macro@step`], [`macro@workflow`] and the types around them. Rules and
//! records belong to the crates below it.
#![warn(missing_docs)]

#[cfg(test)]
extern crate self as tickover;

mod busy;
pub mod client;
mod codec;
mod ctx;
mod error;
pub mod guide;
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
    AllTasksFailed, Child, Ctx, Either, Elapsed, EventError, Map, Mapping, Select, SelectOk, Settled,
    StartChild, StartedChild, Stored, Timeout, TooManyFailed, Undo, Within, forever, within,
};
pub use error::{Cause, DEFAULT_CODE, Error, Failure, Result};
pub use options::{
    DEFAULT_QUEUE, IntoMillis, IntoRetry, OnDrift, Place, Scope, StepOptions, WorkflowOptions,
};
#[doc(hidden)]
pub use registry::{ErasedStep, ErasedWorkflow, StepFailed};
pub use registry::{Register, Registry, RegistryError, TIMEOUT_MIN};
pub use serve::{Serve, ServeError, serve};
pub use step::{
    Attempt, MissingState, StateType, States, Step, StepError, StepHandler, StepInfo, StepResult, remote,
    step, step_info,
};
pub use tickover_core::execution::ParentClosePolicy;
pub use tickover_core::time::Timestamp;
pub use worker::{Worker, WorkerSettings};
pub use workflow::{Body, OnFailure, Workflow};

/// What the attributes' code needs. No part of what is promised to stay.
#[doc(hidden)]
pub mod __private;
