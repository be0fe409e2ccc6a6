//! Those who act: each does one thing at a time, and between its steps everybody else may act.

use std::sync::Arc;

use super::answer::Ask;
use super::record::{Record, bit};
use super::state::Message;

/// Where somebody stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Actor {
    /// Nothing to do.
    Idle,
    /// Has decided, on a record that may have changed by now, and is about to write.
    Committing(Arc<Intent>),
    /// A worker at work, as far as it knows.
    Holding(Held),
}

/// A task in a worker's hands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Held {
    pub(super) task: u8,
    pub(super) lease: u8,
    /// The message that led to it, until others see it again.
    pub(super) flight: Option<Message>,
}

/// A decision that isn't written yet.
///
/// Random numbers are drawn only as it is written: nobody could have seen them before, and states that differ in
/// nothing else would be told apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Intent {
    pub(super) task: u8,
    pub(super) ask: Ask,
    /// The lease it is asked under, where there is one already.
    pub(super) lease: Option<u8>,
    /// The number that it was written with, if its answer was lost.
    pub(super) number: Option<u8>,
    pub(super) flight: Option<Message>,
    /// What was decided on; nothing once that can no longer be what is stored.
    pub(super) copy: Option<Record>,
    /// Which of the clock's instants it was decided at: the write may come later.
    pub(super) decided: u8,
    /// Whether others are to be told.
    pub(super) tells: bool,
}

impl Actor {
    /// The numbers that it knows.
    pub(super) fn numbers(&self) -> u64 {
        match self {
            Self::Idle => 0,
            Self::Committing(intent) => {
                let own =
                    [intent.number, intent.lease].into_iter().flatten().fold(0, |all, one| all | bit(one));
                own | intent.copy.as_ref().map_or(0, Record::numbers) | in_flight(intent.flight.as_ref())
            }
            Self::Holding(held) => bit(held.lease) | in_flight(held.flight.as_ref()),
        }
    }

    /// The message that it received, while nobody else can.
    pub(super) fn flight(&self) -> Option<&Message> {
        match self {
            Self::Idle => None,
            Self::Committing(intent) => intent.flight.as_ref(),
            Self::Holding(held) => held.flight.as_ref(),
        }
    }

    /// The same without its message.
    pub(super) fn without_flight(&self) -> Self {
        match self {
            Self::Idle => Self::Idle,
            Self::Committing(intent) => {
                Self::Committing(Arc::new(Intent { flight: None, ..(**intent).clone() }))
            }
            Self::Holding(held) => Self::Holding(Held { flight: None, ..held.clone() }),
        }
    }

    /// The same without a copy that is of no use any more: its write would only be refused.
    pub(super) fn without_stale_copy(&self, table: &[Option<Record>]) -> Option<Self> {
        let Self::Committing(intent) = self else { return None };
        let stored = table.get(usize::from(intent.task)).and_then(Option::as_ref)?;
        let stale =
            intent.number.is_none() && intent.copy.as_ref().is_some_and(|copy| copy.version < stored.version);
        stale.then(|| {
            Self::Committing(Arc::new(Intent { copy: None, decided: 0, tells: false, ..(**intent).clone() }))
        })
    }
}

fn in_flight(message: Option<&Message>) -> u64 {
    message.map_or(0, |message| message.body.numbers())
}
