//! `tickover kind`: the defaults of kinds of tasks.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Subcommand;
use serde_json::value::RawValue;
use tickover::Client;
use tickover_core::id::{QueueName, TaskKind};
use tickover_wire::answer::KindView;
use tickover_wire::request::KindDefaults;

use crate::argument::{self, name};
use crate::show::{answer, print};

/// The calls on kinds.
#[derive(Subcommand, Debug)]
pub(crate) enum KindCommand {
    /// Set the defaults of a kind on a queue, for tasks that are scheduled afterwards
    Set(SetArgs),
    /// Show the defaults of a kind
    Show(OneArgs),
    /// List the kinds of a queue that have defaults
    List(ListArgs),
    /// Remove the defaults of a kind; tasks that exist keep theirs
    Delete(OneArgs),
}

/// Options of `tickover kind set`.
#[derive(clap::Args, Debug)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    of: OneArgs,
    /// The defaults as JSON, such as `{"retry": "fixed(3, 2s)", "timeout": "1h"}`; `-` reads them from standard input
    #[arg(value_name = "DEFAULTS", required_unless_present = "file", conflicts_with = "file")]
    defaults: Option<String>,
    /// A file with the defaults as JSON
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Options of calls on one kind.
#[derive(clap::Args, Debug)]
pub(crate) struct OneArgs {
    /// The queue's name
    #[arg(value_parser = name(QueueName::parse))]
    queue: QueueName,
    /// The kind of task
    #[arg(value_parser = name(TaskKind::parse))]
    kind: TaskKind,
    /// Print the server's answer
    #[arg(long)]
    json: bool,
}

/// Options of `tickover kind list`.
#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    /// The queue's name
    #[arg(value_parser = name(QueueName::parse))]
    queue: QueueName,
    /// Print each kind as JSON on a line of its own
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(command: KindCommand, client: &Client) -> anyhow::Result<()> {
    let api = client.api();
    match command {
        KindCommand::Set(args) => {
            let defaults = defaults(&args)?;
            let set = api.set_kind(&args.of.queue, &args.of.kind, &defaults).await?;
            shown(&set.kind, args.of.json)
        }
        KindCommand::Show(args) => shown(&api.kind(&args.queue, &args.kind).await?.kind, args.json),
        KindCommand::List(args) => {
            let kinds = api.kinds(&args.queue).await?.kinds;
            kinds.iter().try_for_each(|kind| shown(kind, args.json))
        }
        KindCommand::Delete(args) => {
            let deleted = api.delete_kind(&args.queue, &args.kind).await?;
            if args.json {
                return answer(&deleted);
            }
            print(&format!("{} of {} has no defaults\n", deleted.kind, deleted.queue))
        }
    }
}

fn defaults(args: &SetArgs) -> anyhow::Result<KindDefaults> {
    let json = if let Some(file) = &args.file {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("can't read the defaults from {}", file.display()))?;
        RawValue::from_string(text.trim().to_owned())
            .with_context(|| format!("{} isn't JSON", file.display()))?
    } else {
        let given = argument::json(args.defaults.as_deref(), "the defaults")?;
        let given = given.context("the defaults are missing")?;
        RawValue::from_string(given.as_str().to_owned())?
    };
    argument::value("defaults", &json)
}

fn shown(kind: &KindView, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return answer(kind);
    }
    let by = kind.by.as_ref().map(|by| format!(" (set by {by})")).unwrap_or_default();
    print(&format!("{} of {}: {}{by}\n", kind.kind, kind.queue, kind.defaults.as_str()))
}
