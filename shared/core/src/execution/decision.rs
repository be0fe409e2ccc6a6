//! The replies to an execution's commands.

use crate::decision::DueReply;
use crate::execution::Execution;
use crate::time::Timestamp;

/// Everything that follows from a command on an execution.
pub type Decision = crate::decision::Decision<Execution, Reply>;

/// The reply to a command that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The execution exists now.
    Started {
        /// Whether it existed before the call.
        existed: bool,
    },
    /// Whether the request has taken the place of the one that waited.
    Bounced {
        taken: bool,
    },
    /// The reply to a request for a turn.
    StartTurn(StartTurnReply),
    /// The entries are recorded, and the turn continues.
    Recorded,
    /// The turn is over, or it has to continue.
    Suspended(SuspendReply),
    /// The run is over. The record says what follows.
    Closed {
        /// Whether this same turn had closed it before.
        duplicate: bool,
    },
    Renewed,
    /// The turn was given back.
    Released,
    /// The event is pending in the journal.
    EventSent {
        /// Whether it had been sent before.
        duplicate: bool,
    },
    /// How many events were cleared.
    EventsCleared(u32),
    /// An operator's call was carried out, or there was nothing left to change.
    Changed {
        /// Whether the call changed the record.
        changed: bool,
    },
    /// It can't be reopened yet: the expiry of its blobs and segments must be extended first.
    ExpiresTooSoon,
    /// The reply to a request for a parked execution's hint.
    Unparked {
        was_parked: bool,
    },
    /// What the tick or timer did.
    Due(DueReply),
}

/// The reply to a request for a turn. It also says what to do with the message that led to the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartTurnReply {
    /// The caller has the lease. Its message stays in flight until the turn ends.
    Started,
    /// Another live worker has the lease. The message can be deleted without loss: that worker sees everything that has
    /// happened before its turn ends.
    LeasedByOther,
    /// The turn may not start yet. The message must be sent again with the remaining delay.
    Early {
        /// When the turn may start.
        available_at: Timestamp,
    },
    /// Its last worker was lost, perhaps because of this execution. Only a worker with nothing else in progress may
    /// start the turn.
    NeedsIsolation,
    /// It needs a place at each of its keys first, taken for this version of the record.
    NeedsPlaces,
    /// It needs a start by its key's rate first.
    NeedsStart,
    /// Its queue is paused. The message must be deleted: resuming the queue sends another one.
    Parked,
    /// It is closed, and the steps and children that it left open are being ended: by the caller that closed it, and by
    /// the messages that continue the close. If there is no timer queue, the hint that led to this request is such a
    /// message.
    Closing,
    /// The message is no longer needed and must be deleted.
    Stale,
}

/// The result of a suspension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuspendReply {
    /// The turn is over.
    Suspended,
    /// Something has happened meanwhile. The entries are recorded, and the turn continues with the current record.
    GoOn,
}
