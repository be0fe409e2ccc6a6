//! What can be asked of an execution. Commands carry everything random or read from outside.

use crate::command::Isolation;
use crate::duration::Millis;
use crate::execution::journal::Entry;
use crate::execution::{Execution, ExecutionOutcome, ExecutionTimeouts, Progress, Stuck, UnderWay};
use crate::failure::Failure;
use crate::id::{
    BlobId, EventId, EventName, ExecutionId, Fingerprint, Incarnation, LeaseId, QueueName, StepName,
    WorkerName, WorkflowName,
};
use crate::parent::Parent;
use crate::payload::{Json, Payload};
use crate::queue::QueueView;
use crate::time::Timestamp;
use crate::trace::TraceContext;

/// Why a worker gives its turn back undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// The code can't go on: it needs more time than a worker has, or brought something that can't be written. Often
    /// enough in a row, that is poison.
    ByCode,
    /// The code panicked: this is shown. Often enough in a row, that is poison as well.
    Panicked(Failure),
    /// The worker can't go on, or a service that it needs doesn't answer: that says nothing about the execution.
    ByWorker,
    /// No worker of this sort can go on.
    Stuck(Stuck),
}

/// Something asked of an execution.
#[derive(Clone, Debug)]
pub enum Command {
    /// Make it.
    Start(Box<Start>),
    /// Take its next turn.
    StartTurn(StartTurn),
    /// Write down what a turn has brought so far; the turn goes on.
    Record(Record),
    /// End the turn: nothing can be done until something happens.
    Suspend(Suspend),
    /// End the turn, and the run or the execution with it.
    Close(Close),
    /// Say that the turn's worker is alive.
    Heartbeat {
        /// The fence of the turn.
        lease: LeaseId,
    },
    /// Give the turn back undone: another worker goes on, from `after` now.
    Release {
        /// The fence of the turn.
        lease: LeaseId,
        /// How long nobody shall try.
        after: Millis,
        undone: Undone,
    },
    SendEvent(SendEvent),
    /// Clear the waiting events of a name.
    ClearEvents {
        name: EventName,
        /// How many there are, by the whole journal.
        count: u32,
        /// The version of the record that this was counted in: with another one nothing is done, and the answer is
        /// that none were thrown away.
        seen_version: u64,
    },
    /// Ask it to end: its code stops at its next step. At once where no turn is under way.
    Cancel,
    /// End it at once, whatever its code is doing.
    Terminate,
    /// Begin nothing new.
    Pause,
    /// Go on.
    Resume,
    /// Begin a new run with the same input and fresh deadlines, after it ended.
    Restart(Rerun),
    /// Have a failed step run again in the same run, after the execution failed by it.
    RetryStep {
        name: StepName,
    },
    /// What it left open at this end has been ended: it is closed for good.
    Finish(End),
    /// Take note of how far somebody has come with what is more than one call can do.
    NoteProgress(NoteProgress),
    /// Send its hint again, if it is parked: its queue was resumed.
    Unpark,
    /// See what has become due: the tick's look.
    Due(QueueView),
    /// See what has become due: a timer's look, sent for this place in the due index.
    Timer {
        /// See [`crate::timer::Timer::due_at`].
        due_at: Timestamp,
    },
}

/// A request for a new execution.
#[derive(Clone, Debug)]
pub struct Start {
    pub id: ExecutionId,
    /// Random.
    pub incarnation: Incarnation,
    pub workflow: WorkflowName,
    pub queue: QueueName,
    pub input: Option<Json>,
    /// Labels and memo, see [`crate::execution::Execution::details`].
    pub details: Option<Json>,
    pub timeouts: ExecutionTimeouts,
    /// How long the code that runs after a failure has, where the caller knows that there is one.
    pub on_failure: Option<Millis>,
    /// Not before this long.
    pub delay: Millis,
    /// Whom it tells of its end.
    pub parent: Option<Parent>,
    /// The trace that it belongs to.
    pub trace: Option<TraceContext>,
    /// What happens if the id is taken.
    pub policy: StartPolicy,
    /// Digest of the request's content.
    pub fingerprint: Fingerprint,
    /// Random keys for payloads that don't fit: the input's, then the details'.
    pub blob_ids: [BlobId; 2],
}

/// What happens to a start whose id is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartPolicy {
    /// The existing execution is the answer, whatever was asked for.
    #[default]
    UseExisting,
    /// It is refused, except to the call that made it.
    Reject,
}

/// A request for a turn.
#[derive(Clone, Debug)]
pub struct StartTurn {
    /// Random: the fence of the turn to come.
    pub lease: LeaseId,
    pub worker: Option<WorkerName>,
    /// For how long without a renewal.
    pub length: Millis,
    /// The incarnation that the hint which led to it was of.
    pub incarnation: Option<Incarnation>,
    /// What else the taking process has under way.
    pub company: Isolation,
    /// Whether its queue is paused: then no turn begins, and the execution is parked.
    pub paused: bool,
    /// What the workflow's code says, where the taking process has it.
    pub terms: CodeTerms,
}

/// What a workflow's code says of its executions. Where the start said nothing, that counts from the first turn that
/// is taken by a process with the code; what is a matter of time counts from the start all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeTerms {
    /// How long an execution and each of its runs may take.
    pub timeouts: ExecutionTimeouts,
    /// How long the code that runs after a failure has, if there is some.
    pub on_failure: Option<Millis>,
}

/// What a turn has brought.
#[derive(Clone, Debug)]
pub struct Record {
    /// The fence of the turn.
    pub lease: LeaseId,
    /// What happened, oldest first. Payloads that are too large for the record are pointers already.
    pub entries: Vec<Entry>,
    /// How long the code that runs after a failure has, said with the first record of a run.
    pub on_failure: Option<Millis>,
    /// All attempts that are under way and have a time of their own, those that these entries begin included. Absent
    /// from whoever doesn't know: then it is what the entries say of those that the record has.
    pub under_way: Option<Vec<UnderWay>>,
}

/// The end of a turn that can't go on.
#[derive(Clone, Debug)]
pub struct Suspend {
    /// The fence of the turn.
    pub lease: LeaseId,
    /// What happened since the last record.
    pub entries: Vec<Entry>,
    /// The version of the record that the turn last saw: if others have written since, the turn goes on.
    pub seen_version: u64,
    /// The wakes it last saw: likewise.
    pub seen_wakes: u64,
    /// When it can go on by itself.
    pub until: Option<Timestamp>,
    /// Whether remote steps or children are waited for.
    pub awaits_others: bool,
    /// See [`Record::on_failure`].
    pub on_failure: Option<Millis>,
}

/// The end of a run.
#[derive(Clone, Debug)]
pub struct Close {
    /// The fence of the turn.
    pub lease: LeaseId,
    /// What happened since the last record.
    pub entries: Vec<Entry>,
    pub ending: Ending,
    /// See [`Record::on_failure`].
    pub on_failure: Option<Millis>,
}

#[derive(Clone, Debug)]
pub enum Ending {
    /// And the execution with it. A failure is dealt with first by the code there is for it, if there is some and
    /// it isn't that which ends here.
    Outcome(ExecutionOutcome),
    /// The execution goes on in a fresh run.
    ContinueAsNew {
        input: Option<Payload>,
        /// Events of this run that nobody has taken, all of them, oldest first: they wait in the next one.
        events: Vec<Entry>,
    },
}

#[derive(Clone, Debug)]
pub struct SendEvent {
    pub name: EventName,
    pub id: Option<EventId>,
    /// What comes with it; a pointer where it is too large for the record.
    pub payload: Option<Payload>,
    /// Whether an event with this id is in the sealed part of the journal.
    pub known: bool,
    /// How many segments that part had when it was looked at. With another number of them nothing is done, and the
    /// answer is that nothing changed: it has to be looked at again.
    pub seen_segments: u32,
    /// The trace that it belongs to: the execution's own, if that has none yet.
    pub trace: Option<TraceContext>,
}

/// One of the ends of an execution, which may be reopened and end again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub run: u32,
    pub ended_at: Timestamp,
}

impl End {
    /// Where this execution has ended last, if it is closed.
    pub fn of(execution: &Execution) -> Option<Self> {
        Some(Self { run: execution.run, ended_at: execution.closed()?.ended_at })
    }
}

/// How far somebody has come who ends what an execution left open, or goes through its parts. Nothing changes where
/// somebody else has come at least as far.
#[derive(Clone, Copy, Debug)]
pub struct NoteProgress {
    pub run: u32,
    /// When the execution had closed, if it had: of another end nothing is said.
    pub ended_at: Option<Timestamp>,
    pub progress: Progress,
}

/// A new run of an execution that ended.
#[derive(Clone, Debug)]
pub struct Rerun {
    /// Entries of the last run that the new one begins with: results that are kept.
    pub preserved: Vec<Entry>,
}

impl Command {
    /// What a turn brings with it to be written down; nothing with any other command.
    pub fn entries(&self) -> &[Entry] {
        match self {
            Self::Record(record) => &record.entries,
            Self::Suspend(suspend) => &suspend.entries,
            Self::Close(close) => &close.entries,
            Self::Start(_)
            | Self::StartTurn(_)
            | Self::Heartbeat { .. }
            | Self::Release { .. }
            | Self::SendEvent(_)
            | Self::ClearEvents { .. }
            | Self::Cancel
            | Self::Terminate
            | Self::Pause
            | Self::Resume
            | Self::Restart(_)
            | Self::RetryStep { .. }
            | Self::Finish(_)
            | Self::NoteProgress(_)
            | Self::Unpark
            | Self::Due(_)
            | Self::Timer { .. } => &[],
        }
    }
}
