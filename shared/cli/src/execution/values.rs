//! `tickover execution values`: what an execution has published.

use tickover::Client;
use tickover_core::duration::Millis;
use tickover_core::id::{ExecutionId, StepName};

use super::show;
use crate::argument::{duration, name};
use crate::show::{answer, print};

/// Options of `tickover execution values`.
#[derive(clap::Args, Debug)]
pub(crate) struct ValuesArgs {
    /// The execution's id
    #[arg(value_parser = name(ExecutionId::parse))]
    id: ExecutionId,
    /// Only the value of this name, as JSON
    #[arg(value_parser = name(StepName::parse))]
    name: Option<StepName>,
    /// Wait this long, at most 20 s, for a later version of it
    #[arg(long, value_name = "DURATION", requires = "name", value_parser = duration)]
    wait: Option<Millis>,
    /// The version that you have; without it, any will do
    #[arg(long, value_name = "VERSION", requires = "wait")]
    after: Option<u32>,
    /// Print each value with its name, version and instant, as JSON on a line of its own
    #[arg(long)]
    json: bool,
}

/// Shows the values, or one of them.
pub(super) async fn run(args: ValuesArgs, client: &Client) -> anyhow::Result<()> {
    let api = client.api();
    if let Some(name) = &args.name {
        let (after, wait) = (args.after.unwrap_or_default(), args.wait.unwrap_or_default());
        let found = api.value(&args.id, name, after, wait).await?.value;
        return if args.json { answer(&found) } else { print(&format!("{}\n", found.value.as_str())) };
    }
    let found = api.values(&args.id).await?.values;
    if args.json { found.iter().try_for_each(answer) } else { print(&show::values(&found)) }
}
