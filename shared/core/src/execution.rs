//! The record of an execution. An execution consists of one or more runs of a workflow's code.
//!
//! The short serialised names are a storage format: the table stores the record as it is serialised here.

mod admission;
mod append;
mod attempts;
mod blobs;
mod closing;
pub mod command;
mod decide;
pub mod decision;
pub mod due;
pub mod event;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod journal;
pub mod message;
pub mod next;
mod outcome;
mod parent;
pub mod replay;
mod retention;
mod run_attempt;
mod size;
mod status;
mod update;
pub mod values;

use serde::{Deserialize, Serialize};

use crate::due::Due;
use crate::duration::Millis;
use crate::failure::Failure;
use crate::id::{EventName, ExecutionId, Incarnation, LeaseId, Nonce, QueueName, WorkerName, WorkflowName};
use crate::lane::Lane;
use crate::parked::Parked;
use crate::payload::Payload;
use crate::time::Timestamp;
use crate::trace::TraceContext;
use journal::{Entry, Happened, Sealed};

pub use crate::parent::{Parent, ParentClosePolicy, Slot};
pub use admission::{Admission, Held};
pub use attempts::{GRACE, TimedAttempt};
pub use command::Command;
pub use decide::decide;
pub use decision::{Decision, Reply};
pub use outcome::{DeadlineKind, ExecutionOutcome, Failing};
pub use retention::{Progress, ahead_of_journal, required_expiry};
pub use run_attempt::RunAttempt;
pub use status::ExecutionStatus;

/// The version of the stored format. Readers return an error for any other version and never rewrite such a record.
pub const FORMAT: u8 = 1;

/// The control record of an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// Version of the format, always [`FORMAT`].
    #[serde(rename = "v")]
    pub format: u8,
    #[serde(rename = "id")]
    pub id: ExecutionId,
    /// Distinguishes it from earlier executions with the same id.
    #[serde(rename = "inc")]
    pub incarnation: Incarnation,
    /// How many decisions have been written. Every write except a wake is conditional on it.
    #[serde(rename = "ver")]
    pub version: u64,
    /// The nonce of the decision that wrote this version.
    #[serde(rename = "non")]
    pub nonce: Nonce,
    #[serde(rename = "k")]
    pub workflow: WorkflowName,
    /// The queue that its hints are sent to.
    #[serde(rename = "q")]
    pub queue: QueueName,
    /// When it was started.
    #[serde(rename = "t0")]
    pub created_at: Timestamp,
    /// Number of the run, from 1. `continue_as_new`, a retry of a failed run, `restart` and `rerun` start another run.
    #[serde(rename = "run")]
    pub run: u32,
    /// The earlier run whose work this one repeats, if a rerun has started it: its steps have the same idempotency keys.
    #[serde(rename = "kr", default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// The earlier run whose callbacks this one has, with their tokens, if it began with results of that and isn't the same
    /// work.
    #[serde(rename = "kc", default, skip_serializing_if = "Option::is_none")]
    pub callbacks: Option<u32>,
    /// The first run that could begin, if an operator started it and none before it had begun. Absent if it is the first.
    #[serde(rename = "fst", default, skip_serializing_if = "Option::is_none")]
    pub first_run: Option<u32>,
    /// When this run started, or will start if it starts with a delay.
    #[serde(rename = "t1")]
    pub run_started_at: Timestamp,
    #[serde(rename = "in", default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Payload>,
    /// Labels and memo: a JSON object `{"labels": {…}, "memo": …}`. Each of the two may be absent.
    #[serde(rename = "lab", default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Payload>,
    /// The values that its code has published in all its runs: a document of [`Values`](values::Values).
    #[serde(rename = "val", default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Payload>,
    /// The timeouts that its deadlines are computed from.
    #[serde(rename = "tim", default, skip_serializing_if = "ExecutionTimeouts::is_none")]
    pub timeouts: ExecutionTimeouts,
    /// The deadline of all runs together, counted from the start of the execution.
    #[serde(rename = "dl", default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    /// The deadline of this run.
    #[serde(rename = "rdl", default, skip_serializing_if = "Option::is_none")]
    pub run_deadline_at: Option<Timestamp>,
    /// The execution it is a child of.
    #[serde(rename = "par", default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The trace that the caller named. Its remote steps and children belong to the same trace.
    #[serde(rename = "tr", default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// Where the hints of its turns stand in their queue. Its children have the same, and so have its remote steps,
    /// unless they ask for another one.
    #[serde(rename = "ln", default, skip_serializing_if = "Lane::is_plain")]
    pub lane: Lane,
    /// The keys that limit when it begins; absent if it asks for none.
    #[serde(rename = "adm", default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<Box<Admission>>,
    /// How many wakes it has received: notifications that a remote step or a child has ended. A wake adds 1 without a
    /// decision, so that many can be written at the same time. The write that suspends a turn is conditional on this
    /// count.
    #[serde(rename = "wak", default)]
    pub wakes: u64,
    /// Turns in a row that recorded nothing.
    #[serde(rename = "idl", default, skip_serializing_if = "is_zero")]
    pub idle_turns: u32,
    /// Entries of this run's journal that aren't in a segment yet, oldest first.
    #[serde(rename = "jou", default, skip_serializing_if = "Vec::is_empty")]
    pub journal: Vec<Entry>,
    /// The segments of this run's journal.
    #[serde(rename = "sea", default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
    /// Remote steps and children of this run that have started and whose end isn't in the journal yet.
    #[serde(rename = "opn", default, skip_serializing_if = "is_zero")]
    pub open_steps: u32,
    /// Events in the journal that no wait has taken yet.
    #[serde(rename = "evt", default, skip_serializing_if = "is_zero")]
    pub pending_events: u32,
    /// Which attempt this run is. Absent if the workflow's code doesn't retry failed runs, or if no worker has reported
    /// that it does.
    #[serde(rename = "try", default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<RunAttempt>,
    /// How long the workflow's `on_failure` code may take. Absent if the workflow has none, or if no worker has
    /// reported it yet.
    #[serde(rename = "onf", default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<Millis>,
    /// How long the workflow's `on_cancel` code may take. Absent if the workflow has none, or if no worker has reported
    /// it yet.
    #[serde(rename = "onc", default, skip_serializing_if = "Option::is_none")]
    pub on_cancel: Option<Millis>,
    /// Whether the code of this run has undo steps to run if it ends early, as far as its turns have reported.
    #[serde(rename = "und", default, skip_serializing_if = "std::ops::Not::not")]
    pub undoes: bool,
    /// The failure or cancellation that the `on_failure` or `on_cancel` code is handling.
    #[serde(rename = "fai", default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Failing>,
    /// Whether a caller has requested cancellation.
    #[serde(rename = "can", default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
    /// Whether an operator has paused it.
    #[serde(rename = "pau", default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// All blobs of the record and all segments of this run are kept at least until this instant. Absent while there
    /// are none.
    #[serde(rename = "kep", default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Timestamp>,
    /// Progress of work on the record that takes more than one call: closing it, or extending the expiry of its blobs
    /// and segments.
    #[serde(rename = "prg", default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// What carries it if its hint was deleted.
    #[serde(rename = "prk", default, skip_serializing_if = "Parked::is_no")]
    pub parked: Parked,
    /// Why no worker can continue it: it waits for an operator, or for a worker that can.
    #[serde(rename = "stk", default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<Stuck>,
    /// When the last extra hint was sent: one that the state alone doesn't account for. An event or an operator woke
    /// the execution, it had to be rechecked, or the first hint seemed lost. While it is closing: when the close last
    /// made progress.
    #[serde(rename = "hin", default, skip_serializing_if = "Option::is_none")]
    pub hinted_at: Option<Timestamp>,
    #[serde(rename = "st")]
    pub state: ExecutionState,
    /// Its due slot: when the tick must read it next.
    #[serde(rename = "due", default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Due>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// How long an execution and each of its runs may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionTimeouts {
    /// All runs together, from the start.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Millis>,
    /// Each run, from its start.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Millis>,
}

impl ExecutionTimeouts {
    pub const fn is_none(&self) -> bool {
        self.execution.is_none() && self.run.is_none()
    }
}

/// The state of an execution, with its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ExecutionState {
    /// A worker may start its next turn, from an instant on.
    #[serde(rename = "p")]
    Pending(Ready),
    /// A worker has its lease: a turn is in progress.
    #[serde(rename = "r")]
    Running(Turn),
    /// It waits for an instant, an event, or the end of a remote step or child.
    #[serde(rename = "w")]
    Waiting(Waiting),
    /// Its outcome is final. The remote steps and children that it left open are being ended.
    #[serde(rename = "c")]
    Closing(Closed),
    #[serde(rename = "e")]
    Ended(Closed),
}

/// An execution whose next turn may start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    #[serde(rename = "a")]
    pub available_at: Timestamp,
    /// Whether the tick still has to send its hint, because it starts later than a queue can delay a message.
    #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
    pub hint_later: bool,
}

/// A turn that a worker has leased.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Fences this turn: a write of its worker is refused without this lease.
    #[serde(rename = "l")]
    pub lease: LeaseId,
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
    /// When the worker started the turn.
    #[serde(rename = "c")]
    pub claimed_at: Timestamp,
    /// How long the lease lasts after the start of the turn and after each heartbeat.
    #[serde(rename = "d")]
    pub lease_length: Millis,
    /// Until when the worker counts as alive.
    #[serde(rename = "x")]
    pub lease_expires_at: Timestamp,
    /// Whether the worker's process had other work in progress. If the process is lost, it is unknown which piece of
    /// work was the cause.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Whether it follows a turn that was lost.
    #[serde(rename = "y", default, skip_serializing_if = "std::ops::Not::not")]
    pub after_loss: bool,
    /// Whether its worker runs outside of the process that has the store to itself, so that it doesn't die with that.
    #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// Attempts with a timeout. Each ends at its timeout even if the worker never reports again.
    #[serde(rename = "b", default, skip_serializing_if = "Vec::is_empty")]
    pub timed_attempts: Vec<TimedAttempt>,
}

/// An execution that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    #[serde(rename = "s")]
    pub since: Timestamp,
    /// The wakes that its last turn had seen. If the record has more, the execution may continue.
    #[serde(rename = "w")]
    pub seen_wakes: u64,
    /// The earliest instant at which it continues by itself: the end of a sleep, the timeout of a wait, or the next
    /// attempt of a step.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Whether the tick still has to send the hint for that instant.
    #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
    pub hint_later: bool,
    /// When it checks by itself whether its remote steps and children have ended. The interval grows fourfold each
    /// time.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub recheck: Option<Recheck>,
    /// Whether something has happened since then that lets it continue: an event, or an operator's call.
    #[serde(rename = "z", default, skip_serializing_if = "std::ops::Not::not")]
    pub wake_requested: bool,
    /// The events that its code waits for without a timeout, for people: such a wait has no journal entry before it ends.
    /// Only those that the record has space for.
    #[serde(rename = "e", default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventName>,
    /// Whether it waits for more such events than the record has space for.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub has_more_events: bool,
}

/// A check whether remote steps and children have ended, in case their notification was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recheck {
    #[serde(rename = "a")]
    pub at: Timestamp,
    /// The interval before this check: after `since`, or after the last check.
    #[serde(rename = "d")]
    pub after: Millis,
}

/// Why no worker can continue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stuck {
    /// No worker that started a turn knows the workflow. It is tried again at growing intervals.
    #[serde(rename = "w")]
    UnknownWorkflow {
        #[serde(rename = "n")]
        tries: u32,
    },
    /// The journal doesn't fit the code: a stored result isn't of the type that the code now expects, or the code never
    /// asks for it. The execution waits for an operator.
    #[serde(rename = "t")]
    Unreadable(Failure),
    /// The code can't continue: it panicked, or it waits for something that isn't durable. It is tried again at growing
    /// intervals.
    #[serde(rename = "c")]
    Code {
        /// The last failure, and where it happened.
        #[serde(rename = "x")]
        failure: Failure,
        /// How many times in a row this has happened.
        #[serde(rename = "n")]
        tries: u32,
    },
}

/// A final outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    #[serde(rename = "o")]
    pub outcome: ExecutionOutcome,
    #[serde(rename = "e")]
    pub ended_at: Timestamp,
    /// When the record may be deleted.
    #[serde(rename = "x")]
    pub expires_at: Timestamp,
}

impl Execution {
    /// Its status. A closing execution already has the status of its outcome.
    pub const fn status(&self) -> ExecutionStatus {
        match &self.state {
            ExecutionState::Closing(closed) | ExecutionState::Ended(closed) => closed.outcome.status(),
            ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_)
                if self.paused =>
            {
                ExecutionStatus::Paused
            }
            ExecutionState::Pending(_) => ExecutionStatus::Pending,
            ExecutionState::Running(_) => ExecutionStatus::Running,
            ExecutionState::Waiting(_) => ExecutionStatus::Waiting,
        }
    }

    /// Whether it failed or timed out.
    pub const fn has_failed(&self) -> bool {
        matches!(self.status(), ExecutionStatus::Failed | ExecutionStatus::TimedOut)
    }

    /// The code of the error with which it has failed.
    pub fn error_code(&self) -> Option<&str> {
        match &self.closed()?.outcome {
            ExecutionOutcome::Failed { error, .. } => Some(&error.code),
            ExecutionOutcome::Completed { .. }
            | ExecutionOutcome::TimedOut { .. }
            | ExecutionOutcome::Cancelled { .. } => None,
        }
    }

    /// Its outcome, if it is closing or has ended.
    pub const fn closed(&self) -> Option<&Closed> {
        match &self.state {
            ExecutionState::Closing(closed) | ExecutionState::Ended(closed) => Some(closed),
            ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_) => None,
        }
    }

    /// The deadline of the run, if it isn't over yet: a run that will be retried is over once its deadline has passed.
    pub fn counting_run_deadline(&self) -> Option<Timestamp> {
        self.run_deadline_at.filter(|_| !self.attempt.is_some_and(|attempt| attempt.overdue))
    }

    /// When this run starts, if it waits for that as a retry of the run before.
    pub fn retry_starts_at(&self) -> Option<Timestamp> {
        let ExecutionState::Pending(ready) = &self.state else { return None };
        let is_retry = self.attempt.is_some_and(|attempt| attempt.number > 1);
        Some(ready.available_at).filter(|at| is_retry && *at == self.run_started_at)
    }

    /// The run, and how many segments its journal has.
    pub fn stage(&self) -> (u32, u32) {
        (self.run, self.sealed.map_or(0, |sealed| sealed.segments))
    }

    /// The run whose work the current run does: its own, or that of the run which it repeats.
    pub fn work(&self) -> u32 {
        self.repeats.unwrap_or(self.run)
    }

    /// The run whose number is in the names of the current run's callbacks.
    pub fn run_of_callbacks(&self) -> u32 {
        self.callbacks.unwrap_or_else(|| self.work())
    }

    /// Whether no worker has ever started a turn of it. Events may have been sent to it.
    pub fn is_untouched(&self) -> bool {
        matches!(self.state, ExecutionState::Pending(_))
            && self.run == 1
            && self.idle_turns == 0
            && self.journal.iter().all(|entry| matches!(entry.what, Happened::Event { .. }))
            && self.sealed.is_none()
            && self.failing.is_none()
            && !self.cancel_requested
    }

    /// Its result, if it completed with one.
    pub fn output(&self) -> Option<&Payload> {
        match &self.closed()?.outcome {
            ExecutionOutcome::Completed { output } => output.as_ref(),
            ExecutionOutcome::Failed { .. }
            | ExecutionOutcome::TimedOut { .. }
            | ExecutionOutcome::Cancelled { .. } => None,
        }
    }

    /// The same, to be changed.
    pub const fn output_mut(&mut self) -> Option<&mut Payload> {
        let (ExecutionState::Closing(closed) | ExecutionState::Ended(closed)) = &mut self.state else {
            return None;
        };
        match &mut closed.outcome {
            ExecutionOutcome::Completed { output } => output.as_mut(),
            ExecutionOutcome::Failed { .. }
            | ExecutionOutcome::TimedOut { .. }
            | ExecutionOutcome::Cancelled { .. } => None,
        }
    }

    /// Whether no turn may start until an operator resumes it.
    pub const fn needs_operator(&self) -> bool {
        self.paused || matches!(self.stuck, Some(Stuck::Unreadable(_)))
    }

    /// Whether its code may have something to undo. A turn that was lost may have registered undo steps since its last
    /// write.
    pub(crate) const fn may_undo(&self) -> bool {
        self.undoes || self.turn().is_some()
    }

    /// The turn in progress, if there is one.
    pub const fn turn(&self) -> Option<&Turn> {
        match &self.state {
            ExecutionState::Running(turn) => Some(turn),
            ExecutionState::Pending(_)
            | ExecutionState::Waiting(_)
            | ExecutionState::Closing(_)
            | ExecutionState::Ended(_) => None,
        }
    }

    /// Whether its retention has passed. Then it counts as deleted, even if the store hasn't deleted the record yet.
    pub fn is_gone(&self, now: Timestamp) -> bool {
        match &self.state {
            ExecutionState::Ended(ended) => ended.expires_at <= now,
            ExecutionState::Pending(_)
            | ExecutionState::Running(_)
            | ExecutionState::Waiting(_)
            | ExecutionState::Closing(_) => false,
        }
    }
}
