//! A queue's record: whether it is paused, and up to where its hints are known to have been claimed.

mod resuming;

use serde::{Deserialize, Serialize};

use crate::due::Due;
use crate::duration::Millis;
use crate::id::{Nonce, QueueName};
use crate::time::Timestamp;

pub use resuming::{LOST_AFTER, Resuming, Walk};

/// How far apart the watermark's writes are.
pub const WATERMARK_EVERY: Millis = Millis::from_secs(60);

/// The control record of a queue. A queue without one has never been paused or claimed from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRecord {
    /// Its logical name.
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
        }
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
    /// That task's incarnation.
    pub incarnation: crate::id::Incarnation,
    /// When that was.
    pub created_at: Timestamp,
    /// The decision that wrote this.
    pub nonce: Nonce,
    /// When the record may be deleted; moved later while the task is open.
    pub expires_at: Timestamp,
}
