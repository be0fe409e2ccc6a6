//! `tickover operation`: the same call for many executions or tasks.

use clap::Subcommand;
use comfy_table::{Table, presets};
use tickover::Client;
use tickover::client::OperationHandle;
use tickover_core::execution::ExecutionStatus;
use tickover_core::id::{EventName, ExecutionId, OperationId, QueueName, TaskId, TaskKind, WorkflowName};
use tickover_core::operation::Action;
use tickover_core::task::Status;
use tickover_wire::answer::{OperationStatus, OperationView};
use tickover_wire::request::{
    ExecutionSelection, OperationEvent, OperationRequest, PageQuery, TaskSelection,
};
use tickover_wire::{FailureCode, Instant, Label, Verbatim, Word};

use crate::argument::{self, Usage, name};
use crate::page;
use crate::show::{answer, instant, print, say};

/// The calls on operations.
#[derive(Subcommand, Debug)]
pub(crate) enum OperationCommand {
    /// Do the same with many executions, and wait until it is done
    OnExecutions(Box<OnExecutionsArgs>),
    /// Do the same with many tasks, and wait until it is done
    OnTasks(Box<OnTasksArgs>),
    /// List operations, latest first
    List(ListArgs),
    /// Show an operation, with what it was asked to do and how far it has come
    Show(OneArgs),
    /// Stop an operation: the page that is under way is its last one; nothing is undone
    Stop(OneArgs),
    /// Let an operation go on that was stopped or has failed
    Resume(OneArgs),
}

/// Options of every new operation.
#[derive(clap::Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct NewArgs {
    /// The operation's id; with it, the command can be repeated and starts one operation
    #[arg(long, value_name = "ID", value_parser = name(OperationId::parse))]
    operation_id: Option<OperationId>,
    /// Count only: change nothing
    #[arg(long)]
    dry_run: bool,
    /// Count them before, so that the operation's progress has a total
    #[arg(long, conflicts_with = "dry_run")]
    count: bool,
    /// Print the operation at once instead of waiting for its end
    #[arg(long)]
    no_wait: bool,
    /// Only those with this label
    #[arg(long, value_name = "NAME=VALUE", value_parser = argument::wanted_label)]
    label: Option<Label>,
    /// Only those that have failed with an error of this code
    #[arg(long, value_name = "CODE")]
    error: Option<String>,
    /// Print the operation as JSON
    #[arg(long)]
    json: bool,
}

/// Options of `tickover operation on-executions`.
#[derive(clap::Args, Debug)]
pub(crate) struct OnExecutionsArgs {
    /// What to do: retry (a new run with the results of the last one), retry-step (the failed step again, in the same
    /// run), restart (a new run without results), cancel, terminate, send-event
    #[arg(value_parser = action)]
    action: Action,
    /// Only this execution; may be repeated
    #[arg(long = "id", value_name = "ID", value_parser = name(ExecutionId::parse))]
    ids: Vec<ExecutionId>,
    /// Only executions of this workflow; a deployment on AWS needs it, or --id, unless the action is for those that failed
    /// or it lists all (`TICKOVER_LISTS=all`)
    #[arg(long, value_parser = name(WorkflowName::parse))]
    workflow: Option<WorkflowName>,
    /// Only those with this status; may be repeated
    #[arg(long = "status", value_name = "STATUS", value_delimiter = ',', value_parser = argument::word::<ExecutionStatus>)]
    statuses: Vec<ExecutionStatus>,
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
    /// The name of the event, for send-event
    #[arg(long, value_name = "NAME", value_parser = name(EventName::parse))]
    event: Option<EventName>,
    /// The event's payload as JSON; `-` reads it from standard input
    #[arg(long, value_name = "JSON", requires = "event")]
    payload: Option<String>,
    #[command(flatten)]
    new: NewArgs,
}

/// Options of `tickover operation on-tasks`.
#[derive(clap::Args, Debug)]
pub(crate) struct OnTasksArgs {
    /// What to do: retry, cancel, terminate
    #[arg(value_parser = action)]
    action: Action,
    /// Only this task; may be repeated
    #[arg(long = "id", value_name = "ID", value_parser = name(TaskId::parse))]
    ids: Vec<TaskId>,
    /// Only tasks of this queue
    #[arg(long, value_parser = name(QueueName::parse))]
    queue: Option<QueueName>,
    /// Only tasks of this kind
    #[arg(long, value_parser = name(TaskKind::parse))]
    kind: Option<TaskKind>,
    /// Only those with this status; may be repeated
    #[arg(long = "status", value_name = "STATUS", value_delimiter = ',', value_parser = argument::word::<Status>)]
    statuses: Vec<Status>,
    /// Only those that were scheduled at this instant or later (RFC 3339, such as 2026-01-31T08:00:00Z)
    #[arg(long, value_name = "INSTANT", value_parser = argument::instant)]
    created_from: Option<Instant>,
    /// Only those that were scheduled before this instant
    #[arg(long, value_name = "INSTANT", value_parser = argument::instant)]
    created_before: Option<Instant>,
    /// Only those that ended at this instant or later
    #[arg(long, value_name = "INSTANT", value_parser = argument::instant)]
    ended_from: Option<Instant>,
    /// Only those that ended before this instant
    #[arg(long, value_name = "INSTANT", value_parser = argument::instant)]
    ended_before: Option<Instant>,
    #[command(flatten)]
    new: NewArgs,
}

/// Options of `tickover operation list`.
#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    /// Show at most this many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: usize,
    /// Print each operation as JSON on a line of its own
    #[arg(long)]
    json: bool,
}

/// Options of calls on one operation.
#[derive(clap::Args, Debug)]
pub(crate) struct OneArgs {
    /// The operation's id
    #[arg(value_parser = name(OperationId::parse))]
    id: OperationId,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(command: OperationCommand, client: &Client) -> anyhow::Result<()> {
    let api = client.api();
    match command {
        OperationCommand::OnExecutions(args) => {
            argument::period(args.started_from, args.started_before)?;
            argument::period(args.ended_from, args.ended_before)?;
            let OnExecutionsArgs { action, event, payload, .. } = *args;
            if event.is_some() && action != Action::SendEvent {
                return Err(Usage(format!("--event is for send-event, not for {}", action.as_str())).into());
            }
            let selection = ExecutionSelection {
                ids: some(args.ids),
                workflow: args.workflow,
                status: some(args.statuses.into_iter().map(Word).collect()),
                label: args.new.label.clone(),
                error: args.new.error.clone().map(FailureCode),
                started_from: args.started_from,
                started_before: args.started_before,
                ended_from: args.ended_from,
                ended_before: args.ended_before,
            };
            let payload = argument::json(payload.as_deref(), "the payload")?;
            let event = event.map(|name| OperationEvent { name, payload });
            let request =
                OperationRequest { executions: Some(selection), event, ..request(action, &args.new) };
            start(&request, &args.new, client).await
        }
        OperationCommand::OnTasks(args) => {
            argument::period(args.created_from, args.created_before)?;
            argument::period(args.ended_from, args.ended_before)?;
            let selection = TaskSelection {
                ids: some(args.ids),
                queue: args.queue,
                kind: args.kind,
                status: some(args.statuses.into_iter().map(Word).collect()),
                label: args.new.label.clone(),
                error: args.new.error.clone().map(FailureCode),
                created_from: args.created_from,
                created_before: args.created_before,
                ended_from: args.ended_from,
                ended_before: args.ended_before,
            };
            let request = OperationRequest { tasks: Some(selection), ..request(args.action, &args.new) };
            start(&request, &args.new, client).await
        }
        OperationCommand::List(args) => {
            let found = page::entries(args.limit, async |limit, cursor| {
                let query = PageQuery { limit: Some(limit), cursor };
                api.operations(&query).await.map(|page| (page.operations, page.cursor))
            });
            let found = found.await?;
            if args.json { found.iter().try_for_each(answer) } else { print(&format!("{}\n", table(&found))) }
        }
        OperationCommand::Show(args) => shown(&api.operation(&args.id).await?.operation, args.json),
        OperationCommand::Stop(args) => {
            let stopped = api.stop_operation(&args.id).await?;
            let is_stopping = stopped.operation.status.known() == Some(OperationStatus::Stopping);
            if !stopped.changed {
                say(&format!("{} was {} already", args.id, if is_stopping { "stopped" } else { "over" }));
            }
            if is_stopping {
                say("its last page isn't counted yet: `tickover operation show` has the counts then");
            }
            shown(&stopped.operation, args.json)
        }
        OperationCommand::Resume(args) => {
            let resumed = api.resume_operation(&args.id).await?;
            if !resumed.changed {
                say(&format!("{} is {}: there is nothing to resume", args.id, resumed.operation.status));
            }
            shown(&resumed.operation, args.json)
        }
    }
}

fn request(action: Action, new: &NewArgs) -> OperationRequest {
    OperationRequest {
        id: new.operation_id.clone(),
        action: action.into(),
        executions: None,
        tasks: None,
        event: None,
        dry_run: new.dry_run.then_some(true),
        total: None,
    }
}

/// Starts an operation and waits for its end. One that fails is an error.
async fn start(request: &OperationRequest, new: &NewArgs, client: &Client) -> anyhow::Result<()> {
    let total = if new.count { Some(counted(request, client).await?) } else { None };
    let request = OperationRequest { total, ..request.clone() };
    let started = client.api().start_operation(&request).await?.operation;
    if new.no_wait {
        return shown(&started, new.json);
    }
    say(&format!("operation {}: waiting for its end; it goes on without this command", started.id));
    let handle: OperationHandle = client.operation(started.id.as_str())?;
    let ended = handle.ended().await?;
    shown(&ended, new.json)?;
    if ended.status.known() == Some(OperationStatus::Failed) {
        anyhow::bail!("operation {} failed", ended.id);
    }
    Ok(())
}

/// How many records a request is for: a dry run of it.
async fn counted(request: &OperationRequest, client: &Client) -> anyhow::Result<u64> {
    let request = OperationRequest { id: None, dry_run: Some(true), ..request.clone() };
    let counting = client.api().start_operation(&request).await?.operation;
    Ok(client.operation(counting.id.as_str())?.ended().await?.matched)
}

fn shown(operation: &OperationView, json: bool) -> anyhow::Result<()> {
    if json { answer(operation) } else { print(&text(operation)) }
}

/// An operation for people.
fn text(operation: &OperationView) -> String {
    let OperationView { id, action, status, matched, changed, unchanged, .. } = operation;
    let dry = if operation.dry_run { ", a dry run: nothing is changed" } else { "" };
    let mut lines = vec![format!("operation {id}: {action}, {status}{dry}")];
    let asked =
        [("executions", &operation.executions), ("tasks", &operation.tasks), ("event", &operation.event)];
    for (what, asked) in asked {
        if let Some(Verbatim(json)) = asked {
            lines.push(format!("{what}: {}", json.as_str()));
        }
    }
    let of = operation.total.map(|total| format!(" of {total}")).unwrap_or_default();
    lines.push(if operation.dry_run {
        format!("{matched}{of} found")
    } else {
        format!("{matched}{of} found, {changed} changed, {unchanged} left as they were")
    });
    for (code, count) in &operation.refused {
        lines.push(format!("{count} refused: {code}"));
    }
    for (what, by) in [("asked for", &operation.by), ("stopped", &operation.stopped_by)] {
        lines.extend(by.as_ref().map(|by| format!("{what} by {by}")));
    }
    lines.extend(operation.message.clone());
    lines.join("\n") + "\n"
}

/// A table of operations.
fn table(operations: &[OperationView]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["id", "action", "status", "found", "changed", "left", "refused", "since", "ended"]);
    for operation in operations {
        table.add_row([
            operation.id.as_str(),
            &format!("{}{}", operation.action, if operation.dry_run { " (dry run)" } else { "" }),
            &operation.status.to_string(),
            &operation.matched.to_string(),
            &operation.changed.to_string(),
            &operation.unchanged.to_string(),
            &operation.refused.values().sum::<u64>().to_string(),
            &instant(Some(operation.created_at)),
            &instant(operation.ended_at),
        ]);
    }
    table
}

fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

fn action(text: &str) -> Result<Action, String> {
    let names = || Action::ALL.map(|action| action.as_str().replace('_', "-")).join(", ");
    let action = Action::ALL.into_iter().find(|action| action.as_str() == text.replace('-', "_"));
    action.ok_or_else(|| format!("expected one of {}", names()))
}
