//! A task's record: its request, its state, and how its last attempts ended.
//!
//! The short serialised names are a wire format: the record is stored and sent in hints in this form.

pub mod command;
pub(crate) mod decide;
pub mod decision;
pub mod due;
pub mod event;
pub mod hint;
pub mod next;
mod status;
mod transition;

use serde::{Deserialize, Serialize};

use crate::by::By;
use crate::due::Due;
use crate::duration::Millis;
use crate::flow::{Flow, Gated, Paced};
use crate::gate::Waiting;
use crate::gate::rate::Reservation;
use crate::id::{
    ExecutionId, Fingerprint, Incarnation, LeaseId, Nonce, QueueName, StepName, TaskId, TaskKind, WorkerName,
};
use crate::parent::Parent;
use crate::parked::Parked;
use crate::payload::{BlobRef, Payload};
use crate::retry::RetryPolicy;
use crate::time::Timestamp;
use crate::timeout::{Expired, TimeoutKind, Timeouts};
use crate::trace::TraceContext;

pub use crate::failure::Failure;
pub use command::Command;
pub use decide::decide;
pub use decision::{Decision, Reply};
pub use status::Status;

/// The version of the stored format. Readers refuse every other version with an error and never rewrite it.
pub const FORMAT: u8 = 1;

/// The control record of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Version of the format, always [`FORMAT`].
    #[serde(rename = "v")]
    pub format: u8,
    #[serde(rename = "id")]
    pub id: TaskId,
    /// Distinguishes it from earlier tasks with the same id.
    #[serde(rename = "inc")]
    pub incarnation: Incarnation,
    /// Counts the decisions written. Every write is conditional on it.
    #[serde(rename = "ver")]
    pub version: u64,
    /// The nonce of the decision that wrote this version.
    #[serde(rename = "non")]
    pub nonce: Nonce,
    /// The queue of its hints.
    #[serde(rename = "q")]
    pub queue: QueueName,
    /// The kind of work: a worker chooses its handler by it.
    #[serde(rename = "k")]
    pub kind: TaskKind,
    /// When it was scheduled.
    #[serde(rename = "t0")]
    pub created_at: Timestamp,
    /// Digest of the request that scheduled it.
    #[serde(rename = "fp")]
    pub fingerprint: Fingerprint,
    /// The execution that it is a remote step of. That execution is notified when the task ends.
    #[serde(rename = "par", default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The trace that its caller gave. Kept while the record has space for it.
    #[serde(rename = "tr", default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// The idempotency key it was scheduled with.
    #[serde(rename = "key", default, skip_serializing_if = "Option::is_none")]
    pub key: Option<HeldKey>,
    #[serde(rename = "in", default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Payload>,
    /// Its labels, a JSON object of strings.
    #[serde(rename = "lab", default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Payload>,
    #[serde(rename = "ret")]
    pub retry: RetryPolicy,
    /// Its timeouts as durations.
    #[serde(rename = "tim", default)]
    pub timeouts: Timeouts,
    /// What its starts are limited or ordered by.
    #[serde(rename = "fl", default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Box<Flow>>,
    /// When the whole task must have ended. Set at scheduling and never moved.
    #[serde(rename = "dl", default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Timestamp>,
    /// Number of the attempt that runs or ran last; 0 before the first. Lost and released attempts don't count.
    #[serde(rename = "n")]
    pub attempt: u32,
    /// How many workers were lost in a row.
    #[serde(rename = "los", default, skip_serializing_if = "is_zero")]
    pub losses: u32,
    /// The last progress that an attempt reported, from 0 to 1. The next attempt may continue from there.
    #[serde(rename = "pro", default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// The last details of the progress that an attempt reported. They are for the next attempt, like the progress.
    #[serde(rename = "det", default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Payload>,
    /// When its hint was last sent again because it seemed lost.
    #[serde(rename = "hin", default, skip_serializing_if = "Option::is_none")]
    pub hinted_at: Option<Timestamp>,
    /// What carries it if its hint was deleted.
    #[serde(rename = "prk", default, skip_serializing_if = "Parked::is_no")]
    pub parked: Parked,
    /// When an operator last revived it after its end.
    #[serde(rename = "rev", default, skip_serializing_if = "Option::is_none")]
    pub revived_at: Option<Timestamp>,
    /// Who has revived it last, or cancelled it by an operation. Kept while the record has space for it.
    #[serde(rename = "by", default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Box<By>>,
    /// The last attempts that ended, oldest first.
    #[serde(rename = "att", default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<PastAttempt>,
    #[serde(rename = "st")]
    pub state: State,
    /// Its due slot; absent once the task has ended.
    #[serde(rename = "due", default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Due>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The idempotency key that belongs to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldKey {
    /// Digest of the key.
    #[serde(rename = "d")]
    pub digest: Fingerprint,
    /// When the key's record may be deleted. Moved later while the task is open.
    #[serde(rename = "x")]
    pub expires_at: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_start(version: &u64) -> bool {
    *version == 0
}

/// A task's state, with the data of that state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum State {
    /// Waits for a worker, or for the instant from which a worker may claim it.
    #[serde(rename = "p")]
    Pending(Pending),
    /// A worker has a lease on it.
    #[serde(rename = "r")]
    Running(Running),
    #[serde(rename = "e")]
    Ended(Ended),
}

/// A task that waits to be claimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// From when a worker may claim it.
    #[serde(rename = "a")]
    pub available_at: Timestamp,
    /// Until when a worker must have claimed it.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub schedule_to_start_at: Option<Timestamp>,
    /// Whether the tick is still to send its hint, because it starts later than a queue can delay a message.
    #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
    pub hint_later: bool,
    /// The record's version when it became pending; 0 if it was created pending. Hints with an older version are
    /// stale.
    #[serde(rename = "v", default, skip_serializing_if = "is_start")]
    pub since_version: u64,
    /// Since when its hint hasn't been received, if `schedule_to_start` expired in the meantime and no new hint was
    /// sent.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub unread_since: Option<Timestamp>,
}

/// A task with a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// The fence of this attempt.
    #[serde(rename = "l")]
    pub lease: LeaseId,
    /// The worker that has the lease.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
    #[serde(rename = "c")]
    pub claimed_at: Timestamp,
    /// The length of the lease after a claim or a heartbeat.
    #[serde(rename = "d")]
    pub lease_length: Millis,
    /// The worker counts as lost from this instant.
    #[serde(rename = "x")]
    pub lease_expires_at: Timestamp,
    /// Until when this attempt must have ended.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub start_to_close_at: Option<Timestamp>,
    /// Until when the next heartbeat of the work must have arrived.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_at: Option<Timestamp>,
    /// What was left of `schedule_to_start` at the claim. It continues if the worker releases the task.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub start_left: Option<Millis>,
    /// Whether the worker's process ran other attempts too. If it is lost, any of them may be the cause.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Whether the worker runs inside the process that has the store to itself.
    #[serde(rename = "i", default, skip_serializing_if = "std::ops::Not::not")]
    pub inside: bool,
    /// Whether a cancellation was requested. The worker is notified in the answer to its next heartbeat.
    #[serde(rename = "z", default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
}

/// A task that has ended. Only an operator's retry changes it after that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    #[serde(rename = "o")]
    pub outcome: Outcome,
    #[serde(rename = "e")]
    pub ended_at: Timestamp,
    /// When the record may be deleted.
    #[serde(rename = "x")]
    pub expires_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It ended with a result.
    #[serde(rename = "c")]
    Completed {
        /// The result, if the worker sent one.
        #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
        output: Option<Payload>,
    },
    /// It ended with an error that isn't retried, or with no attempts left.
    #[serde(rename = "f")]
    Failed {
        /// The error. Its message is cut to the space in the record.
        #[serde(rename = "x")]
        error: Failure,
        /// The whole message as a JSON string, if it was cut.
        #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
        message: Option<BlobRef>,
    },
    #[serde(rename = "t")]
    TimedOut {
        #[serde(rename = "k")]
        kind: TimeoutKind,
        /// The reason, with the last error if there was one.
        #[serde(rename = "x")]
        error: Failure,
    },
    /// It was cancelled by a request, or by a timeout that doesn't count as an error.
    #[serde(rename = "z")]
    Cancelled {
        /// The timeout, if there was one.
        #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
        timeout: Option<TimeoutKind>,
    },
    /// It never runs: `max_attempts` was 0.
    #[serde(rename = "s")]
    Skipped,
}

/// An attempt that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastAttempt {
    #[serde(rename = "n")]
    pub attempt: u32,
    /// Its fence, by which a repeated report is recognised. Absent if no worker claimed it.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseId>,
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Timestamp>,
    #[serde(rename = "e")]
    pub ended_at: Timestamp,
    #[serde(rename = "o")]
    pub ending: Ending,
    /// The error, with its message cut.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// Its worker reported a result.
    #[serde(rename = "c")]
    Completed,
    /// Its worker reported an error.
    #[serde(rename = "f")]
    Failed,
    /// One of its timeouts, or the task's deadline, passed.
    #[serde(rename = "t")]
    TimedOut(TimeoutKind),
    /// Its worker released it.
    #[serde(rename = "r")]
    Released,
    /// Its worker sent no sign of life within the lease.
    #[serde(rename = "l")]
    Lost,
    /// The task was cancelled while it ran.
    #[serde(rename = "z")]
    Cancelled,
}

impl Ending {
    /// The name in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut(_) => "timed_out",
            Self::Released => "released",
            Self::Lost => "lost",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Task {
    /// The time limit that has ended it, if one did. For a heartbeat and for `schedule_to_start`, whose instants the record
    /// no longer has, it is the instant at which the end was recorded.
    pub fn expired(&self) -> Option<Expired> {
        let ended = self.ended()?;
        let kind = match ended.outcome {
            Outcome::TimedOut { kind, .. } | Outcome::Cancelled { timeout: Some(kind) } => kind,
            Outcome::Completed { .. }
            | Outcome::Failed { .. }
            | Outcome::Cancelled { timeout: None }
            | Outcome::Skipped => return None,
        };
        let deadline_at = match kind {
            TimeoutKind::ScheduleToClose => self.deadline_at,
            TimeoutKind::StartToClose => self
                .history
                .last()
                .and_then(|last| Some(last.claimed_at?.plus(self.timeouts.start_to_close?.after))),
            TimeoutKind::ScheduleToStart | TimeoutKind::Heartbeat => None,
        };
        Some(Expired { kind: kind.into(), deadline_at: deadline_at.unwrap_or(ended.ended_at) })
    }

    /// The keys at which it needs a place while it runs.
    pub fn gates(&self) -> &[Gated] {
        self.flow.as_ref().map_or(&[], |flow| flow.gates.as_slice())
    }

    /// The key by whose rate it starts.
    pub fn paced(&self) -> Option<&Paced> {
        self.flow.as_ref()?.paced.as_ref()
    }

    /// The start that is reserved for its next attempt.
    pub fn reserved(&self) -> Option<Reservation> {
        self.paced()?.start
    }

    pub(crate) fn paced_mut(&mut self) -> Option<&mut Paced> {
        self.flow.as_mut()?.paced.as_mut()
    }

    /// The execution that it is a remote step of.
    pub fn execution_id(&self) -> Option<&ExecutionId> {
        self.parent.as_ref().map(|parent| &parent.execution)
    }

    /// Its name as a remote step, if the record has space for it.
    pub fn step(&self) -> Option<&StepName> {
        self.parent.as_ref()?.step.as_ref()
    }

    pub(crate) fn forget_step(&mut self) {
        if let Some(parent) = &mut self.parent {
            parent.step = None;
        }
    }

    /// The code of the error with which it has failed or timed out.
    pub fn error_code(&self) -> Option<&str> {
        match &self.ended()?.outcome {
            Outcome::Failed { error, .. } | Outcome::TimedOut { error, .. } => Some(&error.code),
            Outcome::Completed { .. } | Outcome::Cancelled { .. } | Outcome::Skipped => None,
        }
    }

    pub const fn status(&self) -> Status {
        match &self.state {
            State::Pending(_) => Status::Pending,
            State::Running(_) => Status::Running,
            State::Ended(ended) => match ended.outcome {
                Outcome::Completed { .. } => Status::Completed,
                Outcome::Failed { .. } => Status::Failed,
                Outcome::TimedOut { .. } => Status::TimedOut,
                Outcome::Cancelled { .. } => Status::Cancelled,
                Outcome::Skipped => Status::Skipped,
            },
        }
    }

    /// How it ended, if it has ended.
    pub const fn ended(&self) -> Option<&Ended> {
        match &self.state {
            State::Pending(_) | State::Running(_) => None,
            State::Ended(ended) => Some(ended),
        }
    }

    /// The running attempt, if there is one.
    pub const fn running(&self) -> Option<&Running> {
        match &self.state {
            State::Running(running) => Some(running),
            State::Pending(_) | State::Ended(_) => None,
        }
    }

    /// The attempt in the history that had this lease.
    pub fn past_attempt(&self, lease: &LeaseId) -> Option<&PastAttempt> {
        self.history.iter().find(|past| past.lease.as_ref() == Some(lease))
    }

    /// Whether it waits for the end of its execution's pause, and its time starts afresh then. A task that an operator
    /// revived has no deadline at all.
    pub const fn is_held(&self) -> bool {
        self.parked.is_paused()
            && self.deadline_at.is_none()
            && self.timeouts.schedule_to_close.is_some()
            && self.revived_at.is_none()
    }

    /// What the line of a key must know of it.
    pub fn waiting(&self) -> Waiting<'_> {
        Waiting {
            owner: self.id.clone().into(),
            incarnation: self.incarnation,
            queue: &self.queue,
            priority: self.priority(),
            requires: self.flow.as_deref().map_or(&[], |flow| &flow.requires),
            gates: self.gates(),
            created_at: self.created_at,
            position: self.parked.in_line(),
        }
    }

    /// Whether it waits in the line of a key. One that runs may be in it too: it waits if it came at the end of its lease.
    pub fn waits_in_line(&self) -> bool {
        let came_then = |since| self.running().is_none_or(|running| running.lease_expires_at == since);
        self.parked.in_line().is_some_and(|position| came_then(position.since))
    }

    /// Since when its next attempt may start; `None` if it has ended.
    pub const fn ready_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::Pending(pending) => Some(pending.available_at),
            State::Running(running) => Some(running.lease_expires_at),
            State::Ended(_) => None,
        }
    }

    /// From when on its hint is for workers, if a hint should be in its queue or on the way to it.
    pub fn hint_at(&self) -> Option<Timestamp> {
        let State::Pending(pending) = &self.state else { return None };
        (!pending.hint_later && self.parked.is_no()).then_some(pending.available_at)
    }

    /// Whether its retention has passed, so that readers don't see it.
    pub fn is_gone(&self, now: Timestamp) -> bool {
        self.ended().is_some_and(|ended| ended.expires_at <= now)
    }

    /// A number that differs between tasks and is constant for one task: the seed of its jitter.
    pub fn seed(&self) -> u64 {
        u64::from_be_bytes(*self.incarnation.as_bytes())
    }

    /// All blobs that the record points to.
    pub fn blobs(&self) -> impl Iterator<Item = &BlobRef> {
        let closing = self.ended().and_then(|ended| match &ended.outcome {
            Outcome::Completed { output } => output.as_ref().and_then(Payload::blob),
            Outcome::Failed { message, .. } => message.as_ref(),
            Outcome::TimedOut { .. } | Outcome::Cancelled { .. } | Outcome::Skipped => None,
        });
        let payloads = [&self.input, &self.labels, &self.details];
        payloads.into_iter().filter_map(|payload| payload.as_ref().and_then(Payload::blob)).chain(closing)
    }
}
