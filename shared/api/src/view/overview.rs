//! The view of what an operator looks at first.

use std::cmp::Reverse;

use tickover_core::time::Timestamp;
use tickover_service::overview::{Count, FailedWork, FailureGroup, Failures, Overview, QueueNumbers};
use tickover_wire::answer::{
    CountView, ExecutionNumbersView, FailureGroupView, FailuresAnswer, OverviewAnswer, QueueNumbersView,
    TaskNumbersView,
};

/// How many groups of failures an answer has.
const GROUPS_MAX: usize = 20;
/// How many queues an answer has.
const QUEUES_MAX: usize = 50;
/// How many workers of a queue are named.
const WORKERS_MAX: usize = 3;
/// How many characters of a message an answer has.
const MESSAGE_CHARS: usize = 200;

/// The view of an overview.
pub fn overview(made: Overview) -> OverviewAnswer {
    let Overview { at, tasks, executions, failed, failures, queues } = made;
    OverviewAnswer {
        as_of: at.into(),
        tasks: TaskNumbersView {
            pending: count(tasks.pending),
            running: count(tasks.running),
            late: count(tasks.late),
            stuck: count(tasks.stuck),
        },
        executions: ExecutionNumbersView {
            open: count(executions.open),
            late: count(executions.late),
            stuck: count(executions.stuck),
            announced_only: executions.announced_only,
        },
        failed: count(failed),
        more_failures: failures.len() > GROUPS_MAX,
        failures: failures.into_iter().take(GROUPS_MAX).map(group).collect(),
        more_queues: queues.len() > QUEUES_MAX,
        queues: queues.into_iter().take(QUEUES_MAX).map(|numbers| queue(numbers, at)).collect(),
    }
}

/// The view of what has failed.
pub fn failures(found: Failures) -> FailuresAnswer {
    let Failures { count: failed, groups, more_groups, read_max } = found;
    FailuresAnswer {
        failed: count(failed),
        groups: groups.into_iter().map(group).collect(),
        more_groups,
        read_max: read_max.map(|most| u64::try_from(most).unwrap_or(u64::MAX)),
    }
}

fn count(Count { count, more }: Count) -> CountView {
    CountView { count, more }
}

fn group(group: FailureGroup) -> FailureGroupView {
    let (kind, workflow) = match group.of {
        FailedWork::Task(kind) => (Some(kind), None),
        FailedWork::Execution(workflow) => (None, Some(workflow)),
    };
    FailureGroupView {
        kind,
        workflow,
        error: group.code,
        steps: group.steps.into_iter().collect(),
        count: group.count,
        last_hour: group.lately,
        first_at: group.first_at.into(),
        last_at: group.last_at.into(),
        message: group.message.map(|message| message.chars().take(MESSAGE_CHARS).collect()),
    }
}

fn queue(QueueNumbers { of, oldest_at, running }: QueueNumbers, now: Timestamp) -> QueueNumbersView {
    let mut there: Vec<_> = of.workers.into_iter().filter(|(_, seen)| seen.is_there(now)).collect();
    there.sort_by_key(|(_, seen)| Reverse(seen.seen_at));
    let more_workers = there.len().saturating_sub(WORKERS_MAX);
    QueueNumbersView {
        name: of.queue.name,
        paused: of.queue.paused,
        unserved: of.unserved,
        depth: of.queue.depth.visible,
        in_flight: running,
        delayed: of.queue.depth.delayed,
        oldest_at: oldest_at.map(Into::into),
        workers: there.into_iter().take(WORKERS_MAX).map(|(name, _)| name).collect(),
        more_workers: u64::try_from(more_workers).unwrap_or(u64::MAX),
    }
}
