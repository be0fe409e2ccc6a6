//! `tickover overview`: what an operator looks at first; `tickover failures`: what has failed, in groups.

use std::fmt::Write as _;

use comfy_table::{Table, presets};
use tickover::Client;
use tickover_wire::Instant;
use tickover_wire::answer::{CountView, FailureGroupView, OverviewAnswer, QueueNumbersView};
use tickover_wire::request::FailuresQuery;

use crate::argument;
use crate::show::{answer, field, instant, print};

/// Options of `tickover overview`.
#[derive(clap::Args, Debug)]
pub(crate) struct OverviewArgs {
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: OverviewArgs, client: &Client) -> anyhow::Result<()> {
    let seen = client.api().overview().await?;
    if args.json { answer(&seen) } else { print(&text(&seen)) }
}

/// Options of `tickover failures`.
#[derive(clap::Args, Debug)]
pub(crate) struct FailuresArgs {
    /// Only what failed at this instant or later (RFC 3339, such as 2026-01-31T08:00:00Z)
    #[arg(long, value_name = "INSTANT", value_parser = argument::instant)]
    ended_from: Option<Instant>,
    /// Only what failed before this instant
    #[arg(long, value_name = "INSTANT", value_parser = argument::instant)]
    ended_before: Option<Instant>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn failures(args: FailuresArgs, client: &Client) -> anyhow::Result<()> {
    let FailuresArgs { ended_from, ended_before, json } = args;
    argument::period(ended_from, ended_before)?;
    let found = client.api().failures(&FailuresQuery { ended_from, ended_before }).await?;
    if json {
        return answer(&found);
    }
    let mut text = String::new();
    field(&mut text, "failed", &count(found.failed));
    if let Some(most) = found.read_max.filter(|_| found.failed.more) {
        field(&mut text, "read", &format!("the latest {most} tasks and the latest {most} executions"));
    }
    if !found.groups.is_empty() {
        let more = if found.more_groups { "\nThere are more groups.\n" } else { "" };
        // Writing to a string can't fail.
        let _ = writeln!(text, "\n{}{more}", groups(&found.groups));
    }
    print(&text)
}

/// The numbers, the groups of failures and the queues.
fn text(seen: &OverviewAnswer) -> String {
    let OverviewAnswer { tasks, executions, failed, failures, queues, .. } = seen;
    let mut text = String::new();
    field(&mut text, "tasks", &format!("{} wait, {} run", count(tasks.pending), count(tasks.running)));
    field(&mut text, "executions", &format!("{} are open", count(executions.open)));
    field(&mut text, "late", &format!("{} tasks, {} executions", count(tasks.late), count(executions.late)));
    let (held, stuck) = (count(tasks.stuck), count(executions.stuck));
    field(&mut text, "for an operator", &format!("{held} tasks, {stuck} executions"));
    field(&mut text, "failed", &count(*failed));
    if !failures.is_empty() {
        let more = if seen.more_failures { "\nThere are more groups.\n" } else { "" };
        // Writing to a string can't fail.
        let _ = writeln!(text, "\n{}{more}", groups(failures));
    }
    let more = if seen.more_queues { "\nThere are more queues: tickover queue list\n" } else { "" };
    let _ = writeln!(text, "\n{}{more}", table(queues));
    text
}

/// A number, with a plus if there may be more.
fn count(CountView { count, more }: CountView) -> String {
    format!("{count}{}", if more { "+" } else { "" })
}

fn headed(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(columns);
    table
}

fn groups(failures: &[FailureGroupView]) -> Table {
    let mut table = headed(&["failed", "error", "steps", "count", "last hour", "first", "last"]);
    for group in failures {
        let kind = group.kind.as_ref().map(|kind| format!("task {kind}"));
        let workflow = group.workflow.as_ref().map(|workflow| format!("workflow {workflow}"));
        table.add_row([
            kind.or(workflow).unwrap_or_default(),
            group.error.clone().unwrap_or_else(|| "timed out".to_owned()),
            group.steps.join(", "),
            group.count.to_string(),
            group.last_hour.to_string(),
            instant(Some(group.first_at)),
            instant(Some(group.last_at)),
        ]);
    }
    table
}

fn table(queues: &[QueueNumbersView]) -> Table {
    let mut table = headed(&["queue", "waiting", "oldest since", "with workers", "workers"]);
    for queue in queues {
        let mut workers: Vec<_> = queue.workers.iter().map(ToString::to_string).collect();
        if queue.more_workers > 0 {
            workers.push(format!("{} more", queue.more_workers));
        }
        if queue.unserved {
            workers = vec!["NONE: its work waits".to_owned()];
        }
        let paused = if queue.paused { " (paused)" } else { "" };
        table.add_row([
            format!("{}{paused}", queue.name),
            queue.depth.to_string(),
            instant(queue.oldest_at),
            queue.in_flight.to_string(),
            workers.join(", "),
        ]);
    }
    table
}
