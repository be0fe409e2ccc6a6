//! The gate as it is stored, in as few words as there can be, and as the rules know it.

use std::num::NonZeroU16;

use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::gate::{
    Absent, AskedLimit, Branch, Candidate, Gate, Hold, Holder, Position, Take, Waiter,
};
use tickover_core::id::{Fingerprint, GateId, Incarnation, Nonce, Owner, QueueName};

use super::process::Claim;
use super::record::{at, seconds};
use crate::model::task_id;
use crate::plan::START;

/// Neither its version nor its expiry tells states apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Stored {
    exists: bool,
    holders: Vec<Place>,
    /// How often the branch was called in vain, and until when it isn't called.
    absent: Option<(u8, i32)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    task: u8,
    since: i32,
    until: i32,
    /// The mark with which it was taken; `None` if it was only offered.
    mark: Option<u8>,
}

/// What all states have in common.
#[derive(Clone, Debug)]
pub(super) struct Names {
    owners: Vec<Owner>,
    branch: Branch,
    asked: AskedLimit,
    empty: Gate,
}

const INCARNATION: Incarnation = Incarnation::from_bytes([1; 8]);

impl Stored {
    pub(super) const fn exists(&self) -> bool {
        self.exists
    }

    pub(super) fn places(&self, now: i32) -> usize {
        self.holders.iter().filter(|one| one.until > now).count()
    }
}

impl Names {
    pub(super) fn new(tasks: usize, limit: NonZeroU16) -> Self {
        let id = GateId::from(&Fingerprint::from_bytes([0; 16]));
        #[expect(clippy::expect_used, reason = "it is a name")]
        let queue = QueueName::parse("jobs").expect("a queue's name");
        Self {
            owners: (0..tasks).map(|task| task_id(&format!("task-{task}")).into()).collect(),
            branch: Branch { queue, others: vec![], required: 0 },
            asked: AskedLimit { limit, asked_at: START },
            empty: Gate::new(id, String::new(), Nonce::from_bytes([0; 8]), START),
        }
    }

    pub(super) fn owner(&self, task: u8) -> &Owner {
        &self.owners[usize::from(task)]
    }

    fn task(&self, owner: &Owner) -> u8 {
        (0..).zip(&self.owners).find(|(_, one)| *one == owner).map_or(u8::MAX, |(task, _)| task)
    }

    /// The gate as the rules know it.
    pub(super) fn open(&self, stored: &Stored) -> Gate {
        let holder = |place: &Place| Holder {
            owner: self.owner(place.task).clone(),
            incarnation: INCARNATION,
            since: at(place.since),
            until: at(place.until),
            hold: match place.mark {
                Some(mark) => Hold::Taken { mark: mark.into() },
                None => Hold::Called { branch: self.branch.mark() },
            },
        };
        let absent = |(times, until)| Absent { branch: self.branch.mark(), until: at(until), times };
        Gate {
            limit: stored.exists.then_some(self.asked.limit),
            asked_at: stored.exists.then_some(START),
            holders: stored.holders.iter().map(holder).collect(),
            absent: stored.absent.map(absent).into_iter().collect(),
            ..self.empty.clone()
        }
    }

    pub(super) fn store(&self, gate: &Gate) -> Stored {
        let place = |holder: &Holder| Place {
            task: self.task(&holder.owner),
            since: seconds(holder.since),
            until: seconds(holder.until),
            mark: match holder.hold {
                Hold::Taken { mark } => u8::try_from(mark).ok(),
                Hold::Called { .. } => None,
            },
        };
        Stored {
            exists: gate.limit().is_some(),
            holders: gate.holders.iter().map(place).collect(),
            absent: gate.absent.first().map(|one| (one.times, seconds(one.until))),
        }
    }

    /// What a claim asks of the gate.
    pub(super) fn take(&self, claim: &Claim, until: i32) -> Take {
        Take {
            owner: self.owner(claim.task).clone(),
            incarnation: INCARNATION,
            mark: claim.version.into(),
            branch: if claim.in_line { self.branch.mark() } else { 0 },
            in_line: claim.in_line,
            until: at(until),
            limit: self.asked,
            sure: claim.sure,
        }
    }

    pub(super) fn candidate(&self, task: u8, position: u8) -> Candidate {
        let since = START.plus(Millis::new(task.into()));
        let waiter = Waiter {
            owner: self.owner(task).clone(),
            incarnation: INCARNATION,
            branch: self.branch.clone(),
            priority: Priority::Normal,
            position: Position { since, version: position.into() },
            written_at: START,
            home: None,
        };
        Candidate { waiter, limit: self.asked, served: true }
    }

    /// The task of one that was called, and its position in the line.
    pub(super) fn called(&self, waiter: &Waiter) -> (u8, u8) {
        (self.task(&waiter.owner), u8::try_from(waiter.position.version).unwrap_or(u8::MAX))
    }

    pub(super) const fn incarnation() -> Incarnation {
        INCARNATION
    }

    /// Whether the branch isn't called now.
    pub(super) fn is_absent(&self, gate: &Gate, now: i32) -> bool {
        gate.is_absent(self.branch.mark(), at(now))
    }
}
