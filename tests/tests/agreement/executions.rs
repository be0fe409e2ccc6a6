//! Random writes of executions. The records are built without the rules: a store accepts any record.

use proptest::prelude::*;
use proptest::sample::select;
use tickover_core::decision::{Condition, Write};
use tickover_core::due::{Due, DueKind};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::{
    Closed, Execution, ExecutionOutcome, ExecutionState, Ready, Turn, Waiting, fixture,
};
use tickover_core::id::{ExecutionId, Incarnation, LeaseId, Nonce, WorkflowName};
use tickover_core::time::Timestamp;

use crate::writes::IDS;

/// The only shard of these records.
pub(crate) const SHARD: u16 = 0;

/// A write of an execution.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OfExecution {
    /// A new one.
    Start { id: &'static str },
    /// The next version of one that was there.
    Turn(Turned),
    /// A new due slot, so many milliseconds from the first instant.
    Rearm { to: i64, kind: DueKind },
    /// It is woken.
    Wake,
}

/// How a version differs from the one before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turned {
    to: To,
    /// The new due slot, if there is one, and the latest due slot that the condition accepts; values as for a
    /// re-arming.
    place: Option<i64>,
    latest: Option<i64>,
    /// By how many the wakes that it has seen exceed the stored ones; `None` means without that condition.
    seen: Option<u64>,
    entries: usize,
    /// Whether it is written together with a wake and the ticks' record.
    together: bool,
}

#[derive(Clone, Copy, Debug)]
enum To {
    Pending,
    Running,
    Waiting,
    Closing,
    Ended,
}

pub(crate) fn of_execution() -> impl Strategy<Value = OfExecution> {
    let kinds = [
        DueKind::Instant,
        DueKind::Armed,
        DueKind::Start,
        DueKind::Asleep,
        DueKind::Backstop,
        DueKind::Recheck,
    ];
    prop_oneof![
        3 => select(IDS.to_vec()).prop_map(|id| OfExecution::Start { id }),
        8 => turned().prop_map(OfExecution::Turn),
        3 => (place(), select(kinds.to_vec())).prop_map(|(to, kind)| OfExecution::Rearm { to, kind }),
        4 => Just(OfExecution::Wake),
    ]
}

fn place() -> impl Strategy<Value = i64> {
    select(vec![-1_000_i64, 0, 60_000, 600_000, 3_000_000])
}

fn turned() -> impl Strategy<Value = Turned> {
    let to = prop_oneof![
        2 => Just(To::Pending),
        3 => Just(To::Running),
        3 => Just(To::Waiting),
        1 => Just(To::Closing),
        1 => Just(To::Ended),
    ];
    let place = || prop::option::weighted(0.3, place());
    let seen = prop::option::weighted(0.5, prop_oneof![4 => Just(0_u64), 1 => Just(1)]);
    (to, place(), place(), seen, 0_usize..4, prop::bool::weighted(0.2)).prop_map(
        |(to, place, latest, seen, entries, together)| Turned { to, place, latest, seen, entries, together },
    )
}

/// A new execution at that time.
pub(crate) fn started(id: &str, number: u64, now: Timestamp) -> Execution {
    let number = number.to_be_bytes();
    let (incarnation, nonce) = (Incarnation::from_bytes(number), Nonce::from_bytes(number));
    Execution { id: execution_id(id), incarnation, nonce, ..fixture::pending(now) }
}

pub(crate) fn execution_id(id: &str) -> ExecutionId {
    ExecutionId::parse(id).unwrap()
}

/// The workflow of them all.
pub(crate) fn workflow() -> WorkflowName {
    WorkflowName::parse("checkout").unwrap()
}

impl Turned {
    /// The next version, and its write.
    pub(crate) fn write(
        self,
        before: &Execution,
        nonce: Nonce,
        now: Timestamp,
        instant: impl Fn(i64) -> Timestamp,
    ) -> Write {
        let due = match (self.to, self.place, before.due) {
            (To::Ended, _, _) => None,
            (_, Some(at), _) => Some(Due { at: instant(at), kind: DueKind::Instant, shard: SHARD }),
            (_, None, Some(due)) => Some(due),
            (_, None, None) => Some(Due { at: now, kind: DueKind::Backstop, shard: SHARD }),
        };
        let kind = format!("entry {}", before.version);
        let entry = Entry { at: now, what: Happened::Note { kind, name: None, by: None } };
        let after = Execution {
            version: before.version + 1,
            nonce,
            state: self.to.state(before, now),
            due,
            journal: vec![entry; self.entries],
            // Only a wake may change this number.
            wakes: before.wakes + 100,
            ..before.clone()
        };
        let due_no_later_than = self.latest.map(instant);
        let wakes = self.seen.map(|more| before.wakes + more);
        Write::replace(before.clone(), after, Condition::Unchanged { due_no_later_than, wakes })
    }

    pub(crate) const fn is_together(self) -> bool {
        self.together
    }
}

impl To {
    fn state(self, before: &Execution, now: Timestamp) -> ExecutionState {
        let outcome = ExecutionOutcome::Completed { output: None };
        let closed = Closed { outcome, ended_at: now, expires_at: now.plus(Millis::from_secs(600)) };
        match self {
            Self::Pending => ExecutionState::Pending(Ready { available_at: now, hint_later: false }),
            Self::Running => ExecutionState::Running(Turn {
                lease: LeaseId::from_bytes([1; 16]),
                worker: None,
                claimed_at: now,
                lease_length: Millis::from_secs(60),
                lease_expires_at: now.plus(Millis::from_secs(60)),
                shared: false,
                after_loss: false,
                outside: false,
                timed_attempts: vec![],
            }),
            Self::Waiting => ExecutionState::Waiting(Waiting {
                since: now,
                seen_wakes: before.wakes,
                until: None,
                hint_later: false,
                recheck: None,
                wake_requested: false,
                events: vec![],
                has_more_events: false,
            }),
            Self::Closing => ExecutionState::Closing(closed),
            Self::Ended => ExecutionState::Ended(closed),
        }
    }
}
