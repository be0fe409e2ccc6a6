//! The actors: each takes one step at a time, and between two steps all others may act.

use std::sync::Arc;

use super::answer::Ask;
use super::record::{Record, bit};
use super::state::Message;

/// The state of an actor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Actor {
    /// Nothing to do.
    Idle,
    /// It has decided, on a record that may have changed since, and the write comes next.
    Committing(Arc<Intent>),
    /// A worker that runs a task, or believes so.
    Working(Held),
}

/// A task that a worker has claimed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Held {
    pub(super) task: u8,
    pub(super) lease: u8,
    /// The message that led to it, until its visibility timeout ends.
    pub(super) received_message: Option<Message>,
}

/// A decision that isn't written yet.
///
/// Random numbers are drawn only when it is written. No other actor could have seen them before, and otherwise states
/// that differ in nothing else would count as different.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Intent {
    pub(super) task: u8,
    pub(super) ask: Ask,
    /// The lease of the command, if there is one already.
    pub(super) lease: Option<u8>,
    /// The number that it was written with, if its answer was lost.
    pub(super) number: Option<u8>,
    pub(super) received_message: Option<Message>,
    /// The record that was decided on; `None` once it can no longer be what is stored.
    pub(super) copy: Option<Record>,
    /// The index of the clock's instant at which it was decided. The write may come later.
    pub(super) decided: u8,
    /// Whether the decision sends messages.
    pub(super) sends_messages: bool,
}

impl Actor {
    /// The numbers that the actor knows.
    pub(super) fn numbers(&self) -> u64 {
        match self {
            Self::Idle => 0,
            Self::Committing(intent) => {
                let own =
                    [intent.number, intent.lease].into_iter().flatten().fold(0, |all, one| all | bit(one));
                own | intent.copy.as_ref().map_or(0, Record::numbers)
                    | in_flight(intent.received_message.as_ref())
            }
            Self::Working(held) => bit(held.lease) | in_flight(held.received_message.as_ref()),
        }
    }

    /// The message that it received, while no other actor can receive it.
    pub(super) fn received_message(&self) -> Option<&Message> {
        match self {
            Self::Idle => None,
            Self::Committing(intent) => intent.received_message.as_ref(),
            Self::Working(held) => held.received_message.as_ref(),
        }
    }

    /// The same without its message.
    pub(super) fn without_message(&self) -> Self {
        match self {
            Self::Idle => Self::Idle,
            Self::Committing(intent) => {
                Self::Committing(Arc::new(Intent { received_message: None, ..(**intent).clone() }))
            }
            Self::Working(held) => Self::Working(Held { received_message: None, ..held.clone() }),
        }
    }

    /// The same without an old copy, if the write on it could only be refused.
    pub(super) fn without_stale_copy(&self, table: &[Option<Record>]) -> Option<Self> {
        let Self::Committing(intent) = self else { return None };
        let stored = table.get(usize::from(intent.task)).and_then(Option::as_ref)?;
        let stale =
            intent.number.is_none() && intent.copy.as_ref().is_some_and(|copy| copy.version < stored.version);
        stale.then(|| {
            Self::Committing(Arc::new(Intent {
                copy: None,
                decided: 0,
                sends_messages: false,
                ..(**intent).clone()
            }))
        })
    }
}

fn in_flight(message: Option<&Message>) -> u64 {
    message.map_or(0, |message| message.body.numbers())
}
