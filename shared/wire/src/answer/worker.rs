//! Which workers each queue has.

use serde::{Deserialize, Serialize};
use tickover_core::id::{QueueName, WorkerName, WorkerVersion, WorkflowName};

use crate::Instant;

/// All queues with their workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkersAnswer {
    /// The queues, by name.
    pub queues: Vec<QueueWorkersView>,
}

/// A queue with its workers. Its numbers count messages, and are approximate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QueueWorkersView {
    /// The queue.
    pub queue: QueueName,
    /// Whether work waits, no worker has any, and none has asked for some in the last 3 minutes. `false` while the queue is
    /// paused.
    pub unserved: bool,
    /// Whether it is paused: its tasks aren't leased to workers.
    pub paused: bool,
    /// Tasks and turns that wait for a worker.
    pub depth: u64,
    /// Those that workers have leased.
    pub in_flight: u64,
    /// The workflows whose code its workers have announced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<WorkflowName>,
    /// The workers that have asked for its work within a day, the last one first. On AWS 20 at most.
    pub workers: Vec<WorkerView>,
}

/// A worker of a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkerView {
    /// Its name. `unnamed` stands for all workers without one.
    pub name: WorkerName,
    /// When it asked first.
    pub since: Instant,
    /// When it last asked. On AWS that may be a minute ago at most, while it asks.
    pub seen_at: Instant,
    /// Whether it has asked in the last 3 minutes.
    pub there: bool,
    /// The version of its code, if it has named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<WorkerVersion>,
}
