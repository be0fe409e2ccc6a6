//! `tickover retry`: retries a task that ended without a result.

use tickover::Client;
use tickover_core::id::TaskId;

use crate::argument::name;
use crate::show;

/// Options of `tickover retry`.
#[derive(clap::Args, Debug)]
pub(crate) struct RetryArgs {
    /// The task's id
    #[arg(value_parser = name(TaskId::parse))]
    id: TaskId,
}

/// Retries the task and prints it.
pub(crate) async fn run(args: RetryArgs, client: &Client) -> anyhow::Result<()> {
    show::print(&show::task(&client.api().retry_task(&args.id).await?.task))
}
