//! The commands on an execution. A command carries every random value and every value read from outside.

use serde::{Deserialize, Serialize};

use crate::command::Isolation;
use crate::duration::Millis;
use crate::execution::journal::{
    Entry, Happened, UNDO_PREFIX, cancelled_after, handler_of, open_steps, own_part,
};
use crate::execution::{
    Admission, Execution, ExecutionOutcome, ExecutionTimeouts, Progress, Stuck, TimedAttempt,
};
use crate::failure::Failure;
use crate::gate::Places;
use crate::gate::rate::Reservation;
use crate::id::{
    BlobId, EventId, EventName, ExecutionId, Incarnation, LeaseId, QueueName, StepName, WorkerName,
    WorkflowName,
};
use crate::lane::Lane;
use crate::parent::{Parent, ParentClosePolicy};
use crate::payload::{Json, Payload};
use crate::queue::QueueView;
use crate::retry::{MaxAttempts, RetryPolicy};
use crate::time::Timestamp;
use crate::trace::TraceContext;

/// Why a worker releases a turn that it hasn't finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseReason {
    /// The code can't continue: it needs more time than a worker has, or it produced a value that can't be stored. If
    /// this happens too many times in a row, the execution counts as poisoned.
    ByCode,
    /// The code panicked with this failure, which operators can see. If this happens too many times in a row, the
    /// execution counts as poisoned.
    Panicked(Failure),
    /// The worker can't continue, or a service that it needs doesn't respond. That doesn't count against the execution.
    ByWorker,
    /// No worker with the same code can continue it.
    Stuck(Stuck),
}

/// A command on an execution.
#[derive(Clone, Debug)]
pub enum Command {
    /// Create it.
    Start(Box<Start>),
    /// Put another request of a burst in its place, if no worker has begun it.
    Bounce(Box<Bounce>),
    /// Start its next turn.
    StartTurn(StartTurn),
    /// Record the journal entries of a turn so far. The turn continues.
    Record(Record),
    /// End the turn: the code can't continue until something happens.
    Suspend(Suspend),
    /// End the turn, and with it the run or the execution.
    Close(Close),
    /// Extend the lease of a turn, because its worker is alive.
    Heartbeat {
        /// The lease of the turn.
        lease: LeaseId,
        /// The journal entries since its last write, as with [`Command::Record`].
        entries: Vec<Entry>,
        /// See [`Record::values`].
        values: Option<Payload>,
    },
    /// Release the turn before it is finished. Another worker may continue after a delay.
    Release {
        /// The lease of the turn.
        lease: LeaseId,
        /// The delay before another worker may start a turn.
        after: Millis,
        reason: ReleaseReason,
        /// See [`Record::cleanup`]. `None` if it isn't known what the code has registered since the turn's last write.
        cleanup: Option<Cleanup>,
    },
    SendEvent(SendEvent),
    /// Clear the pending events of a name.
    ClearEvents {
        name: EventName,
        /// How many there are, counted in the whole journal.
        count: u32,
        /// The version of the record in which they were counted. If the record has another version, nothing is written,
        /// and the reply says that 0 events were cleared.
        seen_version: u64,
    },
    /// Ask it to end: its code stops at its next step, and its undo steps run. If no turn is in progress and nothing has to
    /// be undone, it ends at once.
    Cancel,
    /// End it at once, whatever its code is doing.
    Terminate,
    /// Start no further turns.
    Pause,
    /// Allow turns again after a pause, or after the execution was stuck.
    Resume,
    /// Start a new run with the same input and new deadlines, after the execution has ended.
    Restart(Rerun),
    /// Run a failed step again in the same run, after the execution failed because of it.
    RetryStep {
        name: StepName,
        /// Another input, if it is a remote step.
        input: Option<Payload>,
        /// What the end that it undoes has ended, which runs again as well.
        others: Option<EndedWith>,
    },
    /// Close it for good: the steps and children that it left open at this end have been ended.
    Finish(End),
    /// Wait in the line of a key. The new version of its record says that all who have taken places for the version before
    /// can't start its turn any more, so that those places can be given up.
    WaitInLine {
        /// The version that the places were taken for.
        seen_version: u64,
    },
    /// Record the progress of work that takes more than one call.
    NoteProgress(NoteProgress),
    /// Send its hint again if it is parked: its queue was resumed.
    Unpark,
    /// Handle everything that is due, as the tick does.
    Due(QueueView),
    /// Handle everything that is due, as a timer does that was sent for this due slot.
    Timer {
        /// See [`crate::timer::Timer::due_at`].
        due_at: Timestamp,
        /// Whether its message was received before. The process that had it may have died after its write.
        again: bool,
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
    pub given: Given,
    /// An event that waits for it from the beginning.
    pub event: Option<FirstEvent>,
    pub timeouts: ExecutionTimeouts,
    /// How long the `on_failure` code may take, if the caller knows that the workflow has such code.
    pub on_failure: Option<Millis>,
    /// How long after the call the first turn may start.
    pub delay: Millis,
    /// The parent that is notified of its end.
    pub parent: Option<Parent>,
    /// The trace that it belongs to.
    pub trace: Option<TraceContext>,
    /// Where the hints of its turns stand in their queue.
    pub lane: Lane,
    /// The keys that limit when it begins, with the start that was reserved for it.
    pub admission: Option<Box<Admission>>,
    /// What happens if the id is taken.
    pub policy: StartPolicy,
    /// What becomes of the child with this id that the same parent has started before, and that has ended.
    pub ended: EndedChild,
    /// Whether it begins in the line of a key, because there is no place for it.
    pub in_line: bool,
    /// Whether it ends at once: its id is only to be taken, before a late process starts an execution with it.
    pub is_fence: bool,
}

/// The event with which an execution starts. The caller sends it to the execution that has the id already.
#[derive(Clone, Debug)]
pub struct FirstEvent {
    pub name: EventName,
    pub id: Option<EventId>,
    /// A blob if it is too large for the record.
    pub payload: Option<Payload>,
}

/// The payloads of a request.
#[derive(Clone, Debug)]
pub struct Given {
    pub input: Option<Json>,
    /// Labels and memo, see [`crate::execution::Execution::details`].
    pub details: Option<Json>,
    /// Random keys for payloads that don't fit into the record: first the input's, then the details'.
    pub blob_ids: [BlobId; 2],
}

/// Another request of a burst, which takes the place of the one that waits.
#[derive(Clone, Debug)]
pub struct Bounce {
    pub given: Given,
    /// How long it must be quiet then.
    pub wait: Millis,
    /// How long after the first request the execution starts at the latest.
    pub at_most: Millis,
}

/// What happens to a start whose id is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartPolicy {
    /// The reply names the existing execution, even if its request had other content.
    #[default]
    UseExisting,
    /// The start is refused, except for the call that created the execution.
    Reject,
}

/// What a start makes of a child that the same parent has started before, in an earlier run or before an operator had it
/// run again, and that has ended. One that is open is taken over.
#[derive(Clone, Debug, Default)]
pub enum EndedChild {
    /// Nothing yet: the caller looks at it, and asks again.
    #[default]
    Found,
    /// It stays as it is, and its outcome is taken.
    Kept {
        /// The version of the record that the caller has looked at. With another one, nothing changes.
        seen_version: u64,
    },
    /// It runs again.
    Again {
        /// As above.
        seen_version: u64,
        rerun: Rerun,
    },
}

/// A request for a turn.
#[derive(Clone, Debug)]
pub struct StartTurn {
    /// Random: the lease of the new turn.
    pub lease: LeaseId,
    pub worker: Option<WorkerName>,
    /// How long the lease lasts without a heartbeat.
    pub length: Millis,
    /// The incarnation in the hint that led to this request.
    pub incarnation: Option<Incarnation>,
    /// Whether the message of that hint was received before. The process that had it may have died after a write, and
    /// before it sent the next hint.
    pub again: bool,
    /// Whether the worker's process has other work in progress.
    pub isolation: Isolation,
    /// Whether the worker runs outside of the process that has the store to itself. False where processes share the store.
    pub outside: bool,
    /// Whether its queue is paused. Then no turn starts, and the execution is parked.
    pub paused: bool,
    /// What the workflow's code defines, if the worker has the code.
    pub terms: CodeTerms,
    /// What limits the begin of an execution with this input by the workflow's code, if the start said nothing.
    pub asks: Option<Box<Admission>>,
    /// The places that were taken for the turn.
    pub places: Option<Places>,
    /// The start that was reserved for the turn, or that of its record, confirmed.
    pub start: Option<Reservation>,
}

/// What a workflow's code defines for its executions. It applies where the start request said nothing, from the first
/// turn of a worker that has the code. Timeouts count from the start of the execution even then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeTerms {
    /// How long an execution and each of its runs may take.
    pub timeouts: ExecutionTimeouts,
    /// How long the `on_failure` code may take, if the workflow has such code.
    pub on_failure: Option<Millis>,
    /// How many attempts a run has, if the workflow's code retries failed runs.
    pub attempts: Option<MaxAttempts>,
}

/// What a workflow's code does if it doesn't end by itself. Each write of a turn says it: the code may have changed, and
/// has registered undo steps since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleanup {
    /// How long the `on_failure` code may take, if the workflow has such code.
    pub on_failure: Option<Millis>,
    /// How long the `on_cancel` code may take, if the workflow has such code.
    pub on_cancel: Option<Millis>,
    /// Whether undo steps are registered.
    pub undoes: bool,
}

impl Cleanup {
    /// What the record says, for a turn that has run no code.
    pub const fn of(execution: &Execution) -> Self {
        let Execution { on_failure, on_cancel, undoes, .. } = execution;
        Self { on_failure: *on_failure, on_cancel: *on_cancel, undoes: *undoes }
    }
}

/// The journal entries of a turn since its last write.
#[derive(Clone, Debug)]
pub struct Record {
    /// The lease of the turn.
    pub lease: LeaseId,
    /// Oldest first. Payloads that are too large for the record are already blobs.
    pub entries: Vec<Entry>,
    /// What the code does if it ends early.
    pub cleanup: Cleanup,
    /// All attempts in progress that have a timeout, including those that these entries start. `None` if the caller
    /// doesn't know them: then the entries update the record's own list.
    pub timed_attempts: Option<Vec<TimedAttempt>>,
    /// All published values, if the code has published others since. As the entries, they are blobs already if they are
    /// too large.
    pub values: Option<Payload>,
}

/// The end of a turn that can't continue yet.
#[derive(Clone, Debug)]
pub struct Suspend {
    /// The lease of the turn.
    pub lease: LeaseId,
    /// Journal entries since the last record.
    pub entries: Vec<Entry>,
    /// The version of the record that the turn last saw. If the record has another version, the turn continues.
    pub seen_version: u64,
    /// The wakes that the turn last saw. If the record has another count, the turn continues.
    pub seen_wakes: u64,
    /// When the execution can continue by itself.
    pub until: Option<Timestamp>,
    /// Whether the code waits for remote steps or children.
    pub awaits_others: bool,
    /// The events that the code waits for without a timeout, each once.
    pub events: Vec<EventName>,
    /// See [`Record::cleanup`].
    pub cleanup: Cleanup,
    /// See [`Record::values`].
    pub values: Option<Payload>,
}

/// The end of a run.
#[derive(Clone, Debug)]
pub struct Close {
    /// The lease of the turn.
    pub lease: LeaseId,
    /// Journal entries since the last record.
    pub entries: Vec<Entry>,
    pub ending: Ending,
    /// See [`Record::cleanup`].
    pub cleanup: Cleanup,
    /// See [`Record::values`].
    pub values: Option<Payload>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ending {
    /// The execution ends with the run. A failure first goes to the `on_failure` code, if the workflow has it and it
    /// isn't this code that ends here.
    Outcome(ExecutionOutcome),
    /// The run failed or its deadline passed. If the policy and the execution's deadline allow it, the run is run again:
    /// in a new run with the same input. Otherwise the execution ends as with [`Ending::Outcome`].
    FailedRun {
        outcome: ExecutionOutcome,
        retry: RetryPolicy,
        /// As with [`Ending::ContinueAsNew`].
        #[serde(skip)]
        carried: Vec<Entry>,
    },
    /// The execution continues in a new run.
    ContinueAsNew {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Payload>,
        /// What the next run begins with. A worker that reports over HTTP doesn't say it: the service reads it. All events of this run that no wait has taken, oldest first: they are pending
        /// in it. And the open children that end with the execution, as [left](crate::execution::journal::Happened::Child).
        #[serde(skip)]
        carried: Vec<Entry>,
    },
}

#[derive(Clone, Debug)]
pub struct SendEvent {
    pub name: EventName,
    pub id: Option<EventId>,
    /// A blob if it is too large for the record.
    pub payload: Option<Payload>,
    /// Whether an event with this id was sent that the record no longer shows.
    pub known: bool,
    /// The run, and how many segments its journal had, when the caller looked for that. If the record has others, nothing
    /// is written and the reply says that nothing changed: the caller must look again.
    pub seen: (u32, u32),
    /// The trace of the event. The execution takes it over if it has no trace yet.
    pub trace: Option<TraceContext>,
    /// What the event is bound to, if it is for one wait alone. Otherwise nothing is written, with the same reply.
    pub bound: Option<Bound>,
}

/// The record with which an event was found to be useful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    pub version: u64,
    /// Until when the wait takes it.
    pub before: Option<Timestamp>,
}

impl Bound {
    /// Whether the record is still that one, and the wait hasn't ended.
    pub fn holds(&self, execution: &Execution, now: Timestamp) -> bool {
        self.version == execution.version && self.before.is_none_or(|before| now < before)
    }
}

/// One end of an execution, which may be reopened and end again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub run: u32,
    pub ended_at: Timestamp,
}

/// The steps and children of a journal that an end has ended, though the code waited for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedWith {
    pub end: End,
    pub names: Vec<StepName>,
    /// How many of them the record counts as open.
    pub open: u32,
}

impl EndedWith {
    /// Those of the latest end of this execution, which has this journal, and of the code that this failed step is of.
    pub fn of(execution: &Execution, journal: &[Entry], step: &StepName) -> Option<Self> {
        let end = End::of(execution)?;
        // Before a step that undoes others, the code fails or is stopped as it was.
        if own_part(step).starts_with(UNDO_PREFIX) {
            return None;
        }
        let name_of = |entry: &&Entry| match &entry.what {
            Happened::Remote { name } => Some(name.clone()),
            Happened::Child { name, policy, left: false, .. } if *policy != ParentClosePolicy::Abandon => {
                Some(name.clone())
            }
            _ => None,
        };
        let is_of_its_code = |name: &StepName| name != step && handler_of(name) == handler_of(step);
        let mut names: Vec<_> =
            open_steps(journal).iter().filter_map(name_of).filter(is_of_its_code).collect();
        let open = u32::try_from(names.len()).unwrap_or(u32::MAX);
        // The end of its code has ended them, if other code ran after it.
        let ended = cancelled_after(journal, step).into_iter().filter(|name| is_of_its_code(name));
        names.extend(ended.cloned());
        Some(Self { end, names, open })
    }
}

impl End {
    /// The latest end of this execution, if it is closed.
    pub fn of(execution: &Execution) -> Option<Self> {
        Some(Self { run: execution.run, ended_at: execution.closed()?.ended_at })
    }
}

/// The progress of a caller that ends the steps and children which an execution left open, or that extends the expiry
/// of its blobs and segments. Nothing changes if another caller has come at least as far.
#[derive(Clone, Copy, Debug)]
pub struct NoteProgress {
    pub run: u32,
    /// When the execution was closed, if it was. Progress of another end is ignored.
    pub ended_at: Option<Timestamp>,
    pub progress: Progress,
}

/// A new run of an execution that has ended.
#[derive(Clone, Debug, Default)]
pub struct Rerun {
    /// Entries of the last run that the new run starts with: the results to keep.
    pub preserved: Vec<Entry>,
    /// Whether it repeats what failed of the last run, rather than doing all of it anew.
    pub is_same_work: bool,
    /// Its payloads, if it has another input than the last run.
    pub given: Option<Box<Given>>,
}

impl Command {
    /// The journal entries that a turn's command carries. All other commands carry none.
    pub fn entries(&self) -> &[Entry] {
        match self {
            Self::Record(record) => &record.entries,
            Self::Suspend(suspend) => &suspend.entries,
            Self::Close(close) => &close.entries,
            Self::Heartbeat { entries, .. } => entries,
            Self::Start(_)
            | Self::Bounce(_)
            | Self::StartTurn(_)
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
            | Self::WaitInLine { .. }
            | Self::NoteProgress(_)
            | Self::Unpark
            | Self::Due(_)
            | Self::Timer { .. } => &[],
        }
    }
}
