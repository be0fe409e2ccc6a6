//! `tickover history`: the last day, by the hour.

use comfy_table::{Table, presets};
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_wire::Instant;
use tickover_wire::answer::{HistoryAnswer, HistoryPartView};
use tickover_wire::request::HistoryQuery;

use crate::argument::name;
use crate::show::{answer, instant, print, say};
use crate::system::SystemArgs;

/// An hour in milliseconds.
const HOUR_MS: i64 = 3_600_000;

/// Options of `tickover history`.
#[derive(clap::Args, Debug)]
pub(crate) struct HistoryArgs {
    /// Only of this queue
    #[arg(long, value_parser = name(QueueName::parse))]
    queue: Option<QueueName>,
    /// Print each part of the day, of five minutes, as JSON on a line of its own
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: HistoryArgs, system: SystemArgs) -> anyhow::Result<()> {
    let HistoryAnswer { parts, note, .. } = match system.metrics().await? {
        Some(metrics) => metrics.history(&HistoryQuery { queue: args.queue, from: None }).await?,
        None => system.client().await?.api().history(args.queue.as_ref()).await?,
    };
    if let Some(note) = note {
        say(&note);
    }
    if args.json { parts.iter().try_for_each(answer) } else { print(&format!("{}\n", table(&parts))) }
}

/// A row for each hour.
fn table(parts: &[HistoryPartView]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header([
        "from",
        "completed",
        "failed",
        "latest start",
        "waiting",
        "oldest waited",
        "with workers",
    ]);
    let hour = |part: &HistoryPartView| part.at.0.as_millis().div_euclid(HOUR_MS);
    for parts in parts.chunk_by(|one, other| hour(one) == hour(other)) {
        let sum = |of: fn(&HistoryPartView) -> u64| parts.iter().map(of).sum::<u64>().to_string();
        let most = |of: fn(&HistoryPartView) -> u64| parts.iter().map(of).max().unwrap_or_default();
        let from: Option<Instant> = parts.first().map(|part| part.at);
        table.add_row([
            instant(from),
            sum(|part| part.completed),
            sum(|part| part.failed),
            Millis::new(most(|part| part.late_ms)).to_string(),
            most(|part| part.depth).to_string(),
            Millis::new(most(|part| part.oldest_ms)).to_string(),
            most(|part| part.running).to_string(),
        ]);
    }
    table
}
