//! How an execution ended.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tickover_core::execution::{DeadlineKind, ExecutionOutcome};
use tickover_core::payload::Json;

use super::ExecutionError;
use crate::codec;
use crate::error::{Cause, Failure};

/// How an execution ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With a result, as JSON. Absent where the answer left it out because it is large, or there is none.
    Completed(Option<Json>),
    /// With an error.
    Failed(Cause),
    /// Too late.
    TimedOut(DeadlineKind),
    /// On request.
    Cancelled {
        /// Whether it was ended without asking its code.
        terminated: bool,
    },
}

impl Outcome {
    /// The outcome as the record has it, with its result read.
    pub(super) fn of(outcome: &ExecutionOutcome, output: Option<&Json>) -> Self {
        match outcome {
            ExecutionOutcome::Completed { .. } => Self::Completed(output.cloned()),
            ExecutionOutcome::Failed { error, step, retries_exhausted } => {
                let error = Failure::new(error.code.clone(), error.message.clone());
                Self::Failed(cause(error, step.clone(), *retries_exhausted))
            }
            ExecutionOutcome::TimedOut { kind } => Self::TimedOut(*kind),
            ExecutionOutcome::Cancelled { terminated } => Self::Cancelled { terminated: *terminated },
        }
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

pub(super) fn cause(error: Failure, step: Option<String>, retries_exhausted: bool) -> Cause {
    match step {
        Some(name) => Cause::Step { name, error, retries_exhausted },
        None => Cause::Body(error),
    }
}

/// What stands for nothing.
pub(crate) fn null() -> Json {
    Json::from(RawValue::NULL.to_owned())
}
