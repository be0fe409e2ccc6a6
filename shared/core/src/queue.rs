//! A queue's record: whether the queue is paused, and up to which instant its hints are known to have been claimed.

mod resuming;
pub mod workers;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::by::By;
use crate::due::Due;
use crate::duration::Millis;
use crate::flow::Priority;
use crate::id::{Capability, Nonce, QueueName, TaskKind, WorkflowName};
use crate::kind::KindDefaults;
use crate::time::Timestamp;
use workers::Workers;

pub use resuming::{LOST_AFTER, Resuming, Walk};

/// Most workflows for which a queue's record notes that its workers have their code.
pub const WORKFLOWS_MAX: usize = 200;
/// Most capabilities that a queue's record notes as provided by its workers.
pub const PROVIDES_MAX: usize = 32;

/// The time between two writes of the watermark.
pub const WATERMARK_EVERY: Millis = Millis::from_secs(60);

/// Up to which instant the messages of a priority are known to be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// A message with this arrival time has been received.
    #[serde(rename = "a")]
    pub arrived: Timestamp,
    /// When that was noted.
    #[serde(rename = "n")]
    pub noted_at: Timestamp,
}

/// The control record of a queue. A queue without a record has never been paused or claimed from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueRecord {
    pub name: QueueName,
    /// Counts its writes. Each write is conditional on it.
    pub version: u64,
    /// The nonce of the decision that wrote this version.
    pub nonce: Nonce,
    /// While true, no lease is granted.
    pub paused: bool,
    /// Who has paused or resumed it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    /// Whether hints were deleted while it was paused. They are sent again when it is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parked: bool,
    /// The walks that send those hints, from the resuming until all are done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resuming: Option<Resuming>,
    /// The watermarks: up to where messages of each class queue are received, and ([`Priority::Normal`]) all others. That
    /// those of one are received says nothing about the others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<Priority, Mark>,
    /// The workflows whose code workers of this queue have, and when a worker last reported that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub workflows: BTreeMap<WorkflowName, Timestamp>,
    /// What workers of this queue provide, and when a worker last reported that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub provides: BTreeMap<Capability, Timestamp>,
    /// The workers that have asked for its work lately.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub workers: Workers,
    /// The defaults of its kinds of tasks: see [`KINDS_BYTES_MAX`](crate::kind::KINDS_BYTES_MAX).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<TaskKind, KindDefaults>,
}

impl QueueRecord {
    /// The record of a queue without one.
    pub fn new(name: QueueName, nonce: Nonce) -> Self {
        Self {
            name,
            version: 0,
            nonce,
            paused: false,
            by: None,
            parked: false,
            resuming: None,
            marks: BTreeMap::new(),
            workflows: BTreeMap::new(),
            provides: BTreeMap::new(),
            workers: Workers::new(),
            kinds: BTreeMap::new(),
        }
    }

    /// The record after a worker has reported that it has the code of these workflows. Beyond [`WORKFLOWS_MAX`], the
    /// workflow reported longest ago is removed.
    #[must_use]
    pub fn with_workflows(&self, names: &[WorkflowName], now: Timestamp) -> Self {
        Self { workflows: reported(&self.workflows, names, now, WORKFLOWS_MAX), ..self.clone() }
    }

    /// The record after a worker has reported that it provides these. Beyond [`PROVIDES_MAX`], the capability reported
    /// longest ago is removed.
    #[must_use]
    pub fn with_provided(&self, names: &[Capability], now: Timestamp) -> Self {
        Self { provides: reported(&self.provides, names, now, PROVIDES_MAX), ..self.clone() }
    }

    /// Since when its workers have been known to provide all of these. `None` if nobody has reported one of them, or
    /// nothing is required.
    pub fn provides_since(&self, required: &[Capability]) -> Option<Timestamp> {
        let reported: Option<Vec<_>> = required.iter().map(|name| self.provides.get(name)).collect();
        reported?.into_iter().min().copied()
    }

    /// Its due slot. It has one while hints of parked records are still to be sent.
    pub fn due(&self) -> Option<Due> {
        self.resuming.as_ref().map(|resuming| resuming.due)
    }

    /// The record after a message with this arrival time was received. `None` if that moves the watermark by less than
    /// [`WATERMARK_EVERY`].
    #[must_use]
    pub fn marked(&self, class: Priority, mark: Mark) -> Option<Self> {
        if self.marks.get(&class).is_some_and(|known| mark.arrived < known.arrived.plus(WATERMARK_EVERY)) {
            return None;
        }
        let mut marked = self.clone();
        marked.marks.insert(class, mark);
        Some(marked)
    }
}

/// Names after another report of some of them: of more than `maximum`, those reported longest ago are left out.
fn reported<N: Ord + Clone>(
    known: &BTreeMap<N, Timestamp>,
    names: &[N],
    now: Timestamp,
    maximum: usize,
) -> BTreeMap<N, Timestamp> {
    let mut all = known.clone();
    all.extend(names.iter().map(|name| (name.clone(), now)));
    while all.len() > maximum {
        let oldest = all.iter().min_by_key(|(_, reported_at)| **reported_at);
        let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { break };
        all.remove(&oldest);
    }
    all
}

/// A queue's state, from which the tick decides whether a hint may be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueView {
    /// Whether the queue reports no message as visible, in flight or delayed.
    pub looks_empty: bool,
    /// [`Mark::arrived`] where the record's messages wait.
    pub watermark: Option<Timestamp>,
    /// Whether it is paused.
    pub paused: bool,
    /// [`Mark::noted_at`] of it.
    pub marked_at: Option<Timestamp>,
    /// Whether its depth could be read.
    pub reachability: Reachability,
}

/// Whether the depth of a queue could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reachability {
    /// It was read, or it wasn't needed.
    #[default]
    Reachable,
    /// The queue didn't answer: messages sent to it now would be lost.
    Unreachable,
    /// No queue with that name is configured.
    NotConfigured,
}

/// The record of a key, with the task or the execution that has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// Digest of the key.
    pub key: crate::id::Fingerprint,
    pub owner: crate::id::Owner,
    pub incarnation: crate::id::Incarnation,
    pub created_at: Timestamp,
    /// The nonce of the decision that wrote this record.
    pub nonce: Nonce,
    /// When the record may be deleted. Moved later while the task is open.
    pub expires_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_received_of_one_class_says_nothing_of_the_others_and_is_noted_once_a_minute() {
        let blank = QueueRecord::new(QueueName::parse("q").unwrap(), Nonce::from_bytes([1; Nonce::LEN]));
        let mark = |seconds: u64| {
            let at = Timestamp::EPOCH.plus(Millis::from_secs(seconds));
            Mark { arrived: at, noted_at: at.plus(Millis::from_secs(1)) }
        };
        for class in Priority::ALL {
            let marked = blank.marked(class, mark(100)).unwrap();
            assert_eq!(marked.marks, [(class, mark(100))].into());
            assert_eq!(marked.marked(class, mark(159)), None);
            assert_eq!(marked.marked(class, mark(160)).unwrap().marks, [(class, mark(160))].into());
        }
    }

    #[test]
    fn a_queue_forgets_the_workflow_that_was_named_the_longest_ago_when_there_are_too_many() {
        let name = |number: usize| WorkflowName::parse(format!("w-{number}")).unwrap();
        let at = |number: usize| Timestamp::from_millis(i64::try_from(number).unwrap());
        let blank = QueueRecord::new(QueueName::parse("q").unwrap(), Nonce::from_bytes([1; Nonce::LEN]));
        let add = |record: QueueRecord, number| record.with_workflows(&[name(number)], at(number));
        let full = (0..WORKFLOWS_MAX).fold(blank, add);
        assert_eq!(full.workflows.len(), WORKFLOWS_MAX);
        // The first one was reported once more, so it is no longer the oldest.
        let again = full.with_workflows(&[name(0)], at(1_000));
        let more = again.with_workflows(&[name(999)], at(1_001));
        assert_eq!(more.workflows.len(), WORKFLOWS_MAX);
        assert!(more.workflows.contains_key(&name(0)) && more.workflows.contains_key(&name(999)));
        assert!(!more.workflows.contains_key(&name(1)));
    }
}
