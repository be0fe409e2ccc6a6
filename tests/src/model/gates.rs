//! Places at one gate as a state machine: every order of take, claim, end, free, crash and reclaim within bounds, over
//! the core's own rules of gates.
//!
//! Two workers take tasks. Between a read of the gate and its conditional write all others may act, so may the clock.
//! A task is only its version and its lease; the condition of a claim is that of the rules of tasks, in short.

use std::num::NonZeroU16;

use stateright::{Model, Property};
use tickover_core::duration::Millis;
use tickover_core::flow::{Priority, Shards};
use tickover_core::gate::{self, Behind, CLOCKS, GRACE, Gate, Order, Plan, Standing, Take, Taken};
use tickover_core::id::{Fingerprint, GateId, Incarnation, Nonce, Owner};
use tickover_core::time::Timestamp;

use crate::scene::{START, task_id};

const TASKS: [&str; 2] = ["a", "b"];
const LEASE: Millis = Millis::from_secs(30);
/// The instants of the clock, in seconds: within a lease, after its end but within its place, after that.
const INSTANTS: [u64; 5] = [0, 4, 33, 45, 120];

/// What is wrong with the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateBug {
    /// A claim isn't bound to the version of the record for which its place was taken.
    ClaimOfAnyVersion,
    /// The end of an attempt frees the task's place whichever attempt has it.
    MarkIgnored,
    /// A place is taken although all are.
    TakenUnchecked,
}

/// A bounded world.
#[derive(Clone, Copy, Debug)]
pub struct GateProtocol {
    pub limit: u16,
    pub crashes: u8,
    /// How many instants the clock has, at most 5.
    pub instants: usize,
    pub bug: Option<GateBug>,
}

/// A task: how often it has changed, and its lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Work {
    version: u8,
    lease: Option<(u32, i64)>,
    done: bool,
    /// How many messages bring it to a worker.
    messages: u8,
}

/// What a worker does next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Worker {
    Idle,
    /// It has read the gate and decided; the write comes next.
    Taking {
        task: usize,
        mark: u32,
        version: u8,
        until: i64,
        before: String,
        after: String,
        taken: bool,
        called: Vec<usize>,
    },
    /// It has a place, and claims.
    Claiming {
        task: usize,
        mark: u32,
        version: u8,
        until: i64,
    },
    Running {
        task: usize,
        mark: u32,
    },
    /// Its attempt has ended; the place is still to be freed.
    Ended {
        task: usize,
        mark: u32,
    },
}

/// A state of the world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GateState {
    now: usize,
    /// The gate as it is stored.
    gate: String,
    tasks: Vec<Work>,
    workers: [Worker; 2],
    crashes: u8,
    marks: u32,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GateStep {
    Receive(usize, usize),
    Write(usize),
    Claim(usize),
    Finish(usize),
    Retry(usize),
    Free(usize),
    Crash(usize),
    Patrol,
    Pass,
}

fn at(index: usize) -> Timestamp {
    START.plus(Millis::from_secs(INSTANTS[index]))
}

fn incarnation() -> Incarnation {
    Incarnation::from_bytes([1; 8])
}

fn id(task: usize) -> Owner {
    task_id(TASKS[task]).into()
}

fn empty() -> Gate {
    Gate::new(
        GateId::from(&Fingerprint::from_bytes([0; 16])),
        String::new(),
        Nonce::from_bytes([0; 8]),
        START,
    )
}

fn stored(gate: &Gate) -> String {
    // Neither versions nor expiries tell states apart: the write is conditional on the whole record.
    let plain = Gate { version: 1, expires_at: START, due: None, ..gate.clone() };
    serde_json::to_string(&plain).unwrap_or_default()
}

impl GateState {
    fn gate(&self) -> Gate {
        serde_json::from_str(&self.gate).unwrap_or_else(|_| empty())
    }

    fn running(&self) -> usize {
        let now = at(self.now).as_millis();
        self.tasks.iter().filter(|task| task.lease.is_some_and(|(_, until)| until > now)).count()
    }

    fn places(&self) -> usize {
        self.gate().holders.iter().filter(|one| one.until > at(self.now)).count()
    }

    /// Calls the first of the line, and says whom.
    fn call(&self, plan: &mut Plan, now: Timestamp) -> Vec<usize> {
        if !plan.gate.should_call() {
            return vec![];
        }
        let behind = Behind::default();
        let ready = |name: &str| {
            let task = TASKS.iter().position(|one| *one == name).map(|task| &self.tasks[task]);
            let is_ready = |task: &Work| {
                !task.done && task.lease.is_none_or(|(_, until)| until <= now.plus(CLOCKS).as_millis())
            };
            if task.is_some_and(is_ready) { Standing::Ready } else { Standing::Gone }
        };
        let standings: Vec<Standing> =
            gate::line(plan, &behind, TASKS.len()).iter().map(|one| ready(&one.owner.to_string())).collect();
        gate::call(plan, &behind, &standings, now);
        let called = plan.called.iter();
        called.filter_map(|one| TASKS.iter().position(|name| *name == one.owner.to_string())).collect()
    }

    fn send(&mut self, called: Vec<usize>) {
        for task in called {
            self.tasks[task].messages = (self.tasks[task].messages + 1).min(2);
        }
    }
}

impl GateProtocol {
    fn plan(&self, state: &GateState, now: Timestamp) -> Plan {
        let mut plan = Plan::of(state.gate());
        plan.gate.pinned = NonZeroU16::new(self.limit);
        gate::clear(&mut plan, now);
        plan
    }

    fn receive(&self, state: &mut GateState, worker: usize, task: usize) {
        let now = at(state.now);
        state.tasks[task].messages -= 1;
        let work = state.tasks[task].clone();
        if work.done || work.lease.is_some_and(|(_, until)| until > now.as_millis()) {
            return;
        }
        state.marks += 1;
        let (mark, until) = (state.marks, now.plus(LEASE).plus(GRACE));
        let take = Take {
            owner: id(task),
            incarnation: incarnation(),
            order: Order { priority: Priority::Normal, since: START.plus(Millis::new(task as u64)) },
            mark,
            until,
            limit: NonZeroU16::MIN,
            shards: Shards::ONE,
            asked_at: START,
            sure: true,
        };
        let mut plan = self.plan(state, now);
        if self.bug == Some(GateBug::TakenUnchecked) {
            plan.gate.pinned = NonZeroU16::new(9);
        }
        let taken = gate::take(&mut plan, &take, now) != Taken::Waits;
        plan.gate.pinned = NonZeroU16::new(self.limit);
        let called = state.call(&mut plan, now);
        let (before, after) = (state.gate.clone(), stored(&plan.gate));
        let (version, until) = (work.version, until.as_millis());
        state.workers[worker] = Worker::Taking { task, mark, version, until, before, after, taken, called };
    }

    fn claim(&self, state: &mut GateState, worker: usize) {
        let Worker::Claiming { task, mark, version, until } = state.workers[worker].clone() else { return };
        let now = at(state.now);
        let work = &mut state.tasks[task];
        let half = Millis::new(LEASE.as_u64() / 2);
        let covers = now.plus(half).plus(CLOCKS).as_millis() <= until;
        let is_it = work.version == version || self.bug == Some(GateBug::ClaimOfAnyVersion);
        let is_free = !work.done && work.lease.is_none_or(|(_, until)| until <= now.as_millis());
        if is_it && covers && is_free {
            let ends = now.plus(LEASE).as_millis().min(until - Timestamp::EPOCH.plus(CLOCKS).as_millis());
            (work.version, work.lease) = (work.version + 1, Some((mark, ends)));
            state.workers[worker] = Worker::Running { task, mark };
        } else {
            // Its message comes again.
            work.messages = (work.messages + 1).min(2);
            state.workers[worker] = Worker::Idle;
        }
    }

    fn free(&self, state: &mut GateState, worker: usize) {
        let Worker::Ended { task, mark } = state.workers[worker].clone() else { return };
        let now = at(state.now);
        let mut plan = self.plan(state, now);
        gate::free(&mut plan.gate, &id(task), incarnation(), mark);
        if self.bug == Some(GateBug::MarkIgnored) {
            plan.gate.holders.retain(|one| one.owner != id(task));
        }
        let called = state.call(&mut plan, now);
        state.gate = stored(&plan.gate);
        state.send(called);
        state.workers[worker] = Worker::Idle;
    }

    /// An attempt ends; if it is to be retried, the task is there again at once.
    fn end(state: &mut GateState, worker: usize, done: bool) {
        let Worker::Running { task, mark } = state.workers[worker].clone() else { return };
        let work = &mut state.tasks[task];
        if work.lease.is_some_and(|(own, _)| own == mark) {
            (work.version, work.lease, work.done) = (work.version + 1, None, done);
            work.messages = (work.messages + u8::from(!done)).min(2);
            state.workers[worker] = Worker::Ended { task, mark };
        } else {
            state.workers[worker] = Worker::Idle;
        }
    }
}

impl Model for GateProtocol {
    type State = GateState;
    type Action = GateStep;

    fn init_states(&self) -> Vec<GateState> {
        let work = Work { version: 0, lease: None, done: false, messages: 2 };
        let (tasks, workers) = (vec![work; TASKS.len()], [Worker::Idle, Worker::Idle]);
        vec![GateState { now: 0, gate: stored(&empty()), tasks, workers, crashes: 0, marks: 0 }]
    }

    fn actions(&self, state: &GateState, actions: &mut Vec<GateStep>) {
        for (number, worker) in state.workers.iter().enumerate() {
            match worker {
                Worker::Idle if state.marks < 5 => {
                    let received = state.tasks.iter().enumerate().filter(|(_, task)| task.messages > 0);
                    actions.extend(received.map(|(task, _)| GateStep::Receive(number, task)));
                }
                Worker::Idle => {}
                Worker::Taking { .. } => actions.push(GateStep::Write(number)),
                Worker::Claiming { .. } => actions.push(GateStep::Claim(number)),
                Worker::Running { .. } => {
                    actions.extend([GateStep::Finish(number), GateStep::Retry(number)]);
                }
                Worker::Ended { .. } => actions.push(GateStep::Free(number)),
            }
            if *worker != Worker::Idle && state.crashes < self.crashes {
                actions.push(GateStep::Crash(number));
            }
        }
        if state.now + 1 < self.instants.min(INSTANTS.len()) {
            actions.push(GateStep::Pass);
        }
        if state.now > 0 {
            actions.push(GateStep::Patrol);
        }
    }

    fn next_state(&self, last: &GateState, action: GateStep) -> Option<GateState> {
        let mut state = last.clone();
        match action {
            GateStep::Receive(worker, task) => self.receive(&mut state, worker, task),
            GateStep::Write(worker) => {
                let Worker::Taking { task, mark, version, until, before, after, taken, called } =
                    state.workers[worker].clone()
                else {
                    return None;
                };
                state.workers[worker] = Worker::Idle;
                if state.gate == before {
                    state.gate = after;
                    state.send(called);
                    if taken {
                        state.workers[worker] = Worker::Claiming { task, mark, version, until };
                    }
                } else {
                    state.send(vec![task]);
                }
            }
            GateStep::Claim(worker) => self.claim(&mut state, worker),
            GateStep::Finish(worker) => Self::end(&mut state, worker, true),
            GateStep::Retry(worker) => Self::end(&mut state, worker, false),
            GateStep::Free(worker) => self.free(&mut state, worker),
            GateStep::Crash(worker) => {
                // The message that led the worker there comes again.
                let task = match &state.workers[worker] {
                    Worker::Idle => None,
                    Worker::Taking { task, .. }
                    | Worker::Claiming { task, .. }
                    | Worker::Running { task, .. }
                    | Worker::Ended { task, .. } => Some(*task),
                };
                state.send(task.into_iter().collect());
                state.workers[worker] = Worker::Idle;
                state.crashes += 1;
            }
            GateStep::Patrol => {
                let now = at(state.now);
                let mut plan = self.plan(&state, now);
                let called = state.call(&mut plan, now);
                state.gate = stored(&plan.gate);
                state.send(called);
            }
            GateStep::Pass => state.now += 1,
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("within the limit", |own: &Self, state: &GateState| {
                state.running() <= usize::from(own.limit)
            }),
            Property::always("places within the limit", |own: &Self, state: &GateState| {
                state.places() <= usize::from(own.limit) || own.bug.is_some()
            }),
            Property::sometimes("one is done", |_: &Self, state: &GateState| {
                state.tasks.iter().any(|task| task.done)
            }),
            Property::sometimes("a lost place is reclaimed", |_: &Self, state: &GateState| {
                state.crashes > 0 && state.now == INSTANTS.len() - 1 && state.running() > 0
            }),
        ]
    }
}
