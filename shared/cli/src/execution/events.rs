//! `tickover execution events` and `clear-events`: shows or clears pending events.

use tickover::Client;
use tickover_core::id::{EventName, ExecutionId};

use super::show;
use crate::argument::name;
use crate::show::{answer, count, print};

/// Options of `tickover execution events`.
#[derive(clap::Args, Debug)]
pub(crate) struct EventsArgs {
    /// The execution's id
    #[arg(value_parser = name(ExecutionId::parse))]
    id: ExecutionId,
    /// Print each event as JSON on a line of its own
    #[arg(long)]
    json: bool,
}

/// Options of `tickover execution clear-events`.
#[derive(clap::Args, Debug)]
pub(crate) struct ClearArgs {
    /// The execution's id
    #[arg(value_parser = name(ExecutionId::parse))]
    id: ExecutionId,
    /// The name of the events
    #[arg(value_parser = name(EventName::parse))]
    name: EventName,
}

/// Shows the pending events.
pub(super) async fn list(args: EventsArgs, client: &Client) -> anyhow::Result<()> {
    let events = client.handle::<()>(args.id.as_str())?.events().await?;
    if args.json { events.iter().try_for_each(answer) } else { print(&show::events(&events)) }
}

/// Clears the pending events of a name.
pub(super) async fn clear(args: ClearArgs, client: &Client) -> anyhow::Result<()> {
    let answer = client.api().clear_events(&args.id, &args.name).await?;
    let events = count(answer.cleared as usize, "event");
    print(&format!("{events} named {} thrown away\n", args.name))
}
