//! A queue's view for operators.

use tickover_service::queues::QueueInfo;
use tickover_wire::answer::QueueView;

/// The view of a queue.
pub fn queue(info: QueueInfo) -> QueueView {
    QueueView {
        name: info.name,
        paused: info.paused,
        depth: info.depth.visible,
        in_flight: info.depth.in_flight,
        delayed: info.depth.delayed,
        workflows: info.workflows.into_iter().collect(),
        provides: info.provides,
        oldest_at: info.oldest_at.map(Into::into),
        by: info.by.as_ref().map(super::by),
    }
}
