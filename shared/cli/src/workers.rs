//! `tickover workers`: who asks for the work of each queue.

use clap::Subcommand;
use comfy_table::{Table, presets};
use tickover::Client;
use tickover_wire::answer::QueueWorkersView;

use crate::show::{answer, instant, print};

/// The calls on workers.
#[derive(Subcommand, Debug)]
pub(crate) enum WorkersCommand {
    /// List the workers of each queue, and the queues whose work no worker takes
    List(ListArgs),
}

/// Options of `tickover workers list`.
#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    /// Print each queue with its workers as JSON on a line of its own
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(command: WorkersCommand, client: &Client) -> anyhow::Result<()> {
    let WorkersCommand::List(args) = command;
    let queues = client.api().workers().await?.queues;
    if args.json { queues.iter().try_for_each(answer) } else { print(&format!("{}\n", table(&queues))) }
}

/// A row for each worker of a queue, or one that says that it has none.
fn table(queues: &[QueueWorkersView]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["queue", "waiting", "worker", "version", "since", "last seen"]);
    for queue in queues {
        let (name, waiting) = (queue.queue.as_str(), queue.depth.to_string());
        if queue.unserved || queue.workers.is_empty() {
            let none = if queue.unserved { "NONE: its work waits" } else { "none" };
            table.add_row([name, &waiting, none, "", "", ""]);
        }
        for worker in &queue.workers {
            let version = worker.version.as_ref().map(ToString::to_string).unwrap_or_default();
            let gone = if worker.there { "" } else { " (gone)" };
            let seen_at = format!("{}{gone}", instant(Some(worker.seen_at)));
            let since = instant(Some(worker.since));
            table.add_row([name, &waiting, worker.name.as_str(), &version, &since, &seen_at]);
        }
    }
    table
}
