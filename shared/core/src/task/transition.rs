//! The state transitions of a task, which all commands share. This module doesn't know the commands.

use crate::command::Context;
use crate::duration::Millis;
use crate::failure::Failure;
use crate::flow::Paced;
use crate::gate::{CLOCKS, line};
use crate::limits::{self, ATTEMPT_ERROR_BYTES, ATTEMPTS_KEPT, CONTROL_RECORD_BYTES, ERROR_BYTES};
use crate::parked::Parked;
use crate::size;
use crate::task::command::Claim;
use crate::task::{Ended, Ending, Outcome, PastAttempt, Pending, Running, State, Task};
use crate::time::{Timestamp, earliest};
use crate::timeout::{OnTimeout, TimeoutKind};

/// Records the timeout that has passed. Returns the changed task, or `None` if no timeout has passed.
pub(crate) fn expire(task: &Task, context: &Context<'_>) -> Option<Task> {
    let (kind, expired_at) = expired(task, context.now)?;
    let mut task = task.clone();
    let on_timeout = on_timeout(&task, kind);
    let error = timeout_error(&task, kind, expired_at);
    let cancelling = end_attempt(&mut task, Ending::TimedOut(kind), Some(&error), context.now);
    let otherwise = match on_timeout {
        OnTimeout::Cancel => Outcome::Cancelled { timeout: Some(kind) },
        OnTimeout::Retry | OnTimeout::Terminal => Outcome::TimedOut { kind, error: error.clone() },
    };
    retry_or_finish(&mut task, cancelling, on_timeout == OnTimeout::Retry, &error, otherwise, context);
    Some(task)
}

/// The timeout that has passed, by precedence, and the instant at which it expired.
pub(crate) fn expired(task: &Task, now: Timestamp) -> Option<(TimeoutKind, Timestamp)> {
    let (start, heartbeat, close) = match &task.state {
        State::Pending(pending) => (pending.schedule_to_start_at, None, None),
        State::Running(running) => (None, running.heartbeat_at, running.start_to_close_at),
        State::Ended(_) => return None,
    };
    [
        (TimeoutKind::ScheduleToClose, task.deadline_at),
        (TimeoutKind::ScheduleToStart, start),
        (TimeoutKind::Heartbeat, heartbeat),
        (TimeoutKind::StartToClose, close),
    ]
    .into_iter()
    .find_map(|(kind, at)| at.filter(|at| *at <= now).map(|at| (kind, at)))
}

fn on_timeout(task: &Task, kind: TimeoutKind) -> OnTimeout {
    let timeouts = &task.timeouts;
    let per_attempt = match kind {
        TimeoutKind::ScheduleToClose => {
            let is_error = timeouts.schedule_to_close.is_none_or(|timeout| timeout.is_error);
            return if is_error { OnTimeout::Terminal } else { OnTimeout::Cancel };
        }
        TimeoutKind::ScheduleToStart => timeouts.schedule_to_start,
        TimeoutKind::Heartbeat => timeouts.heartbeat,
        TimeoutKind::StartToClose => timeouts.start_to_close,
    };
    per_attempt.map_or(OnTimeout::Retry, |timeout| timeout.on_timeout)
}

fn timeout_error(task: &Task, kind: TimeoutKind, expired_at: Timestamp) -> Failure {
    let what = match kind {
        TimeoutKind::ScheduleToClose => "the task's deadline passed",
        TimeoutKind::ScheduleToStart => "no worker claimed it in time",
        TimeoutKind::Heartbeat => "the work gave no sign of life in time",
        TimeoutKind::StartToClose => "the attempt ran too long",
    };
    let message = format!("{what}: {} was {}", kind.as_str(), expired_at.to_rfc3339());
    Failure::new("timed_out", with_last_error(message, task))
}

fn with_last_error(message: String, task: &Task) -> String {
    // Attempts that were lost or released have no error, so the last error before them counts.
    match task.history.iter().rev().find_map(|past| past.error.as_ref()) {
        Some(last) => with_error(&message, last),
        None => message,
    }
}

fn with_error(message: &str, last: &Failure) -> String {
    let colon = if last.message.is_empty() { "" } else { ": " };
    format!("{message}; last error: {}{colon}{}", last.code, last.message)
}

/// Moves the current attempt to the history. Returns whether a cancellation was requested of its worker.
///
/// If `schedule_to_start` expires, the attempt of a pending task ends too. It counts like any other.
pub(crate) fn end_attempt(task: &mut Task, ending: Ending, error: Option<&Failure>, now: Timestamp) -> bool {
    let (past, cancelling) = match &task.state {
        State::Running(running) => (
            PastAttempt {
                attempt: task.attempt,
                lease: Some(running.lease),
                worker: running.worker.clone(),
                claimed_at: Some(running.claimed_at),
                ended_at: now,
                ending,
                error: error.map(|error| error.cut(ATTEMPT_ERROR_BYTES)),
            },
            running.cancel_requested,
        ),
        State::Pending(_) => {
            // The deadline over all attempts ends no attempt of a waiting task: only the task ends.
            if ending != Ending::TimedOut(TimeoutKind::ScheduleToStart) {
                return false;
            }
            task.attempt += 1;
            let past = PastAttempt {
                attempt: task.attempt,
                lease: None,
                worker: None,
                claimed_at: None,
                ended_at: now,
                ending,
                error: error.map(|error| error.cut(ATTEMPT_ERROR_BYTES)),
            };
            (past, false)
        }
        State::Ended(_) => return false,
    };
    let was_shared = task.running().is_some_and(|running| running.shared);
    task.history.push(past);
    let surplus = task.history.len().saturating_sub(ATTEMPTS_KEPT);
    task.history.drain(..surplus);
    match ending {
        Ending::Lost => {
            // If several attempts ran in the process, the cause of the loss is unknown.
            task.losses += u32::from(!was_shared);
            task.attempt = task.attempt.saturating_sub(1);
        }
        Ending::Released => {
            task.losses = 0;
            task.attempt = task.attempt.saturating_sub(1);
        }
        Ending::Completed | Ending::Failed | Ending::TimedOut(_) | Ending::Cancelled => task.losses = 0,
    }
    cancelling
}

/// Waits for another attempt if the policy and the deadline allow one. Otherwise ends the task.
pub(crate) fn retry_or_finish(
    task: &mut Task,
    cancelling: bool,
    retryable: bool,
    error: &Failure,
    otherwise: Outcome,
    context: &Context<'_>,
) {
    if cancelling {
        return finish(task, Outcome::Cancelled { timeout: None }, context);
    }
    if !retryable || !task.retry.attempts_left(task.attempt) {
        return finish(task, otherwise, context);
    }
    let delay = task.retry.delay_before_next(task.attempt, task.seed());
    let start = context.now.plus(delay);
    match task.deadline_at.filter(|deadline| start >= *deadline) {
        Some(deadline) => {
            let outcome = doomed(task, error, start, deadline);
            finish(task, outcome, context);
        }
        None => wait_from(task, start, context.now),
    }
}

/// The outcome of a task whose next attempt could only start after the deadline.
fn doomed(task: &Task, error: &Failure, start: Timestamp, deadline: Timestamp) -> Outcome {
    let kind = TimeoutKind::ScheduleToClose;
    if on_timeout(task, kind) == OnTimeout::Cancel {
        return Outcome::Cancelled { timeout: Some(kind) };
    }
    let reason = format!(
        "not retried: attempt {} would start at {}, and the deadline is {}",
        task.attempt + 1,
        start.to_rfc3339(),
        deadline.to_rfc3339(),
    );
    Outcome::TimedOut { kind, error: Failure::new("timed_out", with_error(&reason, error)) }
}

/// Makes the task wait for a worker from `available_at` on.
pub(crate) fn wait_from(task: &mut Task, available_at: Timestamp, now: Timestamp) {
    let available_at = available_at.max(now);
    start_time(task, now);
    task.hinted_at = None;
    task.parked = Parked::No;
    task.state = State::Pending(Pending {
        available_at,
        schedule_to_start_at: task.timeouts.schedule_to_start.map(|timeout| available_at.plus(timeout.after)),
        hint_later: is_later_than_a_delay(available_at, now),
        // The writer of the record knows its version, and sets this.
        since_version: 0,
        unread_since: None,
    });
}

/// Whether a queue can't delay the hint of this start for so long, so that the tick sends it.
pub(crate) fn is_later_than_a_delay(available_at: Timestamp, now: Timestamp) -> bool {
    available_at.since(now) > limits::QUEUE_DELAY_MAX
}

/// As [`wait_from`], for a task that a worker released. No attempt was used, so `schedule_to_start` continues where
/// the claim stopped it. Otherwise a worker that claims and releases the task repeatedly would keep it from
/// expiring.
pub(crate) fn resume_wait(task: &mut Task, now: Timestamp) {
    let left = task.running().and_then(|running| running.start_left);
    wait_from(task, now, now);
    if let (State::Pending(pending), Some(left)) = (&mut task.state, left) {
        pending.schedule_to_start_at = Some(now.plus(left));
    }
}

/// While its execution is paused, a task that waits is parked and has no deadline.
pub(crate) const fn hold(task: &mut Task) {
    task.parked = Parked::Paused;
    task.deadline_at = None;
    if let State::Pending(pending) = &mut task.state {
        pending.schedule_to_start_at = None;
    }
}

/// After that, its time starts afresh.
pub(crate) fn start_time(task: &mut Task, now: Timestamp) {
    if task.is_held() {
        task.deadline_at = task.timeouts.schedule_to_close.map(|timeout| now.plus(timeout.after));
    }
    if let State::Pending(pending) = &mut task.state
        && task.parked.is_paused()
        && pending.schedule_to_start_at.is_none()
    {
        let starts_at = pending.available_at.max(now);
        pending.schedule_to_start_at =
            task.timeouts.schedule_to_start.map(|timeout| starts_at.plus(timeout.after));
    }
}

/// A parked task waits for a worker again.
pub(crate) fn unpark(task: &mut Task, now: Timestamp) {
    start_time(task, now);
    task.parked = Parked::No;
    task.hinted_at = Some(now);
}

/// Grants a worker the lease on the task.
pub(crate) fn start_attempt(task: &mut Task, claim: &Claim, now: Timestamp) {
    start_time(task, now);
    let start_left = match &task.state {
        State::Pending(pending) => pending.schedule_to_start_at.map(|at| at.since(now)),
        State::Running(running) => running.start_left,
        State::Ended(_) => None,
    };
    let start_to_close_at = task.timeouts.start_to_close.map(|timeout| now.plus(timeout.after));
    let lease_expires_at = lease_end(now, claim.length, start_to_close_at, task.deadline_at);
    task.attempt += 1;
    task.hinted_at = None;
    task.parked =
        task.parked.in_line().filter(|_| line::keeps(task.gates())).map_or(Parked::No, Parked::InLine);
    // Each start is reserved for one attempt.
    task.paced_mut().into_iter().for_each(Paced::forget_start);
    task.state = State::Running(Running {
        lease: claim.lease,
        worker: claim.worker.clone(),
        claimed_at: now,
        lease_length: claim.length,
        lease_expires_at: claim.places.map_or(lease_expires_at, |places| {
            // A lease never outlives the places that the attempt has.
            lease_expires_at.min(places.until.minus(CLOCKS))
        }),
        start_to_close_at,
        heartbeat_at: task.timeouts.heartbeat.map(|timeout| now.plus(timeout.after)),
        start_left,
        shared: claim.isolation.is_shared(),
        inside: claim.inside,
        cancel_requested: false,
    });
}

/// When a lease granted or extended now ends: never after the attempt's own end.
pub(crate) fn lease_end(
    now: Timestamp,
    length: Millis,
    start_to_close_at: Option<Timestamp>,
    deadline_at: Option<Timestamp>,
) -> Timestamp {
    let full = now.plus(length);
    earliest([Some(full), start_to_close_at, deadline_at]).unwrap_or(full)
}

pub(crate) fn finish(task: &mut Task, outcome: Outcome, context: &Context<'_>) {
    task.hinted_at = None;
    task.parked = Parked::No;
    task.paced_mut().into_iter().for_each(Paced::forget_start);
    task.state = State::Ended(Ended {
        outcome,
        ended_at: context.now,
        expires_at: context.now.plus(context.limits.kept(task.parent.is_some())),
    });
}

/// Bytes that a running task's record may still grow by until its next attempt runs: the attempt that has ended, a lost
/// worker, a hint that was sent again, a start that is reserved by a rate.
const NEXT_ATTEMPT_BYTES: usize = 110;
const NEXT_START_BYTES: usize = 60;
/// Bytes of the details in the record without their text.
const DETAILS_NAME_BYTES: usize = 9;

/// What is cut until the record is within its byte budget, in this order.
const CUTS: [fn(&mut Task); 15] = [
    |task| cut_history(task, 60),
    |task| cut_history(task, 20),
    |task| cut_history(task, 0),
    |task| task.history.iter_mut().for_each(|past| past.worker = None),
    |task| task.history.iter_mut().for_each(|past| past.error = None),
    drop_oldest,
    drop_oldest,
    // Before the last error's message, which would be stored again as a whole if it were cut.
    Task::forget_step,
    |task| cut_outcome(task, 60),
    |task| task.flow.iter_mut().for_each(|flow| flow.fairness_text.clear()),
    drop_worker,
    |task| task.progress = None,
    |task| task.history.iter_mut().for_each(|past| past.claimed_at = None),
    |task| task.trace = None,
    |task| task.by = None,
];

/// Cuts texts that only people read until the record is within its byte budget. Details are dropped only after the task
/// has ended: [`space_for_details`] leaves space for everything before.
///
/// The shortest form fits every task that scheduling accepts.
pub(crate) fn fit(task: &mut Task) {
    cut_outcome(task, ERROR_BYTES);
    let last: [fn(&mut Task); 2] = [|task| task.details = None, |task| cut_outcome(task, 0)];
    for cut in CUTS.into_iter().chain(last) {
        if size::of(task) <= CONTROL_RECORD_BYTES {
            return;
        }
        cut(task);
    }
}

/// How many bytes of details the record has space for, from now until the task ends, if everything else that may be cut
/// is cut.
pub(crate) fn space_for_details(task: &Task) -> usize {
    let mut shortest = task.clone();
    for cut in CUTS {
        cut(&mut shortest);
    }
    shortest.details = None;
    shortest.history.clear();
    let start = if task.paced().is_some() { NEXT_START_BYTES } else { 0 };
    let taken = size::of(&shortest) + DETAILS_NAME_BYTES + NEXT_ATTEMPT_BYTES + start;
    CONTROL_RECORD_BYTES.saturating_sub(taken)
}

fn cut_history(task: &mut Task, bytes: usize) {
    for past in &mut task.history {
        past.error = past.error.as_ref().map(|error| error.cut(bytes));
    }
}

/// The latest attempt stays, because a worker may still report on its lease.
fn drop_oldest(task: &mut Task) {
    if task.history.len() > 1 {
        task.history.remove(0);
    }
}

fn drop_worker(task: &mut Task) {
    if let State::Running(running) = &mut task.state {
        running.worker = None;
    }
}

fn cut_outcome(task: &mut Task, bytes: usize) {
    if let State::Ended(ended) = &mut task.state {
        match &mut ended.outcome {
            Outcome::TimedOut { error, .. } | Outcome::Failed { error, .. } => *error = error.cut(bytes),
            Outcome::Completed { .. } | Outcome::Cancelled { .. } | Outcome::Skipped => {}
        }
    }
}
