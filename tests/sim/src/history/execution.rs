//! Events about executions, and the calls about them.

use tickover_core::decision::Effect;
use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::execution::command::Command;
use tickover_core::execution::decision::Reply;
use tickover_core::execution::journal::{Entry, Segment, SegmentKey};
use tickover_core::id::{EventId, EventName, ExecutionId, Incarnation, LeaseId, Nonce, StepName};
use tickover_core::time::Timestamp;
use tickover_service::executions::Again;

use super::act::Act;

/// An event about an execution.
#[derive(Clone, Debug)]
pub enum Happening {
    /// The rules made a decision.
    Decided(Box<Ruling>),
    /// A record changed.
    Stored(Box<Change>),
    /// A segment of a journal was written; it counts only if the record points to it.
    Sealed { key: SegmentKey, segment: Segment },
    /// A place of a join was marked.
    Joined {
        execution: ExecutionId,
        /// How many of its places are marked now.
        marked: u16,
        /// How many places it has.
        of: u16,
    },
    /// A script acted in a turn.
    Did(ScriptAction),
    /// The body of a step acted.
    Acted(Act),
}

/// A decision, whether or not it was written.
#[derive(Clone, Debug)]
pub struct Ruling {
    /// The call in which it was made.
    pub call: u64,
    /// The time of the decision, by the clock of the process.
    pub now: Timestamp,
    /// Marks its writes.
    pub nonce: Nonce,
    /// The record that it was made on.
    pub seen: Option<Box<Execution>>,
    pub command: Command,
    pub outcome: Result<Reply, Reject>,
    /// The messages and notifications that follow.
    pub effects: Vec<Effect>,
}

/// A change of one record.
#[derive(Clone, Debug)]
pub struct Change {
    pub before: Option<Execution>,
    pub after: Execution,
}

/// An action of a script in a turn.
#[derive(Clone, Debug)]
pub struct ScriptAction {
    pub turn: HeldTurn,
    pub what: Done,
}

/// The kind of an action.
#[derive(Clone, Debug)]
pub enum Done {
    /// It started a step's attempt.
    Began(StepName),
    /// It took an event.
    Took {
        /// For which wait.
        wait: StepName,
        event: EventName,
        /// The payload that it found.
        payload: String,
    },
    /// It goes on from its process's memory, with this whole journal.
    WentOn {
        /// How many of the entries were in memory.
        known: usize,
        journal: Vec<Entry>,
    },
}

/// A turn that a worker has started.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeldTurn {
    pub execution: ExecutionId,
    /// The execution's incarnation among those that had this id.
    pub incarnation: Incarnation,
    pub run: u32,
    /// The fence of the turn.
    pub lease: LeaseId,
}

/// A call about an execution.
#[derive(Clone, Debug)]
pub enum Asked {
    /// Start it; the id is absent where the caller gave none.
    Start(Option<ExecutionId>),
    /// A report of a turn.
    Turn(HeldTurn, TurnCall),
    SendEvent {
        execution: ExecutionId,
        event: EventName,
        id: Option<EventId>,
        payload: String,
    },
    /// Wait for the answer to this event.
    Answer {
        execution: ExecutionId,
        id: EventId,
    },
    /// A report with a token, for this event.
    CallBack {
        incarnation: Incarnation,
        event: EventName,
        /// Whether it says only that somebody is alive.
        is_heartbeat: bool,
    },
    /// An operator's request.
    Operate(ExecutionId, Operation),
}

/// A call of the owner of a turn.
#[derive(Clone, Debug)]
pub enum TurnCall {
    /// Record these entries.
    Record(Vec<Entry>),
    /// Record these entries and wait.
    Suspend(Vec<Entry>),
    /// Record these entries and end the run.
    Close(Vec<Entry>),
    Heartbeat,
    Release,
    /// Start these remote steps.
    Begin(Vec<StepName>),
}

/// An operator's request about an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    Cancel,
    Terminate,
    Pause,
    Resume,
    /// Start a new run.
    Restart,
    /// Start a new run with results of the last one.
    Rerun(Box<Again>),
    /// Run this failed step again.
    RetryStep(StepName),
    /// Clear its waiting events of a name.
    ClearEvents(&'static str),
}

/// An answer about an execution.
#[derive(Clone, Debug)]
pub enum ExecutionCallAnswer {
    /// It exists.
    Started {
        execution: ExecutionId,
        /// Its incarnation among the executions that had this id.
        incarnation: Incarnation,
        /// Whether it had existed before.
        existed: bool,
    },
    /// The report is recorded, and this is the record's version now.
    Written(u64),
    /// The event is buffered.
    EventSent {
        /// Whether it had been sent before.
        duplicate: bool,
    },
    /// The answer to an event; `None` if there isn't one yet.
    Answered(Option<String>),
    /// So many events were cleared.
    EventsCleared(u32),
    Done,
}
