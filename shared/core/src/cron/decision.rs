//! What a decision on a cron asks its caller to do, in this order: blobs, write, timer, stops, starts, reply.

use super::Cron;
use super::run::{Occurrence, Stop};
use crate::decision::NewBlob;
use crate::error::Reject;
use crate::payload::BlobRef;
use crate::time::Timestamp;

/// All that follows from a command.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Payload items to write first.
    pub blobs: Vec<NewBlob>,
    /// The write. None means that nothing changes.
    pub write: Option<Change>,
    /// When a timer has to come, after the commit: a look so soon that no tick is sure to hand it over.
    pub timer_at: Option<Timestamp>,
    /// Runs to be stopped, after the commit, those not known to have ended.
    pub stops: Vec<(Occurrence, Stop)>,
    /// Runs to be started, after the commit; what becomes of them is reported by another command.
    pub starts: Vec<Occurrence>,
    /// The cron as it stands after the write.
    pub record: Option<Cron>,
    /// The answer.
    pub outcome: Result<Reply, Reject>,
}

/// A conditional write.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The record decided on: only if it is still there, with the same nonce; or none of this id if absent.
    pub before: Option<Box<Cron>>,
    /// What it becomes.
    pub after: Box<Cron>,
    /// The payload of its request, if that is to be kept longer before this is written.
    pub kept: Option<BlobRef>,
}

/// A successful answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The cron is there.
    Made {
        /// Whether it had been before.
        existed: bool,
    },
    /// It is as asked for; perhaps it had been before.
    Done,
    /// A run of its own is to be started.
    Triggered(Occurrence),
    /// Runs that are written down must be started before anything else: the command is to be repeated after that.
    StartFirst,
    /// It was looked at.
    Looked {
        /// Whether there is more to do at once.
        again: bool,
    },
}

impl Decision {
    /// A refusal that changes nothing.
    pub fn refuse(record: Option<&Cron>, reject: Reject) -> Self {
        Self::unchanged(record, Err(reject))
    }

    /// An answer that changes nothing.
    pub fn unchanged(record: Option<&Cron>, outcome: Result<Reply, Reject>) -> Self {
        let record = record.cloned();
        Self { blobs: vec![], write: None, timer_at: None, stops: vec![], starts: vec![], record, outcome }
    }
}
