//! What all processes of a run share: time, table, queues, faults and the history.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::{ExecutionId, QueueName};
use tickover_core::limits::Limits;
use tickover_core::time::Timestamp;
use tickover_service::crons::CronRequest;
use tickover_service::memory::{ManualClock, MemoryQueue, Queues};
use tickover_service::ports::Clock as _;
use tokio::sync::mpsc::UnboundedSender;

use super::aws::{Aws, Invocation};
use super::bugs::{self, Bug};
use super::classes::class_queue;
use super::dice::Dice;
use super::fault_plan::FaultPlan;
use super::flows::FLOW_QUEUES;
use super::flows::story::Story;
use super::hardship::{Hardship, Span};
use super::history::{Actor, Fault, History, What};
use super::ledger::Ledger;
use super::plan::{GREEN, Plan, QUEUES, START};
use super::tokens::Outside;

/// A run without a bug never has more events than this.
pub const EVENTS_MAX: usize = 200_000;

/// Of a thousand requests and answers, so many are a caller's last, where callers leave.
const LEAVES: u64 = 50;

/// How long queues stay busy after the fault phase: longer than it takes to find a lost hint.
const BUSY_AFTER: Millis = Millis::from_secs(20 * 60);

/// Work that continues although no process waits for it: writes and messages in flight.
pub type Background = BoxFuture<'static, ()>;

/// Which build of the code the workers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    First,
    /// It has renamed an operation.
    Wrong,
    Repaired,
}

/// The world of one run.
pub struct World {
    /// Determines all random choices.
    pub seed: u64,
    /// The true time.
    pub clock: Arc<ManualClock>,
    /// The limits of every service in this run.
    pub limits: Limits,
    /// The one table.
    pub ledger: Arc<Ledger>,
    pub messages: Arc<MemoryQueue>,
    pub history: Arc<History>,
    /// The deliberate bug, if there is one.
    pub bug: Option<Bug>,
    /// Conditions that last longer than one call.
    pub hardship: Hardship,
    /// Whether the operator starts operations on many records at once.
    pub has_operations: bool,
    /// Whether hints of high and of low priority wait apart from the others.
    pub has_classes: bool,
    /// The executions of example workflows, where there are any.
    pub stories: BTreeMap<ExecutionId, Story>,
    /// The crons that clients create.
    pub crons: Vec<CronRequest>,
    faults: FaultPlan,
    faults_until: Timestamp,
    background: UnboundedSender<Background>,
    calls: AtomicU64,
    writes: AtomicU64,
    legs: AtomicU64,
    awaiting_events: Mutex<BTreeSet<ExecutionId>>,
    struck: AtomicBool,
    /// Calls to queues whose callers stopped waiting for the answer: when, and who.
    abandoned: Mutex<Vec<(Timestamp, Actor)>>,
    /// What has left the system.
    pub outside: Outside,
    /// What AWS counts between the functions and the services.
    pub aws: Aws,
}

impl World {
    /// A world in which nothing has happened yet.
    pub fn new(seed: u64, plan: &Plan, bug: Option<Bug>, background: UnboundedSender<Background>) -> Self {
        let Plan { faults, hardship, faults_until, .. } = *plan;
        let limits = plan.limits.clone();
        let clock = Arc::new(ManualClock::new(START));
        let history = Arc::new(History::default());
        let ledger = Arc::new(Ledger::new(seed, plan, Arc::clone(&clock), Arc::clone(&history)));
        let flows = FLOW_QUEUES.into_iter().filter(|_| plan.runs_flows());
        let names: Vec<&str> = QUEUES.into_iter().chain([GREEN]).chain(flows).collect();
        let classes = names.iter().filter(|_| plan.has_classes);
        let classes =
            classes.flat_map(|name| [Priority::High, Priority::Low].map(|class| class_queue(name, class)));
        let classes: Vec<String> = classes.collect();
        let queues =
            Queues::Fixed(names.into_iter().chain(classes.iter().map(String::as_str)).map(queue).collect());
        let mortality = bugs::mortality(bug, hardship);
        let messages = Arc::new(MemoryQueue::mortal(Arc::clone(&clock) as _, queues, mortality));
        let calls = AtomicU64::new(0);
        Self {
            seed,
            clock,
            limits,
            ledger,
            messages,
            history,
            bug,
            hardship,
            has_operations: plan.has_operations,
            has_classes: plan.has_classes,
            stories: plan.stories.clone(),
            crons: plan.crons(),
            faults,
            faults_until,
            background,
            calls,
            writes: AtomicU64::new(0),
            legs: AtomicU64::new(0),
            awaiting_events: Mutex::default(),
            struck: AtomicBool::new(false),
            abandoned: Mutex::default(),
            outside: Outside::default(),
            aws: Aws::default(),
        }
    }

    /// The true time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The faults at this time.
    pub fn faults(&self) -> FaultPlan {
        if self.in_fault_phase() { self.faults } else { self.faults.settled() }
    }

    /// Whether the fault phase lasts: faults are injected, and operators act at random.
    pub fn in_fault_phase(&self) -> bool {
        self.now() < self.faults_until
    }

    /// Whether queues are never empty at this time.
    pub fn is_busy(&self) -> bool {
        self.hardship.is_busy && self.now() < self.faults_until.plus(BUSY_AFTER)
    }

    /// Which build of the code the workers run now.
    pub fn build(&self) -> Build {
        match self.hardship.wrong_build {
            Some(span) if self.now() >= span.until => Build::Repaired,
            Some(span) if self.now() >= span.from => Build::Wrong,
            Some(_) | None => Build::First,
        }
    }

    /// Whether the present time is in the span.
    pub fn is_within(&self, span: Option<Span>) -> bool {
        span.is_some_and(|span| span.holds(self.now()))
    }

    /// Whether a queue doesn't exist for now.
    pub fn is_removed(&self, name: &QueueName) -> bool {
        self.is_within(self.hardship.queue_removed) && name.as_str() == self.queues()[0]
    }

    /// Whether workers run example workflows.
    pub fn runs_flows(&self) -> bool {
        !self.stories.is_empty()
    }

    /// The queues that work is sent to.
    pub fn queues(&self) -> [&'static str; 2] {
        if self.stories.is_empty() { QUEUES } else { FLOW_QUEUES }
    }

    /// When the fault phase ends.
    pub fn faults_until(&self) -> Timestamp {
        self.faults_until
    }

    /// Adds an event to the history.
    pub fn note(&self, actor: Actor, what: What) {
        self.history.note(self.now(), actor, what);
    }

    /// Adds a fault to the history.
    pub fn fault(&self, actor: Actor, fault: Fault) {
        self.note(actor, What::Fault(fault));
    }

    /// Runs a future in the background.
    pub fn later(&self, future: Background) {
        // Once the run is over, no process polls it and none needs it.
        let _ = self.background.send(future);
    }

    /// Records whether only an event can wake this execution, as its last turn said.
    pub fn awaits_event(&self, id: &ExecutionId, awaits: bool) {
        let mut all = self.awaiting_events.lock().unwrap_or_else(PoisonError::into_inner);
        if awaits {
            all.insert(id.clone());
        } else {
            all.remove(id);
        }
    }

    /// Whether only an event can wake this execution.
    pub fn is_awaiting_event(&self, id: &ExecutionId) -> bool {
        self.awaiting_events.lock().unwrap_or_else(PoisonError::into_inner).contains(id)
    }

    /// Whether there are so many events that the run will never end by itself.
    pub fn is_runaway(&self) -> bool {
        self.history.len() > EVENTS_MAX
    }

    /// Whether this process is the one that has to die now: true only once.
    pub fn must_die_now(&self, actor: Actor) -> bool {
        let is_its_time = |(of, at): (Actor, Timestamp)| of == actor && self.now() >= at;
        self.hardship.apply_and_compare.is_some_and(is_its_time) && !self.struck.swap(true, Ordering::Relaxed)
    }

    /// Counts a write. Returns whether the process dies now that has made it.
    pub fn dies_after_write(&self, actor: Actor) -> bool {
        let number = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        // What somebody outside does after a death is not the system's.
        self.hardship.dies_after == Some(number) && actor != Actor::Outsider
    }

    /// Counts a request or an answer of a call. Returns whether its caller leaves now.
    pub fn leaves_now(&self, dice: &Dice) -> bool {
        let number = self.legs.fetch_add(1, Ordering::Relaxed) + 1;
        let is_hasty = self.hardship.has_leavers && self.in_fault_phase() && dice.chance(LEAVES);
        is_hasty || self.hardship.leaves_at == Some(number)
    }

    /// How many requests and answers the calls had whose callers may leave.
    pub fn legs(&self) -> u64 {
        self.legs.load(Ordering::Relaxed)
    }

    /// How many writes there were.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Notes that an actor stops waiting for the answer of a queue.
    pub fn abandons(&self, actor: Actor) {
        let now = self.now();
        self.abandoned.lock().unwrap_or_else(PoisonError::into_inner).push((now, actor));
    }

    /// The calls to queues whose callers stopped waiting for the answer, in order.
    pub fn abandoned(&self) -> Vec<(Timestamp, Actor)> {
        self.abandoned.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts an invocation, if the limit of concurrent ones isn't reached. Dropping the returned value ends it.
    pub fn invoke(&self) -> Option<Invocation<'_>> {
        self.aws.invoke(self.hardship.concurrency)
    }

    /// A number for a new call.
    pub fn next_call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }
}

/// A queue of tasks.
///
/// # Panics
///
/// If the constant isn't a valid queue name.
#[expect(clippy::expect_used, reason = "our own constants")]
pub fn queue(name: &str) -> QueueName {
    QueueName::parse(name).expect("a queue's name")
}
