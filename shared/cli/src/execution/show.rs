//! Executions as text.

use comfy_table::{Table, presets};
use serde_json::Value;
use tickover_core::execution::ExecutionStatus;
use tickover_core::id::{EventId, StepName};
use tickover_wire::answer::{
    EarlierRunView, EventView, ExecutionView, TimelineEntryView, ValueView, WaitView, WorkflowView,
    WorkflowsAnswer,
};
use tickover_wire::{Instant, Length};

use crate::show::{count, excerpt, field, instant, next, words};

/// Most characters in the details column of a timeline's row.
const DETAIL_CHARS: usize = 100;

/// One execution with all its fields.
pub(crate) fn execution(execution: &ExecutionView) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| field(&mut text, name, value);
    line("execution", execution.id.as_str());
    line("workflow", execution.workflow.as_str());
    line("queue", execution.queue.as_str());
    line("status", &status(execution));
    line("run", &execution.run.to_string());
    for (name, at, length) in instants(execution) {
        match (at, length) {
            (Some(at), Some(length)) => line(name, &format!("{} ({length})", at.to_rfc3339())),
            (Some(at), None) => line(name, &at.to_rfc3339()),
            // The record had no space for the instant.
            (None, Some(length)) => line(name, &length.to_string()),
            (None, None) => {}
        }
    }
    let texts = [
        ("priority", execution.priority.as_ref().map(ToString::to_string)),
        ("on failure", execution.on_failure_timeout.map(|timeout| timeout.to_string())),
        ("worker", execution.worker.as_ref().map(ToString::to_string)),
        ("timed out", execution.timeout_kind.as_ref().map(ToString::to_string)),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            line(name, &value);
        }
    }
    if let Some(parent) = &execution.parent {
        line("parent", &format!("{} (run {})", parent.id, parent.run));
    }
    if let Some(completed) = execution.completed_steps.filter(|completed| *completed > 0) {
        line("completed steps", &completed.to_string());
    }
    if execution.pending_events > 0 {
        line("pending events", &execution.pending_events.to_string());
    }
    for (name, value) in execution.labels() {
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
    for published in &execution.values {
        let ValueView { name, value, .. } = published;
        line("published", &format!("{name} = {}", excerpt(value)));
    }
    for wait in execution.waits_for.iter().flatten() {
        line("waits for", &waited(wait));
    }
    line("next", &next(&execution.next));
    text
}

/// A table of executions.
pub(super) fn table(executions: &[ExecutionView]) -> String {
    let mut table = new_table(["execution", "status", "run", "started", "deadline", "next", "at"]);
    for execution in executions {
        let (what, at) = (words(&execution.next.what), instant(execution.next.at));
        let (started, deadline) = (execution.created_at.to_rfc3339(), instant(execution.deadline_at));
        let (id, run) = (execution.id.as_str(), execution.run.to_string());
        table.add_row([id, &status(execution), &run, &started, &deadline, &what, &at]);
    }
    format!("{table}\n{} shown\n", count(executions.len(), "execution"))
}

/// A table of workflows, with the number of executions of each status.
pub(super) fn counts(found: &WorkflowsAnswer) -> String {
    let statuses = ExecutionStatus::ALL.map(ExecutionStatus::as_str);
    let mut table = new_table(std::iter::once("workflow").chain(statuses));
    for WorkflowView { workflow, executions } in &found.workflows {
        let count = |status: &str| executions.get(status).map_or_else(String::new, u64::to_string);
        let row = std::iter::once(workflow.to_string()).chain(statuses.map(count));
        table.add_row(row);
    }
    let latest = match found.read {
        Some(read) if !found.complete => format!("; only the latest {read} executions are counted"),
        Some(_) | None => String::new(),
    };
    let as_of = found.as_of.to_rfc3339();
    format!("{table}\n{}{latest}, as of {as_of}\n", count(found.workflows.len(), "workflow"))
}

/// A table of pending events.
pub(super) fn events(events: &[EventView]) -> String {
    let mut table = new_table(["event", "sent", "id", "payload"]);
    for event in events {
        let payload = event.payload.as_deref().map(excerpt).unwrap_or_default();
        let id = event.event_id.as_ref().map_or("", EventId::as_str);
        table.add_row([event.name.as_str(), &event.sent_at.to_rfc3339(), id, &payload]);
    }
    format!("{table}\n{} waiting\n", count(events.len(), "event"))
}

/// A table of published values.
pub(super) fn values(values: &[ValueView]) -> String {
    let mut table = new_table(["name", "version", "published", "value"]);
    for published in values {
        let (version, at) = (published.version.to_string(), published.published_at.to_rfc3339());
        table.add_row([published.name.as_str(), &version, &at, &excerpt(&published.value)]);
    }
    format!("{table}\n{}\n", count(values.len(), "value"))
}

/// Earlier runs, one in a row.
pub(super) fn runs(runs: &[EarlierRunView]) -> String {
    let mut table = new_table(["run", "status", "started", "ended", "entries", "error"]);
    for run in runs {
        let error = run.error.as_ref().map(|error| error.code.as_str()).unwrap_or_default();
        let (started, ended) = (run.started_at.to_rfc3339(), run.ended_at.to_rfc3339());
        let (number, entries) = (run.run.to_string(), run.journal_entries.to_string());
        table.add_row([&number, &run.status, &started, &ended, &entries, error]);
    }
    format!("{table}\n{}\n", count(runs.len(), "earlier run"))
}

/// A timeline, one entry in a row.
pub(crate) fn timeline(entries: &[TimelineEntryView]) -> String {
    let mut table = new_table(["at", "what", "name", "details"]);
    for entry in entries {
        // All other fields are shown with their names.
        let fields = serde_json::to_value(entry).unwrap_or_default();
        let others = fields
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, _)| !["at", "kind", "name", "by"].contains(&name.as_str()));
        let by = entry.by.as_ref().map(|by| format!("by {by}"));
        let others = others.map(|(name, value)| format!("{} {}", words(name), plain(value)));
        let details: Vec<_> = by.into_iter().chain(others).collect();
        let details: String = details.join(", ").chars().take(DETAIL_CHARS).collect();
        let name = entry.name.as_deref().unwrap_or_default();
        table.add_row([&entry.at.to_rfc3339(), &words(&entry.kind), name, &details]);
    }
    format!("{table}\n")
}

/// What it waits for, in short.
pub(crate) fn waited(wait: &WaitView) -> String {
    let name = wait.name.as_ref().map_or("any", StepName::as_str);
    let is = wait.task.as_ref().map(|id| format!(" (task {id})"));
    let is = is.or_else(|| wait.execution.as_ref().map(|id| format!(" (execution {id})")));
    let until = wait.until.map(|at| format!(" until {}", at.to_rfc3339())).unwrap_or_default();
    if let Some(callback) = &wait.callback {
        return format!("callback {callback}{until}");
    }
    if let Some(event) = &wait.event {
        return format!("event {event}{until}");
    }
    match wait.attempt {
        Some(attempt) => format!("{} {attempt} of step {name}{until}", wait.kind),
        None => format!("{} {name}{}{until}", wait.kind, is.unwrap_or_default()),
    }
}

fn new_table(header: impl IntoIterator<Item = &'static str>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(header.into_iter().collect::<Vec<_>>());
    table
}

fn instants(execution: &ExecutionView) -> [(&'static str, Option<Instant>, Option<Length>); 8] {
    [
        ("started", Some(execution.created_at), None),
        ("run started", (execution.run > 1).then_some(execution.run_started_at), None),
        ("available", execution.available_at, None),
        ("deadline", execution.deadline_at, execution.execution_timeout),
        ("run deadline", execution.run_deadline_at, execution.run_timeout),
        ("lease until", execution.lease_expires_at, None),
        ("waiting since", execution.waiting_since, None),
        ("ended", execution.ended_at, None),
    ]
}

fn status(execution: &ExecutionView) -> String {
    let to_be_cancelled = execution.cancel_requested == Some(true) && execution.is_live();
    let notes = [(to_be_cancelled, "to be cancelled"), (execution.closing == Some(true), "closing")];
    let notes: Vec<_> = notes.into_iter().filter_map(|(applies, note)| applies.then_some(note)).collect();
    if notes.is_empty() {
        return execution.status.to_string();
    }
    format!("{} ({})", execution.status, notes.join(", "))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
