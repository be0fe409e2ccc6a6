//! A queue's view for operators.

use std::cmp::Reverse;

use tickover_core::queue::workers::SeenWorker;
use tickover_core::time::Timestamp;
use tickover_service::queues::QueueInfo;
use tickover_service::queues::workers::QueueWorkers;
use tickover_wire::answer::{QueueView, QueueWorkersView, WorkerView};

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

/// The view of a queue with its workers at an instant.
pub fn workers(found: QueueWorkers, now: Timestamp) -> QueueWorkersView {
    let QueueWorkers { queue, workers, unserved } = found;
    let mut workers: Vec<_> = workers.into_iter().collect();
    workers.sort_by_key(|(_, seen)| Reverse(seen.seen_at));
    let worker = |(name, seen): (_, SeenWorker)| WorkerView {
        name,
        there: seen.is_there(now),
        since: seen.since.into(),
        seen_at: seen.seen_at.into(),
        version: seen.version,
    };
    QueueWorkersView {
        queue: queue.name,
        unserved,
        paused: queue.paused,
        depth: queue.depth.visible,
        in_flight: queue.depth.in_flight,
        workflows: queue.workflows,
        workers: workers.into_iter().map(worker).collect(),
    }
}
