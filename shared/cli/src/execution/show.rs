//! Executions as people read them.

use std::fmt::Write as _;

use comfy_table::{Table, presets};
use serde_json::{Map, Value};
use tickover_core::time::Timestamp;

use super::answer::{Event, Execution, Wait};
use crate::show::{count, excerpt, instant};

/// Characters of what else there is to say in a timeline's row.
const DETAIL_CHARS: usize = 100;

/// An execution with everything that is known of it.
pub(crate) fn execution(execution: &Execution) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{name:<16}{value}");
    };
    line("execution", &execution.id);
    line("workflow", &execution.workflow);
    line("queue", &execution.queue);
    line("status", &status(execution));
    line("run", &execution.run.to_string());
    for (name, at, length) in instants(execution) {
        if let Some(at) = at {
            let length = length.as_ref().map(|length| format!(" ({length})")).unwrap_or_default();
            line(name, &format!("{}{length}", at.to_rfc3339()));
        }
    }
    let texts = [
        ("on failure", &execution.on_failure_timeout),
        ("worker", &execution.worker),
        ("timed out", &execution.timeout_kind),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            line(name, value);
        }
    }
    if let Some(parent) = &execution.parent {
        line("parent", &format!("{} (run {})", parent.id, parent.run));
    }
    if execution.pending_events > 0 {
        line("pending events", &execution.pending_events.to_string());
    }
    for (name, value) in &execution.labels {
        line("label", &format!("{name}={value}"));
    }
    let payloads = [("memo", &execution.memo), ("input", &execution.input), ("output", &execution.output)];
    for (name, payload) in payloads {
        if let Some(payload) = payload {
            line(name, &excerpt(payload));
        }
    }
    let failing = execution.failing.as_ref().and_then(|failing| failing.error.as_ref());
    for (name, error) in
        [("stuck", execution.stuck.as_ref()), ("failing", failing), ("error", execution.error.as_ref())]
    {
        if let Some(error) = error {
            line(name, &format!("{}: {}", error.code, error.message));
        }
    }
    for wait in &execution.waits_for {
        line("waits for", &waited(wait));
    }
    if let Some(next) = &execution.next {
        let at = next.at.map(|at| format!(" at {}", at.to_rfc3339())).unwrap_or_default();
        line("next", &format!("{}{at}", words(&next.what)));
    }
    text
}

/// Many executions, one in a row.
pub(super) fn table(executions: &[Execution]) -> String {
    let mut table = new_table(["execution", "status", "run", "started", "deadline", "next", "at"]);
    for execution in executions {
        let (what, at) = match &execution.next {
            Some(next) => (words(&next.what), instant(next.at)),
            None => (String::new(), String::new()),
        };
        let (started, deadline) = (instant(execution.created_at), instant(execution.deadline_at));
        let run = execution.run.to_string();
        table.add_row([&execution.id, &status(execution), &run, &started, &deadline, &what, &at]);
    }
    format!("{table}\n{} shown\n", count(executions.len(), "execution"))
}

/// Events that wait, one in a row.
pub(super) fn events(events: &[Event]) -> String {
    let mut table = new_table(["event", "offered", "id", "payload"]);
    for event in events {
        let payload = event.payload.as_deref().map(excerpt).unwrap_or_default();
        let id = event.id.clone().unwrap_or_default();
        table.add_row([event.name.clone(), instant(event.offered_at), id, payload]);
    }
    format!("{table}\n{} waiting\n", count(events.len(), "event"))
}

/// What happened, one thing in a row.
pub(super) fn timeline(entries: &[Map<String, Value>]) -> String {
    let mut table = new_table(["at", "what", "name", "details"]);
    for entry in entries {
        let text = |name: &str| entry.get(name).map(plain).unwrap_or_default();
        let others = entry.iter().filter(|(name, _)| !["at", "kind", "name"].contains(&name.as_str()));
        let details: Vec<_> =
            others.map(|(name, value)| format!("{} {}", words(name), plain(value))).collect();
        let details: String = details.join(", ").chars().take(DETAIL_CHARS).collect();
        table.add_row([text("at"), words(&text("kind")), text("name"), details]);
    }
    format!("{table}\n")
}

/// What is waited for, in a few words.
pub(super) fn waited(wait: &Wait) -> String {
    let name = wait.name.as_deref().unwrap_or("any");
    let is = wait.task.as_ref().map(|id| format!(" (task {id})"));
    let is = is.or_else(|| wait.execution.as_ref().map(|id| format!(" (execution {id})")));
    let until = wait.until.map(|at| format!(" until {}", at.to_rfc3339())).unwrap_or_default();
    match wait.attempt {
        Some(attempt) => format!("{} {attempt} of step {name}{until}", wait.kind),
        None => format!("{} {name}{}{until}", wait.kind, is.unwrap_or_default()),
    }
}

fn new_table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(header);
    table
}

type Instant<'a> = (&'static str, Option<Timestamp>, &'a Option<String>);

fn instants(execution: &Execution) -> [Instant<'_>; 8] {
    [
        ("started", execution.created_at, &None),
        ("run started", execution.run_started_at.filter(|_| execution.run > 1), &None),
        ("available", execution.available_at, &None),
        ("deadline", execution.deadline_at, &execution.timeout),
        ("run deadline", execution.run_deadline_at, &execution.run_timeout),
        ("lease until", execution.lease_expires_at, &None),
        ("waiting since", execution.waiting_since, &None),
        ("ended", execution.ended_at, &None),
    ]
}

fn status(execution: &Execution) -> String {
    let notes = [(execution.cancel_requested, "to be cancelled"), (execution.closing, "closing")];
    let is_live = execution.status.is_live();
    let notes: Vec<_> = notes
        .into_iter()
        .filter(|(applies, note)| *applies && (is_live || *note == "closing"))
        .map(|(_, note)| note)
        .collect();
    if notes.is_empty() {
        return execution.status.to_string();
    }
    format!("{} ({})", execution.status, notes.join(", "))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}
