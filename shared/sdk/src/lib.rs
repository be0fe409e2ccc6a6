//! Durable workflows: async functions that continue after crashes, deployments and months of waiting.
//!
//! A **step** is an async function whose result is stored. A **workflow** is an async function that runs steps, sleeps
//! and waits through its [`Ctx`]. If a worker dies, or a wait takes days, another worker continues the workflow: it
//! runs the code again from its first line. Each step that has a result returns it at once and doesn't run again.
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
//! | give steps a connection or a client that the worker has | `#[state]` of [`macro@step`], [`Serve::state`] |
//! | undo what was done if the workflow fails | [`Ctx::on_undo`], `on_failure` of [`macro@workflow`] |
//! | distinguish a step's own error from an end by the framework | [`StepError`] |
//! | build a worker | [`serve`](serve()) |
//! | start and control executions, schedule tasks, create crons | [`Client`] |
//! | test in virtual time and without a network | `tickover::test`, with the feature `test` |
//!
//! | feature | brings |
//! |---|---|
//! | `embedded`, on by default | the whole system in the worker's process |
//! | `lambda` | a worker inside AWS Lambda |
//! | `aws` | a worker that polls its queues on AWS, from anywhere |
//! | `client-http` | [`Client`] over HTTP |
//! | `client-local` | the same without TLS, for a server on this machine; it compiles much faster |
//! | `client-aws` | [`Client`] over HTTP to a deployment on AWS, with signed calls |
//! | `test` | the test kit |
//! | `log` | messages that libraries write with the crate `log` are logged too |
//!
//! This crate owns the interface for users' code: [`macro@step`], [`macro@workflow`] and the types around them. The
//! rules and the records are in the crates below it.
#![warn(missing_docs)]

#[cfg(test)]
extern crate self as tickover;

mod backend;
mod busy;
pub mod client;
mod codec;
mod ctx;
mod error;
pub mod guide;
mod keeper;
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

pub use tickover_core::batch::{Batch, BatchError};
pub use tickover_core::duration::{DurationError, Millis, ZeroRule};
pub use tickover_core::flow::{OnConflict, Priority, UniqueWindow};
pub use tickover_core::id::QueueName;
pub use tickover_core::payload::Json;
pub use tickover_core::policy::PolicyError;
pub use tickover_core::retry::{Jitter, RetryPolicy};
pub use tickover_core::timeout::{Expired, ExpiredKind, OnTimeout};
/// Makes a step:
///
/// ```
/// use tickover::prelude::*;
///
/// #[tickover::step("print-label", retry = "fixed(3, 10s)", timeout = "5m")]
/// async fn print_label(address: String, copies: u32) -> Result<Vec<String>> {
///     Ok((1..=copies).map(|copy| format!("{address} ({copy} of {copies})")).collect())
/// }
///
/// let step: Step<Vec<String>, Error> = print_label("1 Main Street".to_owned(), 2).timeout("1m");
/// ```
pub use tickover_macros::step;
pub use tickover_macros::workflow;

pub use client::Client;
pub use ctx::{
    AllTasksFailed, Callback, CallbackError, Child, Ctx, Either, Elapsed, EventError, Map, Mapping, Paged,
    Pages, Request, Requests, Select, SelectOk, Settled, StartChild, StartedChild, Stored, Timeout,
    TooManyFailed, Undo, Within, forever, within,
};
pub use error::{Cause, DEFAULT_CODE, Error, Failure, Result};
pub use options::{
    DEFAULT_QUEUE, IntoMillis, IntoRetry, OnDrift, Place, Scope, StepOptions, WorkflowOptions,
};
#[doc(hidden)]
pub use registry::{ErasedStep, ErasedWorkflow, StepFailed};
pub use registry::{Register, Registry, RegistryError, TIMEOUT_MIN};
/// One invocation of a worker inside Lambda, for tests that record each of its requests to AWS.
#[cfg(feature = "lambda")]
#[doc(hidden)]
pub use serve::lambda::handle as handle_in_lambda;
pub use serve::{Serve, ServeError, serve};
pub use step::{
    Attempt, BatchAttempt, BatchOutcome, MissingState, StateType, States, Step, StepError, StepHandler,
    StepInfo, StepResult, remote, step, step_info, step_infos,
};
pub use tickover_core::execution::ParentClosePolicy;
pub use tickover_core::time::Timestamp;
pub use worker::{Worker, WorkerSettings};
pub use workflow::{AsWorkflow, Body, OnCancel, OnFailure, Workflow};

/// Items that the code generated by the attributes uses. They aren't part of the stable interface.
#[doc(hidden)]
pub mod __private;
