//! Claims tasks up to the limit of concurrency, until it is asked to stop or has reached another limit.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tickover::client::ClientError;
use tickover_core::duration::Millis;
use tickover_core::limits::CLAIM_MAX;
use tickover_wire::ClaimCount;
use tickover_wire::answer::ClaimedView;
use tickover_wire::request::ClaimRequest;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::show::say;

use super::Worker;
use super::attempt::Attempt;
use super::claim_failures::ClaimFailures;
use super::stop::Stop;
use super::tally::{Ending, Tally};

/// How much longer than its own wait a pending claim may take when the worker stops.
const LAST_ANSWER: Duration = Duration::from_secs(2);
/// How much longer than the commands' grace period the end may take when it is forced.
const ABORT_BOUND: Duration = Duration::from_secs(5);

/// The limits of a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Tasks at once.
    pub(super) concurrency: usize,
    /// How long a claim waits for its first task.
    pub(super) wait: Millis,
    /// Tasks in total.
    pub(super) max_tasks: Option<u64>,
    /// How long the worker may be idle.
    pub(super) idle_exit: Option<Duration>,
}

/// The tasks that this worker runs, and the claims of new ones.
pub(super) struct Pool {
    worker: Arc<Worker>,
    bounds: Bounds,
    stop: Stop,
    running: JoinSet<Ending>,
    claimed_total: u64,
    /// Since when no task has been running.
    idle_since: Instant,
    /// Whether the last claim returned no task.
    last_claim_was_empty: bool,
    failures: ClaimFailures,
    /// An error after which no retry can help.
    fatal: Option<anyhow::Error>,
    tally: Tally,
}

impl Pool {
    /// A pool without tasks.
    pub(super) fn new(worker: Arc<Worker>, bounds: Bounds, stop: Stop) -> Self {
        let (running, tally) = (JoinSet::new(), Tally::default());
        Self {
            worker,
            bounds,
            stop,
            running,
            claimed_total: 0,
            idle_since: Instant::now(),
            last_claim_was_empty: false,
            failures: ClaimFailures::default(),
            fatal: None,
            tally,
        }
    }

    /// Runs until it is asked to stop or has reached a limit, then finishes the running tasks.
    pub(super) async fn work(mut self) -> anyhow::Result<Tally> {
        while !self.is_done() {
            let slots = self.slots();
            if slots == 0 {
                self.one_ended().await;
                continue;
            }
            match self.claim(slots).await {
                Ok(tasks) => self.take(tasks),
                Err(error) => self.claim_failed(error).await,
            }
        }
        let stop = self.stop.clone();
        let bound = self.worker.grace + ABORT_BOUND;
        let finish = async { while self.one_ended().await {} };
        let aborted = async {
            stop.aborting().await;
            sleep(bound).await;
        };
        tokio::select! {
            () = finish => {}
            () = aborted => say("not all tasks could be released in time"),
        }
        self.fatal.map_or(Ok(self.tally), Err)
    }

    /// Whether no more tasks are to be claimed.
    fn is_done(&self) -> bool {
        self.is_stopping()
            || self.bounds.max_tasks.is_some_and(|most| self.claimed_total >= most)
            || (self.last_claim_was_empty && self.idle_left().is_some_and(|left| left.is_zero()))
    }

    fn is_stopping(&self) -> bool {
        self.stop.is_finishing() || self.fatal.is_some()
    }

    /// How much longer it may be idle; `None` while it isn't idle or if there is no limit.
    fn idle_left(&self) -> Option<Duration> {
        let most = self.bounds.idle_exit.filter(|_| self.running.is_empty())?;
        Some(most.saturating_sub(self.idle_since.elapsed()))
    }

    /// How many tasks it may claim now.
    fn slots(&self) -> usize {
        let free = self.bounds.concurrency.saturating_sub(self.running.len());
        let left = self.bounds.max_tasks.map_or(u64::MAX, |most| most.saturating_sub(self.claimed_total));
        free.min(CLAIM_MAX).min(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// Claims tasks. A claim's answer is awaited even if the worker is asked to stop meanwhile: tasks in an answer that
    /// isn't read would be leased without a worker until their leases expire.
    async fn claim(&mut self, max: usize) -> Result<Vec<ClaimedView>, ClientError> {
        let worker = Arc::clone(&self.worker);
        let idle_left =
            self.idle_left().map(|left| Millis::new(u64::try_from(left.as_millis()).unwrap_or(u64::MAX)));
        let wait = idle_left.map_or(self.bounds.wait, |left| left.min(self.bounds.wait));
        let request = ClaimRequest {
            worker: Some(worker.name.clone()),
            version: worker.version.clone(),
            max: Some(ClaimCount(max)),
            lease: Some(worker.lease.into()),
            wait: Some(wait.into()),
            same_key: None,
            fill: None,
            provides: (!worker.provides.is_empty()).then(|| worker.provides.clone()),
        };
        let answer = worker.client.api().claim(&worker.queue, &request);
        tokio::pin!(answer);
        let stop = self.stop.clone();
        let mut last_moment = None;
        loop {
            tokio::select! {
                answer = &mut answer => return answer.map(|answer| answer.tasks),
                true = self.one_ended(), if !self.running.is_empty() => {}
                () = stop.finishing(), if last_moment.is_none() => {
                    last_moment = Some(Instant::now() + wait.into() + LAST_ANSWER);
                }
                () = sleep_until(last_moment.unwrap_or_else(Instant::now)), if last_moment.is_some() => {
                    return Ok(vec![]);
                }
                () = stop.aborting() => return Ok(vec![]),
            }
        }
    }

    fn take(&mut self, tasks: Vec<ClaimedView>) {
        self.failures.answered();
        self.last_claim_was_empty = tasks.is_empty();
        let is_stopping = self.is_stopping();
        for task in tasks {
            self.claimed_total += 1;
            let (worker, stop) = (Arc::clone(&self.worker), self.stop.clone());
            let attempt = Attempt { worker, task, claimed_at: Instant::now(), stop };
            self.running.spawn(async move {
                if is_stopping { attempt.release().await } else { attempt.run().await }
            });
        }
    }

    async fn claim_failed(&mut self, error: ClientError) {
        self.last_claim_was_empty = true;
        let pause = match self.failures.failed(error, &self.worker.queue, &self.worker.place) {
            Ok(pause) => self.idle_left().map_or(pause, |left| left.min(pause)),
            Err(error) => {
                self.fatal = Some(anyhow::Error::new(error).context("can't claim tasks"));
                return;
            }
        };
        let stop = self.stop.clone();
        // Either way, the caller checks again what to do.
        drop(timeout(pause, stop.finishing()).await);
    }

    /// Waits until a task ends here; false if there is none.
    async fn one_ended(&mut self) -> bool {
        let Some(ended) = self.running.join_next().await else { return false };
        self.note(ended);
        true
    }

    fn note(&mut self, ended: Result<Ending, JoinError>) {
        self.idle_since = Instant::now();
        match ended {
            Ok(ending) => {
                self.tally.add(&ending);
                if let Ending::Unstartable(error) = ending {
                    let program = self.worker.command.first().map(|program| program.to_string_lossy());
                    let problem = format!("can't start {}", program.unwrap_or_default());
                    self.fatal = Err::<(), _>(error).context(problem).err();
                }
            }
            // The task becomes available again when the lease expires. The command was killed when the attempt was
            // dropped.
            Err(error) => tracing::error!(%error, "an attempt panicked or was aborted"),
        }
    }
}
