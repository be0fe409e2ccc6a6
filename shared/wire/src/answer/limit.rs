//! Concurrency limits by key.

use std::fmt;

use serde::{Deserialize, Serialize};
use tickover_core::id::{ExecutionId, Owner, TaskId};

use super::ByView;
use crate::{Instant, RatePeriod};

/// A key's limit, who has its places, and who waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitView {
    /// The key; of a key that is longer than 48 bytes, a task's answer has only the beginning.
    pub key: String,
    /// How many may run at once; absent if nothing has asked for a limit lately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u16>,
    /// Whether an operator has set the limit: then those of requests don't count.
    pub pinned: bool,
    /// Who has, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_by: Option<ByView>,
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
    pub next: Vec<LimitOwnerView>,
    /// How fast its tasks and executions start; absent if nothing has asked for a rate lately.
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

/// A task or an execution that waits: one of the two fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitOwnerView {
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionId>,
}

impl From<Owner> for LimitOwnerView {
    fn from(owner: Owner) -> Self {
        match owner {
            Owner::Task(id) => Self { task: Some(id), execution: None },
            Owner::Execution(id) => Self { task: None, execution: Some(id) },
        }
    }
}

/// The text by which the place is released: the id of a task, or `@` and that of an execution.
impl fmt::Display for LimitOwnerView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = self.task.clone().map(Owner::Task);
        match task.or_else(|| self.execution.clone().map(Owner::Execution)) {
            Some(owner) => owner.fmt(f),
            // A newer server may have holders of other kinds.
            None => f.write_str("another holder"),
        }
    }
}

/// A task or an execution that has a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitHolderView {
    /// The task, if a task has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The execution, if an execution has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionId>,
    /// When the place ends, unless a heartbeat extends it. Absent for an execution that has begun: it keeps its place
    /// until its outcome is final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
    /// Whether it was called to the place and no worker has claimed it yet.
    pub called: bool,
}

impl LimitHolderView {
    /// Who has the place.
    pub fn owner(&self) -> LimitOwnerView {
        LimitOwnerView { task: self.task.clone(), execution: self.execution.clone() }
    }
}

/// What holds a task or an execution back.
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

/// The keys at which something waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitsAnswer {
    /// The limits, by key: at most 50.
    pub limits: Vec<LimitView>,
    /// Whether something waits at more keys than these.
    pub more: bool,
}
