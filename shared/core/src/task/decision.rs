//! The answers to the commands on a task.

use crate::decision::DueReply;
use crate::task::Task;
use crate::time::Timestamp;

/// The decision of a command on a task.
pub type Decision = crate::decision::Decision<Task, Reply>;

/// A successful answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The task exists now.
    Scheduled {
        /// Whether it had existed before.
        existed: bool,
    },
    /// The result of another request of a burst.
    Bounced {
        /// Whether it has taken the place of the one that waited. If not, a worker has had that one, or it has ended.
        taken: bool,
    },
    /// The result of a claim.
    Claim(ClaimReply),
    Extended,
    /// The attempt is over.
    Closed {
        /// Whether this lease had closed it before.
        duplicate: bool,
    },
    /// The task has ended, or its worker will be asked to stop.
    Cancel {
        /// Whether this call changed the record.
        changed: bool,
    },
    /// The task is pending again.
    Revived,
    /// A parked task's hint was sent, if the task was parked.
    Unparked {
        was_parked: bool,
    },
    /// The result of a tick or timer.
    Due(DueReply),
}

/// The result of a claim, which decides what happens to the message that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimReply {
    /// The caller has the lease. The message stays in flight until the attempt ends.
    Claimed,
    /// Another worker has a valid lease. The message is left alone, and is delivered again when that lease would
    /// have ended.
    Leased,
    /// It may not start yet. The message is sent again with the remaining delay.
    Early {
        /// When it may start.
        available_at: Timestamp,
    },
    /// Its last worker was lost, perhaps because of this task. Only a worker without other attempts may claim it.
    Suspect,
    /// Its queue is paused. The message is deleted, and another one is sent when the queue is resumed.
    Parked,
    /// It may start once it has a place at each of its keys. If it waits for one, the message is deleted, and another
    /// one is sent when it has the place.
    NeedsPlaces,
    /// It may start once a start is reserved for it by the rate of its key.
    NeedsStart,
    /// The message is stale and is deleted.
    Stale,
}
