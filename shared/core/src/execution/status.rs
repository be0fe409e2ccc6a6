//! The status of an execution.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An execution's state without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStatus {
    /// Its next turn may start, now or at a later instant.
    Pending,
    /// A worker has its lease.
    Running,
    /// It waits for an instant, an event, or the end of a remote step or child.
    Waiting,
    /// Paused by an operator.
    Paused,
    Completed,
    Failed,
    /// Ended by a deadline.
    TimedOut,
    Cancelled,
}

impl ExecutionStatus {
    /// Every status, in the order of an execution's life.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Running,
        Self::Waiting,
        Self::Paused,
        Self::Completed,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
    ];

    /// The name that requests and answers use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether the execution hasn't ended.
    pub const fn is_live(self) -> bool {
        match self {
            Self::Pending | Self::Running | Self::Waiting | Self::Paused => true,
            Self::Completed | Self::Failed | Self::TimedOut | Self::Cancelled => false,
        }
    }
}

impl fmt::Display for ExecutionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
