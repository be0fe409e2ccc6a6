//! An execution's record: one run after another of a workflow's code, and what is remembered of it.
//!
//! The short serialised names are a wire format: the record is stored in this shape.

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
mod parent;
pub mod replay;
mod retention;
mod size;
mod status;
mod update;

use serde::{Deserialize, Serialize};

use crate::due::Due;
use crate::duration::Millis;
use crate::failure::Failure;
use crate::id::{ExecutionId, Fingerprint, Incarnation, LeaseId, Nonce, QueueName, WorkerName, WorkflowName};
use crate::payload::Payload;
use crate::time::Timestamp;
use crate::trace::TraceContext;
use journal::{Entry, Sealed};

pub use crate::parent::{Parent, ParentClosePolicy, Slot};
pub use attempts::{GRACE, UnderWay};
pub use command::Command;
pub use decide::decide;
pub use decision::{Decision, Reply};
pub use retention::{Progress, ahead_of_journal, missing_time};
pub use status::ExecutionStatus;

/// The version of the stored format. Readers refuse another one loudly and never rewrite it.
pub const FORMAT: u8 = 1;

/// The control record of an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// Version of the format, always [`FORMAT`].
    #[serde(rename = "v")]
    pub format: u8,
    /// Its id.
    #[serde(rename = "id")]
    pub id: ExecutionId,
    /// Tells it from earlier executions of the same id.
    #[serde(rename = "inc")]
    pub incarnation: Incarnation,
    /// Counts the decisions written; every write but a wake is conditional on it.
    #[serde(rename = "ver")]
    pub version: u64,
    /// The decision that wrote this version.
    #[serde(rename = "non")]
    pub nonce: Nonce,
    /// Which code it runs.
    #[serde(rename = "k")]
    pub workflow: WorkflowName,
    /// Where workers find it.
    #[serde(rename = "q")]
    pub queue: QueueName,
    /// When it was started.
    #[serde(rename = "t0")]
    pub created_at: Timestamp,
    /// Digest of the request that started it.
    #[serde(rename = "fp")]
    pub fingerprint: Fingerprint,
    /// Number of the run, from 1: continuing as new, a restart and a rerun begin another one.
    #[serde(rename = "run")]
    pub run: u32,
    /// When this run was begun.
    #[serde(rename = "t1")]
    pub run_started_at: Timestamp,
    /// The run's input.
    #[serde(rename = "in", default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Payload>,
    /// Labels and memo: a JSON object `{"labels": {…}, "memo": …}`, either of which may be absent.
    #[serde(rename = "lab", default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Payload>,
    /// Its timeouts as durations.
    #[serde(rename = "tim", default, skip_serializing_if = "ExecutionTimeouts::is_none")]
    pub timeouts: ExecutionTimeouts,
    /// When it must have ended, whatever the number of runs: fixed at the start.
    #[serde(rename = "dl", default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    /// When this run must have ended.
    #[serde(rename = "rdl", default, skip_serializing_if = "Option::is_none")]
    pub run_deadline_at: Option<Timestamp>,
    /// The execution it is a child of.
    #[serde(rename = "par", default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The trace that it belongs to, as its caller said; its remote steps and children belong to it as well.
    #[serde(rename = "tr", default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// Times it was told that something it may wait for has happened. Added to without a decision, so that many
    /// can do it at once; suspending is conditional on it.
    #[serde(rename = "wak", default)]
    pub wakes: u64,
    /// Turns in a row that were taken and brought nothing.
    #[serde(rename = "idl", default, skip_serializing_if = "is_zero")]
    pub idle_turns: u32,
    /// What happened in this run since the last part was sealed, oldest first.
    #[serde(rename = "jou", default, skip_serializing_if = "Vec::is_empty")]
    pub journal: Vec<Entry>,
    /// The sealed parts of the run's journal.
    #[serde(rename = "sea", default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
    /// Remote steps and children of this run that were begun and whose end isn't in the journal yet.
    #[serde(rename = "opn", default, skip_serializing_if = "is_zero")]
    pub open_steps: u32,
    /// Events in the journal that nobody has taken yet.
    #[serde(rename = "evt", default, skip_serializing_if = "is_zero")]
    pub pending_events: u32,
    /// How long the code that runs after a failure has; absent if the workflow has none, or none is known yet.
    #[serde(rename = "onf", default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<Millis>,
    /// The failure that is being dealt with by that code.
    #[serde(rename = "fai", default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Failing>,
    /// Whether somebody asked to cancel it.
    #[serde(rename = "can", default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
    /// Whether an operator holds it.
    #[serde(rename = "pau", default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Until when everything that it points to is kept at least: payloads of their own and segments, of this run.
    /// Absent while there is nothing of the sort.
    #[serde(rename = "kep", default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Timestamp>,
    /// How far somebody has come with more than one call can do.
    #[serde(rename = "prg", default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Whether its hint was deleted because its queue is paused: resuming the queue sends another one.
    #[serde(rename = "prk", default, skip_serializing_if = "std::ops::Not::not")]
    pub parked: bool,
    /// Why no worker can go on with it: it waits for an operator, or for a worker that can.
    #[serde(rename = "stk", default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<Stuck>,
    /// When a hint was last sent that its state alone doesn't account for: because something stirred it, for a look at
    /// what it waits for, or because the first seemed lost. While it is closing: when somebody last went on with that.
    #[serde(rename = "hin", default, skip_serializing_if = "Option::is_none")]
    pub hinted_at: Option<Timestamp>,
    /// Where it stands.
    #[serde(rename = "st")]
    pub state: ExecutionState,
    /// When the tick has to look at it.
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
    /// Each run, from its beginning.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Millis>,
}

impl ExecutionTimeouts {
    /// Whether there is none.
    pub const fn is_none(&self) -> bool {
        self.execution.is_none() && self.run.is_none()
    }
}

/// Where an execution stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ExecutionState {
    /// A worker should take it, from an instant on.
    #[serde(rename = "p")]
    Pending(Ready),
    /// A worker has it: a turn is under way.
    #[serde(rename = "r")]
    Running(Turn),
    /// Nothing can be done until something happens.
    #[serde(rename = "w")]
    Waiting(Waiting),
    /// Its outcome is settled; what it left open is being ended.
    #[serde(rename = "c")]
    Closing(Closed),
    /// It has ended.
    #[serde(rename = "e")]
    Ended(Closed),
}

/// An execution whose next turn may begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// From when.
    #[serde(rename = "a")]
    pub available_at: Timestamp,
    /// Whether its hint is still to be sent, by the tick, because it starts later than a queue can delay.
    #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
    pub hint_later: bool,
}

/// A turn in a worker's hands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The fence of this turn: every write of its worker is refused without it.
    #[serde(rename = "l")]
    pub lease: LeaseId,
    /// Who holds it.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
    /// When it was taken.
    #[serde(rename = "c")]
    pub claimed_at: Timestamp,
    /// How long a claim or renewal holds.
    #[serde(rename = "d")]
    pub lease_length: Millis,
    /// Until when the worker counts as alive.
    #[serde(rename = "x")]
    pub lease_expires_at: Timestamp,
    /// Whether its process had other work under way: if it is lost, nobody knows by which piece.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Attempts that must be over by some instant, also if the worker never says anything again.
    #[serde(rename = "b", default, skip_serializing_if = "Vec::is_empty")]
    pub under_way: Vec<UnderWay>,
}

/// An execution that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Since when.
    #[serde(rename = "s")]
    pub since: Timestamp,
    /// Wakes it had seen when it went to sleep: more means that it may go on.
    #[serde(rename = "w")]
    pub seen_wakes: u64,
    /// The earliest instant by which it goes on by itself: a sleep's end, a wait's timeout, a step's next attempt.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Whether the hint for that instant is still to be sent, by the tick.
    #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
    pub hint_later: bool,
    /// When it looks for itself whether its remote steps and children have ended, and how long after `since` or
    /// the last look that is: it grows fourfold.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub recheck: Option<Recheck>,
    /// Whether something has happened since that it may go on for: an event, an operator's call.
    #[serde(rename = "z", default, skip_serializing_if = "std::ops::Not::not")]
    pub stirred: bool,
}

/// A look at what was told to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recheck {
    /// When.
    #[serde(rename = "a")]
    pub at: Timestamp,
    /// How long the wait for it is.
    #[serde(rename = "d")]
    pub after: Millis,
}

/// A failure that the workflow's own code deals with before the execution closes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    /// What the execution ends with if that code doesn't recover it.
    #[serde(rename = "o")]
    pub outcome: ExecutionOutcome,
    /// When that code must be done; the execution's own deadlines no longer count.
    #[serde(rename = "d")]
    pub deadline_at: Timestamp,
}

/// Why no worker can go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stuck {
    /// No worker that took it knows the workflow. It is tried again, ever more seldom.
    #[serde(rename = "w")]
    UnknownWorkflow {
        /// How often.
        #[serde(rename = "n")]
        tries: u32,
    },
    /// What is remembered doesn't fit the code: a stored result isn't of the type that it has now, or the code never
    /// asks for one. It waits for an operator.
    #[serde(rename = "t")]
    Unreadable(Failure),
    /// The code can't go on: it panicked, or waits for something that isn't durable. It is tried again, ever more
    /// seldom.
    #[serde(rename = "c")]
    Code {
        /// What was wrong the last time, and where.
        #[serde(rename = "x")]
        failure: Failure,
        /// How often in a row.
        #[serde(rename = "n")]
        tries: u32,
    },
}

/// A settled outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    /// How.
    #[serde(rename = "o")]
    pub outcome: ExecutionOutcome,
    /// When.
    #[serde(rename = "e")]
    pub ended_at: Timestamp,
    /// When the record may be deleted.
    #[serde(rename = "x")]
    pub expires_at: Timestamp,
}

/// How an execution ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExecutionOutcome {
    /// With a result.
    #[serde(rename = "c")]
    Completed {
        /// The result.
        #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
        output: Option<Payload>,
    },
    /// With an error.
    #[serde(rename = "f")]
    Failed {
        /// What failed, the message cut to what the record can hold.
        #[serde(rename = "x")]
        error: Failure,
        /// The step whose failure it was.
        #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
        step: Option<String>,
        /// Whether that step had used up its attempts.
        #[serde(rename = "r", default, skip_serializing_if = "std::ops::Not::not")]
        retries_exhausted: bool,
    },
    /// Too late.
    #[serde(rename = "t")]
    TimedOut {
        /// Which deadline.
        #[serde(rename = "k")]
        kind: DeadlineKind,
    },
    /// On request.
    #[serde(rename = "z")]
    Cancelled {
        /// Whether it was ended without asking its code.
        #[serde(rename = "t", default, skip_serializing_if = "std::ops::Not::not")]
        terminated: bool,
    },
}

/// A deadline of an execution. Where both have passed, the execution's counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadlineKind {
    /// Of all runs.
    Execution,
    /// Of one run.
    Run,
}

impl DeadlineKind {
    /// The name that answers use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Execution => "execution",
            Self::Run => "run",
        }
    }
}

impl ExecutionOutcome {
    /// The status of an execution that ended like this.
    pub const fn status(&self) -> ExecutionStatus {
        match self {
            Self::Completed { .. } => ExecutionStatus::Completed,
            Self::Failed { .. } => ExecutionStatus::Failed,
            Self::TimedOut { .. } => ExecutionStatus::TimedOut,
            Self::Cancelled { .. } => ExecutionStatus::Cancelled,
        }
    }
}

impl Execution {
    /// Its status. One that is closing has its outcome already.
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

    /// How it ended, if it has: also while what it left open is being ended.
    pub const fn closed(&self) -> Option<&Closed> {
        match &self.state {
            ExecutionState::Closing(closed) | ExecutionState::Ended(closed) => Some(closed),
            ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_) => None,
        }
    }

    /// Whether no worker has ever taken it.
    pub fn is_untouched(&self) -> bool {
        matches!(self.state, ExecutionState::Pending(_))
            && self.run == 1
            && self.idle_turns == 0
            && self.journal.is_empty()
            && self.sealed.is_none()
    }

    /// The result that it ended with, if it did.
    pub fn output(&self) -> Option<&Payload> {
        match &self.closed()?.outcome {
            ExecutionOutcome::Completed { output } => output.as_ref(),
            ExecutionOutcome::Failed { .. }
            | ExecutionOutcome::TimedOut { .. }
            | ExecutionOutcome::Cancelled { .. } => None,
        }
    }

    /// Whether nobody is to take a turn until an operator lets it go on.
    pub const fn is_held(&self) -> bool {
        self.paused || matches!(self.stuck, Some(Stuck::Unreadable(_)))
    }

    /// The turn under way, if one is.
    pub const fn turn(&self) -> Option<&Turn> {
        match &self.state {
            ExecutionState::Running(turn) => Some(turn),
            ExecutionState::Pending(_)
            | ExecutionState::Waiting(_)
            | ExecutionState::Closing(_)
            | ExecutionState::Ended(_) => None,
        }
    }

    /// Whether its retention has passed: then it doesn't exist, whether or not the store has deleted it yet.
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
