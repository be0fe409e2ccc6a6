//! What the demo says in the end: a row a task, and what did not come out as it should.

use std::time::Duration;

use comfy_table::{Table, presets};
use serde_json::Value;
use tickover_core::time::Timestamp;

use super::plan::{OVERDUE, Planned};

/// A line for a task that has ended.
pub(super) fn progress_line(task: &Value) -> String {
    format!("{}: {} (attempts: {})", text(&task["id"]), text(&task["status"]), endings(task).join(", "))
}

/// Prints the table; returns how many outcomes are not the expected ones.
pub(super) fn print(plan: &[Planned], tasks: &[Value], refusal: &str, took: Duration) -> usize {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header([
        "task",
        "queue",
        "attempts",
        "outcome",
        "result",
        "deadline",
        "fired late by",
        "as expected",
    ]);
    let mut unexpected = 0;
    for (planned, task) in plan.iter().zip(tasks) {
        let expected = is_expected(planned, task);
        unexpected += usize::from(!expected);
        table.add_row([
            planned.id(),
            planned.queue().to_owned(),
            endings(task).join(", "),
            text(&task["status"]),
            task.get("output").map(Value::to_string).unwrap_or_default(),
            text(&task["deadline_at"]),
            lateness(task).map(|late_ms| format!("{late_ms} ms")).unwrap_or_default(),
            if expected { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    println!("{table}");
    let refused_rightly = refusal == "deadline_exceeded";
    unexpected += usize::from(!refused_rightly);
    println!("The late result of {OVERDUE} was refused: {refusal}.");
    println!("{} tasks in {:.1} s; {} unexpected.", tasks.len(), took.as_secs_f64(), unexpected);
    unexpected
}

fn is_expected(planned: &Planned, task: &Value) -> bool {
    task["status"] == planned.status
        && endings(task) == planned.attempts
        && task.get("output") == planned.output.as_ref()
        && (planned.status != "timed_out" || task["timeout_kind"] == "schedule_to_close")
}

fn endings(task: &Value) -> Vec<String> {
    let attempts = task["attempts"].as_array().map(Vec::as_slice).unwrap_or_default();
    attempts.iter().map(|attempt| text(&attempt["outcome"])).collect()
}

/// How long after its deadline a task was timed out, in milliseconds.
fn lateness(task: &Value) -> Option<u64> {
    if task["status"] != "timed_out" {
        return None;
    }
    let ended = Timestamp::parse_rfc3339(task["ended_at"].as_str()?)?;
    let deadline = Timestamp::parse_rfc3339(task["deadline_at"].as_str()?)?;
    Some(ended.since(deadline).as_u64())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
