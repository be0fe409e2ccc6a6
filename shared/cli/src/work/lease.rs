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
const READ_TIMEOUT_AFTER: Duration = Duration::from_millis(200);

/// Why a command has to end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    /// A cancellation of the task was requested.
    Cancelled,
    /// The server refused the heartbeat with this error: this worker no longer has the lease.
    Refused(String),
    /// The attempt's deadline passed, by this machine's clock.
    DeadlinePassed,
    /// The lease couldn't be extended in time. Another worker may have the task now.
    LeaseExpired,
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
pub(super) async fn keep(worker: &Worker, task: &ClaimedView, claimed_at: Instant) -> StopReason {
    let mut state = LeaseState {
        deadline: later(claimed_at, task.remaining_ms),
        end: claimed_at + worker.lease.into(),
        every: worker.heartbeat_every,
        next_beat: worker.heartbeat_every.map(|every| claimed_at + every),
    };
    let mut read_at =
        worker.heartbeat_every.filter(|_| worker.adapts).map(|_| claimed_at + READ_TIMEOUT_AFTER);
    loop {
        tokio::select! {
            biased;
            () = at(state.deadline) => return StopReason::DeadlinePassed,
            () = sleep_until(state.end) => return StopReason::LeaseExpired,
            () = at(read_at) => {
                read_at = None;
                adapt(worker, task, &mut state, claimed_at).await;
            }
            () = at(state.next_beat) => {
                if let Some(reason) = send_heartbeat(worker, task, &mut state).await {
                    return reason;
                }
            }
        }
    }
}

/// Sends three heartbeats in each heartbeat timeout of the task, if that is shorter than the lease.
async fn adapt(worker: &Worker, task: &ClaimedView, state: &mut LeaseState, claimed_at: Instant) {
    let answer = timeout_at(state.end, worker.client.api().task(&task.id)).await;
    let Ok(Ok(described)) = answer.map(|answer| answer.map(|answer| answer.task)) else {
        // Heartbeats continue at the interval derived from the lease.
        tracing::debug!({ field::TASK_ID } = %task.id, "the task's heartbeat timeout couldn't be read");
        return;
    };
    let since = described.current_attempt().and_then(|attempt| attempt.claimed_at);
    if let (Some(heartbeat_at), Some(since)) = (described.heartbeat_at, since) {
        // Both instants are the server's: they aren't compared with a clock of this machine.
        let third = Duration::from(heartbeat_at.since(*since)) / 3;
        state.every = state.every.map(|every| every.min(third));
        state.next_beat = state.every.map(|every| claimed_at + every);
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
async fn send_heartbeat(worker: &Worker, task: &ClaimedView, state: &mut LeaseState) -> Option<StopReason> {
    let every = state.every?;
    let sent_at = Instant::now();
    let until = state.deadline.map_or(state.end, |deadline| deadline.min(state.end));
    let bound = every.clamp(HEARTBEAT_TIMEOUT.0, HEARTBEAT_TIMEOUT.1);
    let request = HeartbeatRequest { lease: task.lease.clone(), progress: None };
    let call = timeout(bound, worker.client.api().heartbeat(&task.id, &request));
    let error = match timeout_at(until, call).await {
        Ok(Ok(Ok(answer))) => {
            count(&worker.heartbeats.extended);
            extend(state, &answer, worker, sent_at);
            return answer.cancel_requested.then_some(StopReason::Cancelled);
        }
        Ok(Ok(Err(error))) if ends_attempt(&error) => {
            count(&worker.heartbeats.refused);
            return Some(StopReason::Refused(error.to_string()));
        }
        Ok(Ok(Err(error))) => error.to_string(),
        Ok(Err(late)) => late.to_string(),
        Err(_) => {
            count(&worker.heartbeats.unanswered);
            // The lease or the deadline has passed: the caller decides which.
            return None;
        }
    };
    count(&worker.heartbeats.unanswered);
    tracing::warn!({ field::TASK_ID } = %task.id, error, "heartbeat not answered, retrying");
    state.next_beat = Some(Instant::now() + (every / 4).clamp(RETRY_DELAY.0, RETRY_DELAY.1));
    None
}

fn extend(state: &mut LeaseState, answer: &HeartbeatAnswer, worker: &Worker, sent_at: Instant) {
    // Counted from the sending: the server can't have extended it earlier.
    state.end = sent_at + worker.lease.into();
    state.next_beat = state.every.map(|every| sent_at + every);
    // An attempt's deadline never moves later, but the time each answer takes would move it.
    let remaining = later(Instant::now(), answer.remaining_ms);
    state.deadline = [state.deadline, remaining].into_iter().flatten().min();
}

/// Whether the attempt is over for this worker: it no longer has the lease.
fn ends_attempt(error: &ClientError) -> bool {
    let over = ["lease_lost", "already_terminal", "deadline_exceeded", "not_found"];
    error.code().is_some_and(|code| over.contains(&code))
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
