//! `tickover execution`: the calls of operators on executions.

mod events;
pub(crate) mod show;
mod values;

use clap::Subcommand;
use tickover::Client;
use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionStatus;
use tickover_core::id::{ExecutionId, StepName, WorkflowName};
use tickover_wire::answer::{CancelOutcome, ExecutionCancelAnswer, ExecutionChangeAnswer, ExecutionView};
use tickover_wire::request::{ExecutionsQuery, PageQuery, RerunRequest, RetryStepRequest, Statuses};
use tickover_wire::{FailureCode, Instant, Label, OpenEnum};

use crate::argument::{self, name};
use crate::explain::explained;
use crate::page;
use crate::show::{answer, print};

/// The calls on executions.
#[derive(Subcommand, Debug)]
pub(crate) enum ExecutionCommand {
    /// Show an execution with all its instants, and what it waits for
    Show(ShowArgs),
    /// List executions, latest first
    List(ListArgs),
    /// Count the executions of each workflow by status
    Counts(CountsArgs),
    /// Show what happened to an execution
    Timeline(TimelineArgs),
    /// List the earlier runs of an execution, latest first
    Runs(RunsArgs),
    /// Export a run of an execution as JSON, so that its code can be replayed in a test
    Export(ExportArgs),
    /// Say why an execution is in its state, what happens next, and when
    Explain(OneArgs),
    /// Cancel an execution: its code stops, and what it has done is undone; at once if there is nothing to undo
    Cancel(OneArgs),
    /// Terminate an execution: it ends at once, even while its code runs
    Terminate(OneArgs),
    /// Pause an execution: it starts nothing new until it is resumed; its deadlines still apply
    Pause(OneArgs),
    /// Resume a paused or stuck execution
    Resume(OneArgs),
    /// Start a new run of an execution that has ended, with the same input and new deadlines
    Restart(OneArgs),
    /// Start a new run that keeps results of the last run; failed steps and named steps run again
    Rerun(RerunArgs),
    /// Run a failed step again in the same run
    RetryStep(RetryStepArgs),
    /// Show what an execution has published
    Values(values::ValuesArgs),
    /// Show an execution's pending events
    Events(events::EventsArgs),
    /// Clear an execution's pending events of a name
    ClearEvents(events::ClearArgs),
}

/// Options of calls on one execution that have no other options.
#[derive(clap::Args, Debug)]
pub(crate) struct OneArgs {
    /// The execution's id
    #[arg(value_parser = name(ExecutionId::parse))]
    id: ExecutionId,
}

/// Options of calls that show one execution.
#[derive(clap::Args, Debug)]
pub(crate) struct ShowArgs {
    /// The execution's id
    #[arg(value_parser = name(ExecutionId::parse))]
    id: ExecutionId,
    /// An earlier run: show the execution as it was at the end of that
    #[arg(long, value_name = "NUMBER")]
    run: Option<u32>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Options of `tickover execution timeline`.
#[derive(clap::Args, Debug)]
pub(crate) struct TimelineArgs {
    /// The execution's id
    #[arg(value_parser = name(ExecutionId::parse))]
    id: ExecutionId,
    /// The run, if not the current one
    #[arg(long, value_name = "NUMBER")]
    run: Option<u32>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Options of `tickover execution runs`.
#[derive(clap::Args, Debug)]
pub(crate) struct RunsArgs {
    /// The execution's id
    #[arg(value_parser = name(ExecutionId::parse))]
    id: ExecutionId,
    /// Show at most this many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: usize,
    /// Print each run as JSON on a line of its own
    #[arg(long)]
    json: bool,
}

/// Options of `tickover execution list`.
#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    /// The workflow; without it, those of all workflows. A deployment on AWS lists all of them with `TICKOVER_LISTS=all`,
    /// otherwise only failed and timed-out ones
    #[arg(value_parser = name(WorkflowName::parse))]
    workflow: Option<WorkflowName>,
    /// Only those with this status, or one of several, as in `waiting,pending`: pending, running, waiting, paused, completed, failed, `timed_out`, cancelled
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = argument::word::<ExecutionStatus>)]
    status: Vec<ExecutionStatus>,
    /// Only those with this label
    #[arg(long, value_name = "NAME=VALUE", value_parser = argument::wanted_label)]
    label: Option<Label>,
    /// Only those that have failed with an error of this code
    #[arg(long, value_name = "CODE")]
    error: Option<String>,
    /// Only those that were started at this instant or later (RFC 3339, such as 2026-01-31T08:00:00Z)
    #[arg(long, value_name = "INSTANT", value_parser = argument::instant)]
    started_from: Option<Instant>,
    /// Only those that were started before this instant
    #[arg(long, value_name = "INSTANT", value_parser = argument::instant)]
    started_before: Option<Instant>,
    /// Only those that ended at this instant or later
    #[arg(long, value_name = "INSTANT", value_parser = argument::instant)]
    ended_from: Option<Instant>,
    /// Only those that ended before this instant
    #[arg(long, value_name = "INSTANT", value_parser = argument::instant)]
    ended_before: Option<Instant>,
    /// Only those that may need an operator: they are paused, or no worker can continue them
    #[arg(long)]
    stuck: bool,
    /// Only those whose id begins with this
    #[arg(long, value_name = "TEXT", value_parser = name(ExecutionId::parse))]
    id_prefix: Option<ExecutionId>,
    /// Show at most this many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: usize,
    /// Print each execution as JSON on a line of its own
    #[arg(long)]
    json: bool,
}

/// Options of `tickover execution export`.
#[derive(clap::Args, Debug)]
pub(crate) struct ExportArgs {
    /// The execution's id
    #[arg(value_parser = name(ExecutionId::parse))]
    id: ExecutionId,
    /// The run, if not the current one
    #[arg(long, value_name = "NUMBER")]
    run: Option<u32>,
    /// With its inputs and results, which a replay needs; without them, each is null
    #[arg(long)]
    payloads: bool,
}

/// Options of `tickover execution counts`.
#[derive(clap::Args, Debug)]
pub(crate) struct CountsArgs {
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

/// Options of `tickover execution rerun`.
#[derive(clap::Args, Debug)]
pub(crate) struct RerunArgs {
    /// The execution's id
    #[arg(value_parser = name(ExecutionId::parse))]
    id: ExecutionId,
    /// A step that runs again although it completed; may be repeated
    #[arg(long = "step", value_name = "NAME", value_parser = name(StepName::parse))]
    steps: Vec<StepName>,
    /// A step that runs again with all steps and children that began after it
    #[arg(long, value_name = "NAME", value_parser = name(StepName::parse))]
    from: Option<StepName>,
    /// Another input of the workflow, as JSON; `-` reads it from standard input
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Keep no results except captured values
    #[arg(long)]
    discard: bool,
}

/// Options of `tickover execution retry-step`.
#[derive(clap::Args, Debug)]
pub(crate) struct RetryStepArgs {
    /// The execution's id
    #[arg(value_parser = name(ExecutionId::parse))]
    id: ExecutionId,
    /// The step's name
    #[arg(value_parser = name(StepName::parse))]
    step: StepName,
    /// Another input for a remote step, as JSON; `-` reads it from standard input
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
}

pub(crate) async fn run(command: ExecutionCommand, client: &Client) -> anyhow::Result<()> {
    let api = client.api();
    match command {
        ExecutionCommand::Show(args) => {
            let found = match args.run {
                Some(run) => api.execution_in_run(&args.id, run).await?.execution,
                None => find(&args.id, client).await?,
            };
            if args.json { answer(&found) } else { shown(&found) }
        }
        ExecutionCommand::List(args) => list(args, client).await,
        ExecutionCommand::Export(args) => answer(&api.export(&args.id, args.run, args.payloads).await?),
        ExecutionCommand::Counts(args) => {
            let found = api.workflows().await?;
            if args.json { answer(&found) } else { print(&show::counts(&found)) }
        }
        ExecutionCommand::Timeline(args) => timeline(args, client).await,
        ExecutionCommand::Runs(args) => runs(args, client).await,
        ExecutionCommand::Explain(args) => print(&explained(&find(&args.id, client).await?, client).await?),
        ExecutionCommand::Cancel(args) => ended(&api.cancel(&args.id).await?),
        ExecutionCommand::Terminate(args) => ended(&api.terminate(&args.id).await?),
        ExecutionCommand::Pause(args) => changed(&api.pause(&args.id).await?),
        ExecutionCommand::Resume(args) => changed(&api.resume(&args.id).await?),
        ExecutionCommand::Restart(args) => shown(&api.restart(&args.id).await?.execution),
        ExecutionCommand::Rerun(args) => {
            let input = argument::json(args.input.as_deref(), "the input")?;
            let (steps, preserve) = (Some(args.steps), Some(!args.discard));
            let request = RerunRequest { steps, from: args.from, input, preserve };
            shown(&api.rerun(&args.id, &request).await?.execution)
        }
        ExecutionCommand::RetryStep(args) => {
            let input = argument::json(args.input.as_deref(), "the input")?;
            shown(&api.retry_step(&args.id, &args.step, &RetryStepRequest { input }).await?.execution)
        }
        ExecutionCommand::Values(args) => values::run(args, client).await,
        ExecutionCommand::Events(args) => events::list(args, client).await,
        ExecutionCommand::ClearEvents(args) => events::clear(args, client).await,
    }
}

async fn find(id: &ExecutionId, client: &Client) -> anyhow::Result<ExecutionView> {
    Ok(client.api().execution(id, Millis::ZERO).await?.execution)
}

fn shown(execution: &ExecutionView) -> anyhow::Result<()> {
    print(&show::execution(execution))
}

fn ended(answer: &ExecutionCancelAnswer) -> anyhow::Result<()> {
    let (id, status) = (&answer.execution.id, &answer.execution.status);
    print(&match &answer.outcome {
        OpenEnum::Known(CancelOutcome::Cancelled) => format!("{id} is {status}\n"),
        OpenEnum::Known(CancelOutcome::Requested) => format!(
            "{id} is {status}: its code stops at its next step, and its undo steps run (`tickover execution terminate` \
             ends it at once)\n"
        ),
        OpenEnum::Known(CancelOutcome::AlreadyFinished) => {
            format!("{id} had already ended: it is {status}\n")
        }
        OpenEnum::Other(word) => format!("{id}: {word}\n"),
    })
}

fn changed(answer: &ExecutionChangeAnswer) -> anyhow::Result<()> {
    let already = if answer.changed { "" } else { " already" };
    print(&format!("{} is{already} {}\n", answer.execution.id, answer.execution.status))
}

async fn list(args: ListArgs, client: &Client) -> anyhow::Result<()> {
    argument::period(args.started_from, args.started_before)?;
    argument::period(args.ended_from, args.ended_before)?;
    let found = page::entries(args.limit, async |limit, cursor| {
        let query = ExecutionsQuery {
            workflow: args.workflow.clone(),
            status: (!args.status.is_empty()).then(|| Statuses(args.status.clone())),
            include_timed_out: None,
            label: args.label.clone(),
            error: args.error.clone().map(FailureCode),
            started_from: args.started_from,
            started_before: args.started_before,
            ended_from: args.ended_from,
            ended_before: args.ended_before,
            stuck: args.stuck.then_some(true),
            id_prefix: args.id_prefix.clone(),
            limit: Some(limit),
            cursor,
        };
        client.api().executions(&query).await.map(|page| (page.executions, page.cursor))
    });
    let found = found.await?;
    if args.json { found.iter().try_for_each(answer) } else { print(&show::table(&found)) }
}

async fn runs(args: RunsArgs, client: &Client) -> anyhow::Result<()> {
    let found = page::entries(args.limit, async |limit, cursor| {
        let query = PageQuery { limit: Some(limit), cursor };
        client.api().runs(&args.id, &query).await.map(|page| (page.runs, page.cursor))
    });
    let found = found.await?;
    if args.json { found.iter().try_for_each(answer) } else { print(&show::runs(&found)) }
}

async fn timeline(args: TimelineArgs, client: &Client) -> anyhow::Result<()> {
    let found = client.api().timeline(&args.id, args.run).await?;
    if args.json {
        return answer(&found);
    }
    let unread = found.unread.map_or_else(String::new, |unread| {
        format!("{unread} more open steps and children weren't read: some of them may have ended.\n")
    });
    print(&format!("{}{unread}", show::timeline(&found.entries)))
}
