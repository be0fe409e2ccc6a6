//! A service in memory whose store deletes items, whose clock can move, and whose process can crash.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use async_trait::async_trait;
use tickover_core::decision::{Condition, Write};
use tickover_core::duration::Millis;
use tickover_core::execution::command::{Cleanup, Close, Ending, Suspend};
use tickover_core::execution::journal::{Entry, Happened, StepOutcome};
use tickover_core::execution::{Execution, ExecutionOutcome, ExecutionTimeouts, Parent, ParentClosePolicy};
use tickover_core::id::{
    EventName, ExecutionId, LeaseId, QueueName, RecordId, StepName, TaskKind, WorkflowName,
};
use tickover_core::limits::Limits;
use tickover_core::payload::{Json, Payload};
use tickover_core::retry::RetryPolicy;
use tickover_core::task::Failure;
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;
use tickover_core::timeout::Timeouts;
use tickover_core::timer::Wake;

use super::mortal::{CrashingStore, NEVER};
use crate::claim::ClaimRequest;
use crate::error::ServiceError;
use crate::executions::{Begun, RemoteStep, StartRequest, StartedTurn, Work};
use crate::memory::{MemoryQueue, MemoryStore, Queues};
use crate::ports::{Clock, Queue as _, Received, Store, StoreError};
use crate::service::{Ports, Service};
use crate::system::SystemIds;
use crate::tick::TickReport;

/// A day, in seconds.
pub(crate) const DAY: u64 = 86_400;

/// A clock that can be set to move on by itself with each read.
#[derive(Debug)]
struct TickingClock {
    now: AtomicI64,
    step: AtomicI64,
}

#[async_trait]
impl Clock for TickingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.fetch_add(self.step.load(Ordering::SeqCst), Ordering::SeqCst))
    }

    async fn sleep_until(&self, instant: Timestamp) {
        self.now.fetch_max(instant.as_millis(), Ordering::SeqCst);
    }
}

pub(crate) struct Scene {
    pub(crate) service: Service,
    pub(crate) store: Arc<dyn Store>,
    /// The same.
    pub(crate) memory: Arc<MemoryStore>,
    mortal: Arc<CrashingStore>,
    clock: Arc<TickingClock>,
    pub(crate) queue: Arc<MemoryQueue>,
    looks_after: AtomicBool,
}

pub(crate) fn name(text: &str) -> StepName {
    StepName::parse(text).unwrap()
}

pub(crate) fn id(text: &str) -> ExecutionId {
    ExecutionId::parse(text).unwrap()
}

pub(crate) fn event(text: &str) -> EventName {
    EventName::parse(text).unwrap()
}

/// A payload that needs its own item.
pub(crate) fn large() -> Json {
    Json::string(&"x".repeat(2_000))
}

pub(crate) fn failed_by(step: &str) -> Ending {
    let error = Failure::new("payment", "declined");
    Ending::Outcome(ExecutionOutcome::Failed { error, step: Some(step.to_owned()), retries_exhausted: true })
}

pub(crate) fn queue() -> QueueName {
    QueueName::parse("work").unwrap()
}

/// A remote step without timeouts, which no worker takes.
pub(crate) fn remote_step(number: usize) -> RemoteStep {
    RemoteStep {
        name: name(&format!("label[{number}]")),
        kind: TaskKind::parse("print").unwrap(),
        queue: queue(),
        input: None,
        retry: RetryPolicy::default(),
        flow: tickover_core::flow::FlowRequest::default(),
        timeouts: Timeouts::default(),
        given: vec![],
        slot: None,
        any_queue: false,
        at_most: None,
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::saying(StoreError::Corrupt { reason: "dead".to_owned() })
    }

    /// A scene whose store answers all calls after a crash with this error.
    pub(crate) fn saying(says: StoreError) -> Self {
        let clock =
            Arc::new(TickingClock { now: AtomicI64::new(1_767_225_600_000), step: AtomicI64::new(0) });
        let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
        let mortal = Arc::new(CrashingStore::new(clock.clone(), says));
        let memory = Arc::clone(&mortal.inner);
        let ports = Ports {
            store: mortal.clone(),
            queue: queue.clone(),
            clock: clock.clone(),
            ids: Arc::new(SystemIds),
        };
        let looks_after = AtomicBool::new(false);
        let store = memory.clone();
        Self {
            service: Service::new(ports, Limits::default()),
            store,
            memory,
            mortal,
            clock,
            queue,
            looks_after,
        }
    }

    /// How many calls there were to the store.
    pub(crate) fn calls(&self) -> u64 {
        self.mortal.calls.load(Ordering::SeqCst)
    }

    /// How many segments were read from the store.
    pub(crate) fn segments_read(&self) -> u64 {
        self.mortal.segments.load(Ordering::SeqCst)
    }

    /// From now on, each call to the store takes this many milliseconds.
    pub(crate) fn slow_store(&self, takes_ms: u64) {
        self.mortal.takes_ms.store(takes_ms, Ordering::SeqCst);
    }

    /// From now on, each read of the clock takes this many milliseconds.
    pub(crate) fn slow(&self, step_ms: i64) {
        self.clock.step.store(step_ms, Ordering::SeqCst);
    }

    pub(crate) fn writes(&self) -> u64 {
        self.mortal.writes.load(Ordering::SeqCst)
    }

    /// After this many more writes, no call of the store succeeds.
    pub(crate) fn crash_after(&self, writes: u64) {
        let last = if writes == NEVER { NEVER } else { self.writes() + writes };
        self.mortal.last.store(last, Ordering::SeqCst);
    }

    /// From now on, other calls go on before each write.
    pub(crate) fn interleave(&self) {
        self.mortal.yields.store(true, Ordering::SeqCst);
    }

    /// From now on, only a newer build can read this execution.
    pub(crate) fn make_unreadable(&self, of: &str) {
        self.make_record_unreadable(id(of));
    }

    pub(crate) fn make_record_unreadable(&self, of: impl Into<RecordId>) {
        *self.mortal.unreadable.lock().unwrap() = Some(of.into());
    }

    /// The next reads of the ticks' record find this one.
    pub(crate) fn read_ticks_as(&self, stale: Option<&TickRecord>, times: usize) {
        *self.mortal.stale_ticks.lock().unwrap() = vec![stale.cloned(); times];
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn advance(&self, seconds: u64) {
        let by = i64::try_from(seconds * 1_000).unwrap();
        self.clock.now.fetch_add(by, Ordering::SeqCst);
    }

    pub(crate) fn delete_expired(&self) {
        self.memory.delete_expired(self.clock.now(), |_| true);
    }

    /// Advances the time, with a tick every six hours and no worker, and deletes all expired items.
    pub(crate) async fn pass(&self, seconds: u64) {
        let (step, mut left) = (6 * 3_600, seconds);
        while left > 0 {
            let by = left.min(step);
            self.advance(by);
            left -= by;
            self.delete_expired();
            self.tick().await.unwrap();
            while self.fire(50_000).await > 0 {}
        }
    }

    pub(crate) async fn tick(&self) -> Result<TickReport, ServiceError> {
        let now = self.clock.now();
        self.service.tick(now, now.plus(Millis::from_secs(50))).await
    }

    /// From now on, messages that were sent before a call look after it.
    pub(crate) fn look_after_calls(&self) {
        self.looks_after.store(true, Ordering::SeqCst);
    }

    /// The timers that have arrived. Those that were sent before a call are fired already, if they are to look after it.
    async fn arrived(&self, max: usize) -> Vec<Received> {
        let (timers, visibility) = (QueueName::timers(), Millis::from_secs(60));
        loop {
            let messages = self.queue.receive(&timers, max, visibility, Millis::ZERO).await.unwrap();
            let is_beforehand = |message: &Received| matches!(Wake::parse(&message.body), Ok(Wake::Timer(timer)) if timer.is_beforehand());
            let (before, own): (Vec<_>, Vec<_>) = messages.into_iter().partition(is_beforehand);
            for message in &before {
                if self.looks_after.load(Ordering::SeqCst) {
                    let stop_at = self.clock.now().plus(Millis::from_secs(50));
                    self.service.fire(message, stop_at).await.unwrap();
                }
                self.queue.delete(&timers, &message.receipt).await.unwrap();
            }
            if before.is_empty() || !own.is_empty() {
                return own;
            }
        }
    }

    /// Fires the timers that have arrived, each with this much time. Returns how many there were.
    pub(crate) async fn fire(&self, time_ms: u64) -> usize {
        let timers = QueueName::timers();
        let messages = self.arrived(10).await;
        for message in &messages {
            let stop_at = self.clock.now().plus(Millis::new(time_ms));
            self.service.fire(message, stop_at).await.unwrap();
            self.queue.delete(&timers, &message.receipt).await.unwrap();
        }
        messages.len()
    }

    /// Fires one timer. Returns whether there was one.
    pub(crate) async fn fire_one(&self, time_ms: u64) -> bool {
        let timers = QueueName::timers();
        let messages = self.arrived(1).await;
        let Some(message) = messages.first() else { return false };
        let stop_at = self.clock.now().plus(Millis::new(time_ms));
        self.service.fire(message, stop_at).await.unwrap();
        self.queue.delete(&timers, &message.receipt).await.unwrap();
        true
    }

    /// Loses the timers that have arrived. Returns how many there were.
    pub(crate) async fn lose_timers(&self) -> usize {
        let timers = QueueName::timers();
        let messages = self.arrived(10).await;
        for message in &messages {
            self.queue.delete(&timers, &message.receipt).await.unwrap();
        }
        messages.len()
    }

    /// Fires timers that may fail, and then come back. Returns for each whether it failed.
    pub(crate) async fn try_fire(&self, time_ms: u64) -> Vec<bool> {
        let timers = QueueName::timers();
        let messages = self.arrived(10).await;
        let mut failed = Vec::new();
        for message in &messages {
            let stop_at = self.clock.now().plus(Millis::new(time_ms));
            let fired = self.service.fire(message, stop_at).await;
            failed.push(fired.is_err());
            if fired.is_ok() {
                self.queue.delete(&timers, &message.receipt).await.unwrap();
            }
        }
        failed
    }

    /// How many messages the queue has.
    pub(crate) async fn depth(&self) -> u64 {
        self.queue.depth(&queue()).await.unwrap().visible
    }

    pub(crate) async fn execution(&self, of: &str) -> Execution {
        self.store.execution(&id(of)).await.unwrap().unwrap()
    }

    pub(crate) async fn turn(&self) -> Option<StartedTurn> {
        let request = ClaimRequest {
            worker: None,
            max: 1,
            lease: Millis::from_secs(60),
            wait: Millis::ZERO,
            provides: vec![],
        };
        loop {
            match self.service.next_work(&queue(), &request).await.unwrap().pop()? {
                Work::Turn(turn) => return Some(*turn),
                Work::Task(_) => {}
            }
        }
    }

    pub(crate) async fn started(&self, called: &str, input: Option<Json>) -> StartedTurn {
        let workflow = WorkflowName::parse("orders").unwrap();
        let request = StartRequest { id: Some(id(called)), input, ..StartRequest::new(workflow, queue()) };
        self.service.start(request).await.unwrap();
        self.turn().await.unwrap()
    }

    pub(crate) async fn large_step(&self, step: &str) -> Entry {
        let output = Some(self.service.store_payload(large()).await.unwrap());
        let what = Happened::Step {
            name: name(step),
            outcome: StepOutcome::Completed { output },
            attempts: Some(1),
            expired: None,
            errors: vec![],
        };
        Entry { at: self.clock.now(), what }
    }

    pub(crate) fn failed_step(&self, step: &str) -> Entry {
        let outcome = StepOutcome::Exhausted { error: Payload::Inline(Json::string("declined")) };
        Entry {
            at: self.clock.now(),
            what: Happened::Step {
                name: name(step),
                outcome,
                attempts: Some(3),
                expired: None,
                errors: vec![],
            },
        }
    }

    pub(crate) async fn start_remote(&self, execution: &Execution, steps: usize) -> Vec<Entry> {
        let names = self.try_start_remote(execution, steps).await.all().unwrap();
        let begun = |name| Entry { at: self.clock.now(), what: Happened::Remote { name } };
        names.into_iter().map(begun).collect()
    }

    pub(crate) async fn try_start_remote(&self, execution: &Execution, steps: usize) -> Begun {
        self.service.start_remote(execution, (0..steps).map(remote_step).collect()).await
    }

    /// Starts a child on a queue without workers. Returns the entry for its parent's journal.
    pub(crate) async fn begin_child(&self, parent: &Execution, called: &str, timeout_s: u64) -> Entry {
        let workflow = WorkflowName::parse("packing").unwrap();
        let timeout = Some(Millis::from_secs(timeout_s));
        let request = StartRequest {
            id: Some(id(called)),
            timeouts: ExecutionTimeouts { execution: timeout, run: None },
            parent: Some(Parent::of(parent)),
            ..StartRequest::new(workflow, QueueName::parse("unserved").unwrap())
        };
        self.service.start(request).await.unwrap();
        let what = Happened::Child {
            name: name("pack"),
            execution: id(called),
            policy: ParentClosePolicy::default(),
            left: false,
            was_left: false,
        };
        Entry { at: self.clock.now(), what }
    }

    pub(crate) async fn suspend(&self, turn: &StartedTurn, entries: Vec<Entry>) {
        self.wait(turn, entries, false).await;
    }

    /// Suspends a turn. If `awaits_others` is set, the execution waits for others, and is probed from time to time.
    pub(crate) async fn wait(&self, turn: &StartedTurn, entries: Vec<Entry>, awaits_others: bool) {
        self.wait_with(turn, entries, awaits_others, Cleanup::default()).await;
    }

    /// The same, for code that has something to do if it ends early.
    pub(crate) async fn wait_with(
        &self,
        turn: &StartedTurn,
        entries: Vec<Entry>,
        awaits_others: bool,
        cleanup: Cleanup,
    ) {
        let suspend = Suspend {
            lease: turn.lease,
            entries,
            seen_version: turn.execution.version,
            seen_wakes: turn.execution.wakes,
            until: None,
            awaits_others,
            events: vec![],
            cleanup,
            values: None,
        };
        self.service.suspend_turn(&turn.execution, suspend).await.unwrap();
        self.service.done_with(&queue(), turn.receipt.as_deref().unwrap()).await;
    }

    pub(crate) async fn close(
        &self,
        execution: &Execution,
        lease: LeaseId,
        entries: Vec<Entry>,
        ending: Ending,
    ) {
        let close = Close { lease, entries, ending, cleanup: Cleanup::default(), values: None };
        self.service.close_turn(execution, close).await.unwrap();
    }

    /// Changes the record so that its segments and payloads are kept no longer than the record.
    pub(crate) async fn shorten_kept(&self, of: &str) {
        let before = self.execution(of).await;
        let kept = before.closed().map(|closed| closed.expires_at);
        let after = Execution { kept, version: before.version + 1, ..before.clone() };
        self.store.commit(&[Write::replace(before, after, Condition::UNCHANGED)]).await.unwrap();
    }

    /// Asserts that everything the execution points to exists.
    pub(crate) async fn assert_whole(&self, of: &str) {
        let execution = self.execution(of).await;
        let journal = self.service.journal_of(&execution).await.unwrap();
        let values = execution.values.as_ref();
        let own = [execution.input.as_ref(), execution.details.as_ref(), values, execution.output()];
        for payload in own.into_iter().flatten().chain(journal.iter().filter_map(Entry::payload)) {
            self.service.open(payload).await.unwrap();
        }
    }
}
