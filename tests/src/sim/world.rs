//! What all processes of a run share: time, table, queues, faults, and the memory of what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use tickover_core::duration::Millis;
use tickover_core::id::{ExecutionId, QueueName};
use tickover_core::limits::Limits;
use tickover_core::time::Timestamp;
use tickover_service::memory::{ManualClock, MemoryQueue, Queues};
use tickover_service::ports::Clock as _;
use tokio::sync::mpsc::UnboundedSender;

use super::aws::{Aws, Invocation};
use super::bugs::{self, Bug};
use super::fault_plan::FaultPlan;
use super::flows::FLOW_QUEUES;
use super::flows::story::Story;
use super::hardship::{Hardship, Span};
use super::history::{Actor, Fault, History, What};
use super::ledger::Ledger;
use super::plan::{GREEN, Plan, QUEUES, START};

/// More than this never happens in a run that is sound.
pub const EVENTS_MAX: usize = 200_000;

/// How long queues stay busy after the storm: longer than it takes to find a lost hint.
const BUSY_AFTER: Millis = Millis::from_secs(20 * 60);

/// What goes on whoever waits for it: writes and messages under way.
pub type Background = BoxFuture<'static, ()>;

/// The world of one run.
pub struct World {
    /// Decides everything that chance decides.
    pub seed: u64,
    /// The true time.
    pub clock: Arc<ManualClock>,
    /// The limits of every service in this run.
    pub limits: Limits,
    /// The one table.
    pub ledger: Arc<Ledger>,
    pub messages: Arc<MemoryQueue>,
    pub history: Arc<History>,
    /// What is deliberately wrong.
    pub bug: Option<Bug>,
    /// What lasts longer than a call.
    pub hardship: Hardship,
    /// The executions of example workflows, where there are any.
    pub stories: BTreeMap<ExecutionId, Story>,
    faults: FaultPlan,
    storm_until: Timestamp,
    background: UnboundedSender<Background>,
    calls: AtomicU64,
    awaiting_events: Mutex<BTreeSet<ExecutionId>>,
    struck: AtomicBool,
    /// What lies between the functions and the services that only AWS has.
    pub aws: Aws,
}

impl World {
    /// A world in which nothing has happened yet.
    pub fn new(seed: u64, plan: &Plan, bug: Option<Bug>, background: UnboundedSender<Background>) -> Self {
        let Plan { faults, hardship, storm_until, .. } = *plan;
        let limits = plan.limits.clone();
        let clock = Arc::new(ManualClock::new(START));
        let history = Arc::new(History::default());
        let ledger = Arc::new(Ledger::new(seed, plan.page, Arc::clone(&clock), Arc::clone(&history)));
        let flows = FLOW_QUEUES.into_iter().filter(|_| plan.runs_flows());
        let queues = Queues::Fixed(QUEUES.into_iter().chain([GREEN]).chain(flows).map(queue).collect());
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
            stories: plan.stories.clone(),
            faults,
            storm_until,
            background,
            calls,
            awaiting_events: Mutex::default(),
            struck: AtomicBool::new(false),
            aws: Aws::default(),
        }
    }

    /// The true time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// What goes wrong at this time.
    pub fn faults(&self) -> FaultPlan {
        if self.is_stormy() { self.faults } else { self.faults.settled() }
    }

    /// Whether things may go wrong, and people do odd things.
    pub fn is_stormy(&self) -> bool {
        self.now() < self.storm_until
    }

    /// Whether queues always have something in them at this time.
    pub fn is_busy(&self) -> bool {
        self.hardship.is_busy && self.now() < self.storm_until.plus(BUSY_AFTER)
    }

    /// Whether it is such a time now.
    pub fn is_within(&self, span: Option<Span>) -> bool {
        span.is_some_and(|span| span.holds(self.now()))
    }

    /// Whether a queue isn't there for now.
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

    /// When that ends.
    pub fn storm_until(&self) -> Timestamp {
        self.storm_until
    }

    /// Remembers what just happened.
    pub fn note(&self, actor: Actor, what: What) {
        self.history.note(self.now(), actor, what);
    }

    /// Remembers what just went wrong.
    pub fn fault(&self, actor: Actor, fault: Fault) {
        self.note(actor, What::Fault(fault));
    }

    /// Lets something happen on its own.
    pub fn later(&self, future: Background) {
        // Once the run is over nobody is there to carry it on, and nobody to miss it.
        let _ = self.background.send(future);
    }

    /// Remembers whether nothing but an event can have this execution go on, as its last turn had it.
    pub fn awaits_event(&self, id: &ExecutionId, awaits: bool) {
        let mut all = self.awaiting_events.lock().unwrap_or_else(PoisonError::into_inner);
        if awaits {
            all.insert(id.clone());
        } else {
            all.remove(id);
        }
    }

    /// Whether that is so.
    pub fn is_awaiting_event(&self, id: &ExecutionId) -> bool {
        self.awaiting_events.lock().unwrap_or_else(PoisonError::into_inner).contains(id)
    }

    /// Whether so much has happened that it will never end by itself.
    pub fn is_runaway(&self) -> bool {
        self.history.len() > EVENTS_MAX
    }

    /// Whether this process is the one that is to die now: only once.
    pub fn is_struck(&self, actor: Actor) -> bool {
        let is_its_time = |(of, at): (Actor, Timestamp)| of == actor && self.now() >= at;
        self.hardship.strike.is_some_and(is_its_time) && !self.struck.swap(true, Ordering::Relaxed)
    }

    /// A function is invoked, if there are no more at work than there can be. It ends when what this returns is dropped.
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
/// If a constant of ours is no queue's name.
#[expect(clippy::expect_used, reason = "our own constants")]
pub fn queue(name: &str) -> QueueName {
    QueueName::parse(name).expect("a queue's name")
}
