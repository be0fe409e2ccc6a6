//! The status of a task.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A task's state without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    /// A worker has a lease on it.
    Running,
    Completed,
    Failed,
    TimedOut,
    Cancelled,
    /// It never runs.
    Skipped,
}

impl Status {
    /// Every status, in the order in which a task can have them.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
        Self::Skipped,
    ];

    /// The name in requests and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
        }
    }

    /// The status with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether the task has not ended.
    pub const fn is_live(self) -> bool {
        match self {
            Self::Pending | Self::Running => true,
            Self::Completed | Self::Failed | Self::TimedOut | Self::Cancelled | Self::Skipped => false,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
