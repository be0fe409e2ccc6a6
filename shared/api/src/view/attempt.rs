//! A task's attempts: those that are over and the one that runs.

use serde::Serialize;
use tickover_core::task::{Failure, PastAttempt, Running, Task};
use tickover_core::time::Timestamp;
use utoipa::ToSchema;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ErrorView {
    /// What sort of error, as the worker said; `timed_out` and `poisoned` are Tickover's own.
    pub code: String,
    /// For people. A past attempt keeps only its first 120 bytes.
    pub message: String,
}

impl From<&Failure> for ErrorView {
    fn from(failure: &Failure) -> Self {
        Self { code: failure.code.clone(), message: failure.message.clone() }
    }
}

/// An attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct AttemptView {
    /// Its number, from 1. An attempt that was lost or given back doesn't count: its number is used again.
    pub attempt: u32,
    /// Who had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub worker: Option<String>,
    /// When it was claimed; absent if nobody came in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub claimed_at: Option<String>,
    /// When it ended; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub ended_at: Option<String>,
    /// `completed`, `failed`, `timed_out`, `released`, `lost` or `cancelled`; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>)]
    pub outcome: Option<&'static str>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<ErrorView>,
}

impl From<&PastAttempt> for AttemptView {
    fn from(past: &PastAttempt) -> Self {
        Self {
            attempt: past.attempt,
            worker: past.worker.as_ref().map(ToString::to_string),
            claimed_at: past.claimed_at.map(Timestamp::to_rfc3339),
            ended_at: Some(past.ended_at.to_rfc3339()),
            outcome: Some(past.ending.as_str()),
            error: past.error.as_ref().map(ErrorView::from),
        }
    }
}

fn running(attempt: u32, running: &Running) -> AttemptView {
    AttemptView {
        attempt,
        worker: running.worker.as_ref().map(ToString::to_string),
        claimed_at: Some(running.claimed_at.to_rfc3339()),
        ended_at: None,
        outcome: None,
        error: None,
    }
}

/// The last attempts, oldest first.
pub(super) fn attempts(task: &Task) -> Vec<AttemptView> {
    let current = task.running().map(|held| running(task.attempt, held));
    task.history.iter().map(AttemptView::from).chain(current).collect()
}
