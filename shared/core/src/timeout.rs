//! The four timeouts of a task, and the effect of each.

use serde::{Deserialize, Serialize};

use crate::duration::Millis;

/// Which of a task's timeouts expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TimeoutKind {
    /// The deadline over all attempts, set at scheduling.
    #[serde(rename = "c")]
    ScheduleToClose,
    /// No worker claimed the attempt in time.
    #[serde(rename = "s")]
    ScheduleToStart,
    /// The worker sent no heartbeat in time.
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
    /// Each attempt, from its claim and again from each heartbeat.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<AttemptTimeout>,
    /// Each attempt, from its claim.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub start_to_close: Option<AttemptTimeout>,
}
