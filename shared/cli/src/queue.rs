//! `tickover queue`: queues.

use clap::Subcommand;
use comfy_table::{Table, presets};
use tickover::Client;
use tickover_core::id::QueueName;
use tickover_wire::answer::QueueView;

use crate::argument::name;
use crate::show::{answer, instant, print};

/// The calls on queues.
#[derive(Subcommand, Debug)]
pub(crate) enum QueueCommand {
    /// List queues with their depth
    List(ListArgs),
    /// Show a queue, with the age of its oldest task
    Show(OneArgs),
    /// Pause a queue: its tasks aren't given to workers until it is resumed; their deadlines still apply
    Pause(OneArgs),
    /// Resume a queue
    Resume(OneArgs),
}

/// Options of `tickover queue list`.
#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    /// Print each queue as JSON on a line of its own
    #[arg(long)]
    json: bool,
}

/// Options of calls on one queue.
#[derive(clap::Args, Debug)]
pub(crate) struct OneArgs {
    /// The queue's name
    #[arg(value_parser = name(QueueName::parse))]
    queue: QueueName,
    /// Print the server's answer
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(command: QueueCommand, client: &Client) -> anyhow::Result<()> {
    let api = client.api();
    let (found, json) = match command {
        QueueCommand::List(args) => {
            let queues = api.queues().await?.queues;
            if args.json {
                return queues.iter().try_for_each(answer);
            }
            (queues, false)
        }
        QueueCommand::Show(args) => (vec![api.queue(&args.queue).await?.queue], args.json),
        QueueCommand::Pause(args) => (vec![api.pause_queue(&args.queue).await?.queue], args.json),
        QueueCommand::Resume(args) => (vec![api.resume_queue(&args.queue).await?.queue], args.json),
    };
    if json { found.iter().try_for_each(answer) } else { print(&format!("{}\n", table(&found))) }
}

/// Whether it is paused, and by whom.
fn status(queue: &QueueView) -> String {
    match &queue.by {
        Some(by) if queue.paused => format!("paused by {by}"),
        Some(_) | None => if queue.paused { "paused" } else { "active" }.to_owned(),
    }
}

/// A table of queues.
fn table(queues: &[QueueView]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["queue", "status", "waiting", "with workers", "later", "oldest waits since"]);
    for queue in queues {
        table.add_row([
            queue.name.as_str(),
            &status(queue),
            &queue.depth.to_string(),
            &queue.in_flight.to_string(),
            &queue.delayed.to_string(),
            &instant(queue.oldest_at),
        ]);
    }
    table
}
