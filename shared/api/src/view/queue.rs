//! A queue as operators see it.

use serde::Serialize;
use tickover_core::time::Timestamp;
use tickover_service::queues::QueueInfo;
use utoipa::ToSchema;

/// A queue. Its numbers are those of its messages, and approximate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct QueueView {
    /// Its name.
    pub name: String,
    /// Whether nothing is handed out.
    pub paused: bool,
    /// Tasks waiting for a worker.
    pub depth: u64,
    /// Tasks in workers' hands.
    pub in_flight: u64,
    /// Tasks that start within 15 minutes.
    pub delayed: u64,
    /// The workflows of which its workers have said that they have the code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub workflows: Vec<String>,
    /// Since when its oldest waiting task could have been claimed; only looked up for a single queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub oldest_at: Option<String>,
}

impl From<QueueInfo> for QueueView {
    fn from(info: QueueInfo) -> Self {
        Self {
            name: info.name.to_string(),
            paused: info.paused,
            depth: info.depth.visible,
            in_flight: info.depth.in_flight,
            delayed: info.depth.delayed,
            workflows: info.workflows.iter().map(ToString::to_string).collect(),
            oldest_at: info.oldest_at.map(Timestamp::to_rfc3339),
        }
    }
}
