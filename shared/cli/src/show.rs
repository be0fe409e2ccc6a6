//! Tasks as text.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};

use comfy_table::{Table, presets};
use serde::Serialize;
use tickover_core::id::{Capability, WorkerName};
use tickover_core::payload::Json;
use tickover_core::retry::MaxAttempts;
use tickover_wire::answer::{AttemptView, ErrorView, NextView, TaskView};
use tickover_wire::{Instant, OpenEnum};

use crate::{policy, visible};

/// Most characters of a payload that are shown; `--json` shows all.
const PAYLOAD_CHARS: usize = 500;
/// Most characters of an error in a table's cell.
const CELL_CHARS: usize = 60;

/// Writes a text for people to standard output. Controls in it are escaped.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    write(&visible::text(text))
}

/// A reader that closes the pipe (`| head`) is no error.
fn write(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes an answer to standard output as JSON, on one line.
pub(crate) fn answer(answer: &impl Serialize) -> anyhow::Result<()> {
    write(&format!("{}\n", visible::json(&serde_json::to_string(answer)?)))
}

/// Writes a line to standard error. Controls in it are escaped. A failure is ignored: there is no other place to report it.
pub(crate) fn say(line: &str) {
    drop(writeln!(std::io::stderr().lock(), "{}", visible::text(line)));
}

/// Adds a line with a field to a text. Further lines of its value are indented, so that none looks like another field.
pub(crate) fn field(text: &mut String, name: &str, value: &str) {
    let value = value.replace('\n', &format!("\n{:16}", ""));
    // Writing to a string can't fail.
    let _ = writeln!(text, "{name:<16}{value}");
}

/// One task with all its fields.
pub(crate) fn task(task: &TaskView) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| field(&mut text, name, value);
    line("task", task.id.as_str());
    line("queue", task.queue.as_str());
    line("kind", task.kind.as_str());
    line("status", &status(task));
    if let Some(execution) = &task.execution_id {
        line("execution", execution.as_str());
    }
    if let Some(step) = &task.step {
        line("step", step.as_str());
    }
    line("attempt", &format!("{} of {}", task.attempt, max_attempts(task)));
    if let Some(policy) = policy::retry(task) {
        line("retry", &policy);
    }
    for (name, length) in policy::timeouts(task) {
        line(name, &length);
    }
    for (name, at) in instants(task) {
        if let Some(at) = at {
            line(name, &at.to_rfc3339());
        }
    }
    if let Some(progress) = task.progress {
        line("progress", &format!("{:.0} %", progress * 100.0));
    }
    if let Some(priority) = &task.priority {
        line("priority", &priority.to_string());
    }
    if let Some(key) = &task.fairness_key {
        line("fairness key", key);
    }
    for (name, value) in task.labels() {
        line("label", &format!("{name}={value}"));
    }
    for (name, payload) in [("details", &task.details), ("input", &task.input), ("output", &task.output)] {
        if let Some(payload) = payload {
            line(name, &excerpt(payload));
        }
    }
    if let Some(error) = &task.error {
        line("error", &format!("{}: {}", error.code, error.message));
    }
    if let Some(by) = &task.by {
        line("operated by", &by.to_string());
    }
    line("next", &next(&task.next));
    if !task.attempts.is_empty() {
        let _ = writeln!(text, "\n{}", attempts(&task.attempts));
    }
    text
}

/// A table of tasks.
pub(crate) fn table(tasks: &[TaskView]) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["task", "queue", "kind", "status", "attempt", "next", "at"]);
    for task in tasks {
        let attempt = format!("{}/{}", task.attempt, max_attempts(task));
        let (what, at) = (words(&task.next.what), instant(task.next.at));
        let [id, queue, kind] = [task.id.as_str(), task.queue.as_str(), task.kind.as_str()];
        table.add_row([id, queue, kind, &status(task), &attempt, &what, &at]);
    }
    format!("{table}\n{} shown\n", count(tasks.len(), "task"))
}

fn attempts(attempts: &[AttemptView]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["attempt", "worker", "claimed", "ended", "outcome", "error"]);
    for attempt in attempts {
        let error = attempt.error.as_ref().map(error_line).unwrap_or_default();
        table.add_row([
            attempt.attempt.to_string(),
            attempt.worker.as_ref().map(WorkerName::to_string).unwrap_or_default(),
            instant(attempt.claimed_at),
            instant(attempt.ended_at),
            attempt.outcome.as_ref().map_or("running", OpenEnum::as_str).to_owned(),
            error.chars().take(CELL_CHARS).collect(),
        ]);
    }
    table
}

fn instants(task: &TaskView) -> [(&'static str, Option<Instant>); 7] {
    [
        ("created", Some(task.created_at)),
        ("available", task.available_at),
        ("deadline", task.deadline_at),
        ("start by", task.schedule_to_start_at),
        ("close by", task.start_to_close_at),
        ("heartbeat by", task.heartbeat_at),
        ("lease until", task.lease_expires_at),
    ]
}

fn status(task: &TaskView) -> String {
    match &task.timeout_kind {
        Some(kind) => format!("{} ({kind})", task.status),
        None => task.status.to_string(),
    }
}

fn max_attempts(task: &TaskView) -> String {
    match task.max_attempts.0 {
        MaxAttempts::Skip => "0".to_owned(),
        MaxAttempts::Limited(limit) => limit.to_string(),
        MaxAttempts::Unlimited => "any number".to_owned(),
    }
}

/// An instant in a table's cell.
pub(crate) fn instant(at: Option<Instant>) -> String {
    at.map(|at| at.to_rfc3339()).unwrap_or_default()
}

/// A payload, or the start of a long one.
pub(crate) fn excerpt(payload: &Json) -> String {
    let text = payload.as_str();
    match text.char_indices().nth(PAYLOAD_CHARS) {
        Some((end, _)) => format!("{}… ({} bytes; --json shows all)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

/// What happens next, and when.
pub(crate) fn next(next: &NextView) -> String {
    let at = next.at.map(|at| format!(" at {}", at.to_rfc3339())).unwrap_or_default();
    let names: Vec<_> = next.unprovided.iter().map(Capability::as_str).collect();
    let unprovided =
        if names.is_empty() { String::new() } else { format!("; nobody provides {}", names.join(", ")) };
    let paused = if next.paused && next.what != "queue_paused" { "; its queue is paused" } else { "" };
    format!("{}{at}{unprovided}{paused}", words(&next.what))
}

/// A name of the API as words.
pub(crate) fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// An error's code and message in one line.
pub(crate) fn error_line(error: &ErrorView) -> String {
    // A message is often the whole standard error of a command. Its last line says most.
    let last = error.message.lines().map(str::trim).rfind(|line| !line.is_empty());
    match last {
        Some(last) => format!("{}: {last}", error.code),
        None => error.code.clone(),
    }
}

/// `1 task`, `2 tasks`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_shows_what_applies_and_nothing_else() {
        let json = r#"{"id":"t1","queue":"q","kind":"k","status":"timed_out","attempt":1,"max_attempts":3,
            "timeout_kind":"schedule_to_close","created_at":"2026-01-31T12:00:00.000Z","input":{"a": 1.50},"next":{"what":"deleted"},
            "attempts":[{"attempt":1,"worker":"w","outcome":"failed","error":{"code":"c","message":"no\nyes"}}]}"#;
        let shown = task(&serde_json::from_str(json).unwrap());
        for part in
            ["timed_out (schedule_to_close)", "1 of 3", r#"{"a": 1.50}"#, "c: yes", "2026-01-31T12:00"]
        {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert!(!shown.contains("output") && !shown.contains("lease"), "{shown}");
    }

    #[test]
    fn a_steps_task_shows_whose_it_is_and_its_policies() {
        let json = r#"{"id":"s-1","queue":"q","kind":"k","status":"failed","attempt":1,"max_attempts":3,
            "execution_id":"order-7","step":"label[3]","created_at":"2026-01-31T12:00:00.000Z","attempts":[],
            "retry":{"max_attempts":3,"delay":["1s","5s"],"backoff":1.0,"max_delay":"1m","jitter":"full","non_retryable":["a","b"]},
            "timeouts":{"schedule_to_close":{"after":"1h","on_timeout":"terminal","error_on_timeout":false},
                "heartbeat":{"after":"30s","on_timeout":"retry","error_on_timeout":true}},
            "next":{"what":"deleted"}}"#;
        let shown = task(&serde_json::from_str(json).unwrap());
        for line in [
            "execution       order-7\n",
            "step            label[3]\n",
            "retry           3 attempts; delays 1s, 5s; at most 1m; full jitter; not after a, b\n",
            "ends within     1h, then cancelled\n",
            "heartbeat every 30s, retried\n",
        ] {
            assert!(shown.contains(line), "{line} in {shown}");
        }
    }

    #[test]
    fn a_long_payload_is_cut_at_a_character() {
        let payload = Json::string(&"é".repeat(PAYLOAD_CHARS));
        assert!(excerpt(&payload).ends_with("é… (1002 bytes; --json shows all)"));
    }
}
