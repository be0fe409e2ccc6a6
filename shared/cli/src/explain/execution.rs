//! Why an execution is in its state, what happens next, and when.

use std::collections::{BTreeMap, BTreeSet};

use tickover_core::execution::{DeadlineKind, ExecutionStatus};
use tickover_core::id::{EventName, TaskId, WorkerName};
use tickover_core::natural;
use tickover_core::retry::MaxAttempts;
use tickover_core::time::Timestamp;
use tickover_wire::answer::{CauseCategory, ExecutionView};
use tickover_wire::{Attempts, Instant, Length, OpenEnum};

use super::task::{held_back, paused, resumed};
use super::{command, moment};
use crate::execution::show::waited;
use crate::show::{error_line, words};

/// Facts for the explanation that aren't in the execution's view.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The number of pending events by name.
    pub(super) events: BTreeMap<EventName, u32>,
    /// What an operator did last.
    pub(super) operated: Option<String>,
    /// Names of stored results that the workflow's code doesn't ask for.
    pub(super) unused: BTreeSet<String>,
    /// Names of undo steps that have ended without being done.
    pub(super) not_undone: BTreeSet<String>,
    /// The statuses of the open remote steps, by task id.
    pub(super) tasks: BTreeMap<TaskId, String>,
}

/// The explanation, one sentence in a line.
pub(super) fn text(execution: &ExecutionView, facts: &Facts, now: Timestamp) -> String {
    let mut lines = vec![format!(
        "Execution {} (workflow {}, queue {}) is {} in its run {}: {}.",
        execution.id,
        execution.workflow,
        execution.queue,
        execution.status,
        execution.run,
        reason(execution, now)
    )];
    lines.extend(facts.operated.clone());
    lines.extend(trouble(execution, now));
    for wait in execution.waits_for.iter().flatten() {
        let status = wait.task.as_ref().and_then(|task| facts.tasks.get(task));
        let status = status.map(|status| format!(": {status}")).unwrap_or_default();
        lines.push(format!("  open: {}{status}", waited(wait)));
    }
    lines.extend(waiting_events(execution, &facts.events));
    lines.extend(changed(&facts.unused));
    lines.extend(undo(&facts.not_undone, execution));
    lines.push(next(execution, now));
    lines.extend(bounds(execution, now));
    lines.join("\n") + "\n"
}

fn reason(execution: &ExecutionView, now: Timestamp) -> String {
    let ended = execution.ended_at.map(|at| format!(" {}", moment(at, now))).unwrap_or_default();
    let status = match &execution.status {
        OpenEnum::Known(status) => *status,
        OpenEnum::Other(word) => return format!("the server is newer than this tool; its status is {word}"),
    };
    match status {
        ExecutionStatus::Pending => pending_reason(execution, now),
        ExecutionStatus::Running => {
            let worker = execution.worker.as_ref().map_or("a worker", WorkerName::as_str);
            let since = execution.claimed_at.map(|at| format!(" since {}", at.to_rfc3339()));
            format!("{worker} has had it{}", since.unwrap_or_default())
        }
        ExecutionStatus::Waiting => {
            let since = execution.waiting_since.map(|at| format!(" since {}", at.to_rfc3339()));
            format!(
                "nothing runs{} until an event, a timer or other work wakes it",
                since.unwrap_or_default()
            )
        }
        ExecutionStatus::Paused => "an operator holds it, while its deadlines keep running".to_owned(),
        ExecutionStatus::Completed => format!("its code gave a result{ended}"),
        ExecutionStatus::Failed => format!("{}{ended}", failure(execution)),
        ExecutionStatus::TimedOut => match &execution.timeout_kind {
            Some(kind) if *kind == DeadlineKind::Run => format!("the deadline of its run passed{ended}"),
            Some(_) | None => format!("its deadline over all runs passed{ended}"),
        },
        ExecutionStatus::Cancelled => match &execution.cause {
            Some(cause) if cause.category == CauseCategory::Terminated => {
                format!("somebody ended it by force{ended}")
            }
            Some(_) | None => format!("somebody cancelled it{ended}"),
        },
    }
}

fn pending_reason(execution: &ExecutionView, now: Timestamp) -> String {
    if execution.next.paused {
        return paused(&execution.queue);
    }
    let Some(at) = execution.available_at else {
        return format!("it waits for a worker of queue {}", execution.queue);
    };
    if at.0 > now {
        let at = moment(at, now);
        return match &execution.next.key {
            Some(key) => format!("by the rate of the key {key:?}, it can't start before {at}"),
            None if execution.next.what == "run_starts" => {
                format!("its run {} failed, and another one follows", execution.run.saturating_sub(1))
            }
            None => format!("its next turn can't start before {at}"),
        };
    }
    let since = format!(" since {}", at.to_rfc3339());
    match &execution.waits_at {
        Some(waits_at) => held_back(waits_at, &since),
        None => format!("it has been waiting for a worker of queue {}{since}", execution.queue),
    }
}

fn failure(execution: &ExecutionView) -> String {
    match execution.cause.as_ref().and_then(|cause| cause.step.as_ref().map(|step| (cause, step))) {
        Some((cause, step)) if cause.retries_exhausted == Some(true) => {
            format!("its step {step} failed at the last of its attempts, and with it the code")
        }
        Some((_, step)) => format!("its step {step} failed, and with it the code"),
        None => "its code gave an error".to_owned(),
    }
}

/// The problems that it has or had.
fn trouble(execution: &ExecutionView, now: Timestamp) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(stuck) = &execution.stuck {
        lines.push(format!("It is stuck: {}.", error_line(stuck)));
    }
    if let Some(failing) = &execution.failing {
        let error =
            failing.error.as_ref().map(|error| format!(" ({})", error_line(error))).unwrap_or_default();
        let by = format!(" by {}", moment(failing.deadline_at, now));
        let what = if failing.status == ExecutionStatus::Cancelled { "was cancelled" } else { "has failed" };
        lines.push(format!("It {what}{error}; its own code for that must be done{by}."));
    }
    if execution.cancel_requested == Some(true) && execution.is_live() {
        lines.push(format!(
            "Somebody asked to cancel it: its code stops at its next step, and its undo steps run. {} ends it without \
             them.",
            command("execution terminate", &[&execution.id])
        ));
    }
    if let Some(error) = &execution.error {
        lines.push(format!("Error: {}.", error_line(error)));
    }
    lines
}

/// A note that the code has changed since the run started.
fn changed(unused: &BTreeSet<String>) -> Option<String> {
    let names: Vec<_> = unused.iter().map(String::as_str).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Its code has changed: it doesn't ask for what is remembered of {}. A step that was renamed runs again.",
            names.join(", ")
        )
    })
}

fn undo(not_undone: &BTreeSet<String>, execution: &ExecutionView) -> Option<String> {
    let names: Vec<_> = not_undone.iter().map(String::as_str).collect();
    let first = names.first()?;
    Some(format!(
        "What {} should undo isn't undone. {} tries that again.",
        names.join(", "),
        command("execution retry-step", &[&execution.id, first])
    ))
}

/// The pending events that the code hasn't taken and may never take.
fn waiting_events(execution: &ExecutionView, events: &BTreeMap<EventName, u32>) -> Option<String> {
    let mut counted: Vec<_> = events.iter().collect();
    counted.sort_by(|(one, _), (other, _)| natural::compare(one.as_str(), other.as_str()));
    let counted: Vec<_> = counted.into_iter().map(|(name, count)| format!("{name} ({count})")).collect();
    let shown = format!("{} shows them", command("execution events", &[&execution.id]));
    (!counted.is_empty()).then(|| format!("Events that nobody has taken: {}; {shown}.", counted.join(", ")))
}

fn next(execution: &ExecutionView, now: Timestamp) -> String {
    let next = &execution.next;
    let at = next.at.map(|at| moment(at, now)).unwrap_or_default();
    let (id, queue) = (&execution.id, &execution.queue);
    match next.what.as_str() {
        "becomes_available" => format!("Next: from {at} on a worker of queue {queue} may take it."),
        "run_starts" => format!("Next: run {} starts {at}{}.", execution.run, attempt(execution)),
        "queue_paused" => resumed(queue),
        "waits_for_worker" => {
            format!("Next: the first worker of queue {queue} that asks takes its next turn.")
        }
        "lease_expires" => {
            format!(
                "Next: its worker has to write or send a heartbeat by {at}; otherwise another worker takes over."
            )
        }
        "step_times_out" => format!(
            "Next: an attempt's time will be over; unless its worker reports its end by {at}, another takes over."
        ),
        "wakes_up" => format!("Next: it goes on by itself {at}."),
        "looks_again" => format!("Next: it checks whether the work that it waits for has ended, {at}."),
        "waits_for_others" => format!(
            "Next: an event or the end of what it waits for; nothing limits the wait. {} sends an event.",
            command("event", &[id, &"NAME"])
        ),
        "waits_for_operator" => format!("Next: nothing, until {}.", command("execution resume", &[id])),
        "execution_timeout" => format!("Next: unless it has ended by {at}, it times out."),
        "run_timeout" => format!("Next: unless its run has ended by {at}, it times out."),
        "on_failure_timeout" => {
            format!("Next: unless its code for failures is done by {at}, it stays failed.")
        }
        "on_cancel_timeout" => {
            format!("Next: its code for cancellations has until {at}; then it is cancelled in any case.")
        }
        "closes" => "Next: the steps and children it left open are ended.".to_owned(),
        "deleted" => format!("Next: nothing, until the record is deleted {at}.{}", revival(execution)),
        other => format!("Next: {} {at}.", words(other)),
    }
}

/// Which attempt its run is.
fn attempt(execution: &ExecutionView) -> String {
    let (Some(attempt), Some(Attempts(attempts))) = (execution.attempt, execution.max_attempts) else {
        return String::new();
    };
    match attempts {
        MaxAttempts::Limited(limit) => format!(", as attempt {attempt} of {limit}"),
        MaxAttempts::Skip | MaxAttempts::Unlimited => format!(", as attempt {attempt}"),
    }
}

fn revival(execution: &ExecutionView) -> String {
    let id = &execution.id;
    let step = execution.cause.as_ref().and_then(|cause| cause.step.as_ref());
    match (execution.status.known(), step) {
        (Some(ExecutionStatus::Failed), Some(step)) => format!(
            " {} retries that step, `rerun` all steps that failed.",
            command("execution retry-step", &[id, step])
        ),
        (Some(ExecutionStatus::Failed | ExecutionStatus::TimedOut | ExecutionStatus::Cancelled), _) => {
            format!(" {} starts a new run.", command("execution restart", &[id]))
        }
        (
            Some(
                ExecutionStatus::Pending
                | ExecutionStatus::Running
                | ExecutionStatus::Waiting
                | ExecutionStatus::Paused
                | ExecutionStatus::Completed,
            )
            | None,
            _,
        ) => String::new(),
    }
}

/// The deadlines, the earliest first.
fn bounds(execution: &ExecutionView, now: Timestamp) -> Vec<String> {
    let mut bounds: Vec<_> = [
        ("all its runs together must have ended", execution.deadline_at),
        ("this run must have ended", execution.run_deadline_at),
    ]
    .into_iter()
    .filter_map(|(what, at)| at.map(|at| (at, what)))
    .collect();
    if !execution.is_live() {
        let were = [
            ("Its deadline over all runs was", execution.deadline_at, execution.execution_timeout),
            ("The deadline of its last run was", execution.run_deadline_at, execution.run_timeout),
        ];
        let line = |(what, at, length): (&str, Option<Instant>, Option<Length>)| {
            let after = length.map(|length| format!(", after {length}")).unwrap_or_default();
            Some(format!("{what} {}{after}.", at?.to_rfc3339()))
        };
        return were.into_iter().filter_map(line).collect();
    }
    if bounds.is_empty() {
        return vec!["No deadline binds it.".to_owned()];
    }
    bounds.sort_by_key(|(at, _)| at.0);
    let lines = bounds.into_iter().map(|(at, what)| format!("  {}: {what}", moment(at, now)));
    std::iter::once("It is bound by:".to_owned()).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::explain::timeline::{not_undone, unused};
    use tickover_wire::answer::TimelineEntryView;

    const NOW: &str = "2026-01-31T12:00:00.000Z";

    fn waiting() -> Value {
        json!({"id": "order-7", "workflow": "orders", "queue": "workflows", "run": 2, "status": "waiting",
            "created_at": NOW, "run_started_at": NOW, "open_steps": 0, "pending_events": 0,
            "next": {"what": "waits_for_others"}})
    }

    #[track_caller]
    fn assert_says(fields: &Value, sentences: &[&str]) {
        let mut execution = waiting();
        for (name, value) in fields.as_object().expect("an object") {
            execution[name] = value.clone();
        }
        let execution: ExecutionView = serde_json::from_value(execution).expect("an execution");
        let events = [("shipped", 2), ("note-10", 1), ("note-9", 1)];
        let events = events.into_iter().filter(|_| execution.pending_events > 0);
        let events = events.map(|(name, count)| (EventName::parse(name).expect("a name"), count)).collect();
        let tasks =
            [(TaskId::parse("s-1").expect("an id"), "pending, as kind label: nobody knows it".to_owned())]
                .into();
        let facts = Facts { events, tasks, ..Facts::default() };
        let said = text(&execution, &facts, Timestamp::parse_rfc3339(NOW).expect("an instant"));
        for sentence in sentences {
            assert!(said.contains(sentence), "{sentence:?} should be in:\n{said}");
        }
    }

    #[test]
    fn a_waiting_execution_lists_its_waits_and_deadlines() {
        assert_says(
            &json!({"status": "waiting", "waiting_since": "2026-01-31T11:00:00.000Z",
                "deadline_at": "2026-01-31T13:00:00.000Z", "waits_for": [
                    {"kind": "step", "name": "label[0]", "task": "s-1"},
                    {"kind": "timer", "name": "settle", "until": "2026-01-31T12:30:00.000Z"},
                    {"kind": "event", "event": "approved"},
                    {"kind": "timer", "name": "event:tickover.cb.1.bank", "event": "tickover.cb.1.bank", "callback": "bank",
                        "until": "2026-01-31T12:30:00.000Z"}],
                "next": {"what": "wakes_up", "at": "2026-01-31T12:30:00.000Z"}}),
            &[
                "Execution order-7 (workflow orders, queue workflows) is waiting in its run 2: nothing runs",
                "open: step label[0] (task s-1): pending, as kind label: nobody knows it\n",
                "open: event approved\n",
                "open: callback bank until 2026-01-31T12:30:00.000Z\n",
                "open: timer settle until 2026-01-31T12:30:00.000Z",
                "Next: it goes on by itself 2026-01-31T12:30:00.000Z (in 30m).",
                "(in 1h): all its runs together must have ended",
            ],
        );
    }

    #[test]
    fn an_ended_execution_still_says_its_deadlines_and_their_lengths() {
        assert_says(
            &json!({"status": "completed", "ended_at": NOW, "deadline_at": "2026-01-31T13:00:00.000Z",
                "execution_timeout": "1h", "run_deadline_at": "2026-01-31T12:30:00.000Z"}),
            &[
                "Its deadline over all runs was 2026-01-31T13:00:00.000Z, after 1h.",
                "The deadline of its last run was 2026-01-31T12:30:00.000Z.",
            ],
        );
    }

    #[test]
    fn results_that_changed_code_does_not_ask_for_are_named() {
        let entry = |kind: &str, name: &str| {
            serde_json::from_value(json!({"at": NOW, "kind": kind, "name": name})).expect("an entry")
        };
        let timeline = [entry("drift", "charge"), entry("step_completed", "ship"), entry("drift", "charge")];
        let unused = unused(&timeline);
        let execution: ExecutionView = serde_json::from_value(waiting()).expect("an execution");
        let now = Timestamp::parse_rfc3339(NOW).expect("an instant");
        let said = text(&execution, &Facts { unused, ..Facts::default() }, now);
        assert!(said.contains("it doesn't ask for what is remembered of charge. A step"), "{said}");
        assert!(!text(&execution, &Facts::default(), now).contains("has changed"));
    }

    #[test]
    fn an_undo_step_that_failed_for_good_is_named_with_the_call_that_tries_it_again() {
        let entry = |kind: &str, name: &str| {
            serde_json::from_value(json!({"at": NOW, "kind": kind, "name": name})).expect("an entry")
        };
        let failed = [entry("step_failed", "ship"), entry("step_exhausted", "undo:refund")];
        let execution: ExecutionView = serde_json::from_value(waiting()).expect("an execution");
        let now = Timestamp::parse_rfc3339(NOW).expect("an instant");
        let said = |timeline: &[TimelineEntryView]| {
            text(&execution, &Facts { not_undone: not_undone(timeline), ..Facts::default() }, now)
        };
        let said_of_it =
            format!("`tickover execution retry-step {} undo:refund` tries that again", execution.id);
        assert!(said(&failed).contains(&said_of_it), "{}", said(&failed));
        let again = [entry("step_exhausted", "undo:refund"), entry("step_reopened", "undo:refund")];
        assert!(!said(&again).contains("undo:refund"));
    }

    #[test]
    fn a_running_execution_lists_its_recorded_attempts() {
        assert_says(
            &json!({"status": "running", "worker": "w", "waits_for": [
                    {"kind": "attempt", "name": "charge", "attempt": 2, "until": "2026-01-31T12:01:00.000Z"}],
                "next": {"what": "step_times_out", "at": "2026-01-31T12:01:01.000Z"}}),
            &[
                "open: attempt 2 of step charge until 2026-01-31T12:01:00.000Z",
                "unless its worker reports its end by 2026-01-31T12:01:01.000Z (in 1m 1s), another takes over.",
            ],
        );
    }

    #[test]
    fn pending_events_are_named_and_counted() {
        for status in ["waiting", "completed"] {
            assert_says(
                &json!({"status": status, "pending_events": 4}),
                &[
                    "Events that nobody has taken: note-9 (1), note-10 (1), shipped (2); `tickover execution events \
                   order-7` shows them.",
                ],
            );
        }
    }

    #[test]
    fn a_failed_execution_names_its_step_and_the_next_call() {
        assert_says(
            &json!({"status": "failed", "ended_at": "2026-01-31T11:59:00.000Z",
                "error": {"code": "payment", "message": "declined"},
                "cause": {"category": "step", "step": "charge", "retries_exhausted": true},
                "next": {"what": "deleted", "at": "2026-03-01T00:00:00.000Z"}}),
            &[
                "its step charge failed at the last of its attempts, and with it the code",
                "Error: payment: declined.",
                "`tickover execution retry-step order-7 charge`",
            ],
        );
    }

    #[test]
    fn a_stuck_or_paused_execution_explains_how_to_resume_it() {
        assert_says(
            &json!({"status": "paused", "stuck": {"code": "unreadable_result", "message": "step charge"},
                "next": {"what": "waits_for_operator"}}),
            &[
                "an operator holds it, while its deadlines keep running",
                "It is stuck: unreadable_result: step charge.",
                "until `tickover execution resume order-7`",
                "No deadline binds it.",
            ],
        );
    }

    #[test]
    fn a_retried_run_has_its_attempt_and_its_start() {
        let at = "2026-01-31T12:00:04.000Z";
        let fields = |attempts: i32| {
            json!({"status": "pending", "available_at": at, "run_started_at": at, "attempt": 2,
                "max_attempts": attempts, "next": {"what": "run_starts", "at": at}})
        };
        let starts = "Next: run 2 starts 2026-01-31T12:00:04.000Z (in 4s), as attempt 2";
        let of_four = format!("{starts} of 4.");
        assert_says(
            &fields(4),
            &["is pending in its run 2: its run 1 failed, and another one follows.", &of_four],
        );
        assert_says(&fields(-1), &[&format!("{starts}.")]);
    }

    #[test]
    fn each_passed_deadline_has_its_scope() {
        for (kind, said) in [("execution", "over all runs passed"), ("run", "the deadline of its run passed")]
        {
            assert_says(&json!({"status": "timed_out", "timeout_kind": kind}), &[said]);
        }
        let failing = json!({"status": "timed_out", "error": {"code": "timed_out", "message": ""}, "deadline_at": "2026-01-31T12:01:00.000Z"});
        assert_says(
            &json!({"status": "pending", "failing": failing}),
            &[
                "It has failed (timed_out); its own code for that must be done by 2026-01-31T12:01:00.000Z (in 1m).",
            ],
        );
    }

    #[test]
    fn a_cancellation_says_what_runs_after_it() {
        let at = "2026-01-31T12:01:00.000Z";
        let handled = json!({"status": "cancelled", "deadline_at": at});
        let next = json!({"what": "on_cancel_timeout", "at": at});
        assert_says(
            &json!({"status": "pending", "failing": handled, "next": next}),
            &[
                "It was cancelled; its own code for that must be done by 2026-01-31T12:01:00.000Z (in 1m).",
                "Next: its code for cancellations has until 2026-01-31T12:01:00.000Z (in 1m); then it is cancelled",
            ],
        );
        assert_says(
            &json!({"status": "waiting", "cancel_requested": true}),
            &["its undo steps run. `tickover execution terminate"],
        );
    }
}
