//! The whole system of a test: a worker for every queue, the tick, and the timers. It has no threads and no real clock.
//! The test polls its jobs, and moves the clock when no job can continue.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tickover_core::batch::Gathering;
use tickover_core::due::{DueKind, SLEEP_PROBE};
use tickover_core::duration::Millis;
use tickover_core::execution::message::TurnHint;
use tickover_core::gate::line::PARTS;
use tickover_core::id::{QueueName, TaskId};
use tickover_core::task::hint::Hint;
use tickover_core::tick::SLOT_END;
use tickover_core::time::{Timestamp, earliest};
use tickover_service::memory::{MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::{Clock as _, DueEntry, DueRange, Queue as _, Received, Store};
use tickover_service::{Ports, Service};
use tokio::sync::Notify;

use super::answers::Answers;
use super::clock::{Standstill, TestClock};
use super::death::{Death, DeathHook, completed};
use super::ledger::{Ledger, Life};
use super::ports::{Counted, Mortal, Repeatable};
use super::work::{self, JobContext};
use crate::registry::{ErasedStep, Register, Registry, RegistryError};
use crate::worker::{Worker, WorkerSettings};

/// How long a lease lasts without a heartbeat.
pub(super) const LEASE: Millis = Millis::from_secs(60);
/// The time between two ticks.
const MINUTE: Millis = Millis::from_secs(60);
/// How long no tick is skipped after a death.
const ALL_TICKS: Millis = Millis::from_secs(300);
/// Entries of the due index read at once.
const DUE_PAGE: usize = 1_000;
/// The visibility timeout of a message whose kind of task has no code and no answer.
const UNANSWERED_VISIBILITY: Millis = Millis::from_secs(12 * 3_600);

/// The parts that survive each death of the system.
pub(super) struct World {
    pub(super) clock: Arc<TestClock>,
    pub(super) store: Arc<dyn Store>,
    pub(super) queue: Arc<MemoryQueue>,
    pub(super) ids: Arc<Repeatable>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) answers: Arc<Answers>,
    /// Called after each death.
    pub(super) death_hook: Mutex<Option<DeathHook>>,
    /// Tasks whose kind has no code and no answer, each with its hidden message.
    unanswered: Mutex<BTreeMap<TaskId, UnansweredTask>>,
}

/// A task that waits for an answer to its kind.
pub(super) struct UnansweredTask {
    pub(super) kind: String,
    queue: QueueName,
    receipt: String,
}

impl World {
    pub(super) fn new(beginning: Timestamp) -> Self {
        let clock = Arc::new(TestClock::new(beginning));
        let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
        Self {
            clock,
            queue,
            store: Arc::new(MemoryStore::new()),
            ids: Arc::default(),
            ledger: Arc::default(),
            answers: Arc::default(),
            death_hook: Mutex::default(),
            unanswered: Mutex::default(),
        }
    }

    /// The service that the test itself calls. It never dies.
    pub(super) fn outside(&self) -> Service {
        let store = Counted { inner: Arc::clone(&self.store), ledger: Arc::clone(&self.ledger), life: None };
        self.service(store, self.queue.clone())
    }

    fn job_context(&self, life: &Arc<Life>, registry: &Registry) -> Result<JobContext, RegistryError> {
        let service = self.inside(life);
        // Each turn replays, so that a test finds code that goes another way then.
        let settings = WorkerSettings { kept_runs: 0, ..WorkerSettings::default() };
        let worker = Worker::new(service.clone(), registry.clone(), settings)?;
        Ok(JobContext { service, worker, answers: Arc::clone(&self.answers) })
    }

    fn inside(&self, life: &Arc<Life>) -> Service {
        let (inner, ledger) = (Arc::clone(&self.store), Arc::clone(&self.ledger));
        let store = Counted { inner, ledger, life: Some(Arc::clone(life)) };
        let queue = Mortal { inner: Arc::clone(&self.queue), life: Arc::clone(life) };
        self.service(store, Arc::new(queue))
    }

    fn service(&self, store: Counted, queue: Arc<dyn tickover_service::ports::Queue>) -> Service {
        let ports = Ports { store: Arc::new(store), queue, clock: self.clock.clone(), ids: self.ids.clone() };
        Service::new(ports, tickover_core::limits::Limits::default())
    }

    pub(super) fn unanswered(&self) -> MutexGuard<'_, BTreeMap<TaskId, UnansweredTask>> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the messages of waiting tasks visible again whose kind has an answer now.
    pub(super) async fn redeliver(&self, kind: &str) {
        let free: Vec<UnansweredTask> = {
            let mut unanswered = self.unanswered();
            let ids: Vec<TaskId> =
                unanswered.iter().filter(|(_, one)| one.kind == kind).map(|(id, _)| id.clone()).collect();
            ids.iter().filter_map(|id| unanswered.remove(id)).collect()
        };
        for UnansweredTask { queue, receipt, .. } in free {
            // A stale receipt means that the message was delivered again already.
            let _ = self.queue.change_visibility(&queue, &receipt, Millis::ZERO).await;
        }
    }
}

/// A system, which is replaced by a new one after each death.
pub(super) struct System {
    world: Arc<World>,
    registry: Registry,
    job_context: JobContext,
    life: Arc<Life>,
    jobs: Vec<Job>,
    /// The messages of tasks that wait for others of their batch.
    batches: BTreeMap<QueueName, Gathering<Received>>,
    ticked_at: Timestamp,
    /// Until then no tick is skipped: a death may have left behind what only a tick finds, like a place at a limit.
    ticks_all_until: Timestamp,
    /// Whether a process has died.
    has_died: bool,
    /// While jobs are open, their timers stand still with the clock, also between two waits of the test.
    pub(super) standstill: Option<Standstill>,
}

struct Job {
    future: BoxFuture<'static, ()>,
    waker: Arc<JobWaker>,
}

/// Wakes one job.
struct JobWaker {
    is_woken: AtomicBool,
    progress: Arc<Progress>,
}

impl Wake for JobWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        self.progress.wake_by_ref();
    }
}

/// Records that a job of the system, or the test's own future, was woken.
#[derive(Default)]
pub(super) struct Progress {
    made: AtomicBool,
    pub(super) woken: Notify,
}

impl Progress {
    pub(super) fn is_made(&self) -> bool {
        self.made.load(Ordering::SeqCst)
    }

    pub(super) fn take(&self) -> bool {
        self.made.swap(false, Ordering::SeqCst)
    }
}

impl Wake for Progress {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.made.store(true, Ordering::SeqCst);
        self.woken.notify_one();
    }
}

impl System {
    /// Fails if the workflows and steps have an error.
    pub(super) fn new(world: Arc<World>, registry: Registry) -> Result<Self, RegistryError> {
        let life = world.ledger.life();
        let (job_context, ticked_at) = (world.job_context(&life, &registry)?, world.clock.now());
        let (jobs, batches, standstill) = (vec![], BTreeMap::new(), None);
        let (ticks_all_until, has_died) = (ticked_at, false);
        Ok(Self {
            world,
            registry,
            job_context,
            life,
            jobs,
            batches,
            ticked_at,
            ticks_all_until,
            has_died,
            standstill,
        })
    }

    /// Replaces the code of workflows. The next life starts with it.
    pub(super) fn deploy(&mut self, workflows: impl Register) -> Result<(), RegistryError> {
        let registry = self.registry.clone().replacing(workflows);
        registry.check()?;
        self.registry = registry;
        Ok(())
    }

    /// Receives messages, and polls every job that was woken. Returns whether any job ran.
    pub(super) async fn poll_jobs(&mut self, progress: &Arc<Progress>) -> bool {
        self.receive_messages(progress).await;
        // One job at a time: after a death, the other jobs of this round aren't polled.
        let mut jobs = std::mem::take(&mut self.jobs);
        let mut progressed = false;
        jobs.retain_mut(|job| {
            if self.life.is_over() || !job.is_woken() {
                return true;
            }
            progressed = true;
            !job.poll()
        });
        self.jobs.extend(jobs);
        if self.life.is_over() {
            self.replace_after_death().await;
            progressed = true;
        }
        progressed
    }

    /// Replaces the system after its death. Its jobs are dropped.
    async fn replace_after_death(&mut self) {
        self.jobs.clear();
        self.batches.clear();
        let death_hook = self.world.death_hook.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(death_hook) = death_hook {
            let completed = completed(&self.world, &self.registry).await;
            death_hook(&Death { after_write: self.world.ledger.writes(), completed });
        }
        self.ticks_all_until = self.world.clock.now().plus(ALL_TICKS);
        self.has_died = true;
        self.life = self.world.ledger.begin_life();
        // The registry has been checked, so this doesn't fail.
        if let Ok(job_context) = self.world.job_context(&self.life, &self.registry) {
            self.job_context = job_context;
        }
    }

    async fn receive_messages(&mut self, progress: &Arc<Progress>) {
        for queue in self.world.queue.names() {
            while let Ok(messages) = self.world.queue.receive(&queue, 10, LEASE, Millis::ZERO).await
                && !messages.is_empty()
            {
                for message in messages {
                    if let Some(job) = self.job(&queue, message).await {
                        self.begin(job, progress);
                    }
                }
            }
        }
        self.begin_due_batches(progress);
    }

    /// Starts the batches whose time to fill is over.
    fn begin_due_batches(&mut self, progress: &Arc<Progress>) {
        let (now, mut due) = (self.world.clock.now(), vec![]);
        for (queue, batches) in &mut self.batches {
            due.extend(batches.take_due(now).into_iter().map(|batch| (queue.clone(), batch)));
        }
        for (queue, batch) in due {
            self.begin(work::batch(self.job_context.clone(), queue, batch).boxed(), progress);
        }
    }

    /// The job for a message, if there is code for it and it waits for no others.
    async fn job(&mut self, queue: &QueueName, message: Received) -> Option<BoxFuture<'static, ()>> {
        let job_context = self.job_context.clone();
        if *queue == QueueName::timers() {
            return Some(work::timer(job_context.service, message).boxed());
        }
        if TurnHint::is_turn_hint(&message.body) {
            return Some(work::turn(job_context, queue.clone(), message).boxed());
        }
        let hint = Hint::parse(&message.body).ok()?;
        let key = hint.task.batch_key();
        let (id, kind) = (hint.task.id, hint.task.kind);
        let has_answer = self.world.answers.of(kind.as_str()).is_some();
        if let Some(batch) =
            self.registry.step(kind.as_str()).and_then(ErasedStep::batch).filter(|_| !has_answer)
        {
            let due_at = self.world.clock.now().plus(batch.within());
            let batches = self.batches.entry(queue.clone()).or_default();
            let full = batches.add(&key, message, batch.max(), due_at)?;
            return Some(work::batch(job_context, queue.clone(), full).boxed());
        }
        if self.registry.step(kind.as_str()).is_some() || has_answer {
            return Some(work::task(job_context, queue.clone(), message).boxed());
        }
        let hidden = self.world.queue.change_visibility(queue, &message.receipt, UNANSWERED_VISIBILITY).await;
        if hidden.is_ok() {
            let kind = kind.to_string();
            let unanswered = UnansweredTask { kind, queue: queue.clone(), receipt: message.receipt };
            self.world.unanswered().insert(id, unanswered);
        }
        None
    }

    fn begin(&mut self, future: BoxFuture<'static, ()>, progress: &Arc<Progress>) {
        let waker = Arc::new(JobWaker { is_woken: AtomicBool::new(true), progress: Arc::clone(progress) });
        progress.wake_by_ref();
        self.jobs.push(Job { future, waker });
    }

    /// Whether any job is open.
    pub(super) fn has_open_jobs(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Whether no job is open, and none will start before time passes. Lost work that will be recovered counts as open.
    /// Work that starts later doesn't.
    pub(super) async fn is_idle(&self) -> bool {
        if !self.jobs.is_empty() {
            return false;
        }
        let mut in_flight = 0;
        for queue in self.world.queue.names() {
            in_flight += self.world.queue.depth(&queue).await.map_or(0, |depth| depth.in_flight);
        }
        let unanswered = u64::try_from(self.world.unanswered().len()).unwrap_or(u64::MAX);
        in_flight <= unanswered
    }

    /// The next instant at which something happens, if no job can run now.
    pub(super) async fn next_instant(&self) -> Option<Timestamp> {
        let now = self.world.clock.now();
        let next = earliest([
            self.world.clock.next_wake(),
            self.world.queue.next_visible_at(),
            self.next_tick().await,
            earliest(self.batches.values().map(Gathering::next_due)),
        ]);
        next.map(|at| at.max(now))
    }

    /// The next tick that finds a due record. Ticks before it would do nothing and are skipped.
    async fn next_tick(&self) -> Option<Timestamp> {
        let mut first: Option<Timestamp> = None;
        for shard in 0..self.job_context.service.limits().due_shards.max(1) {
            let mut range = DueRange::until(shard, Timestamp::from_millis(i64::MAX));
            let page = self.world.store.due(range, 1, None).await.ok()?;
            let Some(earliest_due) = page.items.first().map(|entry| entry.due_at) else { continue };
            // The hint of a long sleep is sent that long before its due slot.
            range.until = earliest_due.plus(SLEEP_PROBE);
            let mut cursor = None;
            loop {
                let page = self.world.store.due(range, DUE_PAGE, cursor.as_deref()).await.ok()?;
                first = earliest([first, page.items.iter().map(|entry| self.tick_of(entry)).min()]);
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
        }
        // Skipped minutes count as done, so only a future tick is possible.
        let now = self.world.clock.now();
        let coming = if minute(now) == now { now } else { minute(now).plus(MINUTE) };
        let next = minute(self.ticked_at).plus(MINUTE).max(coming);
        let is_each = next <= self.ticks_all_until || (self.has_died && self.has_line().await);
        let first = if is_each { Some(next) } else { first };
        first.map(|at| at.max(next))
    }

    /// Whether some wait for a place. After a death, only a tick may call them.
    async fn has_line(&self) -> bool {
        for part in 0..PARTS {
            if self.world.store.next_line(part, None).await.is_ok_and(|line| line.is_some()) {
                return true;
            }
        }
        false
    }

    /// The first tick that does something for an entry of the due index.
    fn tick_of(&self, entry: &DueEntry) -> Timestamp {
        let finds = |at: Timestamp| minute(at.minus(SLOT_END)).plus(MINUTE);
        let wakes = finds(entry.due_at.minus(SLEEP_PROBE));
        if entry.kind == DueKind::Asleep && wakes > self.ticked_at { wakes } else { finds(entry.due_at) }
    }

    /// Starts the tick, if one is due now.
    pub(super) async fn tick(&mut self, progress: &Arc<Progress>) {
        let now = self.world.clock.now();
        if now > self.ticked_at && self.next_tick().await.is_some_and(|at| at <= now) {
            self.ticked_at = now;
            self.begin(work::tick(self.job_context.service.clone(), minute(now)).boxed(), progress);
        }
    }
}

/// The start of the minute of an instant.
fn minute(at: Timestamp) -> Timestamp {
    let length = i64::try_from(MINUTE.as_u64()).unwrap_or(1);
    Timestamp::from_millis(at.as_millis().div_euclid(length) * length)
}

impl Job {
    /// Whether it was woken since the last call.
    fn is_woken(&self) -> bool {
        self.waker.is_woken.swap(false, Ordering::SeqCst)
    }

    /// Whether it is done.
    fn poll(&mut self) -> bool {
        let waker = Waker::from(Arc::clone(&self.waker));
        self.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
    }
}
