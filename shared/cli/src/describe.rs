//! `tickover describe`: shows a task or an execution.

use tickover::Client;
use tickover::client::ClientError;
use tickover_core::duration::Millis;
use tickover_core::id::{ExecutionId, TaskId};
use tickover_wire::answer::{ExecutionView, TaskView};

use crate::argument::name;
use crate::{execution, show};

/// Options of `tickover describe`.
#[derive(clap::Args, Debug)]
pub(crate) struct DescribeArgs {
    /// The id of a task, or of an execution if there is no such task
    #[arg(value_parser = name(TaskId::parse))]
    id: TaskId,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// The record that has an id.
pub(crate) enum Found {
    Task(Box<TaskView>),
    Execution(Box<ExecutionView>),
}

/// Finds the task with this id, or else the execution.
pub(crate) async fn find(id: &TaskId, client: &Client) -> Result<Found, ClientError> {
    let missing = match client.api().task(id).await {
        Ok(answer) => return Ok(Found::Task(Box::new(answer.task))),
        Err(error) if error.is_not_found() => error,
        Err(error) => return Err(error),
    };
    // An id that is too long for an execution can only be a task's.
    let Ok(execution) = ExecutionId::parse(id.as_str()) else { return Err(missing) };
    match client.api().execution(&execution, Millis::ZERO).await {
        Ok(answer) => Ok(Found::Execution(Box::new(answer.execution))),
        Err(ClientError::Refused(mut problem)) if problem.code == "not_found" => {
            "there is no task and no execution with this id".clone_into(&mut problem.detail);
            Err(ClientError::Refused(problem))
        }
        Err(error) => Err(error),
    }
}

/// Prints a task or an execution.
pub(crate) async fn run(args: DescribeArgs, client: &Client) -> anyhow::Result<()> {
    match find(&args.id, client).await? {
        Found::Task(task) if args.json => show::answer(&task),
        Found::Task(task) => show::print(&show::task(&task)),
        Found::Execution(execution) if args.json => show::answer(&execution),
        Found::Execution(execution) => show::print(&execution::show::execution(&execution)),
    }
}
