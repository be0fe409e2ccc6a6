//! Where an execution stands, in one word.

use std::fmt;

/// An execution's state without its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExecutionStatus {
    /// Waiting for a worker.
    Pending,
    /// A worker has it.
    Running,
    /// Nothing can be done until something happens.
    Waiting,
    /// Held by an operator.
    Paused,
    Completed,
    Failed,
    /// Ended by a deadline.
    TimedOut,
    Cancelled,
}

impl ExecutionStatus {
    /// Every status, in the order of a life.
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

    /// The status of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether the execution still goes on.
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
