//! A queue's record: whether it is paused, and up to where its hints are known to have been claimed.

mod resuming;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::due::Due;
use crate::duration::Millis;
use crate::id::{Nonce, QueueName, WorkflowName};
use crate::time::Timestamp;

pub use resuming::{LOST_AFTER, Resuming, Walk};

/// Most workflows of which a queue's record knows that their code is with its workers.
pub const WORKFLOWS_MAX: usize = 200;

/// How far apart the watermark's writes are.
pub const WATERMARK_EVERY: Millis = Millis::from_secs(60);

/// The control record of a queue. A queue without one has never been paused or claimed from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRecord {
    pub name: QueueName,
    /// Counts its writes; each is conditional on it.
    pub version: u64,
    /// The decision that wrote this version.
    pub nonce: Nonce,
    /// While true, nothing is handed out.
    pub paused: bool,
    /// Whether hints were deleted while it was paused, which are to be sent again when it is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parked: bool,
    /// The walks that send them, once it is resumed and until all are done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resuming: Option<Resuming>,
    /// Messages that were to arrive before this have flowed: one that was to arrive at it has been received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark: Option<Timestamp>,
    /// When the watermark was last moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked_at: Option<Timestamp>,
    /// The workflows of which workers of this queue have said that they have the code, and when.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub workflows: BTreeMap<WorkflowName, Timestamp>,
}

impl QueueRecord {
    /// A queue that nothing is known of yet.
    pub fn new(name: QueueName, nonce: Nonce) -> Self {
        Self {
            name,
            version: 0,
            nonce,
            paused: false,
            parked: false,
            resuming: None,
            watermark: None,
            marked_at: None,
            workflows: BTreeMap::new(),
        }
    }

    /// The same once a worker has said that it has the code of these workflows. Beyond [`WORKFLOWS_MAX`] of them, the
    /// one that was named the longest ago is forgotten.
    #[must_use]
    pub fn with_workflows(&self, names: &[WorkflowName], now: Timestamp) -> Self {
        let mut workflows = self.workflows.clone();
        workflows.extend(names.iter().map(|name| (name.clone(), now)));
        while workflows.len() > WORKFLOWS_MAX {
            let oldest = workflows.iter().min_by_key(|(_, named_at)| **named_at);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { break };
            workflows.remove(&oldest);
        }
        Self { workflows, ..self.clone() }
    }

    /// Its place in the due index: it has one while it owes walks to what was parked.
    pub fn due(&self) -> Option<Due> {
        self.resuming.as_ref().map(|resuming| resuming.due)
    }

    /// Whether having received a message that was to arrive at this instant is news worth a write.
    pub fn watermark_moves(&self, arrived: Timestamp) -> bool {
        self.watermark.is_none_or(|known| arrived >= known.plus(WATERMARK_EVERY))
    }
}

/// What the tick knows of a queue when it wonders whether a hint was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueView {
    /// Whether no message is visible, in flight or delayed.
    pub looks_empty: bool,
    /// See [`QueueRecord::watermark`].
    pub watermark: Option<Timestamp>,
    /// Whether nothing is handed out.
    pub paused: bool,
    /// See [`QueueRecord::marked_at`].
    pub marked_at: Option<Timestamp>,
    /// Whether it could be asked.
    pub standing: Standing,
}

/// Whether a queue could be asked how full it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// It answered, or nobody asked.
    #[default]
    Answers,
    /// It didn't answer: what is sent to it now would be lost.
    Silent,
    /// No queue of that name is configured.
    Missing,
}

/// An idempotency key's record: which task it stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// Digest of the key.
    pub key: crate::id::Fingerprint,
    /// The task scheduled with it.
    pub task: crate::id::TaskId,
    pub incarnation: crate::id::Incarnation,
    pub created_at: Timestamp,
    /// The decision that wrote this.
    pub nonce: Nonce,
    /// When the record may be deleted; moved later while the task is open.
    pub expires_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_forgets_the_workflow_that_was_named_the_longest_ago_when_there_are_too_many() {
        let name = |number: usize| WorkflowName::parse(format!("w-{number}")).unwrap();
        let at = |number: usize| Timestamp::from_millis(i64::try_from(number).unwrap());
        let blank = QueueRecord::new(QueueName::parse("q").unwrap(), Nonce::from_bytes([1; Nonce::LEN]));
        let add = |record: QueueRecord, number| record.with_workflows(&[name(number)], at(number));
        let full = (0..WORKFLOWS_MAX).fold(blank, add);
        assert_eq!(full.workflows.len(), WORKFLOWS_MAX);
        // Named once more, the first is no longer the oldest.
        let again = full.with_workflows(&[name(0)], at(1_000));
        let more = again.with_workflows(&[name(999)], at(1_001));
        assert_eq!(more.workflows.len(), WORKFLOWS_MAX);
        assert!(more.workflows.contains_key(&name(0)) && more.workflows.contains_key(&name(999)));
        assert!(!more.workflows.contains_key(&name(1)));
    }
}
