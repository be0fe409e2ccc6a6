//! One task, its clock, and all random values, under names that tests can read.
//!
//! A scenario writes each decision as a store would, and checks the invariants of all decisions.

mod check;
mod items;
mod scene;

use std::num::NonZeroU16;

use crate::decision::{Change, Write};
use crate::duration::Millis;
use crate::flow::Gated;
use crate::id::{BlobId, ExecutionId, Fingerprint, Incarnation, LeaseId, QueueName, TaskId, TaskKind};
use crate::limits::Limits;
use crate::parent::Parent;
use crate::payload::Json;
use crate::queue::{QueueView, Reachability};
use crate::retry::{Delay, MaxAttempts, RetryPolicy};
use crate::task::command::{Key, Schedule, Start};
use crate::task::{Decision, Task};
use crate::time::Timestamp;
use crate::timeout::{AttemptTimeout, LifeTimeout, OnTimeout, Timeouts};

pub(crate) use check::check;
pub(crate) use items::Items;
pub(crate) use scene::Scene;

/// When every scenario starts.
const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// A duration, such as `1m 30s`.
pub(crate) fn span(text: &str) -> Millis {
    Millis::parse_allowing_zero(text).unwrap()
}

/// The instant this long after the start of the scenario.
pub(crate) fn t(text: &str) -> Timestamp {
    START.plus(span(text))
}

/// The lease with that name.
pub(crate) fn lease(name: &str) -> LeaseId {
    LeaseId::from_bytes(padded(name))
}

/// The key with that name, for a payload.
pub(crate) fn blob(name: &str) -> BlobId {
    BlobId::from_bytes(padded(name))
}

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn padded(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes
}

/// The tick's view of a queue that contains messages.
pub(crate) const BUSY: QueueView = QueueView {
    looks_empty: false,
    watermark: None,
    marked_at: None,
    reachability: Reachability::Reachable,
    paused: false,
};
/// The tick's view of an empty queue.
pub(crate) const EMPTY: QueueView = QueueView { looks_empty: true, ..BUSY };

/// The tick's view of a queue whose hints have been claimed up to that instant.
pub(crate) fn claimed_up_to(text: &str) -> QueueView {
    QueueView { watermark: Some(t(text)), ..BUSY }
}

/// A task about to be scheduled. By default it has one attempt and no timeouts.
pub(crate) struct Plan {
    pub(crate) schedule: Schedule,
    pub(crate) limits: Limits,
}

pub(crate) fn task() -> Plan {
    let schedule = Schedule {
        id: TaskId::parse("invoice-7").unwrap(),
        incarnation: Incarnation::from_bytes([1; 8]),
        queue: QueueName::parse("mail").unwrap(),
        kind: TaskKind::parse("send-invoice").unwrap(),
        input: None,
        labels: None,
        retry: RetryPolicy::none(),
        flow: crate::flow::Flow::default(),
        timeouts: Timeouts::default(),
        start: Start::After(Millis::ZERO),
        in_line: false,
        fingerprint: Fingerprint::from_bytes([2; 16]),
        key: None,
        parent: None,
        trace: None,
        blob_ids: [blob("input"), blob("labels")],
    };
    Plan { schedule, limits: Limits::default() }
}

/// The execution that the remote steps belong to.
pub(crate) fn parent() -> Parent {
    let execution = ExecutionId::parse("order-7").unwrap();
    Parent {
        execution,
        incarnation: Incarnation::from_bytes([5; 8]),
        run: 1,
        again: 0,
        slot: None,
        step: None,
        work: None,
        on_close: crate::execution::ParentClosePolicy::default(),
    }
}

/// The key with that number, counted from zero, and the limit that was asked for.
pub(crate) fn gated(number: usize, limit: u16) -> Gated {
    Gated {
        key: Fingerprint::from_bytes([u8::try_from(number + 1).unwrap(); 16]),
        limit: NonZeroU16::new(limit).unwrap(),
        text: format!("customer-{number}"),
    }
}

impl Plan {
    pub(crate) fn attempts(mut self, count: i64) -> Self {
        self.schedule.retry.max_attempts = MaxAttempts::try_from(count).unwrap();
        self
    }

    pub(crate) fn delay(mut self, text: &str) -> Self {
        self.schedule.retry.delay = Delay::Fixed(span(text));
        self
    }

    pub(crate) fn delays(mut self, texts: &[&str]) -> Self {
        self.schedule.retry.delay = Delay::Listed(texts.iter().map(|text| span(text)).collect());
        self
    }

    pub(crate) fn non_retryable(mut self, code: &str) -> Self {
        self.schedule.retry.non_retryable.push(code.to_owned());
        self
    }

    /// The deadline over all attempts. It is an error when it passes.
    pub(crate) fn deadline(self, text: &str) -> Self {
        self.with_total_timeout(text, true)
    }

    pub(crate) fn with_total_timeout(mut self, text: &str, is_error: bool) -> Self {
        self.schedule.timeouts.schedule_to_close = Some(LifeTimeout { after: span(text), is_error });
        self
    }

    pub(crate) fn start_within(mut self, text: &str, on_timeout: OnTimeout) -> Self {
        self.schedule.timeouts.schedule_to_start = Some(AttemptTimeout { after: span(text), on_timeout });
        self
    }

    pub(crate) fn close_within(mut self, text: &str, on_timeout: OnTimeout) -> Self {
        self.schedule.timeouts.start_to_close = Some(AttemptTimeout { after: span(text), on_timeout });
        self
    }

    pub(crate) fn heartbeats(mut self, text: &str, on_timeout: OnTimeout) -> Self {
        self.schedule.timeouts.heartbeat = Some(AttemptTimeout { after: span(text), on_timeout });
        self
    }

    pub(crate) fn starting_in(mut self, text: &str) -> Self {
        self.schedule.start = Start::After(span(text));
        self
    }

    pub(crate) fn input(mut self, text: &str) -> Self {
        self.schedule.input = Some(json(text));
        self
    }

    pub(crate) fn labels(mut self, text: &str) -> Self {
        self.schedule.labels = Some(json(text));
        self
    }

    pub(crate) fn keyed(mut self) -> Self {
        self.schedule.key = Some(Key { digest: Fingerprint::from_bytes([3; 16]), replaces: None });
        self
    }

    /// Makes it a remote step of an execution.
    pub(crate) fn step(mut self) -> Self {
        self.schedule.parent = Some(parent());
        self
    }

    /// It needs a place at one more key, with this limit.
    pub(crate) fn limited(mut self, limit: u16) -> Self {
        let gates = &mut self.schedule.flow.gates;
        gates.push(gated(gates.len(), limit));
        self
    }

    /// It begins in the line of a key.
    pub(crate) fn in_line(mut self) -> Self {
        self.schedule.in_line = true;
        self
    }

    pub(crate) fn max_losses(mut self, losses: u32) -> Self {
        self.limits.losses = losses;
        self
    }

    /// The scenario that starts with scheduling it.
    pub(crate) fn scheduled(self) -> Scene {
        Scene::of(self).schedule_repeated()
    }
}

/// The tasks that a decision writes, before and after.
pub(crate) fn written(decision: &Decision) -> impl Iterator<Item = (Option<&Task>, &Task)> {
    decision.writes.iter().filter_map(Write::change).map(|change| match change {
        Change::Task(before, after) => (before, after),
        Change::Execution(..) | Change::Cron(..) => panic!("no write of a task: {change:?}"),
    })
}
