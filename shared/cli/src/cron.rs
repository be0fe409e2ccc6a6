//! `tickover cron`: crons.

mod show;

use clap::Subcommand;
use serde_json::value::to_raw_value;
use tickover::Client;
use tickover_core::id::{CronId, QueueName, WorkflowName};
use tickover_core::payload::Json;
use tickover_wire::answer::CronView;
use tickover_wire::request::{CronRequest, PageQuery, StartRequest};
use tickover_wire::{CronText, Verbatim};

use crate::argument::{self, name};
use crate::page;
use crate::show::{answer, count, print};

/// The calls on crons.
#[derive(Subcommand, Debug)]
pub(crate) enum CronCommand {
    /// Create a cron: a task or an execution, by a cron expression or at an interval
    Create(Box<CreateArgs>),
    /// List crons
    List(ListArgs),
    /// Show a cron: what happens next, and the statuses of its last runs
    Show(ShowArgs),
    /// Pause a cron: it starts no planned runs until it is resumed
    Pause(OneArgs),
    /// Resume a cron with its next occurrence
    Resume(OneArgs),
    /// Start a run now, beside the planned ones
    Trigger(OneArgs),
    /// Delete a cron; the work that it has started is not changed
    Delete(OneArgs),
}

/// Options of `tickover cron create`. Durations are like `30s` or `1h 30m`.
#[derive(clap::Args, Debug)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("work").required(true))]
pub(crate) struct CreateArgs {
    /// The cron's id; repeating the call with an id is idempotent; random by default
    #[arg(long, value_parser = name(CronId::parse))]
    id: Option<CronId>,
    /// The cron expression: minute, hour, day of month, month and day of week, such as `0 9 * * MON-FRI`
    #[arg(long, value_name = "EXPRESSION", required_unless_present = "every", conflicts_with = "every")]
    cron: Option<String>,
    /// The time zone of the expression, such as `Europe/Berlin`; UTC by default
    #[arg(long, value_name = "ZONE", requires = "cron")]
    time_zone: Option<String>,
    /// The time from one occurrence to the next, instead of an expression
    #[arg(long, value_name = "DURATION")]
    every: Option<String>,
    /// The task to schedule at each occurrence, as JSON like `{"queue": "mail", "kind": "report"}`; `-` reads it from
    /// standard input. In its id, `{occurrence}` is replaced by the instant
    #[arg(long, value_name = "JSON", group = "work")]
    task: Option<String>,
    /// The execution to start at each occurrence, as JSON like `{"workflow": "report"}`; `-` reads it from standard
    /// input
    #[arg(long, value_name = "JSON", group = "work")]
    execution: Option<String>,
    /// The workflow to start at each occurrence, instead of --execution
    #[arg(long, value_parser = name(WorkflowName::parse), group = "work")]
    workflow: Option<WorkflowName>,
    /// The workflow's input as JSON; `-` reads it from standard input
    #[arg(long, value_name = "JSON", requires = "workflow", conflicts_with_all = ["task", "execution"])]
    input: Option<String>,
    /// The queue of the workflow's workers; `workflows` by default
    #[arg(long, value_parser = name(QueueName::parse), requires = "workflow", conflicts_with_all = ["task", "execution"])]
    queue: Option<QueueName>,
    /// What to do with an occurrence while an earlier run is open: `skip`, `buffer_one`, `buffer_all`, `allow_all`,
    /// `cancel_other` or `terminate_other`
    #[arg(long, value_name = "POLICY")]
    overlap: Option<String>,
    /// What to do with occurrences that no tick saw in time: `skip` or `run_once`
    #[arg(long, value_name = "POLICY")]
    missed: Option<String>,
    /// How much later than its instant an occurrence may start at most
    #[arg(long, value_name = "DURATION")]
    jitter: Option<String>,
    /// How many planned occurrences to start in total
    #[arg(long, value_name = "N")]
    max_runs: Option<u32>,
    /// Create it paused
    #[arg(long)]
    paused: bool,
    /// Replace the cron with this id, if there is one
    #[arg(long, requires = "id")]
    replace: bool,
    /// Print the server's answer
    #[arg(long)]
    json: bool,
}

/// Options of `tickover cron list`.
#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    /// Show at most this many
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

/// The cron of a call without other options.
#[derive(clap::Args, Debug)]
pub(crate) struct OneArgs {
    /// The cron's id
    #[arg(value_parser = name(CronId::parse))]
    id: CronId,
}

pub(crate) async fn run(command: CronCommand, client: &Client) -> anyhow::Result<()> {
    let api = client.api();
    match command {
        CronCommand::Create(args) => create(*args, client).await,
        CronCommand::List(args) => list(args, client).await,
        CronCommand::Show(args) => shown(&api.cron(&args.id).await?.cron, args.json),
        CronCommand::Pause(args) => changed(&api.pause_cron(&args.id).await?.cron),
        CronCommand::Resume(args) => changed(&api.resume_cron(&args.id).await?.cron),
        CronCommand::Trigger(args) => {
            print(&format!("{} started {}\n", args.id, api.trigger_cron(&args.id).await?.run))
        }
        CronCommand::Delete(args) => print(&format!("{} is deleted\n", api.delete_cron(&args.id).await?.id)),
    }
}

async fn create(args: CreateArgs, client: &Client) -> anyhow::Result<()> {
    let execution = match args.workflow {
        Some(workflow) => Some(start_of(workflow, args.queue, args.input.as_deref())?),
        None => argument::json(args.execution.as_deref(), "the execution")?,
    };
    let request = CronRequest {
        id: args.id.clone(),
        cron: args.cron.map(CronText),
        time_zone: args.time_zone,
        every: argument::field("every", args.every.as_deref())?,
        task: argument::json(args.task.as_deref(), "the task")?,
        execution,
        overlap: argument::field("overlap", args.overlap.as_deref())?,
        missed: argument::field("missed", args.missed.as_deref())?,
        jitter: argument::field("jitter", args.jitter.as_deref())?,
        max_runs: argument::number("max_runs", args.max_runs)?,
        paused: args.paused.then_some(true),
    };
    let made = match &args.id {
        Some(id) if args.replace => client.api().replace_cron(id, &request).await?,
        Some(_) | None => client.api().create_cron(&request).await?,
    };
    shown(&made.cron, args.json)
}

/// The start of a workflow, as `tickover start` sends it.
fn start_of(
    workflow: WorkflowName,
    queue: Option<QueueName>,
    input: Option<&str>,
) -> anyhow::Result<Verbatim> {
    let input = argument::json(input, "the input")?;
    let start = StartRequest { queue, input, ..StartRequest::new(workflow) };
    Ok(Verbatim(Json::from(to_raw_value(&start)?)))
}

async fn list(args: ListArgs, client: &Client) -> anyhow::Result<()> {
    let crons = page::entries(args.limit, async |limit, cursor| {
        let query = PageQuery { limit: Some(limit), cursor };
        client.api().crons(&query).await.map(|page| (page.crons, page.cursor))
    });
    let crons = crons.await?;
    if args.json {
        return crons.iter().try_for_each(answer);
    }
    print(&format!("{}\n{} shown\n", show::table(&crons), count(crons.len(), "cron")))
}

fn changed(cron: &CronView) -> anyhow::Result<()> {
    let next = cron.next_at.map(|at| format!("; next at {}", at.to_rfc3339())).unwrap_or_default();
    print(&format!("{} is {}{next}\n", cron.id, cron.status))
}

fn shown(cron: &CronView, as_json: bool) -> anyhow::Result<()> {
    if as_json { answer(cron) } else { print(&show::cron(cron)) }
}
