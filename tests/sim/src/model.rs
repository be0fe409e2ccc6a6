//! The protocol as a state machine for a model checker: every order of events within bounds, with injected faults, over
//! the core's own `decide`.
//!
//! The model covers what surrounds the rules: a table with conditional writes; a queue that loses, duplicates and
//! redelivers messages; workers and ticks that act in any order and may die between two steps; and a clock with a few
//! instants. Decisions aren't modelled: the production code makes them.

mod actor;
mod answer;
mod bug;
mod decisions;
pub mod execution;
pub mod gates;
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
use tickover_core::id::{BlobId, Fingerprint, Incarnation, Nonce, QueueName, TaskId, TaskKind};
use tickover_core::limits::Limits;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::Task;
use tickover_core::task::command::{Command, Schedule, Start};
use tickover_core::task::decision::Decision;
use tickover_core::time::Timestamp;
use tickover_core::timeout::Timeouts;

use crate::plan::START;

pub use bug::Bug;
pub use properties::name;
pub use record::Record;
pub use state::{Action, State, Who};
pub use table::{Change, Verdict, write};

/// How much may go wrong in total before the clock reaches its last instant. After that there are no faults, so work
/// that still doesn't end by then never will.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Faults {
    /// Messages lost.
    pub losses: u8,
    /// Messages duplicated.
    pub duplicates: u8,
    /// Workers, ticks and callers that die between two steps.
    pub crashes: u8,
    /// Answers of the table that don't arrive, so that a write is repeated.
    pub lost_answers: u8,
    /// Attempts that fail with a retryable error.
    pub failures: u8,
    /// Heartbeats.
    pub heartbeats: u8,
}

/// A bounded world.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Tasks, all scheduled at the first instant.
    pub tasks: u8,
    /// Workers, all alike.
    pub workers: usize,
    /// Ticks that may overlap; they also receive the timers.
    pub ticks: usize,
    /// Whether ticks sweep the due index; if not, only timers lead to a probe.
    pub sweeps: bool,
    /// The instants of the clock.
    pub instants: Vec<Timestamp>,
    /// The most messages that may exist at once.
    pub messages: usize,
    pub faults: Faults,
    pub retry: RetryPolicy,
    pub timeouts: Timeouts,
    /// The length of a lease.
    pub lease: Millis,
    pub limits: Limits,
    /// The names of the properties that say what must be possible.
    pub reaches: Vec<&'static str>,
}

impl Plan {
    /// Two workers and two ticks over one task without timeouts, and no faults. The lease, and the time until the first
    /// probe of a hint, are one minute, the same as between two instants.
    ///
    /// The last instant is so far ahead that its first probe sends a hint again that was lost at the instant before.
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

/// Instants from seconds.
pub fn instants(seconds: &[i64]) -> Vec<Timestamp> {
    seconds.iter().map(|seconds| START.plus(Millis::from_secs(seconds.unsigned_abs()))).collect()
}

/// A bounded world, and the bug in its rules, if there is one.
#[derive(Debug)]
pub struct Protocol {
    plan: Plan,
    bug: Option<Bug>,
    /// Earlier decisions: the same question has the same answer, and comes up in many states.
    known: Mutex<HashMap<Question, Arc<Answer>>>,
}

impl Protocol {
    /// The protocol without a bug.
    pub fn new(plan: Plan) -> Self {
        Self { plan, bug: None, known: Mutex::default() }
    }

    /// The protocol with a bug.
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

    /// The core's decision, or the bug's version of it.
    fn decide(&self, task: Option<&Task>, command: &Command, now: Timestamp, number: u8) -> Decision {
        let context =
            Context { now, nonce: Nonce::from_bytes([number; 8]), limits: &self.plan.limits, by: None };
        Bug::decide(self.bug, task, command, &context)
    }
}

#[expect(clippy::expect_used, reason = "the model's own constants")]
fn task_id(id: &str) -> TaskId {
    TaskId::parse(id).expect("a task's id")
}

#[expect(clippy::expect_used, reason = "the model's own constants")]
fn queue_name(name: &str) -> QueueName {
    QueueName::parse(name).expect("a queue's name")
}

/// The request for a task. Only the plan's settings differ from the defaults.
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
        flow: tickover_core::flow::Flow::default(),
        timeouts: plan.timeouts,
        start: Start::After(Millis::ZERO),
        in_line: false,
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
        // A table that doesn't check versions may accept an old decision, so old copies are kept.
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
