//! Values that are derived from an answer's fields.

use std::collections::BTreeMap;

use tickover_core::execution::ExecutionStatus;
use tickover_core::retry::MaxAttempts;
use tickover_core::task::Status;

use super::{AttemptView, ErrorView, EventView, ExecutionView, SendEventAnswer, TaskView};
use crate::Verbatim;
use crate::read::Unreadable;

impl TaskView {
    /// Whether it hasn't ended.
    pub fn is_live(&self) -> bool {
        self.status.known().map_or(self.ended_at.is_none(), Status::is_live)
    }

    /// Its labels by their names.
    pub fn labels(&self) -> BTreeMap<String, String> {
        labels(self.labels.as_ref())
    }

    /// The running attempt.
    pub fn current_attempt(&self) -> Option<&AttemptView> {
        self.attempts.iter().rev().find(|attempt| attempt.ended_at.is_none())
    }

    /// The last attempt that ended.
    pub fn last_attempt(&self) -> Option<&AttemptView> {
        self.attempts.iter().rev().find(|attempt| attempt.ended_at.is_some())
    }

    /// The last attempt with an error, and that error.
    pub fn last_error(&self) -> Option<(&AttemptView, &ErrorView)> {
        self.attempts.iter().rev().find_map(|attempt| Some((attempt, attempt.error.as_ref()?)))
    }

    /// How many attempts there may still be; `None` without a limit.
    pub fn attempts_left(&self) -> Option<u32> {
        match self.max_attempts.0 {
            MaxAttempts::Skip => Some(0),
            MaxAttempts::Limited(limit) => Some(limit.get().saturating_sub(self.attempt)),
            MaxAttempts::Unlimited => None,
        }
    }
}

impl ExecutionView {
    /// Whether it hasn't ended.
    pub fn is_live(&self) -> bool {
        self.status.known().map_or(self.ended_at.is_none(), ExecutionStatus::is_live)
    }

    /// Its labels by their names.
    pub fn labels(&self) -> BTreeMap<String, String> {
        labels(self.labels.as_ref())
    }
}

impl EventView {
    /// Reads its payload as a type. A missing payload is read as `null`.
    ///
    /// # Errors
    ///
    /// Returns where a value doesn't fit, and why.
    pub fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, Unreadable> {
        match &self.payload {
            Some(payload) => payload.read(),
            None => crate::read::answer(b"null"),
        }
    }
}

impl SendEventAnswer {
    /// Whether an event with this id was sent before. The first one is kept.
    pub fn is_duplicate(&self) -> bool {
        self.duplicate == Some(true)
    }
}

/// Labels are an object of strings. Any other value has no labels.
fn labels(labels: Option<&Verbatim>) -> BTreeMap<String, String> {
    labels.and_then(|labels| labels.read().ok()).unwrap_or_default()
}
