//! A worker: takes turns and remote steps from its queues, and runs them in parallel.
//!
//! Owns how many run at once, and what happens when they end. It doesn't know what a turn or an attempt does.

mod in_flight;
mod pulse;
mod serving;
mod settings;
mod suspects;
mod task;
mod together;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt as _;
use futures::future::{BoxFuture, Either, join_all, select};
use futures::stream::FuturesUnordered;
use tickover_core::batch::{Batch, Gathering};
use tickover_core::duration::Millis;
use tickover_core::id::{ExecutionId, QueueName};
use tickover_service::claim::{Arrived, ClaimRequest, ClaimedTask, FoundWork, Suspect};
use tickover_service::executions::{StartedTurn, Work};
use tickover_service::telemetry::field;
use tickover_service::warn_unless_logged;
use tickover_service::{KeptRecords, Service, ServiceError};

pub use settings::WorkerSettings;
use tokio::sync::Mutex;

use crate::backend::Backend;
use crate::busy::is_multi_threaded;
use crate::registry::{ErasedStep, Registry, RegistryError};
use crate::turn::kept::KeptRuns;
use crate::turn::{TurnEnd, TurnSettings, run_turn};
use in_flight::{InFlight, InFlightGuard, Leased};
use serving::{Claimed, Serving};
use task::TaskEnd;

/// The pause after a claim that failed or returned only tasks of unknown kinds.
const PAUSE: Millis = Millis::from_secs(1);

/// How long a stopping worker waits for the answer of its last claim.
const LAST_CLAIM_WAIT: Millis = Millis::from_secs(2);

/// How long a stopping worker waits after the grace period until its turns have written what they have.
const LAST_WRITES_WAIT: Millis = Millis::from_secs(2);

/// How long it waits for calls under way. If it cuts one all the same, a tick sends the message that follows.
const LAST_CALLS_WAIT: Millis = Millis::from_secs(10);

/// Claims turns and tasks and runs them. Cheap to clone.
#[derive(Clone)]
pub struct Worker {
    service: Backend,
    registry: Arc<Registry>,
    settings: Arc<WorkerSettings>,
    in_flight: InFlight,
    kept: Arc<KeptRuns>,
    /// Held while work runs that may have killed another worker: only one piece at a time in this process.
    suspect_runs: Arc<Mutex<()>>,
}

/// How a turn or a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finished {
    Turn(TurnEnd),
    Task(TaskEnd),
    /// Each of its tasks has ended, or was lost.
    Batch,
    /// It stopped unexpectedly, for example by a panic. Its lease expires.
    Broken,
    /// There was nothing to run.
    Nothing,
}

impl Worker {
    /// Creates a worker for the workflows and steps of a registry. Fails if the registry has a problem.
    pub fn new(
        service: Service,
        registry: Registry,
        settings: WorkerSettings,
    ) -> Result<Self, RegistryError> {
        Self::with(registry, settings, |registry, settings, kept| {
            let service = service.with_terms(registry.terms()).with_version(settings.version.clone());
            service.with_kept(kept).into()
        })
    }

    /// Creates a worker that works for the system of another process, over HTTP. It takes up to 10 turns and tasks at once
    /// from each queue. Fails if the registry has a problem.
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// # #[tickover::workflow]
    /// # async fn order(_: Ctx, cents: u32) -> Result<u32> { Ok(cents) }
    /// # async fn example() -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// use tickover::client::Http;
    /// use tickover::{Registry, Worker, WorkerSettings};
    ///
    /// let http = Http::new("http://127.0.0.1:7070")?;
    /// let worker = Worker::over_http(http, Registry::new().with(order), WorkerSettings::default())?;
    /// worker.run(std::future::pending()).await;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "client-local")]
    pub fn over_http(
        http: crate::client::Http,
        registry: Registry,
        settings: WorkerSettings,
    ) -> Result<Self, RegistryError> {
        Self::with(registry, settings, |registry, settings, kept| {
            crate::backend::Remote::new(http, registry, settings, kept).into()
        })
    }

    fn with(
        registry: Registry,
        settings: WorkerSettings,
        backend: impl FnOnce(&Registry, &WorkerSettings, KeptRecords) -> Backend,
    ) -> Result<Self, RegistryError> {
        registry.check()?;
        let settings = settings.with_queues_of(&registry);
        let kept = Arc::new(KeptRuns::new(settings.kept_runs));
        // The runs have the service. They must not be kept by it.
        let known = Arc::downgrade(&kept);
        let service =
            backend(&registry, &settings, Arc::new(move |id: &ExecutionId| known.upgrade()?.record(id)));
        let (registry, settings, in_flight) = (Arc::new(registry), Arc::new(settings), InFlight::default());
        Ok(Self { service, registry, settings, in_flight, kept, suspect_runs: Arc::default() })
    }

    /// Announces the queues of its workflows and what it provides, for starts and tasks that name no queue. A failure is
    /// only logged, because they can still name their queue.
    pub async fn announce(&self) {
        let Some(service) = self.service.here() else {
            // Its claims say it.
            return;
        };
        let queues = &self.settings.queues;
        if let Err(error) = service.announce_routes(&self.registry.routes(queues)).await {
            warn_unless_logged!(error; %error, "can't announce the queues of the workflows");
        }
        for queue in queues {
            if let Err(error) = service.announce_provided(queue, &self.settings.provides).await {
                warn_unless_logged!(error; { field::QUEUE_NAME } = %queue, %error, "can't announce what it provides");
            }
        }
    }

    /// The queues that it takes work from.
    pub fn queues(&self) -> &[QueueName] {
        &self.settings.queues
    }

    /// Runs until `stop` is ready. Then it finishes the work in flight, and releases what isn't done after the grace
    /// period.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let (stopping, stopped) = tokio::sync::watch::channel(false);
        let queues = self.settings.queues.iter();
        let all = queues.map(|queue| Box::pin(self.serve_queue(queue, stopped.clone())));
        let all = pin!(join_all(all));
        let stop = pin!(stop);
        if let Either::Right(((), rest)) = select(all, stop).await {
            stopping.send_replace(true);
            rest.await;
        }
    }

    /// Runs the work that is available now, without waiting for more. Returns how many turns and tasks there were.
    pub async fn run_once(&self) -> Result<usize, ServiceError> {
        let mut count = 0;
        for queue in &self.settings.queues {
            let request = self.request(self.settings.batch, Millis::ZERO);
            let found = self.service.work_apart(queue, &request, &self.known()).await?;
            count += found.work.len();
            let running: FuturesUnordered<_> = self.start_all(found.work).into_iter().collect();
            running.collect::<Vec<_>>().await;
            for suspect in found.suspects {
                let finished = self.start_suspect(queue, &suspect).await;
                count += usize::from(finished != Finished::Nothing);
            }
        }
        Ok(count)
    }

    /// Runs a turn that the caller has claimed.
    pub(crate) async fn turn(&self, taken: StartedTurn, settings: &TurnSettings) -> TurnEnd {
        run_turn(&self.service, &self.registry, &self.kept, taken, settings).await
    }

    /// Runs an attempt of a task that the caller has claimed. Returns whether its outcome was reported.
    #[cfg(feature = "lambda")]
    pub(crate) async fn task(&self, claimed: tickover_service::claim::ClaimedTask) -> bool {
        self.attempt(claimed).await == TaskEnd::Reported
    }

    /// Runs an attempt of tasks of one batch that the caller has claimed. Returns for each whether its outcome was
    /// reported.
    #[cfg(feature = "lambda")]
    pub(crate) async fn batch(&self, claimed: Vec<ClaimedTask>) -> Vec<(tickover_core::id::TaskId, bool)> {
        let ends = self.attempt_together(claimed).await.into_iter();
        ends.map(|(id, end)| (id, end == TaskEnd::Reported)).collect()
    }

    /// The service that it uses, which knows the terms of its workflows' executions, if it is in this process.
    #[cfg(any(feature = "lambda", feature = "test"))]
    pub(crate) const fn service(&self) -> Option<&Service> {
        self.service.here()
    }

    /// The settings of turns that the caller has claimed.
    #[cfg(feature = "lambda")]
    pub(crate) fn turn_settings(&self) -> TurnSettings {
        self.settings.turn()
    }

    /// What it provides.
    #[cfg(feature = "lambda")]
    pub(crate) fn provides(&self) -> Vec<tickover_core::id::Capability> {
        self.settings.provides.clone()
    }

    /// Whether it can run tasks of this kind.
    #[cfg(feature = "lambda")]
    pub(crate) fn knows(&self, kind: &str) -> bool {
        self.registry.step(kind).is_some()
    }

    /// How tasks of this kind run together, if they do.
    pub(crate) fn batch_of(&self, kind: &str) -> Option<Batch> {
        self.registry.step(kind).and_then(ErasedStep::batch)
    }

    /// Returns a function that says whether it can run a task of a kind.
    fn known(&self) -> impl Fn(&str) -> bool + Send + Sync {
        |kind| self.registry.step(kind).is_some()
    }

    fn request(&self, max: usize, wait: Millis) -> ClaimRequest {
        let settings = &self.settings;
        ClaimRequest {
            worker: settings.name.clone(),
            max,
            lease: settings.lease,
            wait,
            provides: settings.provides.clone(),
        }
    }

    async fn serve_queue(&self, queue: &QueueName, stopped: tokio::sync::watch::Receiver<bool>) {
        // The queue may have no message yet. A local queue is created when it is first used.
        if let Err(error) = self.service.open_queue(queue).await {
            tracing::warn!({ field::QUEUE_NAME } = %queue, %error, "the queue can't be opened");
        }
        Serving::new(self, queue, stopped).run().await;
    }

    /// Waits up to 2 s for a claim in progress, longer if messages have arrived for it, and releases what it returns.
    /// Otherwise that work would stay leased, and no worker would run it until the lease expires.
    async fn release_last_claim(
        &self,
        queue: &QueueName,
        claim: impl Future<Output = Result<Claimed, ServiceError>>,
        has_arrived: &AtomicBool,
    ) {
        let alarm = pin!(async {
            let began = self.service.now();
            self.service.clock().sleep_until(began.plus(LAST_CLAIM_WAIT)).await;
            if has_arrived.load(Ordering::Relaxed) {
                self.service.clock().sleep_until(began.plus(LAST_CALLS_WAIT)).await;
            }
        });
        let Either::Left((Ok(claimed), _)) = select(pin!(claim), alarm).await else { return };
        let Claimed { found, alone, batched, surplus } = claimed;
        let rest = batched.into_iter().map(|(_, message)| message).chain([surplus]).collect();
        self.service.give_back_arrived(queue, rest).await;
        let found = found.map(|found| found.work).unwrap_or_default().into_iter().chain(alone);
        join_all(found.map(|work| Leased::of(&work).give_back(&self.service, false))).await;
    }

    /// Finishes the work in flight. Work that isn't done after the grace period is stopped and released: turns write first
    /// what has ended in them, so that it doesn't run again.
    async fn finish(&self, running: FuturesUnordered<BoxFuture<'static, Finished>>) {
        let over = self.service.now().plus(self.settings.grace);
        let grace = pin!(self.service.clock().sleep_until(over));
        let rest = Box::pin(running.collect::<Vec<_>>());
        if let Either::Right(((), rest)) = select(rest, grace).await {
            tracing::warn!(
                count = self.in_flight.count(),
                "not everything could be finished: it is given back"
            );
            let turns = pin!(self.in_flight.ask_turns_to_end());
            let moment = self.service.now().plus(LAST_WRITES_WAIT);
            let alarm = pin!(self.service.clock().sleep_until(moment));
            if let Either::Right((_, rest)) = select(rest, select(turns, alarm)).await {
                self.stop_between_calls(rest).await;
            }
            let leased = self.in_flight.empty();
            join_all(leased.into_iter().map(|leased| leased.give_back(&self.service, true))).await;
        }
    }

    /// Drops the work in flight when none of its calls is under way.
    async fn stop_between_calls(&self, work: impl Future + Unpin) {
        let moment = self.service.now().plus(LAST_CALLS_WAIT);
        let alarm = pin!(self.service.clock().sleep_until(moment));
        let paused = pin!(self.service.between_calls());
        if let Either::Right((_paused, work)) = select(work, select(paused, alarm)).await {
            drop(work);
        }
    }

    fn pause_after(&self, ended: Finished) -> Option<tickover_core::time::Timestamp> {
        match ended {
            Finished::Task(TaskEnd::Unknown) => Some(self.service.now().plus(PAUSE)),
            Finished::Task(TaskEnd::Reported | TaskEnd::Lost)
            | Finished::Turn(_)
            | Finished::Batch
            | Finished::Broken
            | Finished::Nothing => None,
        }
    }

    /// Starts work that was claimed together: tasks that run in batches with the others of their key.
    fn start_all(&self, work: Vec<Work>) -> Vec<BoxFuture<'static, Finished>> {
        let (mut started, mut batches) = (Vec::new(), Gathering::default());
        for work in work {
            let batch = match &work {
                Work::Task(claimed) => self.batch_of(claimed.task.kind.as_str()),
                Work::Turn(_) => None,
            };
            match (work, batch) {
                (Work::Task(claimed), Some(batch)) => {
                    let key = claimed.task.batch_key();
                    let full = batches.add(&key, *claimed, batch.max(), self.service.now());
                    started.extend(full.map(|full| self.start_together(full)));
                }
                (work @ (Work::Task(_) | Work::Turn(_)), _) => {
                    started.push(self.start(work, self.settings.turn()));
                }
            }
        }
        let rest = batches.take_all().into_iter();
        started.extend(rest.map(|batch| self.start_together(batch)));
        started
    }

    /// Starts a turn, with these settings, or a task.
    fn start(&self, work: Work, mut settings: TurnSettings) -> BoxFuture<'static, Finished> {
        let worker = self.clone();
        let guard = self.in_flight.hold(Leased::of(&work));
        settings.asked_to_end = Some(guard.asked_to_end());
        in_its_own_task(async move {
            let finished = match work {
                Work::Turn(taken) => Finished::Turn(worker.turn(*taken, &settings).await),
                Work::Task(task) => Finished::Task(worker.attempt(*task).await),
            };
            guard.remove();
            finished
        })
    }

    /// Starts the tasks of a batch.
    fn start_together(&self, claimed: Vec<ClaimedTask>) -> BoxFuture<'static, Finished> {
        let worker = self.clone();
        let guards: Vec<_> =
            claimed.iter().map(|claimed| self.in_flight.hold(Leased::of_task(claimed))).collect();
        in_its_own_task(async move {
            worker.attempt_together(claimed).await;
            guards.into_iter().for_each(InFlightGuard::remove);
            Finished::Batch
        })
    }
}

impl Worker {
    /// Claims and runs the tasks of a batch. Those that may have killed another worker run afterwards, one by one.
    fn start_batch(
        &self,
        queue: QueueName,
        arrived: Arrived,
        stopped: tokio::sync::watch::Receiver<bool>,
    ) -> BoxFuture<'static, Finished> {
        let worker = self.clone();
        Box::pin(async move {
            if *stopped.borrow() {
                worker.service.give_back_arrived(&queue, arrived).await;
                return Finished::Nothing;
            }
            let request = worker.request(arrived.len(), Millis::ZERO);
            let FoundWork { work, suspects, .. } = match worker
                .service
                .batch_among(&queue, arrived, &request, &worker.known())
                .await
            {
                Ok(found) => found,
                Err(error) => {
                    warn_unless_logged!(error; { field::QUEUE_NAME } = %queue, %error, "can't claim a batch");
                    return Finished::Nothing;
                }
            };
            join_all(worker.start_all(work)).await;
            for suspect in suspects {
                worker.start_suspect(&queue, &suspect).await;
            }
            Finished::Batch
        })
    }

    /// Runs work that may have killed another worker and came leased, unless other such work runs in this process.
    fn start_alone(&self, work: Work) -> BoxFuture<'static, Finished> {
        let worker = self.clone();
        Box::pin(async move {
            let Ok(_alone) = worker.suspect_runs.try_lock() else {
                // The claim of another queue was faster. If it waited, its lease would pass.
                Leased::of(&work).give_back(&worker.service, false).await;
                return Finished::Nothing;
            };
            let settings = TurnSettings { in_place: Millis::ZERO, ..worker.settings.turn() };
            worker.start(work, settings).await
        })
    }

    /// Claims and runs work that may have killed another worker, while no other such work runs in this process.
    async fn start_suspect(&self, queue: &QueueName, suspect: &Suspect) -> Finished {
        let _alone = self.suspect_runs.lock().await;
        // It keeps others from running only while it runs: its turn doesn't wait for a retry.
        let settings = TurnSettings { in_place: Millis::ZERO, ..self.settings.turn() };
        match self.service.take_suspect(queue, suspect, &self.request(1, Millis::ZERO)).await {
            Ok(Some(work)) => self.start(work, settings).await,
            Ok(None) => Finished::Nothing,
            Err(error) => {
                warn_unless_logged!(error; { field::QUEUE_NAME } = %queue, %error, "can't claim suspect work");
                Finished::Nothing
            }
        }
    }
}

/// Runs work in a tokio task of its own if the runtime has several threads.
fn in_its_own_task(work: impl Future<Output = Finished> + Send + 'static) -> BoxFuture<'static, Finished> {
    if !is_multi_threaded() {
        return Box::pin(work);
    }
    let mut spawned = AbortOnDrop(tokio::spawn(work));
    Box::pin(async move {
        (&mut spawned.0).await.unwrap_or_else(|error| {
            tracing::error!(%error, "a turn or task stopped unexpectedly");
            Finished::Broken
        })
    })
}

/// A tokio task that is stopped when this is dropped.
struct AbortOnDrop(tokio::task::JoinHandle<Finished>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
