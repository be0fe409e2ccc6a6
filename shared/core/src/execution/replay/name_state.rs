//! The state of a name of a run, according to its latest entry.

use crate::execution::journal::{FailedAttempt, Happened, StepOutcome};
use crate::failure::Failure;
use crate::id::{EventId, ExecutionId, StepName};
use crate::parent::ParentClosePolicy;
use crate::payload::Payload;
use crate::reported::Reported;
use crate::time::Timestamp;
use crate::timeout::Expired;

/// The state of a name.
#[derive(Clone, Debug, PartialEq)]
pub enum NameState {
    /// The journal has no entry of it.
    Fresh,
    /// An attempt of an inline step was recorded before it ran, and its end is unknown.
    InProgress {
        /// The attempt, from 1.
        attempt: u32,
        /// When the step first started.
        first_at: Timestamp,
        /// When it times out, if it has a timeout.
        timeout_at: Option<Timestamp>,
        /// What it or an earlier attempt reported last.
        reported: Reported,
        /// The failure of the last attempt before it that failed, if the journal has one.
        last_error: Option<Failure>,
    },
    /// An attempt of an inline step failed and will be retried.
    Failed {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// When the step first started.
        first_at: Timestamp,
        error: Failure,
        /// When the next attempt may start.
        next_at: Timestamp,
        /// What it or an earlier attempt reported last.
        reported: Reported,
    },
    /// A remote step has started.
    Remote,
    /// A child has started, or the code waits for another execution.
    Child {
        execution: ExecutionId,
        /// What happens to it when this execution closes.
        policy: ParentClosePolicy,
        since: Timestamp,
    },
    /// A step, remote step or child has ended.
    Ended {
        outcome: StepOutcome,
        /// How many attempts it took; absent for a remote step or child.
        attempts: Option<u32>,
        /// The time limit that ended it, if one did.
        expired: Option<Expired>,
        /// The failure of its last attempt that failed, if it timed out and the journal has one.
        last_error: Option<Failure>,
    },
    /// A captured value.
    Captured(Payload),
    /// A sleep or a wait with a timeout, and its end.
    Until(Timestamp),
    /// A sleep or timeout that is over.
    Fired,
    /// A wait that has ended.
    Waited(WaitOutcome),
}

/// The outcome of a wait.
#[derive(Clone, Debug, PartialEq)]
pub enum WaitOutcome {
    /// An event.
    Event {
        /// Its id, by which its sender gets an answer.
        id: Option<EventId>,
        payload: Option<Payload>,
    },
    /// No event: it timed out.
    Nothing,
}

impl NameState {
    /// Whether it is a remote step or a child whose end is unknown.
    pub const fn is_open(&self) -> bool {
        match self {
            Self::Remote | Self::Child { .. } => true,
            Self::Fresh
            | Self::InProgress { .. }
            | Self::Failed { .. }
            | Self::Ended { .. }
            | Self::Captured(_)
            | Self::Until(_)
            | Self::Fired
            | Self::Waited(_) => false,
        }
    }

    /// When an attempt times out that was recorded before it ran and whose end is unknown.
    pub const fn attempt_timeout_at(&self) -> Option<Timestamp> {
        match self {
            Self::InProgress { timeout_at, .. } => *timeout_at,
            Self::Fresh
            | Self::Failed { .. }
            | Self::Remote
            | Self::Child { .. }
            | Self::Ended { .. }
            | Self::Captured(_)
            | Self::Until(_)
            | Self::Fired
            | Self::Waited(_) => None,
        }
    }

    /// Lets the timeout over all attempts of an inline step count from now, if it hasn't ended: a pause doesn't use up
    /// its time. Attempts and the time of the next one stay.
    pub(super) const fn start_afresh(&mut self, now: Timestamp) {
        match self {
            Self::InProgress { first_at, .. } | Self::Failed { first_at, .. } => *first_at = now,
            Self::Fresh
            | Self::Remote
            | Self::Child { .. }
            | Self::Ended { .. }
            | Self::Captured(_)
            | Self::Until(_)
            | Self::Fired
            | Self::Waited(_) => {}
        }
    }

    /// Lets its time count from now, if it hasn't ended: its execution ended meanwhile, and an operator has it go on. An
    /// attempt that was in progress then is over, and doesn't count.
    pub(super) const fn go_on(&mut self, now: Timestamp) {
        self.start_afresh(now);
        if let Self::InProgress { timeout_at, .. } = self {
            *timeout_at = None;
        }
    }

    /// Whether the journal has no entry of it.
    pub const fn is_fresh(&self) -> bool {
        matches!(self, Self::Fresh)
    }

    /// The payload that the code reads when it receives this outcome.
    pub const fn payload(&self) -> Option<&Payload> {
        match self {
            Self::Ended { outcome, .. } => outcome.payload(),
            Self::Captured(payload) | Self::Waited(WaitOutcome::Event { payload: Some(payload), .. }) => {
                Some(payload)
            }
            Self::Fresh
            | Self::InProgress { .. }
            | Self::Failed { .. }
            | Self::Remote
            | Self::Child { .. }
            | Self::Until(_)
            | Self::Fired
            | Self::Waited(WaitOutcome::Event { payload: None, .. } | WaitOutcome::Nothing) => None,
        }
    }

    /// The failure of the last attempt that failed, as far as it counts here.
    const fn last_error(&self) -> Option<&Failure> {
        match self {
            Self::InProgress { last_error, .. } | Self::Ended { last_error, .. } => last_error.as_ref(),
            Self::Failed { error, .. } => Some(error),
            Self::Fresh
            | Self::Remote
            | Self::Child { .. }
            | Self::Captured(_)
            | Self::Until(_)
            | Self::Fired
            | Self::Waited(_) => None,
        }
    }

    /// The same state after another one: an attempt, or an end by time, keeps the failure of the attempts before it.
    pub(super) fn following(mut self, before: &Self) -> Self {
        match &mut self {
            Self::Ended { outcome: StepOutcome::TimedOut, last_error, .. }
            | Self::InProgress { last_error, .. } => {
                *last_error = last_error.take().or_else(|| before.last_error().cloned());
            }
            Self::Ended { last_error, .. } => *last_error = None,
            Self::Fresh
            | Self::Failed { .. }
            | Self::Remote
            | Self::Child { .. }
            | Self::Captured(_)
            | Self::Until(_)
            | Self::Fired
            | Self::Waited(_) => {}
        }
        self
    }

    /// Its kind, for an error about code that uses the name for another kind of operation.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Fresh => "nothing",
            Self::InProgress { .. } | Self::Failed { .. } => "a step",
            Self::Remote | Self::Child { .. } | Self::Ended { .. } => "a step or child",
            Self::Captured(_) => "a captured value",
            Self::Until(_) => "a sleep, timeout or wait",
            Self::Fired => "a sleep or timeout",
            Self::Waited(_) => "a wait",
        }
    }

    /// The state that an entry gives its name, whatever the state was before. `None` for entries without a name, and
    /// for entries whose effect depends on the state before.
    pub(super) fn after(what: &Happened) -> Option<(StepName, Self)> {
        match what {
            Happened::Attempt {
                name, attempt, first_at, error, next_at, progress, details, errors, ..
            } => {
                let (attempt, first_at) = (*attempt, *first_at);
                let reported = Reported { progress: *progress, details: details.clone() };
                let name_state = match error {
                    None => Self::InProgress {
                        attempt,
                        first_at,
                        timeout_at: *next_at,
                        reported,
                        last_error: last_of(errors),
                    },
                    Some(error) => Self::Failed {
                        attempt,
                        first_at,
                        error: error.clone(),
                        next_at: next_at.unwrap_or(first_at),
                        reported,
                    },
                };
                Some((name.clone(), name_state))
            }
            Happened::Remote { name } => Some((name.clone(), Self::Remote)),
            Happened::Step { name, outcome, attempts, expired, errors } => {
                let (outcome, attempts, expired) = (outcome.clone(), *attempts, *expired);
                let last_error = last_of(errors);
                Some((name.clone(), Self::Ended { outcome, attempts, expired, last_error }))
            }
            Happened::Captured { name, value } => Some((name.clone(), Self::Captured(value.clone()))),
            Happened::Until { name, until } => Some((name.clone(), Self::Until(*until))),
            Happened::Fired { name } => Some((name.clone(), Self::Fired)),
            Happened::Child { .. }
            | Happened::Reopened { .. }
            | Happened::Event { .. }
            | Happened::Waited { .. }
            | Happened::EventsCleared { .. }
            | Happened::Patches { .. }
            | Happened::Note { .. } => None,
        }
    }
}

fn last_of(errors: &[FailedAttempt]) -> Option<Failure> {
    errors.last().map(|failed| failed.error.clone())
}
