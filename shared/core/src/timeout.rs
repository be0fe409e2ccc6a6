//! The four timeouts of a task, and the effect of each.

use serde::{Deserialize, Serialize};

use crate::duration::Millis;
use crate::execution::DeadlineKind;
use crate::time::Timestamp;

/// Which of a task's timeouts expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TimeoutKind {
    /// The deadline over all attempts, set at scheduling.
    #[serde(rename = "c")]
    ScheduleToClose,
    /// No worker claimed the attempt in time.
    #[serde(rename = "s")]
    ScheduleToStart,
    /// The work gave no sign of life in time.
    #[serde(rename = "h")]
    Heartbeat,
    /// The attempt ran too long.
    #[serde(rename = "r")]
    StartToClose,
}

impl TimeoutKind {
    /// The name in answers and events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ScheduleToClose => "schedule_to_close",
            Self::ScheduleToStart => "schedule_to_start",
            Self::Heartbeat => "heartbeat",
            Self::StartToClose => "start_to_close",
        }
    }
}

/// A time limit that has ended a step or a child, and its instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Expired {
    #[serde(rename = "k")]
    pub kind: ExpiredKind,
    /// When the limit passed, or would have passed: a retry that can't start before it isn't waited for.
    #[serde(rename = "u")]
    pub deadline_at: Timestamp,
}

/// Which time limit has ended a step or a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ExpiredKind {
    /// A step's timeout over all attempts: `timeout`.
    #[serde(rename = "c")]
    ScheduleToClose,
    /// No worker started the attempt of a remote step in time: `schedule_to_start`.
    #[serde(rename = "s")]
    ScheduleToStart,
    /// The step's code gave no sign of life in time: `heartbeat`.
    #[serde(rename = "h")]
    Heartbeat,
    /// An attempt ran too long: `attempt_timeout`, or `timeout` for each attempt.
    #[serde(rename = "r")]
    StartToClose,
    /// A child's timeout over all its runs.
    #[serde(rename = "e")]
    Execution,
    /// The timeout of a child's run.
    #[serde(rename = "u")]
    Run,
}

impl ExpiredKind {
    /// The name in answers and errors.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ScheduleToClose => TimeoutKind::ScheduleToClose.as_str(),
            Self::ScheduleToStart => TimeoutKind::ScheduleToStart.as_str(),
            Self::Heartbeat => TimeoutKind::Heartbeat.as_str(),
            Self::StartToClose => TimeoutKind::StartToClose.as_str(),
            Self::Execution => DeadlineKind::Execution.as_str(),
            Self::Run => DeadlineKind::Run.as_str(),
        }
    }
}

impl From<TimeoutKind> for ExpiredKind {
    fn from(kind: TimeoutKind) -> Self {
        match kind {
            TimeoutKind::ScheduleToClose => Self::ScheduleToClose,
            TimeoutKind::ScheduleToStart => Self::ScheduleToStart,
            TimeoutKind::Heartbeat => Self::Heartbeat,
            TimeoutKind::StartToClose => Self::StartToClose,
        }
    }
}

impl From<DeadlineKind> for ExpiredKind {
    fn from(kind: DeadlineKind) -> Self {
        match kind {
            DeadlineKind::Execution => Self::Execution,
            DeadlineKind::Run => Self::Run,
        }
    }
}

/// The effect of a per-attempt timeout on its task or step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnTimeout {
    /// Ends the attempt. Another one follows if any are left.
    #[default]
    #[serde(rename = "r")]
    Retry,
    /// Ends the task or step as timed out, even if attempts are left.
    #[serde(rename = "t")]
    Terminal,
    /// Ends the task or step as cancelled, without a retry: `error_on_timeout: false` over HTTP, and Steep's
    /// `errorOnTimeout: false`.
    #[serde(rename = "c")]
    Cancel,
}

/// A per-attempt timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptTimeout {
    #[serde(rename = "a")]
    pub after: Millis,
    /// The effect when it expires.
    #[serde(rename = "o")]
    pub on_timeout: OnTimeout,
}

/// The timeout over all attempts. It ends the task even if attempts are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifeTimeout {
    /// How long after scheduling.
    #[serde(rename = "a")]
    pub after: Millis,
    /// Whether the task then counts as timed out. Otherwise it counts as cancelled.
    #[serde(rename = "e")]
    pub is_error: bool,
}

/// All timeouts of a task; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// Over all attempts, from scheduling.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub schedule_to_close: Option<LifeTimeout>,
    /// Each attempt, from when it may start.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub schedule_to_start: Option<AttemptTimeout>,
    /// Each attempt, from its claim and again from each sign of life of the work.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<AttemptTimeout>,
    /// Each attempt, from its claim.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub start_to_close: Option<AttemptTimeout>,
}

impl Timeouts {
    /// Whether an attempt that runs has an instant of its own.
    pub(crate) const fn limits_attempts(&self) -> bool {
        self.heartbeat.is_some() || self.start_to_close.is_some()
    }
}
