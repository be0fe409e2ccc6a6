//! The timeline of an execution as text, one line for each entry, for the output of a test.

use std::fmt::Write as _;

use tickover_core::execution::journal::{Entry, Happened, StepOutcome, is_start_of_child};
use tickover_core::execution::{Execution, ExecutionOutcome};
use tickover_core::payload::Payload;
use tickover_core::time::Timestamp;

/// Characters of a payload that a line shows.
const SHOWN_CHARS: usize = 60;

/// The timeline of an execution's last run.
pub(super) fn timeline(execution: &Execution, journal: &[Entry]) -> String {
    let mut lines: Vec<(Timestamp, String)> = Vec::new();
    let from = execution.run_started_at;
    let mut line = |at: Timestamp, what: &str| lines.push((at, what.to_owned()));
    let started =
        if execution.run == 1 { "started".to_owned() } else { format!("run {} began", execution.run) };
    line(from, &format!("{} {} {started}", execution.workflow, execution.id));
    for entry in journal {
        if matches!(&entry.what, Happened::Fired { name } if is_start_of_child(name)) {
            continue;
        }
        line(entry.at, &happened(&entry.what, from));
    }
    if let Some(failing) = &execution.failing {
        let (handler, length) = if failing.outcome.is_failure() {
            ("on_failure", execution.on_failure)
        } else {
            ("on_cancel", execution.on_cancel)
        };
        let at = failing.deadline_at.minus(length.unwrap_or_default());
        line(at, &format!("{handler} began: {}", ending(&failing.outcome)));
    }
    if let Some(closed) = execution.closed() {
        line(closed.ended_at, &ending(&closed.outcome));
    }
    // The journal has the end of a remote step where a turn has read it. The sort is stable.
    lines.sort_by_key(|(at, _)| *at);
    let mut text = String::new();
    for (at, what) in lines {
        // Writing to a text never fails.
        let _ = writeln!(text, "{:>14}  {what}", format!("+{}", at.since(from)));
    }
    text
}

fn happened(what: &Happened, from: Timestamp) -> String {
    let after = |at: Timestamp| format!("+{}", at.since(from));
    match what {
        Happened::Attempt { name, attempt, error: None, is_ongoing: true, progress, .. } => {
            let done = progress.map(|part| format!(": {:.0} %", part * 100.0)).unwrap_or_default();
            format!("step {name}: attempt {attempt} goes on{done}")
        }
        Happened::Attempt { name, attempt, error: None, .. } => {
            format!("step {name}: attempt {attempt} begins")
        }
        Happened::Attempt { name, attempt, error: Some(error), next_at, progress, .. } => {
            let next = next_at.map(|at| format!(", the next one at {}", after(at))).unwrap_or_default();
            let done = progress.map(|part| format!(" at {:.0} %", part * 100.0)).unwrap_or_default();
            format!("step {name}: attempt {attempt} failed{done}, {}: {}{next}", error.code, error.message)
        }
        Happened::Remote { name } => format!("step {name}: sent to other workers"),
        Happened::Child { name, execution, .. } => format!("{name}: child {execution} begun"),
        Happened::Step { name, outcome, attempts, expired, .. } => {
            let times = attempts.filter(|times| *times > 1).map(|times| format!(" in {times} attempts"));
            let limit = expired.map(|expired| format!(" ({})", expired.kind.as_str())).unwrap_or_default();
            format!("step {name}: {}{limit}{}", step_outcome(outcome), times.unwrap_or_default())
        }
        Happened::Reopened { name, .. } => format!("step {name}: to run again"),
        Happened::Captured { name, value } => format!("{name} = {}", shown(value)),
        Happened::Until { name, until } => format!("{name}: waits until {}", after(*until)),
        Happened::Fired { name } => format!("{name}: over"),
        Happened::Event { name, payload, .. } => {
            format!("event {name} came: {}", payload.as_ref().map_or_else(|| "null".to_owned(), shown))
        }
        Happened::Waited { name, event: Some(event) } => format!("{name}: took an event {event}"),
        Happened::Waited { name, event: None } => format!("{name}: no event came in time"),
        Happened::EventsCleared { name, count } => format!("{count} events {name} thrown away"),
        Happened::Patches { names } => format!("patches: {}", names.join(", ")),
        Happened::Note { kind, name, .. } => match name {
            Some(name) => format!("{kind} ({name})"),
            None => kind.clone(),
        },
    }
}

fn step_outcome(outcome: &StepOutcome) -> String {
    match outcome {
        StepOutcome::Completed { output } => {
            format!("completed with {}", output.as_ref().map_or_else(|| "nothing".to_owned(), shown))
        }
        StepOutcome::Failed { error } => format!("failed with {}", shown(error)),
        StepOutcome::Exhausted { error } => format!("failed for the last time, with {}", shown(error)),
        StepOutcome::TimedOut
        | StepOutcome::DeadlineExceeded
        | StepOutcome::Cancelled
        | StepOutcome::ResultExpired => outcome.as_str().to_owned(),
    }
}

fn ending(outcome: &ExecutionOutcome) -> String {
    match outcome {
        ExecutionOutcome::Completed { output } => {
            format!("completed with {}", output.as_ref().map_or_else(|| "nothing".to_owned(), shown))
        }
        ExecutionOutcome::Failed { error, step, .. } => {
            let place = step.as_ref().map(|step| format!(" by step {step}")).unwrap_or_default();
            format!("failed{place}, {}: {}", error.code, error.message)
        }
        ExecutionOutcome::TimedOut { kind } => format!("timed out: the {} deadline passed", kind.as_str()),
        ExecutionOutcome::Cancelled { terminated: true } => "terminated".to_owned(),
        ExecutionOutcome::Cancelled { terminated: false } => "cancelled".to_owned(),
    }
}

fn shown(payload: &Payload) -> String {
    match payload {
        Payload::Blob(blob) => format!("{} bytes", blob.bytes),
        Payload::Inline(json) => {
            let text = json.as_str();
            let short: String = text.chars().take(SHOWN_CHARS).collect();
            if short.len() < text.len() { format!("{short}…") } else { short }
        }
    }
}
