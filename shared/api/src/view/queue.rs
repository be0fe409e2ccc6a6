//! A queue as operators see it.

use tickover_service::queues::QueueInfo;
use tickover_wire::answer::QueueView;

/// A queue.
pub fn queue(info: QueueInfo) -> QueueView {
    QueueView {
        name: info.name,
        paused: info.paused,
        depth: info.depth.visible,
        in_flight: info.depth.in_flight,
        delayed: info.depth.delayed,
        workflows: info.workflows.into_iter().collect(),
        oldest_at: info.oldest_at.map(Into::into),
    }
}
