//! `tickover list`: lists tasks.

use tickover::Client;
use tickover_core::id::{QueueName, TaskId, TaskKind};
use tickover_core::task::Status;
use tickover_wire::request::{Statuses, TasksQuery};
use tickover_wire::{FailureCode, Instant, Label};

use crate::argument::{self, name};
use crate::{page, show};

/// Options of `tickover list`.
#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    /// Only tasks of this queue
    #[arg(long, value_parser = name(QueueName::parse))]
    queue: Option<QueueName>,
    /// Only tasks with this status, or one of several, as in `pending,running`: pending, running, completed, failed, `timed_out`, cancelled, skipped
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = argument::word::<Status>)]
    status: Vec<Status>,
    /// Only tasks of this kind
    #[arg(long, value_parser = name(TaskKind::parse))]
    kind: Option<TaskKind>,
    /// Only those with this label
    #[arg(long, value_name = "NAME=VALUE", value_parser = argument::wanted_label)]
    label: Option<Label>,
    /// Only those that have failed or timed out with an error of this code
    #[arg(long, value_name = "CODE")]
    error: Option<String>,
    /// Only those that were scheduled at this instant or later (RFC 3339, such as 2026-01-31T08:00:00Z)
    #[arg(long, value_name = "INSTANT", value_parser = argument::instant)]
    created_from: Option<Instant>,
    /// Only those that were scheduled before this instant
    #[arg(long, value_name = "INSTANT", value_parser = argument::instant)]
    created_before: Option<Instant>,
    /// Only those that ended at this instant or later
    #[arg(long, value_name = "INSTANT", value_parser = argument::instant)]
    ended_from: Option<Instant>,
    /// Only those that ended before this instant
    #[arg(long, value_name = "INSTANT", value_parser = argument::instant)]
    ended_before: Option<Instant>,
    /// Only those that wait and get no worker before somebody acts: their queue is paused, or nobody provides what they
    /// require
    #[arg(long)]
    stuck: bool,
    /// Only those whose id begins with this
    #[arg(long, value_name = "TEXT", value_parser = name(TaskId::parse))]
    id_prefix: Option<TaskId>,
    /// Show at most this many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: usize,
    /// Print each task as JSON on a line of its own
    #[arg(long)]
    json: bool,
}

/// Prints a table of tasks.
pub(crate) async fn run(args: ListArgs, client: &Client) -> anyhow::Result<()> {
    argument::period(args.created_from, args.created_before)?;
    argument::period(args.ended_from, args.ended_before)?;
    let tasks = page::entries(args.limit, async |limit, cursor| {
        let status = (!args.status.is_empty()).then(|| Statuses(args.status.clone()));
        let query = TasksQuery {
            queue: args.queue.clone(),
            status,
            include_timed_out: None,
            kind: args.kind.clone(),
            label: args.label.clone(),
            error: args.error.clone().map(FailureCode),
            created_from: args.created_from,
            created_before: args.created_before,
            ended_from: args.ended_from,
            ended_before: args.ended_before,
            stuck: args.stuck.then_some(true),
            id_prefix: args.id_prefix.clone(),
            limit: Some(limit),
            cursor,
        };
        client.api().tasks(&query).await.map(|page| (page.tasks, page.cursor))
    });
    let tasks = tasks.await?;
    if args.json { tasks.iter().try_for_each(show::answer) } else { show::print(&show::table(&tasks)) }
}
