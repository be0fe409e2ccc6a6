//! What a decision on a task asks its caller to do, in this order: blobs, writes, effects, reply.

use crate::decision::{DueReply, Effect, NewBlob, Write};
use crate::error::Reject;
use crate::task::Task;
use crate::time::Timestamp;

/// All that follows from a command.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Payload items to write first, so that no record ever points to nothing.
    pub blobs: Vec<NewBlob>,
    /// Writes to commit together, each under its condition. None means that nothing changes.
    pub writes: Vec<Write>,
    /// What to tell others, only after the commit.
    pub effects: Vec<Effect>,
    /// The task as it stands after the writes.
    pub task: Option<Task>,
    /// The answer. A refusal may come with writes: an expiry noticed on the way is recorded all the same.
    pub outcome: Result<Reply, Reject>,
}

impl Decision {
    /// A refusal that changes nothing.
    pub fn refuse(task: Option<&Task>, reject: Reject) -> Self {
        Self::unchanged(task, Err(reject))
    }

    /// An answer that changes nothing.
    pub fn unchanged(task: Option<&Task>, outcome: Result<Reply, Reject>) -> Self {
        Self { blobs: vec![], writes: vec![], effects: vec![], task: task.cloned(), outcome }
    }
}

/// A successful answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The task exists now.
    Scheduled {
        /// Whether it had existed before.
        existed: bool,
    },
    /// What became of a claim.
    Claim(ClaimReply),
    /// The lease is renewed.
    Renewed,
    /// The attempt is over.
    Closed {
        /// Whether it had been closed by this same lease before.
        duplicate: bool,
    },
    /// What became of a cancellation.
    Cancel(CancelReply),
    /// The task is pending again.
    Revived,
    /// What became of the wish to send a parked task's hint.
    Unparked {
        /// Whether it was parked.
        was_parked: bool,
    },
    /// What the tick did.
    Due(DueReply),
}

/// What became of a claim, and what the message that led to it is good for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimReply {
    /// The caller has it. Its message stays in flight until the attempt ends.
    Claimed,
    /// Somebody alive has it: the message is left alone, it comes back when their lease would be over.
    Held,
    /// It may not start yet: the message is to be sent again with what remains.
    Early {
        /// When it may.
        available_at: Timestamp,
    },
    /// Its last worker was lost, perhaps because of it: only a worker that has nothing else under way may have it.
    Suspect,
    /// Its queue is paused. The message is to be deleted: another one is sent when the queue is resumed.
    Parked,
    /// Nothing will ever come of this message: it is to be deleted.
    Spent,
}

/// What became of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReply {
    /// The task has ended.
    Cancelled,
    /// Its worker will be told.
    Requested,
    /// It had ended before.
    AlreadyFinished,
}
