//! How an execution ended.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tickover_core::execution::{DeadlineKind, ExecutionStatus};
use tickover_core::payload::Json;
use tickover_wire::answer::{CauseCategory, ErrorView};
use tickover_wire::{OpenEnum, Words};

use super::{ClientError, Description, ExecutionError};
use crate::codec;
use crate::error::{Cause, Failure};

/// How an execution ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With a result, as JSON. `None` if the answer left it out because it is large, or if there is no result.
    Completed(Option<Json>),
    /// With an error.
    Failed(Cause),
    /// A deadline passed.
    TimedOut(DeadlineKind),
    /// It was cancelled or terminated.
    Cancelled {
        /// Whether it was terminated: ended at once, while cancelling lets its code stop.
        terminated: bool,
    },
}

impl Outcome {
    /// How this execution ended, if it has.
    ///
    /// ```no_run
    /// use tickover::client::Outcome;
    ///
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// for execution in client.list("order").await?.executions {
    ///     if let Some(Outcome::Failed(cause)) = Outcome::of(&execution)? {
    ///         println!("{} failed: {cause}", execution.id);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ClientError::Unreadable`] if the system is newer than this crate, and this crate doesn't know the outcome.
    pub fn of(execution: &Description) -> Result<Option<Self>, ClientError> {
        let cause = execution.cause.as_ref();
        Ok(match known("status", &execution.status)? {
            ExecutionStatus::Pending
            | ExecutionStatus::Running
            | ExecutionStatus::Waiting
            | ExecutionStatus::Paused => None,
            ExecutionStatus::Completed => Some(Self::Completed(execution.output.clone().map(Json::from))),
            ExecutionStatus::Failed => {
                let error = failure(execution.error.as_ref(), "failed");
                Some(Self::Failed(match cause.and_then(|cause| Some((cause, cause.step.clone()?))) {
                    Some((cause, name)) => {
                        Cause::Step { name, error, retries_exhausted: cause.retries_exhausted == Some(true) }
                    }
                    None => Cause::Body(error),
                }))
            }
            ExecutionStatus::TimedOut => {
                let kind = execution.timeout_kind.as_ref().map(|kind| known("deadline", kind)).transpose()?;
                Some(Self::TimedOut(kind.unwrap_or(DeadlineKind::Execution)))
            }
            ExecutionStatus::Cancelled => {
                let terminated = cause.is_some_and(|cause| cause.category == CauseCategory::Terminated);
                Some(Self::Cancelled { terminated })
            }
        })
    }

    /// The result, read as its type, or why there is none. A workflow without a result has `null`.
    pub(super) fn into_result<O: DeserializeOwned>(self) -> Result<O, ExecutionError> {
        match self {
            Self::Completed(output) => read(&output.unwrap_or_else(null))
                .map_err(|(type_name, problem)| ExecutionError::Unreadable { type_name, problem }),
            Self::Failed(cause) => Err(ExecutionError::Failed(cause)),
            Self::TimedOut(kind) => Err(ExecutionError::TimedOut(kind)),
            Self::Cancelled { terminated } => Err(ExecutionError::Cancelled { terminated }),
        }
    }
}

/// A result as its type; or that type's name, and where and why it doesn't fit.
pub(super) fn read<O: DeserializeOwned>(output: &Json) -> Result<O, (&'static str, String)> {
    codec::decode(output).map_err(|error| (std::any::type_name::<O>(), error.to_string()))
}

/// The value of a word, if this version knows it.
pub(super) fn known<T: Words>(what: &str, word: &OpenEnum<T>) -> Result<T, ClientError> {
    word.known().ok_or_else(|| ClientError::unknown(what, word.as_str()))
}

/// An answer's error, or an error with this code if the answer has none.
pub(super) fn failure(error: Option<&ErrorView>, code: &str) -> Failure {
    error.map_or_else(|| Failure::new(code, ""), |error| Failure::new(&*error.code, &*error.message))
}

/// The JSON value `null`.
pub(crate) fn null() -> Json {
    Json::from(RawValue::NULL.to_owned())
}
