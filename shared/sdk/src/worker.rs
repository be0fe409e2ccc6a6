//! A worker: takes turns of executions and remote steps from its queues, and runs them side by side.
//!
//! Owns how many run at once, and the ends of all of them. What a turn or an attempt does is theirs.

mod in_flight;
mod room;
mod settings;
mod task;

use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::{BoxFuture, Either, join, join_all, select};
use futures::stream::FuturesUnordered;
use tickover_core::duration::Millis;
use tickover_core::id::{QueueName, WorkflowName};
use tickover_service::claim::{ClaimRequest, FoundWork, Suspect};
use tickover_service::executions::{StartedTurn, Work};
use tickover_service::queues::routes::Routes;
use tickover_service::telemetry::field;
use tickover_service::{Service, ServiceError};

pub use settings::WorkerSettings;

use crate::busy::has_threads;
use crate::registry::{Registry, RegistryError};
use crate::turn::{TurnEnd, TurnSettings, run_turn};
use in_flight::{Held, InFlight};
use room::{Room, Rooms};
use task::TaskEnd;

/// The pause after a claim that failed, or brought only what this worker doesn't know.
const PAUSE: Millis = Millis::from_secs(1);

/// How long work that was asked for is waited for when there is to be no more.
const LAST_ANSWER: Millis = Millis::from_secs(2);

/// Takes work and does it. Cheap to clone.
#[derive(Clone)]
pub struct Worker {
    service: Service,
    registry: Arc<Registry>,
    settings: Arc<WorkerSettings>,
    in_flight: InFlight,
    rooms: Rooms,
}

/// How a piece of work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finished {
    Turn(TurnEnd),
    Task(TaskEnd),
    /// It broke off without a word; its lease runs out.
    Broken,
    /// Nothing came of it.
    Nothing,
}

impl Worker {
    /// A worker for what the registry knows. Something in it that nobody can work with is an error.
    pub fn new(
        service: Service,
        registry: Registry,
        settings: WorkerSettings,
    ) -> Result<Self, RegistryError> {
        registry.check()?;
        let settings = settings.with_queues_of(&registry);
        let service = service.with_terms(registry.terms());
        let (registry, settings) = (Arc::new(registry), Arc::new(settings));
        Ok(Self { service, registry, settings, in_flight: InFlight::default(), rooms: Rooms::default() })
    }

    /// Says where its workflows are run, for starts that name no queue. If it can't, it says so in the log: whoever starts
    /// them can still name their queue.
    pub async fn announce(&self) {
        let queues = &self.settings.queues;
        let routes = self.registry.workflows().filter_map(|workflow| {
            // Whoever takes work from other queues than the workflow's own means that for those who name them.
            let own = QueueName::parse(workflow.options.queue).ok().filter(|own| queues.contains(own))?;
            Some((WorkflowName::parse(workflow.name).ok()?, own))
        });
        let routes: Routes = routes.collect();
        if let Err(error) = self.service.announce_routes(&routes).await {
            tracing::warn!(%error, "where the workflows are run isn't told");
        }
    }

    /// The queues it takes work from.
    pub fn queues(&self) -> &[QueueName] {
        &self.settings.queues
    }

    /// Works until told to stop; then finishes what runs, and gives back what isn't done when the grace is over.
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

    /// Takes what is there now and does it, without waiting for more: how many pieces there were.
    pub async fn run_once(&self) -> Result<usize, ServiceError> {
        let mut count = 0;
        for queue in &self.settings.queues {
            let request = self.request(self.settings.batch, Millis::ZERO);
            let room = self.rooms.shared().await;
            let found = self.service.work_apart(queue, &request, &self.known()).await?;
            let work = found.work.into_iter();
            let running: FuturesUnordered<_> = work.map(|work| self.start(work, room.clone())).collect();
            drop(room);
            count += running.collect::<Vec<_>>().await.len();
            for suspect in found.suspects {
                let never = tokio::sync::watch::channel(false).1;
                let finished = self.start_suspect(queue.clone(), suspect, never).await;
                count += usize::from(finished != Finished::Nothing);
            }
        }
        Ok(count)
    }

    /// Runs a turn that was taken elsewhere, to its end.
    pub(crate) async fn turn(&self, taken: StartedTurn, settings: &TurnSettings) -> TurnEnd {
        run_turn(&self.service, &self.registry, taken, settings).await
    }

    /// Runs an attempt of a task that was claimed elsewhere, to its end. Whether its outcome was told.
    #[cfg(feature = "lambda")]
    pub(crate) async fn task(&self, claimed: tickover_service::claim::ClaimedTask) -> bool {
        self.attempt(claimed).await == TaskEnd::Reported
    }

    /// The service that it works with, which knows what its workflows say of their executions.
    #[cfg(any(feature = "lambda", feature = "test"))]
    pub(crate) const fn service(&self) -> &Service {
        &self.service
    }

    /// How it runs turns that were taken elsewhere.
    #[cfg(feature = "lambda")]
    pub(crate) fn turn_settings(&self) -> TurnSettings {
        self.settings.turn()
    }

    /// Whether it can run tasks of this kind.
    #[cfg(feature = "lambda")]
    pub(crate) fn knows(&self, kind: &str) -> bool {
        self.registry.step(kind).is_some()
    }

    /// Tells which tasks it can run.
    fn known(&self) -> impl Fn(&str) -> bool + Send + Sync {
        |kind| self.registry.step(kind).is_some()
    }

    fn request(&self, max: usize, wait: Millis) -> ClaimRequest {
        let settings = &self.settings;
        ClaimRequest { worker: settings.name.clone(), max, lease: settings.lease, wait }
    }

    async fn serve_queue(&self, queue: &QueueName, mut stopped: tokio::sync::watch::Receiver<bool>) {
        // Nothing may have been sent to it yet, and a local queue is made when it is first needed.
        if let Err(error) = self.service.open_queue(queue).await {
            tracing::warn!({ field::QUEUE_NAME } = %queue, %error, "the queue can't be opened");
        }
        let mut running = FuturesUnordered::new();
        let mut pause_until = None;
        while !*stopped.borrow() {
            if running.len() >= self.settings.concurrency {
                let _ended = select(running.next(), pin!(stopped.changed())).await;
                continue;
            }
            let free = self.settings.concurrency - running.len();
            let request = self.request(free.min(self.settings.batch), self.settings.wait);
            let after = pause_until.take();
            let request = &request;
            let claim = async move {
                if let Some(until) = after {
                    self.service.clock().sleep_until(until).await;
                }
                // Who waits to be alone waits for work to end, and not for a long poll.
                let arrived = self.service.arrivals(queue, request).await?;
                let room = self.rooms.shared().await;
                let found = self.service.work_among(queue, arrived, request, &self.known()).await?;
                Ok::<_, ServiceError>((found, room))
            };
            let mut claim = pin!(claim);
            // What runs goes on while this waits for more.
            let claimed = loop {
                let stop = pin!(async { drop(stopped.wait_for(|stopped| *stopped).await) });
                // In this order: what waits to be alone is let in before what another claim brings.
                match select(select(pin!(one_ended(&mut running)), stop), &mut claim).await {
                    Either::Right((claimed, _)) => break Some(claimed),
                    Either::Left((Either::Left((ended, _)), _)) => {
                        pause_until = self.pause_after(ended).or(pause_until);
                    }
                    Either::Left((Either::Right(_), _)) => break None,
                }
            };
            match claimed {
                None => {
                    join(self.last_answer(claim), self.finish(running)).await;
                    return;
                }
                Some(Ok((found, room))) => {
                    let FoundWork { work, suspects } = found;
                    let nothing = work.is_empty() && suspects.is_empty();
                    if nothing && !self.settings.interval.is_zero() {
                        pause_until = Some(self.service.now().plus(self.settings.interval));
                    }
                    running.extend(work.into_iter().map(|work| self.start(work, room.clone())));
                    let alone = |suspect| self.start_suspect(queue.clone(), suspect, stopped.clone());
                    running.extend(suspects.into_iter().map(alone));
                }
                Some(Err(error)) => {
                    tracing::warn!({ field::QUEUE_NAME } = %queue, %error, "no work can be taken for now");
                    pause_until = Some(self.service.now().plus(PAUSE));
                }
            }
        }
        self.finish(running).await;
    }

    /// Once asked for, work is waited for a moment even when told to stop: what nobody takes would be held by nobody.
    async fn last_answer(&self, claim: impl Future<Output = Result<(FoundWork, Room), ServiceError>>) {
        let moment = self.service.now().plus(LAST_ANSWER);
        let alarm = pin!(self.service.clock().sleep_until(moment));
        if let Either::Left((Ok((found, _)), _)) = select(pin!(claim), alarm).await {
            join_all(found.work.into_iter().map(|work| Held::of(&work).give_back(&self.service))).await;
        }
    }

    /// Finishes what runs; what isn't done when the grace is over is dropped and given back.
    async fn finish(&self, running: FuturesUnordered<BoxFuture<'static, Finished>>) {
        let over = self.service.now().plus(self.settings.grace);
        let grace = pin!(self.service.clock().sleep_until(over));
        let rest = Box::pin(running.collect::<Vec<_>>());
        if let Either::Right(((), rest)) = select(rest, grace).await {
            drop(rest);
            let held = self.in_flight.empty();
            tracing::warn!(count = held.len(), "not everything could be finished: it is given back");
            join_all(held.into_iter().map(|held| held.give_back(&self.service))).await;
        }
    }

    fn pause_after(&self, ended: Finished) -> Option<tickover_core::time::Timestamp> {
        match ended {
            Finished::Task(TaskEnd::Unknown) => Some(self.service.now().plus(PAUSE)),
            Finished::Task(TaskEnd::Reported | TaskEnd::Lost)
            | Finished::Turn(_)
            | Finished::Broken
            | Finished::Nothing => None,
        }
    }

    /// Begins a piece of work: in a task of its own where there are threads for it.
    fn start(&self, work: Work, room: Room) -> BoxFuture<'static, Finished> {
        let worker = self.clone();
        let held = self.in_flight.hold(Held::of(&work));
        let work = async move {
            let finished = match work {
                Work::Turn(taken) => {
                    let settings = worker.settings.turn();
                    Finished::Turn(worker.turn(*taken, &settings).await)
                }
                Work::Task(task) => Finished::Task(worker.attempt(*task).await),
            };
            held.let_go();
            drop(room);
            finished
        };
        if !has_threads() {
            return Box::pin(work);
        }
        let mut spawned = Dropped(tokio::spawn(work));
        Box::pin(async move {
            (&mut spawned.0).await.unwrap_or_else(|error| {
                tracing::error!(%error, "a piece of work broke off");
                Finished::Broken
            })
        })
    }
}

impl Worker {
    /// Takes and does what may have killed another worker, once nothing else is done here.
    fn start_suspect(
        &self,
        queue: QueueName,
        suspect: Suspect,
        stopped: tokio::sync::watch::Receiver<bool>,
    ) -> BoxFuture<'static, Finished> {
        let worker = self.clone();
        Box::pin(async move {
            let room = worker.rooms.alone().await;
            if *stopped.borrow() {
                return Finished::Nothing;
            }
            let request = worker.request(1, Millis::ZERO);
            match worker.service.take_suspect(&queue, &suspect, &request).await {
                Ok(Some(work)) => worker.start(work, room).await,
                Ok(None) => Finished::Nothing,
                Err(error) => {
                    tracing::warn!({ field::QUEUE_NAME } = %queue, %error, "not taken for now");
                    Finished::Nothing
                }
            }
        })
    }
}

/// The end of one of them; never, if there is none.
async fn one_ended(running: &mut FuturesUnordered<BoxFuture<'static, Finished>>) -> Finished {
    match running.next().await {
        Some(ended) => ended,
        None => std::future::pending().await,
    }
}

/// A task that ends when nobody waits for it any more.
struct Dropped(tokio::task::JoinHandle<Finished>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.abort();
    }
}
