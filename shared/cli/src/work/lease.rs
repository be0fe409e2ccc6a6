//! The hold on a task while its command runs: heartbeats, and the news they bring.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tickover::client::ClientError;
use tickover_service::telemetry::field;
use tickover_wire::answer::{ClaimedView, HeartbeatAnswer};
use tickover_wire::request::HeartbeatRequest;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::Worker;

/// Between tries of a heartbeat that wasn't answered.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How long a heartbeat's answer may take: shorter than most leases, so that there is time for another try.
const ANSWER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// How long a task has run when its own heartbeat timeout is looked up: a claim doesn't tell it, and most tasks
/// are over by then.
const LOOK_AFTER: Duration = Duration::from_millis(200);

/// Why a command has to end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Somebody wants the task cancelled.
    Cancelled,
    /// The task is no longer ours, says the server with this code.
    Refused(String),
    /// The attempt's deadline passed, by our own clock.
    DeadlinePassed,
    /// The lease couldn't be renewed in time: somebody else may have the task by now.
    RanOut,
}

/// What is known of the hold. Instants are of the monotonic clock, so a wrong wall clock does no harm.
struct Hold {
    deadline: Option<Instant>,
    /// When the lease runs out unless it is renewed.
    end: Instant,
    /// Time between heartbeats.
    every: Option<Duration>,
    next_beat: Option<Instant>,
}

/// Renews the lease for as long as it is polled; answers when the command has to end.
///
/// The first heartbeat comes after a third of the lease or of the task's heartbeat timeout: a shorter task never
/// sends one.
pub(super) async fn keep(worker: &Worker, task: &ClaimedView, claimed_at: Instant) -> Verdict {
    let mut hold = Hold {
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

/// Beats three times in the task's own heartbeat timeout, where it has one that is shorter than the lease.
async fn adapt(worker: &Worker, task: &ClaimedView, hold: &mut Hold, claimed_at: Instant) {
    let answer = timeout_at(hold.end, worker.client.api().task(&task.id)).await;
    let Ok(Ok(described)) = answer.map(|answer| answer.map(|answer| answer.task)) else {
        // Heartbeats go on at the lease's own pace.
        tracing::debug!({ field::TASK_ID } = %task.id, "heartbeat timeout not looked up");
        return;
    };
    let since = described.current_attempt().and_then(|attempt| attempt.claimed_at);
    if let (Some(heartbeat_at), Some(since)) = (described.heartbeat_at, since) {
        // Both are the server's instants: no clock of ours is compared with them.
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
    // A deadline so far away that the clock can't hold it binds nobody.
    remaining_ms.and_then(|ms| than.checked_add(Duration::from_millis(ms)))
}

/// Sends one heartbeat. It never outlasts the hold.
async fn beat(worker: &Worker, task: &ClaimedView, hold: &mut Hold) -> Option<Verdict> {
    let every = hold.every?;
    let sent_at = Instant::now();
    let until = hold.deadline.map_or(hold.end, |deadline| deadline.min(hold.end));
    let bound = every.clamp(ANSWER.0, ANSWER.1);
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
            // The hold has run out: the caller's next look tells by which instant.
            return None;
        }
    };
    count(&worker.beats.unanswered);
    tracing::warn!({ field::TASK_ID } = %task.id, error, "heartbeat not answered, trying again");
    hold.next_beat = Some(Instant::now() + (every / 4).clamp(TRY_AGAIN.0, TRY_AGAIN.1));
    None
}

fn renew(hold: &mut Hold, renewed: &HeartbeatAnswer, worker: &Worker, sent_at: Instant) {
    // Counted from the sending: the server can't have renewed it any earlier.
    hold.end = sent_at + worker.lease.into();
    hold.next_beat = hold.every.map(|every| sent_at + every);
    // An attempt's deadline never moves later, but each answer takes its time on the way.
    let told = later(Instant::now(), renewed.remaining_ms);
    hold.deadline = [hold.deadline, told].into_iter().flatten().min();
}

/// Whether the attempt is over for this worker: it holds the task no more.
fn ends_attempt(error: &ClientError) -> bool {
    let over = ["lease_lost", "already_terminal", "deadline_exceeded", "not_found"];
    error.code().is_some_and(|code| over.contains(&code))
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
