//! Crons as text.

use std::fmt::Write as _;

use comfy_table::{Table, presets};
use tickover_wire::answer::{CronView, OccurrenceView, RunView};

use crate::show::{field, instant};

/// One cron with all its fields.
pub(super) fn cron(cron: &CronView) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| field(&mut text, name, value);
    line("cron", cron.id.as_str());
    line("status", cron.status.as_str());
    line("when", &when(cron));
    line("overlap", cron.overlap.as_str());
    line("missed", cron.missed.as_str());
    if let Some(jitter) = &cron.jitter {
        line("jitter", &jitter.to_string());
    }
    line("started", &started(cron));
    if cron.waiting > 0 {
        line("waiting", &cron.waiting.to_string());
    }
    let next_start = cron.next_start_at.filter(|at| Some(*at) != cron.next_at);
    for (name, at) in [
        ("created", Some(cron.created_at)),
        ("paused since", cron.paused_at),
        ("finished at", cron.finished_at),
        ("next", cron.next_at),
        ("starts at", next_start),
    ] {
        if let Some(at) = at {
            line(name, &at.to_rfc3339());
        }
    }
    if let Some(by) = &cron.by {
        line("changed by", &by.to_string());
    }
    for (name, work) in [("task", &cron.task), ("execution", &cron.execution)] {
        if let Some(work) = work {
            line(name, work.as_str());
        }
    }
    if !cron.upcoming.is_empty() {
        let _ = writeln!(text, "\n{}", upcoming(&cron.upcoming));
    }
    if !cron.runs.is_empty() {
        let _ = writeln!(text, "\n{}", runs(&cron.runs));
    }
    text
}

/// A table of crons.
pub(super) fn table(crons: &[CronView]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["cron", "status", "when", "overlap", "started", "next"]);
    for cron in crons {
        table.add_row([
            cron.id.as_str(),
            cron.status.as_str(),
            &when(cron),
            cron.overlap.as_str(),
            &started(cron),
            &instant(cron.next_at),
        ]);
    }
    table
}

fn upcoming(upcoming: &[OccurrenceView]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["next, in its time zone", "in UTC"]);
    for one in upcoming {
        table.add_row([one.local.clone().unwrap_or_default(), one.at.to_rfc3339()]);
    }
    table
}

fn runs(runs: &[RunView]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["occurrence", "run", "state", "status", "ended"]);
    for run in runs {
        let manual = if run.manual { " (triggered)" } else { "" };
        let reason = run.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        table.add_row([
            format!("{}{manual}", run.at.to_rfc3339()),
            run.id.clone(),
            format!("{}{reason}", run.state),
            run.status.clone().unwrap_or_default(),
            instant(run.ended_at),
        ]);
    }
    table
}

fn when(cron: &CronView) -> String {
    match (&cron.cron, &cron.every) {
        (Some(expression), _) => format!("{expression} ({})", cron.time_zone.as_deref().unwrap_or("UTC")),
        (None, Some(every)) => format!("every {every}"),
        (None, None) => String::new(),
    }
}

fn started(cron: &CronView) -> String {
    match cron.max_runs {
        Some(most) => format!("{} of {most}", cron.started),
        None => cron.started.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cron_shows_what_applies_and_nothing_else() {
        let json = r#"{"id":"s1","status":"active","cron":"0 9 * * *","time_zone":"Europe/Berlin","overlap":"skip",
            "missed":"run_once","created_at":"2026-01-29T08:00:00.000Z","run_ids":"s1-{occurrence}","started":2,"waiting":0,"next_at":"2026-01-31T08:00:00.000Z",
            "next_start_at":"2026-01-31T08:00:00.000Z","task":{"queue": "q"},
            "runs":[{"at":"2026-01-30T08:00:00.000Z","id":"s1-20260130T080000Z","manual":false,"state":"skipped",
            "reason":"overlap"}]}"#;
        let shown = cron(&serde_json::from_str(json).unwrap());
        for part in ["0 9 * * * (Europe/Berlin)", "run_once", r#"{"queue": "q"}"#, "skipped: overlap"] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        for part in ["waiting", "starts at", "paused", "jitter", "triggered"] {
            assert!(!shown.contains(part), "{part} in {shown}");
        }
    }
}
