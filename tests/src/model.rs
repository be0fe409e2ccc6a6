//! The protocol as a state machine for a model checker: every order of events within bounds, with the faults that
//! the world has, over the core's own `decide`.
//!
//! What is modelled is what surrounds the rules: a table whose writes are conditional, a queue that loses, doubles
//! and shows again, workers and ticks that act in any order and die in the middle, and a clock of a few instants.
//! What is decided isn't: that is the code that runs in production.

mod actor;
mod answer;
mod bug;
mod decisions;
pub mod execution;
mod properties;
mod record;
mod state;
mod steps;
mod table;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use answer::{Answer, Question};
use stateright::{Model, Property};
use tickover_core::command::Context;
use tickover_core::duration::Millis;
use tickover_core::id::{BlobId, Fingerprint, Incarnation, Nonce, TaskKind};
use tickover_core::limits::Limits;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::Task;
use tickover_core::task::command::{Command, Schedule, Start};
use tickover_core::task::decision::Decision;
use tickover_core::time::Timestamp;
use tickover_core::timeout::Timeouts;

use crate::scene::{START, queue_name, task_id};

pub use bug::Bug;
pub use properties::name;
pub use record::Record;
pub use state::{Action, State, Who};
pub use table::{Change, Verdict, write};

/// How much may go wrong, all in all, before the clock reaches its last instant. Then the world behaves, so that
/// what is still not done by itself never will be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Faults {
    /// Messages lost.
    pub losses: u8,
    /// Messages doubled.
    pub duplicates: u8,
    /// Workers, ticks and callers that die in the middle of something.
    pub crashes: u8,
    /// Answers of the table that don't arrive, so that a write is repeated.
    pub lost_answers: u8,
    /// Attempts that fail with an error worth a retry.
    pub failures: u8,
    /// Signs of life.
    pub heartbeats: u8,
}

/// A bounded world.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Tasks, all scheduled at the first instant.
    pub tasks: u8,
    /// Workers, all alike.
    pub workers: usize,
    /// Ticks that may overlap; they also take the timers.
    pub ticks: usize,
    /// Whether ticks sweep the due index; if not, only timers lead to a look.
    pub sweeps: bool,
    /// The instants that the clock goes through.
    pub instants: Vec<Timestamp>,
    /// Messages there may be at once.
    pub messages: usize,
    pub faults: Faults,
    pub retry: RetryPolicy,
    pub timeouts: Timeouts,
    /// How long a worker counts as alive.
    pub lease: Millis,
    pub limits: Limits,
    /// What must be possible, by the names of the properties that say so.
    pub reaches: Vec<&'static str>,
}

impl Plan {
    /// Two workers and two ticks over one task without timeouts, in which nothing goes wrong. The lease and the
    /// first look at a hint that may be lost take a minute, as long as from one instant to the next.
    ///
    /// The last instant lies so far ahead that a hint lost at the one before is sent again at the first look.
    pub fn new() -> Self {
        let minute = Millis::from_secs(60);
        let limits = Limits {
            backstop: minute,
            backstop_max: Millis::from_secs(600),
            due_shards: 1,
            ..Limits::default()
        };
        Self {
            tasks: 1,
            workers: 2,
            ticks: 2,
            sweeps: true,
            instants: instants(&[0, 60, 120, 780]),
            messages: 3,
            faults: Faults::default(),
            retry: RetryPolicy::fixed(1, Millis::ZERO),
            timeouts: Timeouts::default(),
            lease: minute,
            limits,
            reaches: vec![name::COMPLETES],
        }
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self::new()
    }
}

/// These seconds as instants.
pub fn instants(seconds: &[i64]) -> Vec<Timestamp> {
    seconds.iter().map(|seconds| START.plus(Millis::from_secs(seconds.unsigned_abs()))).collect()
}

/// A bounded world and the bug that its rules have, if any.
#[derive(Debug)]
pub struct Protocol {
    plan: Plan,
    bug: Option<Bug>,
    /// What was decided before: the same question has the same answer, and comes up in many states.
    known: Mutex<HashMap<Question, Arc<Answer>>>,
}

impl Protocol {
    /// The protocol as it is.
    pub fn new(plan: Plan) -> Self {
        Self { plan, bug: None, known: Mutex::default() }
    }

    /// The protocol with a bug built in.
    pub fn with_bug(plan: Plan, bug: Bug) -> Self {
        Self { bug: Some(bug), ..Self::new(plan) }
    }

    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    fn now(&self, state: &State) -> Timestamp {
        self.instant(state.clock)
    }

    fn instant(&self, clock: u8) -> Timestamp {
        self.plan.instants.get(usize::from(clock)).copied().unwrap_or(START)
    }

    fn is_last(&self, state: &State) -> bool {
        usize::from(state.clock) + 1 >= self.plan.instants.len()
    }

    fn first_answer(&self, task: u8, now: Timestamp) -> Answer {
        let command = Command::Schedule(Box::new(request(task, &self.plan)));
        Answer::of(&self.decide(None, &command, now, 0), task, None)
    }

    fn answer(&self, question: Question, now: Timestamp) -> Arc<Answer> {
        if let Some(known) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&question) {
            return Arc::clone(known);
        }
        let Question { ref record, task, ask, lease, number, .. } = question;
        let command = ask.command(task, lease, self.plan.lease);
        let decision = self.decide(record.as_deref(), &command, now, number);
        let answer = Arc::new(Answer::of(&decision, task, record.as_ref()));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(question, Arc::clone(&answer));
        answer
    }

    /// The core's decision, or what the bug makes of it.
    fn decide(&self, task: Option<&Task>, command: &Command, now: Timestamp, number: u8) -> Decision {
        let context = Context { now, nonce: Nonce::from_bytes([number; 8]), limits: &self.plan.limits };
        Bug::decide(self.bug, task, command, &context)
    }
}

/// The request for a task, plain but for what the plan says.
#[expect(clippy::expect_used, reason = "the model's own constant")]
fn request(task: u8, plan: &Plan) -> Schedule {
    Schedule {
        id: task_id(&format!("task-{task}")),
        incarnation: Incarnation::from_bytes([task; 8]),
        queue: queue_name("q"),
        kind: TaskKind::parse("k").expect("a kind"),
        input: None,
        labels: None,
        retry: plan.retry.clone(),
        timeouts: plan.timeouts,
        start: Start::After(Millis::ZERO),
        fingerprint: Fingerprint::from_bytes([task; 16]),
        key: None,
        parent: None,
        trace: None,
        blob_ids: [BlobId::from_bytes([0; 16]); 2],
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::first(&self.plan)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.possible(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.take(&mut next, action)?;
        // A table that looks at no version may take an old decision after all.
        next.normalise(self.bug == Some(Bug::AnyVersion));
        Some(next)
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.message_count() <= self.plan.messages
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::of(&self.plan)
    }
}
