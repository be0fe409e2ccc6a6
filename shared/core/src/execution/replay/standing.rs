//! Where a name of a run stands: what the latest entry of it says.

use crate::execution::journal::{Happened, StepOutcome};
use crate::failure::Failure;
use crate::id::{ExecutionId, StepName};
use crate::parent::ParentClosePolicy;
use crate::payload::Payload;
use crate::time::Timestamp;

/// Where a name stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// Nothing is known of it.
    Fresh,
    /// An attempt of an inline step was written down before it ran, and how it ended isn't known.
    Begun {
        /// The attempt, from 1.
        attempt: u32,
        /// When the step was first begun.
        first_at: Timestamp,
        /// When its time is over, if it has one.
        timeout_at: Option<Timestamp>,
        /// How far an attempt before it said it had come, from 0 to 1.
        progress: Option<f64>,
    },
    /// An attempt of an inline step failed, and another one will follow.
    Failed {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// When the step was first begun.
        first_at: Timestamp,
        /// What went wrong.
        error: Failure,
        /// When the next attempt may begin.
        next_at: Timestamp,
        /// How far it said it had come, from 0 to 1.
        progress: Option<f64>,
    },
    /// A remote step was begun.
    Remote,
    /// A child was begun, or another execution is waited for.
    Child {
        /// The execution.
        execution: ExecutionId,
        /// What becomes of it at the close.
        policy: ParentClosePolicy,
        /// Since when.
        since: Timestamp,
    },
    /// A step, remote step or child has ended.
    Ended {
        /// How.
        outcome: StepOutcome,
        /// In how many attempts; absent where that was counted elsewhere.
        attempts: Option<u32>,
    },
    /// A captured value.
    Captured(Payload),
    /// A sleep or a wait with a timeout: its end.
    Until(Timestamp),
    /// A sleep or time limit that is over.
    Fired,
    /// A wait that has ended.
    Waited(Taken),
}

/// What a wait came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Taken {
    /// An event, with what came with it.
    Event(Option<Payload>),
    /// Nothing: its time was over.
    Nothing,
}

impl Standing {
    /// Whether it is a remote step or a child whose end isn't known.
    pub const fn is_open(&self) -> bool {
        match self {
            Self::Remote | Self::Child { .. } => true,
            Self::Fresh
            | Self::Begun { .. }
            | Self::Failed { .. }
            | Self::Ended { .. }
            | Self::Captured(_)
            | Self::Until(_)
            | Self::Fired
            | Self::Waited(_) => false,
        }
    }

    /// When the time of an attempt is over that was written down before it ran, and whose end isn't known.
    pub const fn attempt_over_at(&self) -> Option<Timestamp> {
        match self {
            Self::Begun { timeout_at, .. } => *timeout_at,
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

    /// Whether nothing is known of it.
    pub const fn is_fresh(&self) -> bool {
        matches!(self, Self::Fresh)
    }

    /// What the code reads once it hears of this.
    pub const fn payload(&self) -> Option<&Payload> {
        match self {
            Self::Ended { outcome, .. } => outcome.payload(),
            Self::Captured(payload) | Self::Waited(Taken::Event(Some(payload))) => Some(payload),
            Self::Fresh
            | Self::Begun { .. }
            | Self::Failed { .. }
            | Self::Remote
            | Self::Child { .. }
            | Self::Until(_)
            | Self::Fired
            | Self::Waited(Taken::Event(None) | Taken::Nothing) => None,
        }
    }

    /// What it is, for an error about code that takes it for something else.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Fresh => "nothing",
            Self::Begun { .. } | Self::Failed { .. } => "a step",
            Self::Remote | Self::Child { .. } | Self::Ended { .. } => "a step or child",
            Self::Captured(_) => "a captured value",
            Self::Until(_) => "a sleep, timeout or wait",
            Self::Fired => "a sleep or timeout",
            Self::Waited(_) => "a wait",
        }
    }

    /// What an entry makes of its name, whatever it was before; `None` for entries that have no name, and for those
    /// that depend on what was before.
    pub(super) fn after(what: &Happened) -> Option<(StepName, Self)> {
        match what {
            Happened::Attempt { name, attempt, first_at, error, next_at, progress } => {
                let (attempt, first_at) = (*attempt, *first_at);
                let standing = match error {
                    None => Self::Begun { attempt, first_at, timeout_at: *next_at, progress: *progress },
                    Some(error) => Self::Failed {
                        attempt,
                        first_at,
                        error: error.clone(),
                        next_at: next_at.unwrap_or(first_at),
                        progress: *progress,
                    },
                };
                Some((name.clone(), standing))
            }
            Happened::Remote { name } => Some((name.clone(), Self::Remote)),
            Happened::Step { name, outcome, attempts } => {
                Some((name.clone(), Self::Ended { outcome: outcome.clone(), attempts: *attempts }))
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
