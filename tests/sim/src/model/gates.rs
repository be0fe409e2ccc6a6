//! Places at one gate and its line as a state machine: every order of the reads and the writes of those who come, end and
//! look, within bounds, over the core's own rules of gates.
//!
//! A process does one read or one write at a time, in the order in which the service does them. Between any two of them all
//! others may act, so may the clock, and the process may die. A task is only its version and its state; what its record
//! allows is that of the rules of tasks, in short.

mod act;
mod come;
mod drain;
mod process;
mod record;
mod stored;

use stateright::{Model, Property};

pub use record::GatePlan;

use process::{Process, Slot};
use record::{Message, Status, Work};
use stored::{Names, Stored};

/// What is wrong with the rules, or with the order in which they are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateBug {
    /// A claim isn't bound to the version of the record for which its place was taken.
    ClaimOfAnyVersion,
    /// The end of an attempt frees the task's place whichever attempt has it.
    MarkIgnored,
    /// A place is taken although all are.
    TakenUnchecked,
    /// Whoever frees a place doesn't look at the line again after the write.
    FreesWithoutLook,
    /// Whoever comes to the line doesn't look at the gate after that.
    ComesWithoutLook,
    /// The item is written after the record.
    ItemAfterRecord,
    /// The item is deleted before the record has left the line.
    ItemDeletedFirst,
    /// An item whose record isn't written yet is deleted at once.
    DeletesEarly,
    /// The gate is written whoever else has written it.
    WritesOver,
    /// A tick leaves late offers as they are.
    OffersKept,
    /// A tick leaves places as they are whose processes died.
    LeftBehindKept,
    /// Who runs isn't called again, also if its worker was lost.
    LostNotCalled,
}

pub mod property {
    //! What must hold.

    pub const WITHIN_LIMIT: &str = "no more run than the limit";
    pub const PLACES: &str = "no more have places than the limit";
    pub const HAS_ITEM: &str = "whoever waits has an item";
    pub const NO_LOST_CALL: &str = "without a fault nobody waits while a place is free";
    pub const ALL_COME: &str = "whatever has happened, all come after some ticks";
}

/// A bounded world.
#[derive(Clone, Debug)]
pub struct GateProtocol {
    plan: GatePlan,
    bug: Option<GateBug>,
    names: Names,
}

/// How much has gone wrong so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Faults {
    crashes: u8,
    losses: u8,
    redelivered: u8,
    cancelled: u8,
}

/// A state of the world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GateState {
    now: u8,
    gate: Stored,
    tasks: Vec<Work>,
    /// Those in the queue, in order.
    messages: Vec<Message>,
    /// In order, because it makes no difference which process is which.
    slots: Vec<Slot>,
    faults: Faults,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GateStep {
    /// A client schedules a task.
    Schedule(u8),
    /// A worker receives a message.
    Receive(usize),
    /// The same, and the message is delivered once more.
    Redeliver(usize),
    /// A process goes on.
    Go(usize),
    Crash(usize),
    /// An attempt ends: the task is done, or is tried again.
    End(u8, bool),
    Cancel(u8),
    /// The worker of an attempt dies. If the task is in the line, its message is lost too.
    Lose(u8),
    /// The message of a worker that was lost is visible again.
    Reappear(u8),
    Tick,
    /// The clock goes on.
    Pass,
}

impl GateState {
    fn running(&self, until_after: i32) -> usize {
        let runs = |task: &&Work| matches!(task.status, Status::Running { until, .. } if until > until_after);
        self.tasks.iter().filter(runs).count()
    }

    fn waits(&self, now: i32) -> bool {
        self.tasks.iter().any(|task| task.position().is_some() && task.is_ready(now))
    }

    /// Whether nothing happens any more unless the clock goes on, an attempt ends or a tick comes.
    fn is_quiet(&self) -> bool {
        self.messages.is_empty() && self.slots.iter().all(|slot| slot.does == Process::Idle)
    }

    fn send(&mut self, message: Message) {
        if let Err(at) = self.messages.binary_search(&message) {
            self.messages.insert(at, message);
        }
    }

    fn idle(&self) -> Option<usize> {
        self.slots.iter().position(|slot| slot.does == Process::Idle)
    }

    fn begin(&mut self, does: Process, message: Option<Message>) {
        if let Some(at) = self.idle() {
            self.slots[at] = Slot { does, message };
        }
    }
}

impl GateProtocol {
    pub fn new(plan: GatePlan) -> Self {
        let names = Names::new(usize::from(plan.tasks), plan.limit);
        Self { plan, bug: None, names }
    }

    /// The same with a bug.
    #[must_use]
    pub fn with(self, bug: GateBug) -> Self {
        Self { bug: Some(bug), ..self }
    }

    fn has(&self, bug: GateBug) -> bool {
        self.bug == Some(bug)
    }

    fn may_tick(&self, state: &GateState) -> bool {
        let has_line = state.tasks.iter().any(|task| task.items != 0);
        let ticks = |slot: &Slot| slot.does.is_tick();
        let needs_one = state.now > 0 || state.faults != Faults::default();
        self.plan.ticks && needs_one && has_line && !state.slots.iter().any(ticks)
    }
}

impl Model for GateProtocol {
    type State = GateState;
    type Action = GateStep;

    fn init_states(&self) -> Vec<GateState> {
        let plan = &self.plan;
        let work = |task: u8| Work::new(task < plan.scheduled, plan.retries);
        let message = |task| Message { task, version: 1, in_line: false };
        vec![GateState {
            now: 0,
            gate: Stored::default(),
            tasks: (0..plan.tasks).map(work).collect(),
            messages: (0..plan.scheduled).map(message).collect(),
            slots: vec![Slot::default(); plan.processes],
            faults: Faults::default(),
        }]
    }

    fn actions(&self, state: &GateState, actions: &mut Vec<GateStep>) {
        for (at, slot) in state.slots.iter().enumerate().filter(|(_, slot)| slot.does != Process::Idle) {
            actions.push(GateStep::Go(at));
            if state.faults.crashes < self.plan.crashes && slot.does.may_die() {
                actions.push(GateStep::Crash(at));
            }
        }
        let now = self.now(state);
        if state.idle().is_some() {
            actions.extend((0..state.messages.len()).map(GateStep::Receive));
            if state.faults.redelivered < self.plan.redelivered {
                actions.extend((0..state.messages.len()).map(GateStep::Redeliver));
            }
            for (task, work) in (0..).zip(&state.tasks) {
                match work.status {
                    Status::Unscheduled => actions.push(GateStep::Schedule(task)),
                    Status::Pending | Status::InLine(_) if state.faults.cancelled < self.plan.cancelled => {
                        actions.push(GateStep::Cancel(task));
                    }
                    Status::Running { lost: false, .. } => {
                        actions.push(GateStep::End(task, false));
                        actions.extend((work.retries > 0).then_some(GateStep::End(task, true)));
                    }
                    Status::Scheduled
                    | Status::Pending
                    | Status::InLine(_)
                    | Status::Running { .. }
                    | Status::Ended => {}
                }
            }
            actions.extend(self.may_tick(state).then_some(GateStep::Tick));
        }
        for (task, work) in (0..).zip(&state.tasks) {
            if let Status::Running { until, position, lost } = work.status {
                let has_message = !lost || position.is_none();
                actions.extend((until <= now && has_message).then_some(GateStep::Reappear(task)));
                let may_die = !lost && state.faults.losses < self.plan.losses;
                actions.extend(may_die.then_some(GateStep::Lose(task)));
            }
        }
        if usize::from(state.now) + 1 < self.plan.instants.len() {
            actions.push(GateStep::Pass);
        }
    }

    fn next_state(&self, last: &GateState, action: GateStep) -> Option<GateState> {
        let mut state = last.clone();
        match action {
            GateStep::Schedule(task) => {
                state.tasks[usize::from(task)].status = Status::Scheduled;
                state.begin(Process::Schedules(task), None);
            }
            GateStep::Receive(at) => {
                let message = state.messages.remove(at);
                self.receive(&mut state, message);
            }
            GateStep::Redeliver(at) => {
                state.faults.redelivered += 1;
                let message = state.messages[at];
                self.receive(&mut state, message);
            }
            GateStep::Go(at) => self.go(&mut state, at),
            GateStep::Crash(at) => {
                state.faults.crashes += 1;
                let Slot { does, message } = std::mem::take(&mut state.slots[at]);
                if let Process::PutsItem(coming) | Process::PutsRecord(coming) = &does
                    && coming.is_new()
                {
                    // The client gets an error: there is no such task.
                    state.tasks[usize::from(coming.task)].status = Status::Ended;
                }
                if let Some(message) = message {
                    state.send(message);
                }
            }
            GateStep::End(task, retries) => self.end(&mut state, task, retries),
            GateStep::Lose(task) => {
                state.faults.losses += 1;
                if let Status::Running { lost, .. } = &mut state.tasks[usize::from(task)].status {
                    *lost = true;
                }
            }
            GateStep::Cancel(task) => Self::cancel(&mut state, task),
            GateStep::Reappear(task) => {
                let version = state.tasks[usize::from(task)].version;
                state.send(Message { task, version, in_line: false });
            }
            GateStep::Tick => state.begin(Process::tick(), None),
            GateStep::Pass => state.now += 1,
        }
        state.slots.sort_unstable();
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(property::WITHIN_LIMIT, |own: &Self, state: &GateState| {
                state.running(own.now(state)) <= usize::from(own.plan.limit.get())
            }),
            Property::always(property::PLACES, |own: &Self, state: &GateState| {
                state.gate.places(own.now(state)) <= usize::from(own.plan.limit.get())
            }),
            Property::always(property::HAS_ITEM, |_: &Self, state: &GateState| {
                state.tasks.iter().all(|task| task.position().is_none_or(|at| task.has_item(at)))
            }),
            Property::always(property::NO_LOST_CALL, |own: &Self, state: &GateState| {
                let is_full = state.running(own.now(state)) >= usize::from(own.plan.limit.get());
                // If an offer is late or a place ends by itself, a tick sees to it.
                let needs_tick = state.now > 0 || state.faults.crashes > 0;
                needs_tick || !state.is_quiet() || !state.waits(own.now(state)) || is_full
            }),
            Property::always(property::ALL_COME, |own: &Self, state: &GateState| {
                !state.is_quiet() || own.drains(state)
            }),
            Property::sometimes("all are done", |_: &Self, state: &GateState| {
                state.tasks.iter().all(|task| task.status == Status::Ended)
            }),
            Property::sometimes("one that waited runs", |_: &Self, state: &GateState| {
                state
                    .tasks
                    .iter()
                    .any(|task| matches!(task.status, Status::Running { .. }) && task.version > 2)
            }),
        ]
    }
}
