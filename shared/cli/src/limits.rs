//! `tickover limits`: concurrency limits by key.

use std::fmt::Write as _;

use clap::Subcommand;
use tickover::Client;
use tickover_core::duration::Millis;
use tickover_core::id::{FlowKey, Owner};
use tickover_wire::ConcurrencyLimit;
use tickover_wire::answer::{LimitView, LimitsAnswer, RateView};
use tickover_wire::request::LimitRequest;

use crate::argument::name;
use crate::show::{answer, count, print};

/// The calls on limits.
#[derive(Subcommand, Debug)]
pub(crate) enum LimitsCommand {
    /// List the keys at which tasks or executions wait, at most 50
    List(ListArgs),
    /// Show a key's limit: who has its places, and who waits
    Show(OneArgs),
    /// Set a key's limit, whatever requests ask for; a lower limit takes no place away
    Set(SetArgs),
    /// Give a key's limit back to the requests
    Unset(OneArgs),
    /// Forget all starts by the key's rate: the next one comes at once
    Reset(OneArgs),
    /// Take its place from a task or an execution: the next one gets it, and the one that had it goes on
    Release(ReleaseArgs),
}

/// Options of `tickover limits list`.
#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    /// Print the server's answer
    #[arg(long)]
    json: bool,
}

/// Options of calls on one key.
#[derive(clap::Args, Debug)]
pub(crate) struct OneArgs {
    /// The key
    #[arg(value_parser = name(FlowKey::parse))]
    key: FlowKey,
    /// Print the server's answer
    #[arg(long)]
    json: bool,
}

/// Options of `tickover limits set`.
#[derive(clap::Args, Debug)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    one: OneArgs,
    /// At most so many run at once: 1 to 1,000
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1_000))]
    limit: u16,
}

/// Options of `tickover limits release`.
#[derive(clap::Args, Debug)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    one: OneArgs,
    /// The id of a task, or `@` and that of an execution
    #[arg(value_parser = name(|text: String| Owner::try_from(text)))]
    holder: Owner,
}

pub(crate) async fn run(command: LimitsCommand, client: &Client) -> anyhow::Result<()> {
    let api = client.api();
    let (found, json) = match command {
        LimitsCommand::List(ListArgs { json }) => {
            let found = api.limits().await?;
            return if json { answer(&found) } else { print(&list(&found)) };
        }
        LimitsCommand::Show(args) => (api.limit(&args.key).await?, args.json),
        LimitsCommand::Set(SetArgs { one, limit }) => {
            let request = LimitRequest { limit: ConcurrencyLimit(limit.into()) };
            (api.set_limit(&one.key, &request).await?, one.json)
        }
        LimitsCommand::Unset(args) => (api.unset_limit(&args.key).await?, args.json),
        LimitsCommand::Reset(args) => (api.reset_rate(&args.key).await?, args.json),
        LimitsCommand::Release(ReleaseArgs { one, holder }) => {
            (api.release_place(&one.key, &holder).await?, one.json)
        }
    };
    if json { answer(&found.limit) } else { print(&text(&found.limit)) }
}

/// A line for each key, and how many there are.
fn list(LimitsAnswer { limits, more }: &LimitsAnswer) -> String {
    let mut text: String = limits.iter().map(headline).collect();
    let more = if *more { "; there are more" } else { "" };
    let _ = writeln!(text, "Something waits at {}{more}.", count(limits.len(), "key"));
    text
}

/// A limit in a few lines.
fn text(limit: &LimitView) -> String {
    let mut text = headline(limit);
    if let Some(rate) = &limit.rate {
        let RateView { limit, per, burst, next_start_at } = rate;
        let per = Millis::from(*per);
        let next = next_start_at.to_rfc3339();
        let _ = writeln!(text, "  {limit} starts in {per}, {burst} at once; the next one {next}");
    }
    for holder in &limit.holders {
        let how = if holder.called { "called, not claimed yet" } else { "runs" };
        let until = holder.until.map_or_else(
            || "its place ends with it".to_owned(),
            |until| format!("its place ends {}", until.to_rfc3339()),
        );
        let _ = writeln!(text, "  {} {how}; {until}", holder.owner());
    }
    for (nth, owner) in limit.next.iter().enumerate() {
        let _ = writeln!(text, "  {owner} waits, number {}", nth + 1);
    }
    text
}

/// A limit in a line: how many run and wait.
fn headline(limit: &LimitView) -> String {
    let most = match limit.limit {
        Some(most) if limit.pinned => match &limit.pinned_by {
            Some(by) => format!("{most}, set by {by}"),
            None => format!("{most}, set by an operator"),
        },
        Some(most) => most.to_string(),
        None => "nothing has asked for one lately".to_owned(),
    };
    format!("Key {:?}: limit {most}; {} taken, {} waiting.\n", limit.key, limit.taken, waiting(limit))
}

/// How many wait, as a word.
pub(crate) fn waiting(limit: &LimitView) -> String {
    if limit.more { format!("more than {}", limit.waiting) } else { limit.waiting.to_string() }
}
