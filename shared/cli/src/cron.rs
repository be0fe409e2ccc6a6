//! `tickover cron`: crons.

mod answer;
mod show;

use std::collections::BTreeMap;
use std::io::Read as _;

use anyhow::Context as _;
use clap::Subcommand;
use reqwest::Method;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tickover_core::id::CronId;

use crate::client::Client;
use crate::schedule::name;
use crate::show::{count, print, print_json, say};
use answer::{Deleted, Page, Single, Triggered};

/// Most crons on one page of the API.
const PAGE_MAX: usize = 500;

/// What to do with crons.
#[derive(Subcommand, Debug)]
pub(crate) enum CronCommand {
    /// Make a cron: a task or an execution, by a cron expression or at an interval
    Create(Box<CreateArgs>),
    /// List crons
    List(ListArgs),
    /// Show a cron: what comes next, and where its last runs stand
    Show(ShowArgs),
    /// Start no more runs by plan until it is resumed
    Pause(OneArgs),
    /// Go on with the next occurrence
    Resume(OneArgs),
    /// Start a run now, whatever the plan says
    Trigger(OneArgs),
    /// Forget a cron; what it has started is left alone
    Delete(OneArgs),
}

/// Options of `tickover cron create`. Durations are like `30s` or `1h 30m`.
#[derive(clap::Args, Debug)]
pub(crate) struct CreateArgs {
    /// Its id, which makes repeating the call harmless; random without it
    #[arg(long, value_parser = name(CronId::parse))]
    id: Option<CronId>,
    /// When, as minute, hour, day of month, month and day of week, such as `0 9 * * MON-FRI`
    #[arg(long, value_name = "EXPRESSION", required_unless_present = "every", conflicts_with = "every")]
    cron: Option<String>,
    /// By whose clocks the expression is read, such as `Europe/Berlin`; UTC without it
    #[arg(long, value_name = "ZONE", requires = "cron")]
    time_zone: Option<String>,
    /// The time from one occurrence to the next, instead of an expression
    #[arg(long, value_name = "DURATION")]
    every: Option<String>,
    /// The task that each occurrence is, as JSON like `{"queue": "mail", "kind": "report"}`; `-` reads it from
    /// standard input. In its id, `{occurrence}` stands for the instant
    #[arg(long, value_name = "JSON", required_unless_present = "execution", conflicts_with = "execution")]
    task: Option<String>,
    /// The execution that each occurrence is, as JSON like `{"workflow": "report"}`; `-` reads it from standard
    /// input
    #[arg(long, value_name = "JSON")]
    execution: Option<String>,
    /// What becomes of an occurrence while an earlier run is open: `skip`, `buffer_one`, `buffer_all`,
    /// `allow_all`, `cancel_other` or `terminate_other`
    #[arg(long, value_name = "POLICY")]
    overlap: Option<String>,
    /// What becomes of occurrences that nobody saw in time: `skip` or `run_once`
    #[arg(long, value_name = "POLICY")]
    missed: Option<String>,
    /// How much later than its instant an occurrence may start
    #[arg(long, value_name = "DURATION")]
    jitter: Option<String>,
    /// How many planned occurrences are started in all
    #[arg(long, value_name = "N")]
    max_runs: Option<u32>,
    /// Make it paused
    #[arg(long)]
    paused: bool,
    /// Replace the cron of this id if there is one
    #[arg(long, requires = "id")]
    replace: bool,
    /// Print the server's answer
    #[arg(long)]
    json: bool,
}

/// Options of `tickover cron list`.
#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    /// At most so many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: usize,
    /// Print each cron as JSON on a line of its own
    #[arg(long)]
    json: bool,
}

/// Options of `tickover cron show`.
#[derive(clap::Args, Debug)]
pub(crate) struct ShowArgs {
    /// The cron's id
    #[arg(value_parser = name(CronId::parse))]
    id: CronId,
    /// Print the cron as JSON
    #[arg(long)]
    json: bool,
}

/// Which cron.
#[derive(clap::Args, Debug)]
pub(crate) struct OneArgs {
    /// The cron's id
    #[arg(value_parser = name(CronId::parse))]
    id: CronId,
}

/// Does what was asked for.
pub(crate) async fn run(command: CronCommand, client: &Client) -> anyhow::Result<()> {
    match command {
        CronCommand::Create(args) => create(*args, client).await,
        CronCommand::List(args) => list(args, client).await,
        CronCommand::Show(args) => {
            let found: Single = client.call(Method::GET, &["crons", args.id.as_str()], &[], None).await?;
            shown(&found, args.json)
        }
        CronCommand::Pause(args) => operate(&args, "pause", client).await,
        CronCommand::Resume(args) => operate(&args, "resume", client).await,
        CronCommand::Trigger(args) => {
            let path = ["crons", args.id.as_str(), "trigger"];
            let triggered: Triggered = client.call(Method::POST, &path, &[], None).await?;
            print(&format!("{} started {}\n", args.id, triggered.run))
        }
        CronCommand::Delete(args) => {
            let path = ["crons", args.id.as_str()];
            let deleted: Deleted = client.call(Method::DELETE, &path, &[], None).await?;
            print(&format!("{} is deleted\n", deleted.id))
        }
    }
}

/// The request, in the API's words. What it accepts is the server's to say.
#[derive(Serialize)]
struct Request<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a CronId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_runs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<bool>,
    #[serde(flatten)]
    texts: BTreeMap<&'static str, &'a str>,
}

async fn create(args: CreateArgs, client: &Client) -> anyhow::Result<()> {
    let texts = [
        ("cron", &args.cron),
        ("time_zone", &args.time_zone),
        ("every", &args.every),
        ("overlap", &args.overlap),
        ("missed", &args.missed),
        ("jitter", &args.jitter),
    ];
    let request = Request {
        id: args.id.as_ref(),
        task: args.task.as_deref().map(read).transpose()?,
        execution: args.execution.as_deref().map(read).transpose()?,
        max_runs: args.max_runs,
        paused: args.paused.then_some(true),
        texts: texts
            .into_iter()
            .filter_map(|(field, text)| text.as_deref().map(|text| (field, text)))
            .collect(),
    };
    let body = to_raw_value(&request)?;
    let made: Single = match &args.id {
        Some(id) if args.replace => {
            client.call(Method::PUT, &["crons", id.as_str()], &[], Some(&body)).await?
        }
        Some(_) | None => client.call(Method::POST, &["crons"], &[], Some(&body)).await?,
    };
    shown(&made, args.json)
}

fn read(argument: &str) -> anyhow::Result<Box<RawValue>> {
    let text = if argument == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("can't read the request from standard input")?;
        text.trim().to_owned()
    } else {
        argument.to_owned()
    };
    RawValue::from_string(text).context("the request isn't JSON")
}

async fn list(args: ListArgs, client: &Client) -> anyhow::Result<()> {
    let mut crons: Vec<Box<RawValue>> = Vec::new();
    let mut cursor = None;
    while crons.len() < args.limit {
        let wanted = (args.limit - crons.len()).min(PAGE_MAX);
        let mut parameters = vec![("limit", wanted.to_string())];
        parameters.extend(cursor.map(|cursor| ("cursor", cursor)));
        let page: Page = client.call(Method::GET, &["crons"], &parameters, None).await?;
        crons.extend(page.crons);
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    if args.json {
        let lines: String = crons.iter().flat_map(|cron| [cron.get(), "\n"]).collect();
        return print(&lines);
    }
    let read: Result<Vec<_>, _> = crons.iter().map(|cron| serde_json::from_str(cron.get())).collect();
    let table = show::table(&read?);
    print(&format!("{table}\n{} shown\n", count(crons.len(), "cron")))?;
    if cursor.is_some() {
        say(&format!("there are more than {}: --limit N shows them", args.limit));
    }
    Ok(())
}

async fn operate(args: &OneArgs, call: &str, client: &Client) -> anyhow::Result<()> {
    let path = ["crons", args.id.as_str(), call];
    let changed: Single = client.call(Method::POST, &path, &[], None).await?;
    let cron = changed.cron()?;
    let next = cron.next_at.map(|at| format!("; next at {}", at.to_rfc3339())).unwrap_or_default();
    print(&format!("{} is {}{next}\n", cron.id, cron.status))
}

fn shown(answer: &Single, as_json: bool) -> anyhow::Result<()> {
    if as_json { print_json(answer.json()) } else { print(&show::cron(&answer.cron()?)) }
}
