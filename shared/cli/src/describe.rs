//! What operators do: describe, list, cancel, retry, explain.

use tickover_core::id::{ExecutionId, QueueName, TaskId};
use tickover_core::task::Status;
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemClock;

use crate::client::{CallError, Client, Single};
use crate::schedule::name;
use crate::{execution, explain, show};

/// Most tasks on one page of the API.
const PAGE_MAX: usize = 500;

/// Options of `tickover describe`.
#[derive(clap::Args, Debug)]
pub(crate) struct DescribeArgs {
    /// The id of a task, or of an execution where there is no such task
    #[arg(value_parser = name(TaskId::parse))]
    id: TaskId,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Options of `tickover list`.
#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    /// Only tasks of this queue
    #[arg(long, value_parser = name(QueueName::parse))]
    queue: Option<QueueName>,
    /// Only tasks that stand there: pending, running, completed, failed, `timed_out`, cancelled, skipped
    #[arg(long, value_parser = status)]
    status: Option<Status>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: usize,
    /// Print each task as JSON on a line of its own
    #[arg(long)]
    json: bool,
}

/// Options of `tickover cancel`.
#[derive(clap::Args, Debug)]
pub(crate) struct CancelArgs {
    /// The task's id
    #[arg(value_parser = name(TaskId::parse))]
    id: TaskId,
    /// End it at once, even while a worker has it
    #[arg(long)]
    force: bool,
}

/// Options of `tickover retry`.
#[derive(clap::Args, Debug)]
pub(crate) struct RetryArgs {
    /// The task's id
    #[arg(value_parser = name(TaskId::parse))]
    id: TaskId,
}

/// Options of `tickover explain`.
#[derive(clap::Args, Debug)]
pub(crate) struct ExplainArgs {
    /// The id of a task, or of an execution where there is no such task
    #[arg(value_parser = name(TaskId::parse))]
    id: TaskId,
}

/// What an id may stand for.
enum Found {
    Task(Single),
    Execution(execution::Single),
}

/// The task of this id, or else the execution.
async fn find(id: &TaskId, client: &Client) -> Result<Found, CallError> {
    let missing = match client.describe(id).await {
        Ok(task) => return Ok(Found::Task(task)),
        Err(error) if error.is_not_found() => error,
        Err(error) => return Err(error),
    };
    // Executions' ids are shorter.
    let Ok(execution) = ExecutionId::parse(id.as_str()) else { return Err(missing) };
    match (execution::read(&execution, client).await, missing) {
        (Ok(execution), _) => Ok(Found::Execution(execution)),
        (Err(error), CallError::Refused { status, code, retry_after, .. }) if error.is_not_found() => {
            let detail = "there is no task and no execution with this id".to_owned();
            Err(CallError::Refused { status, code, detail, retry_after })
        }
        (Err(error), _) => Err(error),
    }
}

/// Prints a task or an execution.
pub(crate) async fn describe(args: DescribeArgs, client: &Client) -> anyhow::Result<()> {
    match find(&args.id, client).await? {
        Found::Task(answer) if args.json => show::print_json(answer.json()),
        Found::Task(answer) => show::print(&show::task(&answer.task()?)),
        Found::Execution(answer) if args.json => show::print_json(answer.json()),
        Found::Execution(answer) => show::print(&execution::described(&answer)?),
    }
}

/// Prints a table of tasks.
pub(crate) async fn list(args: ListArgs, client: &Client) -> anyhow::Result<()> {
    let mut tasks = Vec::new();
    let mut cursor = None;
    while tasks.len() < args.limit {
        let wanted = (args.limit - tasks.len()).min(PAGE_MAX);
        let mut parameters = vec![("limit", wanted.to_string())];
        parameters.extend(args.queue.as_ref().map(|queue| ("queue", queue.to_string())));
        parameters.extend(args.status.map(|status| ("status", status.to_string())));
        parameters.extend(cursor.map(|cursor| ("cursor", cursor)));
        let page = client.list(&parameters).await?;
        tasks.extend(page.tasks);
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    if args.json {
        let lines: String = tasks.iter().flat_map(|task| [task.get(), "\n"]).collect();
        return show::print(&lines);
    }
    let read: Result<Vec<_>, _> = tasks.iter().map(|task| serde_json::from_str(task.get())).collect();
    show::print(&show::table(&read?))?;
    if cursor.is_some() {
        show::say(&format!("there are more than {}: --limit N shows them", args.limit));
    }
    Ok(())
}

/// Cancels a task and says what came of it.
pub(crate) async fn cancel(args: CancelArgs, client: &Client) -> anyhow::Result<()> {
    let cancelled = client.cancel(&args.id, args.force).await?;
    let id = &args.id;
    show::print(&match cancelled.outcome.as_str() {
        "cancelled" => format!("{id} is cancelled\n"),
        "requested" => {
            format!("{id} is running: its worker is told with its next heartbeat (--force: at once)\n")
        }
        "already_finished" => format!("{id} had already ended: it is {}\n", cancelled.task.status),
        other => format!("{id}: {other}\n"),
    })
}

/// Revives a task.
pub(crate) async fn retry(args: RetryArgs, client: &Client) -> anyhow::Result<()> {
    let answer = client.retry(&args.id).await?;
    show::print(&show::task(&answer.task()?))
}

/// Says why a task or an execution is where it is.
pub(crate) async fn explain(args: ExplainArgs, client: &Client) -> anyhow::Result<()> {
    show::print(&match find(&args.id, client).await? {
        Found::Task(answer) => explain::text(&answer.task()?, SystemClock.now()),
        Found::Execution(answer) => execution::explained(&answer, client).await?,
    })
}

fn status(text: &str) -> Result<Status, String> {
    let names = || Status::ALL.map(Status::as_str).join(", ");
    Status::parse(text).ok_or_else(|| format!("expected one of {}", names()))
}
