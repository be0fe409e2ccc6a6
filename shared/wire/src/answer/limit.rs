//! Concurrency limits by key.

use serde::{Deserialize, Serialize};
use tickover_core::id::TaskId;

use crate::{Instant, RatePeriod};

/// A key's limit, who has its places, and who waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitView {
    /// The key; of a key that is longer than 48 bytes, a task's answer has only the beginning.
    pub key: String,
    /// How many may run at once; absent if no task has asked for a limit lately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u16>,
    /// Whether an operator has set the limit: then those of tasks don't count.
    pub pinned: bool,
    /// How many places are taken.
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub taken: usize,
    /// Who has places: at most 100 of them.
    pub holders: Vec<LimitHolderView>,
    /// How many wait, as far as they were counted.
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub waiting: usize,
    /// Whether more wait than were counted.
    pub more: bool,
    /// The first that wait, in their order: at most 100 of them.
    pub next: Vec<TaskId>,
    /// How fast its tasks start; absent if no task has asked for a rate lately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateView>,
}

/// A key's rate, and how far it is used up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RateView {
    /// How many starts in each `per`: that of the task that was scheduled last.
    pub limit: u32,
    /// The period.
    pub per: RatePeriod,
    /// How many may start at once after a quiet time.
    pub burst: u32,
    /// When a task may start that is scheduled now.
    pub next_start_at: Instant,
}

/// A task that has a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitHolderView {
    /// The task.
    pub task: TaskId,
    /// When the place ends, unless a heartbeat extends it.
    pub until: Instant,
    /// Whether the task was called to the place and no worker has claimed it yet.
    pub called: bool,
}

/// What holds a task back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WaitsAtView {
    /// The limit at which it waits.
    pub limit: LimitView,
    /// Its position among those that wait, from 1; absent if it is behind all that were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub position: Option<usize>,
}

/// The answer with a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitAnswer {
    /// The limit.
    pub limit: LimitView,
}
