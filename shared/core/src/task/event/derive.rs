//! Derives the events from a record before and after a write.

use super::{EndedAttempt, Event, EventType, Expiry, FORMAT};
use crate::command::Context;
use crate::limits::Limits;
use crate::task::transition;
use crate::task::{Ended, Ending, Outcome, PastAttempt, State, Task};
use crate::time::Timestamp;
use crate::timeout::TimeoutKind;

/// The events of the write of `after` over `before`, in order. Heartbeats and second probes have none.
///
/// `before` is absent if the write created the task. `now` is the time of the decision.
pub fn events(before: Option<&Task>, after: &Task, now: Timestamp) -> Vec<Event> {
    let changes = match before {
        None => created(after),
        Some(before) => match ended_before_revival(before, after, now) {
            Some(ended) => {
                let mut changes = changed(before, &ended, now);
                changes.extend(changed(&ended, after, now));
                changes
            }
            None => changed(before, after, now),
        },
    };
    // The write may have used the space of the name.
    let step = after.step().or_else(|| before?.step());
    let event = |(attempt, what)| Event { step: step.cloned(), ..event_of(after, attempt, what, now) };
    changes.into_iter().map(event).collect()
}

/// An event's type, and the number of the attempt that it is about.
type Change = (u32, EventType);

fn event_of(task: &Task, attempt: u32, what: EventType, at: Timestamp) -> Event {
    Event {
        v: FORMAT,
        what,
        task_id: task.id.clone(),
        incarnation: task.incarnation,
        version: task.version,
        queue: task.queue.clone(),
        task_kind: task.kind.clone(),
        execution_id: task.execution_id().cloned(),
        step: task.step().cloned(),
        attempt,
        trace: task.trace,
        at,
    }
}

fn created(task: &Task) -> Vec<Change> {
    let available_at = match &task.state {
        State::Pending(pending) => Some(pending.available_at),
        State::Running(_) | State::Ended(_) => None,
    };
    let mut changes = vec![(0, EventType::TaskScheduled { available_at, deadline_at: task.deadline_at })];
    if task.ended().is_some() {
        changes.push((0, EventType::TaskSkipped));
    }
    changes
}

/// An operator's retry may be the first call after a timeout has passed. Then one write ends and revives the task,
/// and this is the ended state between the two.
fn ended_before_revival(before: &Task, after: &Task, now: Timestamp) -> Option<Task> {
    let revived = after.revived_at.is_some() && after.revived_at != before.revived_at;
    // The limits only affect how long the record is kept.
    let limits = Limits::default();
    let context = Context { now, nonce: after.nonce, limits: &limits, by: None };
    (revived && before.ended().is_none()).then(|| transition::expire(before, &context)).flatten()
}

fn changed(before: &Task, after: &Task, now: Timestamp) -> Vec<Change> {
    let mut changes = Vec::new();
    let ended = after.ended().filter(|_| before.ended().is_none());
    let past = ended_attempt(before, after);
    if let Some(past) = &past
        && let Ending::TimedOut(kind) = past.what.outcome
        && ended.and_then(timeout_of) != Some(kind)
    {
        let (expiry, attempt) = (expiry(before, kind, now), past.what.clone());
        changes.push((past.number, EventType::AttemptTimedOut { expiry, attempt }));
    }
    let was = past.as_ref().map(|past| past.what.outcome);
    match (ended, past) {
        (Some(ended), past) => {
            let number = past.as_ref().map_or(after.attempt, |past| past.number);
            changes.push((number, end(before, ended, past, now)));
        }
        (None, Some(Past { number, what: attempt, error_code })) => {
            let retry_at = retry_at(after, now);
            changes.push((number, EventType::TaskRetrying { attempt, error_code, retry_at }));
        }
        (None, None) if before.ended().is_some() && after.status().is_live() => {
            changes.push((after.attempt, EventType::TaskRevived));
        }
        (None, None) => {}
    }
    changes.extend(claim_or_cancel_request(before, after, was, now));
    changes
}

/// An attempt that a write ended.
struct Past {
    number: u32,
    what: EndedAttempt,
    error_code: Option<String>,
}

fn ended_attempt(before: &Task, after: &Task) -> Option<Past> {
    match &before.state {
        State::Running(running) => {
            let past = after.past_attempt(&running.lease)?;
            // The history in a full record may have lost these fields, so they come from the record before the
            // write.
            let (started_at, worker) = (Some(running.claimed_at), running.worker.clone());
            let what = EndedAttempt { outcome: past.ending, started_at, worker };
            Some(Past { number: before.attempt, what, error_code: reported_code(past) })
        }
        // `schedule_to_start` expired.
        State::Pending(_) => {
            let known = before.history.last().map(|past| (past.attempt, past.ended_at));
            let past = after.history.last().filter(|past| known != Some((past.attempt, past.ended_at)))?;
            let what = EndedAttempt { outcome: past.ending, started_at: None, worker: None };
            Some(Past { number: past.attempt, what, error_code: None })
        }
        State::Ended(_) => None,
    }
}

/// The code of a timeout or a loss is omitted: the event's other fields already say it.
fn reported_code(past: &PastAttempt) -> Option<String> {
    match past.ending {
        Ending::Failed => past.error.as_ref().map(|error| error.code.clone()),
        Ending::Completed | Ending::TimedOut(_) | Ending::Released | Ending::Lost | Ending::Cancelled => None,
    }
}

fn end(before: &Task, ended: &Ended, past: Option<Past>, now: Timestamp) -> EventType {
    let (attempt, reported) = past.map(|past| (past.what, past.error_code)).unzip();
    match &ended.outcome {
        Outcome::Completed { .. } => EventType::TaskCompleted { attempt },
        Outcome::Failed { error, .. } => EventType::TaskFailed { error_code: error.code.clone(), attempt },
        Outcome::TimedOut { kind, .. } => {
            let expiry = expiry(before, *kind, now);
            EventType::TaskTimedOut { expiry, attempt, error_code: reported.flatten() }
        }
        Outcome::Cancelled { timeout } => {
            EventType::TaskCancelled { expiry: timeout.map(|kind| expiry(before, kind, now)), attempt }
        }
        Outcome::Skipped => EventType::TaskSkipped,
    }
}

/// The timeout that ended the task.
fn timeout_of(ended: &Ended) -> Option<TimeoutKind> {
    match ended.outcome {
        Outcome::TimedOut { kind, .. } => Some(kind),
        Outcome::Cancelled { timeout } => timeout,
        Outcome::Completed { .. } | Outcome::Failed { .. } | Outcome::Skipped => None,
    }
}

fn expiry(before: &Task, kind: TimeoutKind, now: Timestamp) -> Expiry {
    let (start, heartbeat, close) = match &before.state {
        State::Pending(pending) => (pending.schedule_to_start_at, None, None),
        State::Running(running) => (None, running.heartbeat_at, running.start_to_close_at),
        State::Ended(_) => (None, None, None),
    };
    let set_to = match kind {
        TimeoutKind::ScheduleToClose => before.deadline_at,
        TimeoutKind::ScheduleToStart => start,
        TimeoutKind::Heartbeat => heartbeat,
        TimeoutKind::StartToClose => close,
    };
    // A timeout that expired had been set.
    let deadline_at = set_to.unwrap_or(now);
    Expiry { kind, deadline_at, lateness: now.since(deadline_at), doomed: now < deadline_at }
}

fn retry_at(after: &Task, now: Timestamp) -> Timestamp {
    match &after.state {
        State::Pending(pending) => pending.available_at,
        // The same write claimed or ended it.
        State::Running(_) | State::Ended(_) => now,
    }
}

/// A claim, or a request to its worker to stop.
fn claim_or_cancel_request(
    before: &Task,
    after: &Task,
    past: Option<Ending>,
    now: Timestamp,
) -> Option<Change> {
    let running = after.running()?;
    if let Some(same) = before.running().filter(|same| same.lease == running.lease) {
        let asked = running.cancel_requested && !same.cancel_requested;
        return asked.then_some((after.attempt, EventType::TaskCancelRequested));
    }
    let free_since = match (&before.state, past) {
        (State::Pending(pending), None) => pending.available_at,
        (State::Running(lost), Some(Ending::Lost)) => lost.lease_expires_at,
        // It became available in this write.
        (State::Pending(_) | State::Running(_) | State::Ended(_), _) => now,
    };
    let worker = running.worker.clone();
    Some((after.attempt, EventType::TaskStarted { worker, waited: now.since(free_since) }))
}
