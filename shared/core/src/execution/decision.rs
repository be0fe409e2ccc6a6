//! What an execution's commands are answered.

use crate::decision::DueReply;
use crate::execution::Execution;
use crate::time::Timestamp;

/// All that follows from a command on an execution.
pub type Decision = crate::decision::Decision<Execution, Reply>;

/// A successful answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The execution exists now.
    Started {
        /// Whether it had existed before.
        existed: bool,
    },
    /// What became of the wish for a turn.
    StartTurn(StartTurnReply),
    /// Written down: the turn goes on.
    Recorded,
    /// The turn is over, or has to go round again.
    Suspended(SuspendReply),
    /// The run is over: what follows stands in the record.
    Closed {
        /// Whether it had been closed by this same turn before.
        duplicate: bool,
    },
    Renewed,
    /// The turn was given back.
    Released,
    /// The event waits for the execution.
    EventSent {
        /// Whether it had been sent before.
        duplicate: bool,
    },
    /// So many events were thrown away.
    EventsCleared(u32),
    /// An operator's call was carried out, or there was nothing to be done any more.
    Changed {
        /// Whether it did.
        changed: bool,
    },
    /// It can't go on yet after its end: what it points to is to be kept for longer first.
    ExpiresTooSoon,
    /// What became of the wish to send a parked execution's hint.
    Unparked {
        was_parked: bool,
    },
    /// What a tick or timer did.
    Due(DueReply),
}

/// What became of the wish for a turn, and what the message that led to it is good for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartTurnReply {
    /// The caller has it. Its message stays in flight until the turn ends.
    Started,
    /// Somebody alive has it: nothing is lost by deleting the message, they see what has happened before they end.
    Held,
    /// It may not go on yet: the message is to be sent again with what remains.
    Early {
        /// When it may.
        available_at: Timestamp,
    },
    /// Its last worker was lost, perhaps because of it: only a worker that has nothing else under way may have it.
    Suspect,
    /// Its queue is paused. The message is to be deleted: another one is sent when the queue is resumed.
    Parked,
    /// It is closed and what it left open is being ended: by whoever closed it and by the messages that go on with that.
    /// Without a queue of timers, the hint that led here is such a message.
    Closing,
    /// Nothing will ever come of this message: it is to be deleted.
    Spent,
}

/// What became of a suspension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuspendReply {
    /// The turn is over.
    Suspended,
    /// Something has happened meanwhile: the entries are written, and the turn goes on with the record as it is now.
    GoOn,
}
