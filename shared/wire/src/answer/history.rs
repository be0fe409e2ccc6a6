//! What the queues did in the last day.

use serde::{Deserialize, Serialize};

use crate::{Instant, Length};

/// The last day, in parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HistoryAnswer {
    /// The length of a part.
    pub every: Length,
    /// The parts in which the system ran, the earliest first. Of the last one, only some minutes may have passed.
    pub parts: Vec<HistoryPartView>,
    /// What is to be known of the numbers, in words: where they are from, and whether some are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What happened in a part of the day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HistoryPartView {
    /// Its beginning.
    pub at: Instant,
    /// Tasks and executions that completed.
    pub completed: u64,
    /// Tasks and executions that failed or timed out.
    pub failed: u64,
    /// How late a worker took work, at most, in milliseconds.
    pub late_ms: u64,
    /// The most messages that waited for a worker: each is a task or a turn.
    pub depth: u64,
    /// How long the oldest task had waited for a worker, at most, in milliseconds.
    pub oldest_ms: u64,
    /// The most messages that workers had.
    pub running: u64,
}
