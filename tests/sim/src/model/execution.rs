//! An execution as a state machine for a model checker: suspend against completion, in every order of few events.
//!
//! One execution starts two remote steps and waits until both have ended, or waits for one event. Two workers may be
//! slow or die. The notifier of a step's end may die at any point. Hints may be lost, and ticks come at any time. The
//! core makes all decisions about the execution.

mod record;
mod steps;

use stateright::{Model, Property};
use tickover_core::due::DueKind;
use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionState;
use tickover_core::limits::Limits;
use tickover_core::time::Timestamp;

use super::instants;
use crate::plan::START;

pub use record::Kept;

const STEPS: usize = 2;

/// A bug in a decision or around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionBug {
    /// A turn suspends whatever wakes have come since it read the record.
    WakesIgnored,
    /// A report with any lease ends a run.
    NoFence,
    /// A turn that suspends has no due slot, although it waits for others.
    NoRecheck,
}

/// What the execution waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Two remote steps; the last one to end notifies the execution.
    ForSteps,
    ForAnEvent,
}

/// How much may go wrong before the clock reaches its last instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExecutionFaults {
    /// Messages lost.
    pub losses: u8,
    /// Workers and notifiers that die.
    pub crashes: u8,
}

/// A bounded world.
#[derive(Clone, Debug)]
pub struct ExecutionProtocol {
    waits: Waits,
    slip: Option<ExecutionBug>,
    mishaps: ExecutionFaults,
    instants: Vec<Timestamp>,
    limits: Limits,
}

impl ExecutionProtocol {
    /// A world with two workers and these faults.
    pub fn new(waits: Waits, mishaps: ExecutionFaults) -> Self {
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
    pub fn with(self, slip: ExecutionBug) -> Self {
        Self { slip: Some(slip), ..self }
    }

    fn now(&self, state: &ProtocolState) -> Timestamp {
        self.instants.get(usize::from(state.clock)).copied().unwrap_or(START)
    }

    fn is_last(&self, state: &ProtocolState) -> bool {
        usize::from(state.clock) + 1 >= self.instants.len()
    }
}

/// A state of the world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProtocolState {
    clock: u8,
    record: Kept,
    workers: [Worker; 2],
    steps: [Remote; STEPS],
    /// Places of the join that are marked.
    marks: [bool; STEPS],
    /// Whether the execution was woken because all places are marked.
    woken: bool,
    /// Hints, by the instant from which they can be received.
    hints: Vec<u8>,
    /// Whether the event is still to be sent.
    event_unsent: bool,
    left: ExecutionFaults,
    seen: Seen,
}

/// History that no actor sees and that the properties need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Seen {
    /// Results that were recorded.
    results: u8,
    /// Whether the record changed after it had ended.
    revived: bool,
    /// Whether a worker that had lost the turn ended it.
    ended_by_other: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Worker {
    Idle,
    /// In a turn, or believes so.
    At(Box<Turn>),
}

/// A turn as its worker sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Turn {
    seen: Kept,
    lease: u8,
    seen_wakes: u64,
    /// What it read of the steps; `None` before it has read them.
    looked: Option<[bool; STEPS]>,
    /// When its message becomes visible again.
    back: u8,
}

/// A remote step, and the progress of the notification of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Remote {
    NotStarted,
    Open,
    /// It has ended, and its place in the join isn't marked yet.
    Ended,
    /// Its place was the last one: the next step wakes the execution.
    Waking,
    /// The next step sends a hint.
    Hinting,
    Notified,
}

impl Remote {
    const fn has_ended(self) -> bool {
        match self {
            Self::NotStarted | Self::Open => false,
            Self::Ended | Self::Waking | Self::Hinting | Self::Notified => true,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// A worker receives a hint.
    Deliver(usize),
    /// A worker starts the steps, or reads how they ended.
    ReadSteps(usize),
    /// A worker ends its turn.
    End(usize),
    /// A worker dies.
    Crash(usize),
    /// A step ends, or its notifier takes its next step.
    Step(usize),
    /// The notifier of a step's end dies.
    NoNotification(usize),
    /// The event is sent.
    SendEvent,
    /// A hint is lost.
    Lose(usize),
    /// A tick reads the record.
    Tick,
    /// The clock advances.
    Advance,
}

/// The names of the properties.
pub mod claim {
    pub const ONE_RESULT: &str = "at most one result of an execution is recorded";
    pub const END_STAYS: &str = "an execution that has ended never changes";
    pub const HOLDERS_END: &str = "a turn is ended by its holder";
    pub const NO_LOST_WAKE: &str = "an execution that waits has seen every wake and every event";
    pub const NOT_LOST: &str =
        "where nothing more can happen, the execution has ended, or a tick will probe it";
    pub const COMPLETES: &str = "an execution completes";
    /// A turn that would suspend continues instead.
    pub const SLEEPS: &str = "an execution waits";
}

impl Model for ExecutionProtocol {
    type State = ProtocolState;
    type Action = Move;

    fn init_states(&self) -> Vec<ProtocolState> {
        vec![self.first()]
    }

    fn actions(&self, state: &ProtocolState, moves: &mut Vec<Move>) {
        self.possible(state, moves);
    }

    fn next_state(&self, state: &ProtocolState, one: Move) -> Option<ProtocolState> {
        let mut next = state.clone();
        self.take(&mut next, one)?;
        next.normalise();
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(claim::ONE_RESULT, |_, state: &ProtocolState| state.seen.results <= 1),
            Property::always(claim::END_STAYS, |_, state: &ProtocolState| !state.seen.revived),
            Property::always(claim::HOLDERS_END, |_, state: &ProtocolState| !state.seen.ended_by_other),
            Property::always(claim::NO_LOST_WAKE, |_, state: &ProtocolState| !waits_in_vain(state)),
            Property::always(claim::NOT_LOST, |model: &Self, state: &ProtocolState| !is_stuck(model, state)),
            Property::sometimes(claim::COMPLETES, |_, state: &ProtocolState| state.seen.results == 1),
            Property::sometimes(claim::SLEEPS, |_, state: &ProtocolState| {
                matches!(state.record.state, ExecutionState::Waiting(_))
            }),
        ]
    }
}

/// Whether the execution waits although its steps have woken it, or although an event is there and hasn't woken it.
fn waits_in_vain(state: &ProtocolState) -> bool {
    let ExecutionState::Waiting(waiting) = &state.record.state else { return false };
    let is_told = state.woken && state.record.wakes <= waiting.seen_wakes;
    let has_event = state.record.pending_events > 0 && !waiting.wake_requested;
    is_told || has_event
}

fn is_stuck(model: &ExecutionProtocol, state: &ProtocolState) -> bool {
    if state.record.closed().is_some() || !model.is_last(state) || !model.next_states(state).is_empty() {
        return false;
    }
    let now = model.now(state);
    state.record.due.is_none_or(|due| due.at <= now && due.kind != DueKind::Recheck)
}
