//! How an execution ends.

use serde::{Deserialize, Serialize};

use super::ExecutionStatus;
use crate::failure::Failure;
use crate::payload::Payload;
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExecutionOutcome {
    #[serde(rename = "c")]
    Completed {
        #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
        output: Option<Payload>,
    },
    #[serde(rename = "f")]
    Failed {
        /// The error. Its message is cut to the length that fits into the record.
        #[serde(rename = "x")]
        error: Failure,
        /// The step that failed, if the error came from a step.
        #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
        step: Option<String>,
        /// Whether that step had used up its attempts.
        #[serde(rename = "r", default, skip_serializing_if = "std::ops::Not::not")]
        retries_exhausted: bool,
    },
    #[serde(rename = "t")]
    TimedOut {
        #[serde(rename = "k")]
        kind: DeadlineKind,
    },
    /// On request of a caller.
    #[serde(rename = "z")]
    Cancelled {
        /// Whether it was terminated: ended without asking its code.
        #[serde(rename = "t", default, skip_serializing_if = "std::ops::Not::not")]
        terminated: bool,
    },
}

/// A failure that the workflow's `on_failure` code handles before the execution closes, or a cancellation that its
/// `on_cancel` code handles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    /// The outcome of the execution if that code doesn't recover it.
    #[serde(rename = "o")]
    pub outcome: ExecutionOutcome,
    /// The deadline of that code. The execution's own deadlines no longer count.
    #[serde(rename = "d")]
    pub deadline_at: Timestamp,
}

/// A deadline of an execution. If both have passed, the execution's counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadlineKind {
    /// Of all runs.
    Execution,
    /// Of one run.
    Run,
}

impl DeadlineKind {
    /// The name that answers use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Execution => "execution",
            Self::Run => "run",
        }
    }
}

impl ExecutionOutcome {
    /// The status of an execution with this outcome.
    pub const fn status(&self) -> ExecutionStatus {
        match self {
            Self::Completed { .. } => ExecutionStatus::Completed,
            Self::Failed { .. } => ExecutionStatus::Failed,
            Self::TimedOut { .. } => ExecutionStatus::TimedOut,
            Self::Cancelled { .. } => ExecutionStatus::Cancelled,
        }
    }

    /// Whether it is a failure or a passed deadline.
    pub const fn is_failure(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::TimedOut { .. })
    }
}
