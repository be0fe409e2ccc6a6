//! The demo's report at the end: a row for each task, and the outcomes that weren't expected.

use std::time::Duration;

use comfy_table::{Table, presets};
use serde_json::Value;
use tickover_core::task::Status;
use tickover_core::timeout::TimeoutKind;
use tickover_wire::OpenEnum;
use tickover_wire::answer::TaskView;

use super::plan::{OVERDUE, Planned};
use crate::show::{self, instant};

/// A line for a task that has ended.
pub(super) fn progress_line(task: &TaskView) -> String {
    format!("{}: {} (attempts: {})", task.id, task.status, endings(task).join(", "))
}

/// Prints the table, and returns the number of unexpected outcomes.
pub(super) fn print(
    plan: &[Planned],
    tasks: &[TaskView],
    refusal: &str,
    took: Duration,
) -> anyhow::Result<usize> {
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
            planned.id.to_string(),
            task.queue.to_string(),
            endings(task).join(", "),
            task.status.to_string(),
            task.output.as_ref().map(|output| output.as_str().to_owned()).unwrap_or_default(),
            instant(task.deadline_at),
            lateness(task).map(|late_ms| format!("{late_ms} ms")).unwrap_or_default(),
            if expected { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    let refused_rightly = refusal == "deadline_exceeded";
    unexpected += usize::from(!refused_rightly);
    let (count, seconds) = (tasks.len(), took.as_secs_f64());
    show::print(&format!(
        "{table}\nThe late result of {OVERDUE} was refused: {refusal}.\n{count} tasks in {seconds:.1} s; {unexpected} unexpected.\n"
    ))?;
    Ok(unexpected)
}

fn is_expected(planned: &Planned, task: &TaskView) -> bool {
    let output = task.output.as_ref().and_then(|output| output.read::<Value>().ok());
    let is_late = task.timeout_kind.as_ref().is_some_and(|kind| *kind == TimeoutKind::ScheduleToClose);
    task.status.as_str() == planned.status
        && endings(task) == planned.attempts
        && output == planned.output
        && (planned.status != "timed_out" || is_late)
}

fn endings(task: &TaskView) -> Vec<&str> {
    task.attempts.iter().map(|attempt| attempt.outcome.as_ref().map_or("", OpenEnum::as_str)).collect()
}

/// How long after its deadline a task timed out, in milliseconds.
fn lateness(task: &TaskView) -> Option<u64> {
    let ended = task.ended_at.filter(|_| task.status == Status::TimedOut)?;
    Some(ended.since(*task.deadline_at?).as_u64())
}
