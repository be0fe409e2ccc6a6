//! What happened to executions, and what was asked and said about them.

use tickover_core::decision::Effect;
use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::execution::command::Command;
use tickover_core::execution::decision::Reply;
use tickover_core::execution::journal::{Entry, Segment, SegmentKey};
use tickover_core::id::{EventId, EventName, ExecutionId, Incarnation, LeaseId, Nonce, StepName};
use tickover_core::time::Timestamp;

use super::act::Act;

/// Something that happened to an execution.
#[derive(Clone, Debug)]
pub enum Happening {
    /// The rules were asked.
    Decided(Ruling),
    /// A record changed.
    Stored(Box<Change>),
    /// A part of a journal was written; whether it counts is for the record to say.
    Sealed { key: SegmentKey, segment: Segment },
    /// A place of a join was marked.
    Joined {
        execution: ExecutionId,
        /// How many of its places are now.
        marked: u16,
        /// Of how many.
        of: u16,
    },
    /// A script did something in a turn.
    Did(Deed),
    /// The body of a step did something.
    Acted(Act),
}

/// A decision, whether or not it was carried out.
#[derive(Clone, Debug)]
pub struct Ruling {
    /// The call it was taken in.
    pub call: u64,
    /// The time that it was taken at, by the clock of whoever took it.
    pub now: Timestamp,
    /// Marks its writes.
    pub nonce: Nonce,
    /// The record that it was taken on.
    pub seen: Option<Box<Execution>>,
    pub command: Command,
    pub outcome: Result<Reply, Reject>,
    /// What others were to be told.
    pub effects: Vec<Effect>,
}

/// A change of one record.
#[derive(Clone, Debug)]
pub struct Change {
    pub before: Option<Execution>,
    pub after: Execution,
}

/// Something that a script did in a turn.
#[derive(Clone, Debug)]
pub struct Deed {
    pub turn: HeldTurn,
    pub what: Done,
}

/// What a script did.
#[derive(Clone, Debug)]
pub enum Done {
    /// It began a step's attempt.
    Began(StepName),
    /// It took an event.
    Took {
        /// For which wait.
        wait: StepName,
        event: EventName,
        /// What it found in it.
        payload: String,
    },
}

/// A turn in a worker's hands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeldTurn {
    pub execution: ExecutionId,
    /// Which of those that had this id.
    pub incarnation: Incarnation,
    pub run: u32,
    /// The fence of the turn.
    pub lease: LeaseId,
}

/// What was asked about an execution.
#[derive(Clone, Debug)]
pub enum Asked {
    /// Start it; an id that wasn't chosen is absent.
    Start(Option<ExecutionId>),
    /// What a turn has brought is to be written, or it ends.
    Turn(HeldTurn, TurnCall),
    SendEvent {
        execution: ExecutionId,
        event: EventName,
        id: Option<EventId>,
        payload: String,
    },
    /// What an operator wants.
    Operate(ExecutionId, Operation),
}

/// What the owner of a turn asks.
#[derive(Clone, Debug)]
pub enum TurnCall {
    /// Write this.
    Record(Vec<Entry>),
    /// Write this and wait.
    Suspend(Vec<Entry>),
    /// Write this and end the run.
    Close(Vec<Entry>),
    /// Still at it.
    Heartbeat,
    /// Given back.
    Release,
    /// Begin these remote steps.
    Begin(Vec<StepName>),
}

/// What an operator does to an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Ask it to end.
    Cancel,
    Terminate,
    Pause,
    Resume,
    /// Begin a new run of it.
    Restart,
    /// Begin a new run of it with what the last one had, but for this step and those that failed.
    Rerun {
        step: Option<&'static str>,
        /// Whether results of steps are kept.
        preserve: bool,
    },
    /// Have a step run again by which it failed.
    RetryStep(&'static str),
    /// Throw away its waiting events of a name.
    ClearEvents(&'static str),
}

/// What was said about an execution.
#[derive(Clone, Debug)]
pub enum Told {
    /// It exists.
    Started {
        execution: ExecutionId,
        /// Which of those that had this id.
        incarnation: Incarnation,
        /// Whether it had existed before.
        existed: bool,
    },
    /// It is written, and this is the record's version now.
    Written(u64),
    /// The event waits.
    EventSent {
        /// Whether it had been sent before.
        duplicate: bool,
    },
    /// So many events were thrown away.
    EventsCleared(u32),
    Done,
}
