//! Schedules as people read them.

use std::fmt::Write as _;

use comfy_table::{Table, presets};
use tickover_core::time::Timestamp;

use super::answer::{Run, Schedule};

/// A schedule with everything that is known of it.
pub(super) fn schedule(schedule: &Schedule) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{name:<16}{value}");
    };
    line("schedule", &schedule.id);
    line("status", &schedule.status);
    line("when", &when(schedule));
    line("overlap", &schedule.overlap);
    line("missed", &schedule.missed);
    if let Some(jitter) = &schedule.jitter {
        line("jitter", jitter);
    }
    line("started", &started(schedule));
    if schedule.waiting > 0 {
        line("waiting", &schedule.waiting.to_string());
    }
    let next_start = schedule.next_start_at.filter(|at| Some(*at) != schedule.next_at);
    for (name, at) in [
        ("created", schedule.created_at),
        ("paused since", schedule.paused_at),
        ("finished at", schedule.finished_at),
        ("next", schedule.next_at),
        ("starts at", next_start),
    ] {
        if let Some(at) = at {
            line(name, &at.to_rfc3339());
        }
    }
    for (name, work) in [("task", &schedule.task), ("execution", &schedule.execution)] {
        if let Some(work) = work {
            line(name, work.get());
        }
    }
    if !schedule.runs.is_empty() {
        let _ = writeln!(text, "\n{}", runs(&schedule.runs));
    }
    text
}

/// Many schedules, one in a row.
pub(super) fn table(schedules: &[Schedule]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["schedule", "status", "when", "overlap", "started", "next"]);
    for schedule in schedules {
        table.add_row([
            schedule.id.clone(),
            schedule.status.clone(),
            when(schedule),
            schedule.overlap.clone(),
            started(schedule),
            schedule.next_at.map(Timestamp::to_rfc3339).unwrap_or_default(),
        ]);
    }
    table
}

fn runs(runs: &[Run]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["occurrence", "run", "state", "status"]);
    for run in runs {
        let manual = if run.manual { " (triggered)" } else { "" };
        let reason = run.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        table.add_row([
            format!("{}{manual}", run.at),
            run.id.clone(),
            format!("{}{reason}", run.state),
            run.status.clone().unwrap_or_default(),
        ]);
    }
    table
}

fn when(schedule: &Schedule) -> String {
    match (&schedule.cron, &schedule.every) {
        (Some(cron), _) => format!("{cron} ({})", schedule.time_zone.as_deref().unwrap_or("UTC")),
        (None, Some(every)) => format!("every {every}"),
        (None, None) => String::new(),
    }
}

fn started(schedule: &Schedule) -> String {
    match schedule.max_runs {
        Some(most) => format!("{} of {most}", schedule.started),
        None => schedule.started.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_shows_what_applies_and_nothing_else() {
        let json = r#"{"id":"s1","status":"active","cron":"0 9 * * *","time_zone":"Europe/Berlin","overlap":"skip",
            "missed":"run_once","started":2,"waiting":0,"next_at":"2026-01-31T08:00:00.000Z",
            "next_start_at":"2026-01-31T08:00:00.000Z","task":{"queue": "q"},
            "runs":[{"at":"2026-01-30T08:00:00.000Z","id":"s1-20260130T080000Z","manual":false,"state":"skipped",
            "reason":"overlap"}]}"#;
        let shown = schedule(&serde_json::from_str(json).unwrap());
        for part in ["0 9 * * * (Europe/Berlin)", "run_once", r#"{"queue": "q"}"#, "skipped: overlap"] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        for part in ["waiting", "starts at", "paused", "jitter", "triggered"] {
            assert!(!shown.contains(part), "{part} in {shown}");
        }
    }
}
