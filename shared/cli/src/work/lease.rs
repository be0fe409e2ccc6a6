//! The lease of a task while its command runs: heartbeats, and their answers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tickover::client::ClientError;
use tickover_service::telemetry::field;
use tickover_wire::answer::{ClaimedView, HeartbeatAnswer};
use tickover_wire::request::HeartbeatRequest;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::Worker;

/// Shortest and longest time between tries of a heartbeat that wasn't answered.
const RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Shortest and longest timeout of a heartbeat: shorter than most leases, so that there is time to retry.
const HEARTBEAT_TIMEOUT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// How long a task has run before its own heartbeat timeout is read with another call: a claim's answer doesn't contain
/// it, and most tasks end earlier.
const LOOK_AFTER: Duration = Duration::from_millis(200);

/// Why a command has to end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A cancellation of the task was requested.
    Cancelled,
    /// The server refused the heartbeat with this error: this worker no longer has the lease.
    Refused(String),
    /// The attempt's deadline passed, by this machine's clock.
    DeadlinePassed,
    /// The lease couldn't be extended in time. Another worker may have the task now.
    RanOut,
}

/// The state of the lease. Instants are from the monotonic clock, so a wrong wall clock has no effect.
struct LeaseState {
    deadline: Option<Instant>,
    /// When the lease expires without another heartbeat.
    end: Instant,
    /// Time between heartbeats.
    every: Option<Duration>,
    next_beat: Option<Instant>,
}

/// Extends the lease for as long as it is polled. Resolves when the command has to end.
///
/// The first heartbeat is sent after a third of the lease or of the task's heartbeat timeout. A shorter task sends
/// none.
pub(super) async fn keep(worker: &Worker, task: &ClaimedView, claimed_at: Instant) -> Verdict {
    let mut hold = LeaseState {
        deadline: later(claimed_at, task.remaining_ms),
        end: claimed_at + worker.lease.into(),
        every: worker.beat,
        next_beat: worker.beat.map(|beat| claimed_at + beat),
    };
    let mut look_at = worker.beat.filter(|_| worker.adapts).map(|_| claimed_at + LOOK_AFTER);
    loop {
        tokio::select! {
            biased;
            () = at(hold.deadline) => return Verdict::DeadlinePassed,
            () = sleep_until(hold.end) => return Verdict::RanOut,
            () = at(look_at) => {
                look_at = None;
                adapt(worker, task, &mut hold, claimed_at).await;
            }
            () = at(hold.next_beat) => {
                if let Some(verdict) = beat(worker, task, &mut hold).await {
                    return verdict;
                }
            }
        }
    }
}

/// Sends three heartbeats in each heartbeat timeout of the task, if that is shorter than the lease.
async fn adapt(worker: &Worker, task: &ClaimedView, hold: &mut LeaseState, claimed_at: Instant) {
    let answer = timeout_at(hold.end, worker.client.api().task(&task.id)).await;
    let Ok(Ok(described)) = answer.map(|answer| answer.map(|answer| answer.task)) else {
        // Heartbeats continue at the interval derived from the lease.
        tracing::debug!({ field::TASK_ID } = %task.id, "the task's heartbeat timeout couldn't be read");
        return;
    };
    let since = described.current_attempt().and_then(|attempt| attempt.claimed_at);
    if let (Some(heartbeat_at), Some(since)) = (described.heartbeat_at, since) {
        // Both instants are the server's: they aren't compared with a clock of this machine.
        let third = Duration::from(heartbeat_at.since(*since)) / 3;
        hold.every = hold.every.map(|every| every.min(third));
        hold.next_beat = hold.every.map(|every| claimed_at + every);
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

/// Sends one heartbeat. It doesn't wait beyond the lease or the deadline.
async fn beat(worker: &Worker, task: &ClaimedView, hold: &mut LeaseState) -> Option<Verdict> {
    let every = hold.every?;
    let sent_at = Instant::now();
    let until = hold.deadline.map_or(hold.end, |deadline| deadline.min(hold.end));
    let bound = every.clamp(HEARTBEAT_TIMEOUT.0, HEARTBEAT_TIMEOUT.1);
    let request = HeartbeatRequest { lease: task.lease.clone(), progress: None };
    let call = timeout(bound, worker.client.api().heartbeat(&task.id, &request));
    let error = match timeout_at(until, call).await {
        Ok(Ok(Ok(renewed))) => {
            count(&worker.beats.renewed);
            renew(hold, &renewed, worker, sent_at);
            return renewed.cancel_requested.then_some(Verdict::Cancelled);
        }
        Ok(Ok(Err(error))) if ends_attempt(&error) => {
            count(&worker.beats.refused);
            return Some(Verdict::Refused(error.to_string()));
        }
        Ok(Ok(Err(error))) => error.to_string(),
        Ok(Err(late)) => late.to_string(),
        Err(_) => {
            count(&worker.beats.unanswered);
            // The lease or the deadline has passed: the caller decides which.
            return None;
        }
    };
    count(&worker.beats.unanswered);
    tracing::warn!({ field::TASK_ID } = %task.id, error, "heartbeat not answered, retrying");
    hold.next_beat = Some(Instant::now() + (every / 4).clamp(RETRY_DELAY.0, RETRY_DELAY.1));
    None
}

fn renew(hold: &mut LeaseState, renewed: &HeartbeatAnswer, worker: &Worker, sent_at: Instant) {
    // Counted from the sending: the server can't have extended it earlier.
    hold.end = sent_at + worker.lease.into();
    hold.next_beat = hold.every.map(|every| sent_at + every);
    // An attempt's deadline never moves later, but the time each answer takes would move it.
    let told = later(Instant::now(), renewed.remaining_ms);
    hold.deadline = [hold.deadline, told].into_iter().flatten().min();
}

/// Whether the attempt is over for this worker: it no longer has the lease.
fn ends_attempt(error: &ClientError) -> bool {
    let over = ["lease_lost", "already_terminal", "deadline_exceeded", "not_found"];
    error.code().is_some_and(|code| over.contains(&code))
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
