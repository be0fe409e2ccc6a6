//! `tickover list`: lists tasks.

use tickover::Client;
use tickover_core::id::QueueName;
use tickover_core::task::Status;
use tickover_wire::request::{Statuses, TasksQuery};

use crate::argument::name;
use crate::{page, show};

/// Options of `tickover list`.
#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    /// Only tasks of this queue
    #[arg(long, value_parser = name(QueueName::parse))]
    queue: Option<QueueName>,
    /// Only tasks with this status: pending, running, completed, failed, `timed_out`, cancelled, skipped
    #[arg(long, value_parser = status)]
    status: Option<Status>,
    /// Show at most this many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: usize,
    /// Print each task as JSON on a line of its own
    #[arg(long)]
    json: bool,
}

/// Prints a table of tasks.
pub(crate) async fn run(args: ListArgs, client: &Client) -> anyhow::Result<()> {
    let tasks = page::entries(args.limit, async |limit, cursor| {
        let status = args.status.map(|status| Statuses(vec![status]));
        let query = TasksQuery {
            queue: args.queue.clone(),
            status,
            include_timed_out: None,
            limit: Some(limit),
            cursor,
        };
        client.api().tasks(&query).await.map(|page| (page.tasks, page.cursor))
    });
    let tasks = tasks.await?;
    if args.json { tasks.iter().try_for_each(show::answer) } else { show::print(&show::table(&tasks)) }
}

fn status(text: &str) -> Result<Status, String> {
    let names = || Status::ALL.map(Status::as_str).join(", ");
    Status::parse(text).ok_or_else(|| format!("expected one of {}", names()))
}
