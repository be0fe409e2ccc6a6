//! The lease of a task while its command runs, and the signs of life of the command: heartbeats, and their answers.
//!
//! The worker keeps the lease by heartbeats of its own. They say nothing about the command: a task's heartbeat timeout
//! waits for what the command writes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tickover::client::ClientError;
use tickover_service::telemetry::field;
use tickover_wire::Progress;
use tickover_wire::answer::{ClaimedView, HeartbeatAnswer};
use tickover_wire::request::HeartbeatRequest;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::Worker;
use super::sign::Signs;

/// Shortest and longest time between tries of a heartbeat that wasn't answered.
const RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Shortest and longest timeout of a heartbeat: shorter than most leases, so that there is time to retry.
const HEARTBEAT_TIMEOUT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
/// The shortest time between two reports of progress of a task without a heartbeat timeout.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Why a command has to end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    /// A cancellation of the task was requested.
    Cancelled,
    /// The server refused the heartbeat with this error: this worker no longer has the lease.
    Refused(String),
    /// The attempt's deadline passed, by this machine's clock.
    DeadlinePassed,
    /// The command gave no sign of life within the task's heartbeat timeout.
    Silent,
    /// The lease couldn't be extended in time. Another worker may have the task now.
    LeaseExpired,
}

/// The state of the lease. Instants are from the monotonic clock, so a wrong wall clock has no effect.
pub(super) struct LeaseState {
    deadline: Option<Instant>,
    /// When the lease expires without another heartbeat.
    end: Instant,
    /// When the worker sends its next heartbeat.
    next_beat: Option<Instant>,
    /// The task's heartbeat timeout.
    timeout: Option<Duration>,
    /// When the command counts as hung without another sign of life.
    silent_at: Option<Instant>,
    /// The shortest time between two heartbeats for signs of the command.
    report_every: Duration,
    /// From when on the next one may be sent.
    reports_at: Instant,
    /// The signs that the server knows.
    sent: Signs,
    /// Whether the task's record had no space for the details.
    without_details: bool,
}

/// Extends the lease, and passes on the command's signs of life, for as long as it is polled. Resolves when the command
/// has to end.
///
/// The first heartbeat is sent after a third of the lease or of the task's heartbeat timeout. A shorter task sends
/// none.
pub(super) async fn keep(
    worker: &Worker,
    task: &ClaimedView,
    state: &mut LeaseState,
    mut signs: watch::Receiver<Signs>,
) -> StopReason {
    loop {
        let unsent = state.unsent(&signs.borrow_and_update());
        let reports_at = unsent.is_some().then_some(state.reports_at);
        tokio::select! {
            biased;
            () = at(state.deadline) => return StopReason::DeadlinePassed,
            () = sleep_until(state.end) => return StopReason::LeaseExpired,
            () = at(state.silent_at) => return StopReason::Silent,
            () = at([state.next_beat, reports_at].into_iter().flatten().min()) => {
                if let Some(reason) = send_heartbeat(worker, task, state, unsent).await {
                    return reason;
                }
            }
            // Signs that wait to be sent need no wake-up.
            Ok(()) = signs.changed(), if unsent.is_none() => {}
        }
    }
}

impl LeaseState {
    pub(super) fn new(worker: &Worker, task: &ClaimedView, claimed_at: Instant) -> Self {
        let timeout = task.heartbeat_timeout_ms.map(Duration::from_millis);
        let report_every = timeout.map_or(REPORT_INTERVAL, |timeout| timeout / 3);
        Self {
            deadline: later(claimed_at, task.remaining_ms),
            end: claimed_at + worker.lease.into(),
            next_beat: worker.heartbeat_every.map(|every| claimed_at + every),
            timeout,
            silent_at: later(claimed_at, task.heartbeat_timeout_ms),
            report_every,
            reports_at: claimed_at + report_every,
            sent: Signs::default(),
            without_details: false,
        }
    }

    /// Sends what the command has reported and the server doesn't know: the next attempt continues from there.
    pub(super) async fn send_values(&mut self, worker: &Worker, task: &ClaimedView, signs: &Signs) {
        if self.brings_values(signs) {
            // The attempt has ended, so the answer decides nothing.
            let _: Option<StopReason> = send_heartbeat(worker, task, self, Some(signs.clone())).await;
        }
    }

    fn brings_values(&self, signs: &Signs) -> bool {
        signs.progress != self.sent.progress || signs.details != self.sent.details
    }

    /// The signs that the server is to know. Output alone says nothing to a task without a heartbeat timeout.
    fn unsent(&self, signs: &Signs) -> Option<Signs> {
        let is_news =
            signs.number != self.sent.number && (self.timeout.is_some() || self.brings_values(signs));
        is_news.then(|| signs.clone())
    }

    fn request(&self, task: &ClaimedView, unsent: Option<&Signs>) -> HeartbeatRequest {
        HeartbeatRequest {
            lease: task.lease.clone(),
            progress: unsent.and_then(|signs| signs.progress).map(Progress),
            details: unsent.and_then(|signs| signs.details.clone()).filter(|_| !self.without_details),
            worker_only: unsent.is_none().then_some(true),
        }
    }

    /// Notes the answer to a heartbeat.
    fn note(&mut self, worker: &Worker, unsent: Option<Signs>, sent_at: Instant, answer: &HeartbeatAnswer) {
        // Counted from the sending: the server can't have extended it earlier.
        self.end = sent_at + worker.lease.into();
        self.next_beat = worker.heartbeat_every.map(|every| sent_at + every);
        if let Some(signs) = unsent {
            self.sent = signs;
            self.reports_at = sent_at + self.report_every;
            self.silent_at = self.timeout.and_then(|timeout| sent_at.checked_add(timeout));
        }
        // An attempt's deadline never moves later, but the time each answer takes would move it.
        let remaining = later(Instant::now(), answer.remaining_ms);
        self.deadline = [self.deadline, remaining].into_iter().flatten().min();
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

fn later(than: Instant, remaining_ms: Option<u64>) -> Option<Instant> {
    // A deadline beyond the clock's range is the same as none.
    remaining_ms.and_then(|ms| than.checked_add(Duration::from_millis(ms)))
}

/// Sends one heartbeat: of the worker alone, or with signs of the command. It doesn't wait beyond the lease or the
/// deadline.
async fn send_heartbeat(
    worker: &Worker,
    task: &ClaimedView,
    state: &mut LeaseState,
    unsent: Option<Signs>,
) -> Option<StopReason> {
    let sent_at = Instant::now();
    let until = [state.deadline, state.silent_at].into_iter().flatten().fold(state.end, Instant::min);
    let every = worker.heartbeat_every.map_or(state.report_every, |every| every.min(state.report_every));
    let bound = every.clamp(HEARTBEAT_TIMEOUT.0, HEARTBEAT_TIMEOUT.1);
    let request = state.request(task, unsent.as_ref());
    let call = timeout(bound, worker.client.api().heartbeat(&task.id, &request));
    let error = match timeout_at(until, call).await {
        Ok(Ok(Ok(answer))) => {
            count(&worker.heartbeats.extended);
            state.note(worker, unsent, sent_at, &answer);
            return answer.cancel_requested.then_some(StopReason::Cancelled);
        }
        Ok(Ok(Err(error))) if ends_attempt(&error) => {
            count(&worker.heartbeats.refused);
            return Some(StopReason::Refused(error.to_string()));
        }
        Ok(Ok(Err(error))) => {
            state.without_details |= error.code() == Some("limit_exceeded");
            error.to_string()
        }
        Ok(Err(late)) => late.to_string(),
        Err(_) => {
            count(&worker.heartbeats.unanswered);
            // One of the instants has passed: the caller decides which.
            return None;
        }
    };
    count(&worker.heartbeats.unanswered);
    tracing::warn!({ field::TASK_ID } = %task.id, error, "heartbeat not answered, retrying");
    let again_at = Instant::now() + (every / 4).clamp(RETRY_DELAY.0, RETRY_DELAY.1);
    state.next_beat = state.next_beat.map(|_| again_at);
    state.reports_at = again_at;
    None
}

/// Whether the attempt is over for this worker: it no longer has the lease.
fn ends_attempt(error: &ClientError) -> bool {
    let over = ["lease_lost", "already_terminal", "deadline_exceeded", "not_found"];
    error.code().is_some_and(|code| over.contains(&code))
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
