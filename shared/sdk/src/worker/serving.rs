//! One queue of a worker: claims work while there is room for it, and gathers the tasks of batches.
//!
//! The messages of a batch's tasks are kept unclaimed until it is full or its time to fill is over, and are claimed
//! together then. So no lease and no attempt's timeout runs while a task waits for others, and a deadline that passes
//! meanwhile counts.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt as _;
use futures::future::{BoxFuture, Either, join3, pending, select};
use futures::stream::FuturesUnordered;
use tickover_core::batch::{BatchKey, Gathering, fill_max};
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::time::Timestamp;
use tickover_service::ServiceError;
use tickover_service::claim::{Arrived, ClaimRequest, FoundWork, WorkElsewhere};
use tickover_service::executions::Work;
use tickover_service::telemetry::field;
use tickover_service::warn_unless_logged;
use tokio::sync::watch;

use super::suspects::Suspects;
use super::{Finished, PAUSE, Worker};

/// The pause after messages were given back because nothing more can run here now: they are visible again at once.
const FULL_PAUSE: Millis = Millis::new(500);
/// How often the pause after failed claims doubles: it grows to 8 s.
const GROWTHS_MAX: u32 = 3;

/// What a claim brought.
pub(super) struct Claimed {
    /// Work that is leased.
    pub(super) found: Result<FoundWork, ServiceError>,
    /// Leased work that may have killed another worker.
    pub(super) alone: Option<Work>,
    /// Messages of tasks that run in batches.
    pub(super) batched: Vec<(BatchKey, Arrived)>,
    /// More messages than can be processed now.
    pub(super) surplus: Arrived,
}

/// What happens while a claim waits.
enum Event {
    Ended(Finished),
    /// The time to fill of a batch is over.
    Due,
    Stopped,
}

/// A queue with the work of it that runs here.
pub(super) struct Serving<'a> {
    worker: &'a Worker,
    queue: &'a QueueName,
    stopped: watch::Receiver<bool>,
    running: FuturesUnordered<BoxFuture<'static, Finished>>,
    suspects: Suspects,
    batches: Gathering<Arrived>,
    pause_until: Option<Timestamp>,
    /// Claims in a row that failed.
    failures: u32,
}

impl<'a> Serving<'a> {
    pub(super) fn new(worker: &'a Worker, queue: &'a QueueName, stopped: watch::Receiver<bool>) -> Self {
        let (running, suspects, batches) =
            (FuturesUnordered::new(), Suspects::default(), Gathering::default());
        Self { worker, queue, stopped, running, suspects, batches, pause_until: None, failures: 0 }
    }

    /// Runs until the worker is asked to stop, and finishes the work in flight.
    pub(super) async fn run(mut self) {
        let (worker, queue) = (self.worker, self.queue);
        while !*self.stopped.borrow() {
            self.start_due();
            let max = (self.free() + self.batches.room()).min(worker.settings.batch);
            if max == 0 {
                let event = self.event().await;
                self.note(&event);
                continue;
            }
            let request = worker.request(max, worker.settings.wait);
            let (after, has_arrived) = (self.pause_until.take(), AtomicBool::new(false));
            let mut claim = pin!(worker.claim(queue, &request, self.free(), after, &has_arrived));
            // Work in flight continues while this waits for more.
            let claimed = loop {
                let event = match select(pin!(self.event()), &mut claim).await {
                    Either::Right((claimed, _)) => break Some(claimed),
                    Either::Left((event, _)) => event,
                };
                self.note(&event);
                match event {
                    Event::Stopped => break None,
                    Event::Due => self.start_due(),
                    Event::Ended(_) => {}
                }
            };
            match claimed {
                Some(Ok(claimed)) => self.take(claimed),
                Some(Err(error)) => self.failed(&error),
                None => {
                    let waiting = self.batches.take_all().into_iter().flatten().collect();
                    let give_back = worker.service.give_back_arrived(queue, waiting);
                    join3(
                        worker.release_last_claim(queue, claim, &has_arrived),
                        give_back,
                        worker.finish(self.running),
                    )
                    .await;
                    return;
                }
            }
        }
        let waiting = self.batches.take_all().into_iter().flatten().collect();
        worker.service.give_back_arrived(queue, waiting).await;
        worker.finish(self.running).await;
    }

    /// How much more work may start. A batch that waits for tasks counts as running.
    fn free(&self) -> usize {
        self.worker.settings.concurrency.saturating_sub(self.running.len() + self.batches.len())
    }

    /// Waits for the next event.
    async fn event(&mut self) -> Event {
        let (running, stopped) = (&mut self.running, &mut self.stopped);
        let due_at = self.batches.next_due();
        let ended = async {
            match running.next().await {
                Some(ended) => ended,
                None => pending().await,
            }
        };
        let due = async {
            match due_at {
                Some(due_at) => self.worker.service.clock().sleep_until(due_at).await,
                None => pending().await,
            }
        };
        let stop = async { drop(stopped.wait_for(|stopped| *stopped).await) };
        match select(select(pin!(ended), pin!(stop)), pin!(due)).await {
            Either::Left((Either::Left((ended, _)), _)) => Event::Ended(ended),
            Either::Left((Either::Right(_), _)) => Event::Stopped,
            Either::Right(_) => Event::Due,
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Ended(ended) => {
                self.pause_until = self.worker.pause_after(*ended).or(self.pause_until);
            }
            Event::Due | Event::Stopped => {}
        }
    }

    fn failed(&mut self, error: &ServiceError) {
        warn_unless_logged!(error; { field::QUEUE_NAME } = %self.queue, %error, "can't claim work");
        let pause = PAUSE.saturating_mul(1 << self.failures.min(GROWTHS_MAX));
        self.failures = self.failures.saturating_add(1);
        self.pause_until = Some(self.worker.service.now().plus(pause));
    }

    /// Starts what was claimed, and adds the messages of tasks that run in batches to their batches.
    fn take(&mut self, claimed: Claimed) {
        let worker = self.worker;
        let Claimed { found, alone, batched, surplus } = claimed;
        match found {
            Ok(FoundWork { work, suspects, asks: _ }) => {
                self.failures = 0;
                let nothing = work.is_empty() && alone.is_none() && suspects.is_empty() && batched.is_empty();
                if nothing && !worker.settings.interval.is_zero() {
                    self.pause_until = Some(worker.service.now().plus(worker.settings.interval));
                }
                self.running.extend(worker.start_all(work));
                self.running.extend(alone.map(|work| worker.start_alone(work)));
                self.running.extend(self.suspects.run(suspects, worker, self.queue, self.stopped.clone()));
            }
            Err(error) => self.failed(&error),
        }
        let mut refused: Vec<Arrived> = vec![surplus];
        for (key, message) in batched {
            refused.extend(self.add(&key, message));
        }
        let refused: Arrived = refused.into_iter().collect();
        if !refused.is_empty() {
            let (service, queue) = (worker.service.clone(), self.queue.clone());
            self.running.push(Box::pin(async move {
                service.give_back_arrived(&queue, refused).await;
                Finished::Nothing
            }));
            self.pause_until = Some(worker.service.now().plus(FULL_PAUSE));
        }
    }

    /// Adds a message to the batch of its key. Returns it if there is no such batch, and no room for another one.
    fn add(&mut self, key: &BatchKey, message: Arrived) -> Option<Arrived> {
        let batch = self.worker.batch_of(key.kind.as_str());
        let Some(batch) = batch.filter(|_| self.batches.waits_for(key) || self.free() > 0) else {
            return Some(message);
        };
        let wait = batch.within().min(fill_max(self.worker.settings.lease));
        let due_at = self.worker.service.now().plus(wait);
        if let Some(full) = self.batches.add(key, message, batch.max(), due_at) {
            self.start_batch(full);
        }
        None
    }

    fn start_due(&mut self) {
        for batch in self.batches.take_due(self.worker.service.now()) {
            self.start_batch(batch);
        }
    }

    fn start_batch(&self, batch: Vec<Arrived>) {
        let arrived = batch.into_iter().collect();
        self.running.push(self.worker.start_batch(self.queue.clone(), arrived, self.stopped.clone()));
    }
}

impl Worker {
    /// Waits for messages, and says when there are any. Claims those of work that runs by itself, as much of it as is free.
    async fn claim(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
        free: usize,
        after: Option<Timestamp>,
        has_arrived: &AtomicBool,
    ) -> Result<Claimed, ServiceError> {
        if let Some(until) = after {
            self.service.clock().sleep_until(until).await;
        }
        if let Some(found) =
            self.service.work_elsewhere(queue, request, self.suspect_runs.try_lock().is_ok()).await
        {
            let WorkElsewhere { work, alone, asks: _ } = found?;
            let found = Ok(FoundWork { work, ..FoundWork::default() });
            return Ok(Claimed { found, alone, batched: vec![], surplus: Arrived::default() });
        }
        let mut arrived = self.service.arrivals(queue, request).await?;
        has_arrived.store(true, Ordering::Relaxed);
        let batched = arrived.take_batched(|kind| self.batch_of(kind).is_some());
        let surplus = arrived.split_off(free);
        let found = self.service.work_among(queue, arrived, request, &self.known()).await;
        Ok(Claimed { found, alone: None, batched, surplus })
    }
}
