//! `tickover cancel`: cancels a task.

use tickover::Client;
use tickover_core::id::TaskId;
use tickover_wire::OpenEnum;
use tickover_wire::answer::CancelOutcome;

use crate::argument::name;
use crate::show;

/// Options of `tickover cancel`.
#[derive(clap::Args, Debug)]
pub(crate) struct CancelArgs {
    /// The task's id
    #[arg(value_parser = name(TaskId::parse))]
    id: TaskId,
    /// End it at once, even while a worker runs it
    #[arg(long)]
    force: bool,
}

/// Cancels a task and prints the result.
pub(crate) async fn run(args: CancelArgs, client: &Client) -> anyhow::Result<()> {
    let answer = client.api().cancel_task(&args.id, args.force).await?;
    let id = &args.id;
    show::print(&match &answer.outcome {
        OpenEnum::Known(CancelOutcome::Cancelled) => format!("{id} is cancelled\n"),
        OpenEnum::Known(CancelOutcome::Requested) => {
            format!("{id} is running: its worker is told with its next heartbeat (--force: at once)\n")
        }
        OpenEnum::Known(CancelOutcome::AlreadyFinished) => {
            format!("{id} had already ended: it is {}\n", answer.task.status)
        }
        OpenEnum::Other(word) => format!("{id}: {word}\n"),
    })
}
