//! `tickover execution`: what operators do to executions of workflows.

mod answer;
mod events;
mod explain;
mod show;
mod start;

use std::collections::BTreeMap;

use clap::Subcommand;
use reqwest::Method;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tickover_core::execution::ExecutionStatus;
use tickover_core::id::{ExecutionId, StepName, TaskId, WorkflowName};
use tickover_core::time::Timestamp;
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemClock;

use crate::client::{CallError, Client};
use crate::explain as task_explained;
use crate::schedule::name;
use crate::show::{print, print_json, say};
use answer::{Page, Timeline};

pub(crate) use answer::Single;
pub(crate) use events::{EventArgs, send_event};
pub(crate) use start::{StartArgs, run as start};

/// How many remote steps are looked at to explain what an execution waits for.
const TASKS_LOOKED_AT: usize = 10;

/// Most executions on one page of the API.
const PAGE_MAX: usize = 500;

/// What to do with executions.
#[derive(Subcommand, Debug)]
pub(crate) enum ExecutionCommand {
    /// Show an execution with all its instants, and what it waits for
    Show(ShowArgs),
    /// List executions of a workflow, latest first
    List(ListArgs),
    /// Show what happened to an execution
    Timeline(ShowArgs),
    /// Say why an execution is in its state, what happens next, and when
    Explain(OneArgs),
    /// Ask an execution to end: its code stops at its next step; at once if it waits
    Cancel(OneArgs),
    /// End an execution at once, whatever its code is doing
    Terminate(OneArgs),
    /// Begin nothing new until it is resumed; deadlines keep running
    Pause(OneArgs),
    /// Let a paused or stuck execution go on
    Resume(OneArgs),
    /// Begin a new run of an execution that has ended, with the same input and fresh deadlines
    Restart(OneArgs),
    /// The same with the results of the last run: what failed runs again, and the steps that are named
    Rerun(RerunArgs),
    /// Run a failed step again in the same run
    RetryStep(RetryStepArgs),
    /// Show the events that wait for an execution
    Events(events::EventsArgs),
    /// Throw away the events of a name that wait for an execution
    ClearEvents(events::ClearArgs),
}

/// Options of calls that need nothing but the execution.
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
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Options of `tickover execution list`.
#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    /// The workflow
    #[arg(value_parser = name(WorkflowName::parse))]
    workflow: WorkflowName,
    /// Only those that stand there: pending, running, waiting, paused, completed, failed, `timed_out`, cancelled
    #[arg(long, value_parser = status)]
    status: Option<ExecutionStatus>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: usize,
    /// Print each execution as JSON on a line of its own
    #[arg(long)]
    json: bool,
}

/// Options of `tickover execution rerun`.
#[derive(clap::Args, Debug)]
pub(crate) struct RerunArgs {
    /// The execution's id
    #[arg(value_parser = name(ExecutionId::parse))]
    id: ExecutionId,
    /// A step that runs again although it ended well; may be given several times
    #[arg(long = "step", value_name = "NAME", value_parser = name(StepName::parse))]
    steps: Vec<StepName>,
    /// Keep no results but captured values
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
}

#[derive(Serialize)]
struct Rerun<'a> {
    steps: &'a [StepName],
    preserve: bool,
}

/// Does what is asked for.
pub(crate) async fn run(command: ExecutionCommand, client: &Client) -> anyhow::Result<()> {
    match command {
        ExecutionCommand::Show(args) => {
            let found = read(&args.id, client).await?;
            if args.json { print_json(found.json()) } else { print(&described(&found)?) }
        }
        ExecutionCommand::List(args) => list(args, client).await,
        ExecutionCommand::Timeline(args) => timeline(args, client).await,
        ExecutionCommand::Explain(args) => print(&explained(&read(&args.id, client).await?, client).await?),
        ExecutionCommand::Cancel(args) => end(&args, "cancel", client).await,
        ExecutionCommand::Terminate(args) => end(&args, "terminate", client).await,
        ExecutionCommand::Pause(args) => change(&args, "pause", client).await,
        ExecutionCommand::Resume(args) => change(&args, "resume", client).await,
        ExecutionCommand::Restart(args) => {
            print(&described(&operate(&args.id, &["restart"], None, client).await?)?)
        }
        ExecutionCommand::Rerun(args) => {
            let body = to_raw_value(&Rerun { steps: &args.steps, preserve: !args.discard })?;
            print(&described(&operate(&args.id, &["rerun"], Some(&body), client).await?)?)
        }
        ExecutionCommand::RetryStep(args) => {
            let path = ["steps", args.step.as_str(), "retry"];
            print(&described(&operate(&args.id, &path, None, client).await?)?)
        }
        ExecutionCommand::Events(args) => events::list(args, client).await,
        ExecutionCommand::ClearEvents(args) => events::clear_events(args, client).await,
    }
}

/// Reads an execution.
pub(crate) async fn read(id: &ExecutionId, client: &Client) -> Result<Single, CallError> {
    client.call(Method::GET, &["executions", id.as_str()], &[], None).await
}

/// An execution with everything that is known of it, as text.
pub(crate) fn described(answer: &Single) -> anyhow::Result<String> {
    Ok(show::execution(&answer.execution()?))
}

/// Why an execution is where it is, as text.
pub(crate) async fn explained(answer: &Single, client: &Client) -> anyhow::Result<String> {
    let execution = answer.execution()?;
    let events = if execution.pending_events > 0 {
        events::counts(&execution.id, client).await?
    } else {
        BTreeMap::new()
    };
    let unused = explain::unused(&read_timeline(&execution.id, client).await?.entries);
    let now = SystemClock.now();
    let open = execution.waits_for.iter().filter_map(|wait| wait.task.as_deref()).take(TASKS_LOOKED_AT);
    let mut tasks = BTreeMap::new();
    for id in open {
        tasks.extend(stands(id, client, now).await?.map(|stands| (id.to_owned(), stands)));
    }
    Ok(explain::text(&execution, &explain::Beside { events, unused, tasks }, now))
}

/// Where a remote step stands, unless its task is gone.
async fn stands(id: &str, client: &Client, now: Timestamp) -> anyhow::Result<Option<String>> {
    let Ok(id) = TaskId::parse(id) else { return Ok(None) };
    match client.describe(&id).await {
        Ok(task) => {
            let task = task.task()?;
            let reason = task_explained::reason(&task, now);
            Ok(Some(format!("{}, as kind {}: {reason}", task.status, task.kind)))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn operate(
    id: &ExecutionId,
    call: &[&str],
    body: Option<&RawValue>,
    client: &Client,
) -> Result<Single, CallError> {
    let path = [&["executions", id.as_str()], call].concat();
    client.call(Method::POST, &path, &[], body).await
}

async fn end(args: &OneArgs, call: &str, client: &Client) -> anyhow::Result<()> {
    let id = &args.id;
    let answer = operate(id, &[call], None, client).await?;
    let status = answer.execution()?.status;
    print(&match answer.outcome.as_deref() {
        Some("requested") => format!(
            "{id} is running: its code stops at its next step (`tickover execution terminate` ends it at once)\n"
        ),
        Some("already_finished") => format!("{id} had already ended: it is {status}\n"),
        Some("cancelled") | None => format!("{id} is {status}\n"),
        Some(other) => format!("{id}: {other}\n"),
    })
}

async fn change(args: &OneArgs, call: &str, client: &Client) -> anyhow::Result<()> {
    let answer = operate(&args.id, &[call], None, client).await?;
    let already = if answer.changed == Some(false) { " already" } else { "" };
    print(&format!("{} is{already} {}\n", args.id, answer.execution()?.status))
}

async fn list(args: ListArgs, client: &Client) -> anyhow::Result<()> {
    let mut found: Vec<Box<RawValue>> = Vec::new();
    let mut cursor = None;
    while found.len() < args.limit {
        let wanted = (args.limit - found.len()).min(PAGE_MAX);
        let mut parameters = vec![("workflow", args.workflow.to_string()), ("limit", wanted.to_string())];
        parameters.extend(args.status.map(|status| ("status", status.to_string())));
        parameters.extend(cursor.map(|cursor| ("cursor", cursor)));
        let page: Page = client.call(Method::GET, &["executions"], &parameters, None).await?;
        found.extend(page.executions);
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    if args.json {
        return found.iter().try_for_each(|execution| print_json(execution.get()));
    }
    let read: Result<Vec<_>, _> =
        found.iter().map(|execution| serde_json::from_str(execution.get())).collect();
    print(&show::table(&read?))?;
    if cursor.is_some() {
        say(&format!("there are more than {}: --limit N shows them", args.limit));
    }
    Ok(())
}

/// An execution's timeline for people.
pub(crate) async fn timeline_of(id: &str, client: &Client) -> anyhow::Result<String> {
    Ok(show::timeline(&read_timeline(id, client).await?.entries))
}

async fn read_timeline(id: &str, client: &Client) -> Result<Timeline, CallError> {
    client.call(Method::GET, &["executions", id, "timeline"], &[], None).await
}

async fn timeline(args: ShowArgs, client: &Client) -> anyhow::Result<()> {
    let path = ["executions", args.id.as_str(), "timeline"];
    if args.json {
        let whole: Box<RawValue> = client.call(Method::GET, &path, &[], None).await?;
        return print_json(whole.get());
    }
    print(&timeline_of(args.id.as_str(), client).await?)
}

fn status(text: &str) -> Result<ExecutionStatus, String> {
    let names = || ExecutionStatus::ALL.map(ExecutionStatus::as_str).join(", ");
    ExecutionStatus::parse(text).ok_or_else(|| format!("expected one of {}", names()))
}
