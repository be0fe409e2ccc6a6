//! An execution as a state machine for a model checker: suspend against completion, in every order of few events.
//!
//! One execution begins two remote steps and waits until both have ended, or waits for one event. Two workers may be
//! slow or die, whoever tells of an end may die at any point, hints may be lost, ticks come when they like. What is
//! decided about the execution is decided by the core.

mod record;
mod steps;

use stateright::{Model, Property};
use tickover_core::due::DueKind;
use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionState;
use tickover_core::limits::Limits;
use tickover_core::time::Timestamp;

use super::instants;
use crate::scene::START;

pub use record::Kept;

const STEPS: usize = 2;

/// A bug in what surrounds or makes a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slip {
    /// A turn goes to sleep whatever wakes have come since it looked.
    WakesIgnored,
    /// A run is ended by any lease.
    NoFence,
    /// A turn that goes to sleep has no place in the due index, although it waits for others.
    NoRecheck,
}

/// What the execution waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Two remote steps, the last of which tells.
    ForSteps,
    ForAnEvent,
}

/// How much may go wrong before the clock reaches its last instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mishaps {
    /// Messages lost.
    pub losses: u8,
    /// Workers, and those who tell, that die.
    pub crashes: u8,
}

/// A bounded world.
#[derive(Clone, Debug)]
pub struct Course {
    waits: Waits,
    slip: Option<Slip>,
    mishaps: Mishaps,
    instants: Vec<Timestamp>,
    limits: Limits,
}

impl Course {
    /// A world with two workers in which so much goes wrong.
    pub fn new(waits: Waits, mishaps: Mishaps) -> Self {
        let limits = Limits {
            backstop: Millis::from_secs(60),
            backstop_max: Millis::from_secs(600),
            due_shards: 1,
            ..Limits::default()
        };
        Self { waits, slip: None, mishaps, instants: instants(&[0, 60, 120, 14_400]), limits }
    }

    /// The same with a bug.
    #[must_use]
    pub fn with(self, slip: Slip) -> Self {
        Self { slip: Some(slip), ..self }
    }

    fn now(&self, state: &Moment) -> Timestamp {
        self.instants.get(usize::from(state.clock)).copied().unwrap_or(START)
    }

    fn is_last(&self, state: &Moment) -> bool {
        usize::from(state.clock) + 1 >= self.instants.len()
    }
}

/// A moment of the world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    clock: u8,
    record: Kept,
    workers: [Worker; 2],
    steps: [Remote; STEPS],
    /// Places of the join that are marked.
    marks: [bool; STEPS],
    /// Whether somebody has woken the execution because all of them are.
    woken: bool,
    /// Hints, by the instant from which they can be received.
    hints: Vec<u8>,
    /// Whether the event is still to be offered.
    unoffered: bool,
    left: Mishaps,
    seen: Seen,
}

/// What nobody in the world sees, but properties look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Seen {
    /// Results that were recorded.
    results: u8,
    /// Whether the record changed after it had ended.
    revived: bool,
    /// Whether a turn was ended by somebody who had lost it.
    usurped: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Worker {
    Idle,
    /// At a turn, as far as it knows.
    At(Box<Turn>),
}

/// A turn as its worker sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Turn {
    seen: Kept,
    lease: u8,
    seen_wakes: u64,
    /// What it saw when it looked at the steps; nothing before.
    looked: Option<[bool; STEPS]>,
    /// When others see its message again.
    back: u8,
}

/// A remote step, and who tells of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Remote {
    Unbegun,
    Open,
    /// It has ended, and its place isn't marked yet.
    Ended,
    /// Its place was the last one: the execution is to be woken.
    Waking,
    /// And then a hint is to be sent.
    Hinting,
    Told,
}

impl Remote {
    const fn has_ended(self) -> bool {
        match self {
            Self::Unbegun | Self::Open => false,
            Self::Ended | Self::Waking | Self::Hinting | Self::Told => true,
        }
    }
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// A worker receives a hint.
    Deliver(usize),
    /// A worker begins the steps, or looks how they ended.
    Look(usize),
    /// A worker ends its turn.
    End(usize),
    /// A worker dies.
    Crash(usize),
    /// A step ends, or whoever tells of that goes on.
    Step(usize),
    /// Whoever tells of a step's end dies.
    Mute(usize),
    /// The event is offered.
    SendEvent,
    /// A hint is lost.
    Lose(usize),
    /// A tick looks at the record.
    Tick,
    /// Time goes on.
    Advance,
}

/// The names of the properties.
pub mod claim {
    /// At most one result.
    pub const ONE_RESULT: &str = "at most one result of an execution is recorded";
    /// An outcome stays.
    pub const END_STANDS: &str = "an execution that has ended never changes";
    /// Only who has a turn ends it.
    pub const HOLDERS_END: &str = "a turn is ended by its holder";
    /// Nobody sleeps on what has happened.
    pub const NO_LOST_WAKE: &str = "an execution that sleeps has been woken by all that it was told";
    /// In the end it has ended.
    pub const NOT_LOST: &str = "where nothing more can happen, the execution has ended, or a tick will look";
    /// It can be done.
    pub const COMPLETES: &str = "an execution completes";
    /// A turn that would sleep goes on instead.
    pub const SLEEPS: &str = "an execution sleeps";
}

impl Model for Course {
    type State = Moment;
    type Action = Move;

    fn init_states(&self) -> Vec<Moment> {
        vec![self.first()]
    }

    fn actions(&self, state: &Moment, moves: &mut Vec<Move>) {
        self.possible(state, moves);
    }

    fn next_state(&self, state: &Moment, one: Move) -> Option<Moment> {
        let mut next = state.clone();
        self.take(&mut next, one)?;
        next.normalise();
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(claim::ONE_RESULT, |_, state: &Moment| state.seen.results <= 1),
            Property::always(claim::END_STANDS, |_, state: &Moment| !state.seen.revived),
            Property::always(claim::HOLDERS_END, |_, state: &Moment| !state.seen.usurped),
            Property::always(claim::NO_LOST_WAKE, |_, state: &Moment| !sleeps_on(state)),
            Property::always(claim::NOT_LOST, |model: &Self, state: &Moment| !is_stuck(model, state)),
            Property::sometimes(claim::COMPLETES, |_, state: &Moment| state.seen.results == 1),
            Property::sometimes(claim::SLEEPS, |_, state: &Moment| {
                matches!(state.record.state, ExecutionState::Waiting(_))
            }),
        ]
    }
}

/// Whether it sleeps although something has happened that it was told of, or is to see by itself.
fn sleeps_on(state: &Moment) -> bool {
    let ExecutionState::Waiting(waiting) = &state.record.state else { return false };
    let is_told = state.woken && state.record.wakes <= waiting.seen_wakes;
    let has_event = state.record.pending_events > 0 && !waiting.stirred;
    is_told || has_event
}

fn is_stuck(model: &Course, state: &Moment) -> bool {
    if state.record.closed().is_some() || !model.is_last(state) || !model.next_states(state).is_empty() {
        return false;
    }
    let now = model.now(state);
    state.record.due.is_none_or(|due| due.at <= now && due.kind != DueKind::Recheck)
}
