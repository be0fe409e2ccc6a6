//! The only entry point of every decision on an execution. It only dispatches: each command is decided in a file of its
//! own.

mod bounce;
mod cancel;
mod clear_events;
mod close;
mod due;
mod finish;
mod heartbeat;
mod note_progress;
mod pause;
mod record;
mod release;
mod restart;
mod retry_run;
mod retry_step;
mod send_event;
mod start;
mod start_turn;
mod suspend;
#[cfg(test)]
mod tests;
mod timer;
mod unpark;
mod wait_in_line;

use crate::command::Context;
use crate::error::Reject;
use crate::execution::Execution;
use crate::execution::command::Command;
use crate::execution::decision::Decision;

/// Decides what a command does to an execution, or to the absence of one.
pub fn decide(execution: Option<&Execution>, command: &Command, context: &Context<'_>) -> Decision {
    // A record past its retention counts as deleted, even if the store hasn't deleted it yet. The one exception, as
    // with tasks, is the call that created it.
    let is_own = |execution: &Execution| match command {
        Command::Start(start) => start.incarnation == execution.incarnation,
        Command::Bounce(_)
        | Command::StartTurn(_)
        | Command::Record(_)
        | Command::Suspend(_)
        | Command::Close(_)
        | Command::Heartbeat { .. }
        | Command::Release { .. }
        | Command::SendEvent(_)
        | Command::ClearEvents { .. }
        | Command::Cancel
        | Command::Terminate
        | Command::Pause
        | Command::Resume
        | Command::Restart(_)
        | Command::RetryStep { .. }
        | Command::Finish(_)
        | Command::WaitInLine { .. }
        | Command::NoteProgress(_)
        | Command::Unpark
        | Command::Due(_)
        | Command::Timer { .. } => false,
    };
    let execution = execution.filter(|execution| !execution.is_gone(context.now) || is_own(execution));
    let known = |decide: &dyn Fn(&Execution) -> Decision| {
        execution.map_or_else(|| Decision::refuse(None, Reject::NoExecution), decide)
    };
    match command {
        Command::Start(start) => start::decide(execution, start, context),
        Command::Bounce(bounce) => known(&|execution| bounce::decide(execution, bounce, context)),
        Command::StartTurn(start) => known(&|execution| start_turn::decide(execution, start, context)),
        Command::Record(record) => known(&|execution| record::decide(execution, record, context)),
        Command::Suspend(suspend) => known(&|execution| suspend::decide(execution, suspend, context)),
        Command::Close(close) => known(&|execution| close::decide(execution, close, context)),
        Command::Heartbeat { lease, entries, values } => {
            known(&|execution| heartbeat::decide(execution, lease, entries, values.as_ref(), context))
        }
        Command::Release { lease, after, reason, cleanup } => {
            known(&|execution| release::decide(execution, lease, *after, reason, *cleanup, context))
        }
        Command::SendEvent(offer) => known(&|execution| send_event::decide(execution, offer, context)),
        Command::ClearEvents { name, count, seen_version } => {
            known(&|execution| clear_events::decide(execution, name, *count, *seen_version, context))
        }
        Command::Cancel => known(&|execution| cancel::decide(execution, false, context)),
        Command::Terminate => known(&|execution| cancel::decide(execution, true, context)),
        Command::Pause => known(&|execution| pause::pause(execution, context)),
        Command::Resume => known(&|execution| pause::resume(execution, context)),
        Command::Restart(rerun) => known(&|execution| restart::decide(execution, rerun, context)),
        Command::RetryStep { name, input, others } => known(&|execution| {
            retry_step::decide(execution, (name, input.as_ref()), others.as_ref(), context)
        }),
        Command::Finish(end) => known(&|execution| finish::decide(execution, *end, context)),
        Command::WaitInLine { seen_version } => {
            known(&|execution| wait_in_line::decide(execution, *seen_version, context))
        }
        Command::NoteProgress(gone) => known(&|execution| note_progress::decide(execution, gone, context)),
        Command::Unpark => known(&|execution| unpark::decide(execution, context)),
        Command::Due(queue) => known(&|execution| due::decide(execution, queue, context)),
        Command::Timer { due_at, again } => {
            known(&|execution| timer::decide(execution, *due_at, *again, context))
        }
    }
}
