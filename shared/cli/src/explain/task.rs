//! Why a task is in its state, what happens next, and when.

use tickover_core::id::{Capability, QueueName, WorkerName};
use tickover_core::retry::MaxAttempts;
use tickover_core::task::Status;
use tickover_core::time::Timestamp;
use tickover_core::timeout::TimeoutKind;
use tickover_wire::answer::{AttemptOutcome, TaskView, WaitsAtView};
use tickover_wire::{OpenEnum, OpenTimeoutKind, Words as _};

use super::{command, moment};
use crate::limits::waiting;
use crate::policy;
use crate::show::{count, error_line, words};

/// Most holders of places that are named.
const HOLDERS_NAMED: usize = 5;

/// The explanation, one sentence in a line, and below it the instants that apply to the task.
pub(crate) fn text(task: &TaskView, now: Timestamp) -> String {
    let mut lines = vec![why(task, now)];
    lines.extend(owner(task));
    lines.extend(task.by.as_ref().map(|by| format!("Operated last by {by}.")));
    lines.push(next(task, now));
    lines.push(attempts(task));
    lines.extend(policy::retry(task).map(|policy| format!("Retries: {policy}.")));
    lines.extend(last_error(task, now));
    lines.extend(bounds(task, now));
    lines.extend(lengths(task));
    lines.join("\n") + "\n"
}

fn why(task: &TaskView, now: Timestamp) -> String {
    let name = format!("Task {} (kind {}, queue {}) is {}", task.id, task.kind, task.queue, task.status);
    format!("{name}: {}.", reason(task, now))
}

/// The step that it is of an execution.
fn owner(task: &TaskView) -> Option<String> {
    let id = task.execution_id.as_ref()?;
    let step = task.step.as_ref().map_or_else(|| "a step".to_owned(), |step| format!("the step {step}"));
    Some(format!("It is {step} of the execution {id}; {} explains that.", command("explain", &[id])))
}

/// The lengths of its timeouts.
fn lengths(task: &TaskView) -> Option<String> {
    let all: Vec<_> =
        policy::timeouts(task).into_iter().map(|(name, length)| format!("{name} {length}")).collect();
    (!all.is_empty()).then(|| format!("Timeouts: {}.", all.join("; ")))
}

/// The reason for its state, as part of a sentence.
pub(crate) fn reason(task: &TaskView, now: Timestamp) -> String {
    let ended =
        task.last_attempt().and_then(|attempt| attempt.ended_at).map(|at| format!(" {}", moment(at, now)));
    let ended = ended.unwrap_or_default();
    let status = match &task.status {
        OpenEnum::Known(status) => *status,
        OpenEnum::Other(word) => return format!("the server is newer than this tool; its status is {word}"),
    };
    match status {
        Status::Pending => pending_reason(task, now),
        Status::Running => running_reason(task, now),
        Status::Completed => format!("attempt {} reported its result{ended}", task.attempt),
        Status::Failed => match task.error.as_ref().map(|error| error.code.as_str()) {
            Some("poisoned") => "too many workers in a row were lost while they had it".to_owned(),
            Some(_) | None if task.attempts_left() == Some(0) => {
                format!("attempt {} failed{ended}, and it was the last one", task.attempt)
            }
            Some(_) | None => {
                format!("attempt {} failed{ended} with an error that isn't retried", task.attempt)
            }
        },
        Status::TimedOut => format!("{}, and that is final", overrun(task.timeout_kind.as_ref())),
        Status::Cancelled => match task.timeout_kind.as_ref() {
            Some(kind) => format!("{}, which for this task is no error", overrun(Some(kind))),
            None => "somebody cancelled it".to_owned(),
        },
        Status::Skipped => "its policy allows 0 attempts, so it was never to run".to_owned(),
    }
}

fn pending_reason(task: &TaskView, now: Timestamp) -> String {
    if task.next.paused {
        return paused(&task.queue);
    }
    let missing: Vec<_> = task.next.unprovided.iter().map(Capability::as_str).collect();
    if !missing.is_empty() {
        return format!("no worker of queue {} has said that it provides {}", task.queue, missing.join(", "));
    }
    let last = task.last_attempt().and_then(|attempt| Some((attempt, attempt.outcome.as_ref()?.known()?)));
    if let Some(at) = task.available_at.filter(|at| at.0 > now) {
        let at = moment(at, now);
        if let Some(key) = &task.next.key {
            return format!("key {key:?} has reached its rate, which lets it start {at}");
        }
        return match last {
            Some((attempt, how @ (AttemptOutcome::Failed | AttemptOutcome::TimedOut))) => {
                format!(
                    "attempt {} {}, and the wait before the next one ends {at}",
                    attempt.attempt,
                    words(how.as_word())
                )
            }
            Some(_) | None => format!("it can't start before {at}"),
        };
    }
    let since = task.available_at.map(|at| format!(" since {}", at.to_rfc3339())).unwrap_or_default();
    if let Some(waits_at) = &task.waits_at {
        return held_back(waits_at, &since);
    }
    let waits =
        format!("it has been waiting for a worker of queue {} that knows its kind{since}", task.queue);
    match last {
        Some((_, AttemptOutcome::Lost)) => format!("{waits}; the worker that had it last was lost"),
        Some((_, AttemptOutcome::Released)) => format!("{waits}; the worker that had it last gave it back"),
        Some(_) | None => waits,
    }
}

/// Why nothing of a queue starts.
pub(super) fn paused(queue: &QueueName) -> String {
    format!("its queue {queue} is paused: no worker gets it")
}

/// What ends the pause of a queue.
pub(super) fn resumed(queue: &QueueName) -> String {
    format!("Next: nothing, until {}.", command("queue resume", &[queue]))
}

/// The limit that holds it back, who has the places, and its position.
pub(super) fn held_back(waits_at: &WaitsAtView, since: &str) -> String {
    let WaitsAtView { limit, position } = waits_at;
    let is_full = limit.limit.is_none_or(|most| limit.taken >= usize::from(most));
    let most = limit.limit.map_or_else(String::new, |most| format!(" of {most}"));
    let position = match position {
        Some(position) => format!("it is number {position} of {} that wait", waiting(limit)),
        None => format!("{} wait before it", waiting(limit)),
    };
    if !is_full {
        return format!(
            "it waits for one of the free places of key {:?}{since}; {position}, and it is called once workers of its \
             queue come",
            limit.key
        );
    }
    let holders: Vec<String> =
        limit.holders.iter().take(HOLDERS_NAMED).map(|holder| holder.owner().to_string()).collect();
    let others = limit.taken.saturating_sub(holders.len());
    let others = if others > 0 { format!(" and {others} more") } else { String::new() };
    let have = format!("the places have {}{others}", holders.join(", "));
    format!("key {:?} has reached its limit{most}{since}; {position}, and {have}", limit.key)
}

fn running_reason(task: &TaskView, now: Timestamp) -> String {
    let current = task.current_attempt();
    let worker = current.and_then(|attempt| attempt.worker.as_ref()).map_or("a worker", WorkerName::as_str);
    let since = current.and_then(|attempt| attempt.claimed_at);
    let since = since.map(|at| format!(" since {}", at.to_rfc3339())).unwrap_or_default();
    let progress = task.progress.map(|part| format!(" and says it is {:.0} % done", part * 100.0));
    let details = task.details.as_ref().map(|details| format!(", with the details {}", details.as_str()));
    let has =
        format!("{worker} has had it{since}{}{}", progress.unwrap_or_default(), details.unwrap_or_default());
    match task.lease_expires_at {
        Some(at) if at.0 <= now => {
            format!("{has}, but its lease ran out {}: it may be lost", moment(at, now))
        }
        Some(_) | None => has,
    }
}

fn overrun(timeout_kind: Option<&OpenTimeoutKind>) -> String {
    match timeout_kind {
        Some(OpenEnum::Known(TimeoutKind::ScheduleToClose)) => {
            "its deadline over all attempts passed".to_owned()
        }
        Some(OpenEnum::Known(TimeoutKind::ScheduleToStart)) => "no worker claimed it in time".to_owned(),
        Some(OpenEnum::Known(TimeoutKind::Heartbeat)) => "its work gave no sign of life in time".to_owned(),
        Some(OpenEnum::Known(TimeoutKind::StartToClose)) => "an attempt ran too long".to_owned(),
        Some(OpenEnum::Other(other)) => format!("its timeout {other} passed"),
        None => "a timeout passed".to_owned(),
    }
}

fn next(task: &TaskView, now: Timestamp) -> String {
    let next = &task.next;
    let at = next.at.map(|at| moment(at, now)).unwrap_or_default();
    match next.what.as_str() {
        "becomes_available" | "waits_for_rate" => {
            format!("Next: from {at} on a worker of queue {} may have it.", task.queue)
        }
        "waits_for_place" => {
            "Next: it is called when it is its turn for a place; nothing limits the wait.".to_owned()
        }
        "queue_paused" => resumed(&task.queue),
        "waits_for_worker" => "Next: the first worker that asks gets it; nothing limits the wait.".to_owned(),
        "schedule_to_close_timeout" => format!("Next: unless it has ended by {at}, it times out for good."),
        "schedule_to_start_timeout" => {
            format!("Next: unless a worker claims it by {at}, this attempt times out.")
        }
        "heartbeat_timeout" => format!("Next: unless its worker heartbeats by {at}, this attempt times out."),
        "start_to_close_timeout" => format!("Next: unless it is done by {at}, this attempt times out."),
        "lease_expires" => format!(
            "Next: its worker has to extend its lease by {at} or report; otherwise another worker takes the task over."
        ),
        "deleted" => format!("Next: nothing, until the record is deleted {at}.{}", revival(task)),
        other => format!("Next: {} {at}.", words(other)),
    }
}

fn revival(task: &TaskView) -> String {
    match task.status.known() {
        Some(Status::Failed | Status::TimedOut | Status::Cancelled) => {
            format!(" {} gives it another life.", command("retry", &[&task.id]))
        }
        Some(Status::Pending | Status::Running | Status::Completed | Status::Skipped) | None => String::new(),
    }
}

fn attempts(task: &TaskView) -> String {
    let used = task.attempt;
    let left = match task.attempts_left() {
        None => "any number may follow".to_owned(),
        Some(_) if !task.is_live() => "none will follow".to_owned(),
        Some(0) => "this is the last one".to_owned(),
        Some(left) => format!("{left} left"),
    };
    match task.max_attempts.0 {
        MaxAttempts::Skip => "Attempts: none.".to_owned(),
        MaxAttempts::Unlimited => format!("Attempts: {used} used, {left}."),
        MaxAttempts::Limited(limit) => format!("Attempts: {used} of {limit} used, {left}."),
    }
}

fn last_error(task: &TaskView, now: Timestamp) -> Option<String> {
    if let Some((attempt, error)) = task.last_error() {
        let at = attempt.ended_at.map(|at| format!(", {}", moment(at, now))).unwrap_or_default();
        return Some(format!("Last error: {} (attempt {}{at}).", error_line(error), attempt.attempt));
    }
    task.error.as_ref().map(|error| format!("Error: {}.", error_line(error)))
}

/// Every instant that applies to it, the earliest first.
fn bounds(task: &TaskView, now: Timestamp) -> Vec<String> {
    if !task.is_live() {
        let deadline = task.deadline_at.map(|at| format!("Its deadline was {}.", at.to_rfc3339()));
        return deadline.into_iter().collect();
    }
    let mut bounds: Vec<_> = [
        ("the whole task must have ended", task.deadline_at),
        ("a worker must have claimed it", task.schedule_to_start_at),
        ("this attempt must have ended", task.start_to_close_at),
        ("the worker must have sent a heartbeat", task.heartbeat_at),
        ("the worker must have renewed its lease", task.lease_expires_at),
    ]
    .into_iter()
    .filter_map(|(what, at)| at.map(|at| (at, what)))
    .collect();
    if bounds.is_empty() {
        return vec!["No deadline or timeout binds it.".to_owned()];
    }
    bounds.sort_by_key(|(at, _)| at.0);
    let heading = format!("It is bound by {}:", count(bounds.len(), "instant"));
    let lines = bounds.iter().map(|(at, what)| format!("  {}: {what}", moment(*at, now)));
    std::iter::once(heading).chain(lines).collect()
}

#[cfg(test)]
mod tests;
