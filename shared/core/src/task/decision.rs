//! What a task's commands are answered.

use crate::decision::DueReply;
use crate::task::Task;
use crate::time::Timestamp;

/// All that follows from a command on a task.
pub type Decision = crate::decision::Decision<Task, Reply>;

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
    /// The task has ended, or its worker is told that it should.
    Cancel {
        /// Whether that is new.
        changed: bool,
    },
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
