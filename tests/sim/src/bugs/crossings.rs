//! Bugs where features meet: an operator's calls, callbacks, children, deployments and events over several runs.

use tickover_core::command::Context;
use tickover_core::decision::Effect;
use tickover_core::error::Reject;
use tickover_core::execution::command::{
    Cleanup, Close, Command, Ending, ReleaseReason, Rerun, SendEvent, Start, Suspend,
};
use tickover_core::execution::decide;
use tickover_core::execution::decision::Decision;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::replay;
use tickover_core::execution::{Execution, ExecutionOutcome, ExecutionState};
use tickover_core::task;
use tickover_core::task::Task;
use tickover_core::task::command::Command as OnTask;
use tickover_core::task::decision::{Decision as OfTask, Reply as TaskReply};

use super::Bug;
use crate::checks::execution::callbacks::is_reserved;

/// The decision on an execution, if one of these bugs changes it.
pub(super) fn on_an_execution(
    bug: Bug,
    execution: Option<&Execution>,
    command: &Command,
    context: &Context<'_>,
) -> Option<Decision> {
    let core = |command: Command| Some(decide(execution, &command, context));
    match (bug, command) {
        (Bug::FirstEventForgotten, Command::Start(start)) => {
            core(Command::Start(Box::new(Start { event: None, ..(**start).clone() })))
        }
        (Bug::ValuesNotWritten, Command::Suspend(suspend)) => {
            core(Command::Suspend(Suspend { values: None, ..suspend.clone() }))
        }
        (Bug::LateReportCounts, Command::SendEvent(sent)) => {
            core(Command::SendEvent(SendEvent { bound: None, ..sent.clone() }))
        }
        (Bug::EventIdsPerRun, Command::SendEvent(sent)) => {
            core(Command::SendEvent(SendEvent { known: false, ..sent.clone() }))
        }
        (Bug::ReportsNotKept, Command::Restart(rerun)) => {
            let is_kept =
                |entry: &&Entry| !matches!(&entry.what, Happened::Event { name, .. } if is_reserved(name));
            let preserved = rerun.preserved.iter().filter(is_kept).cloned().collect();
            core(Command::Restart(Rerun { preserved, ..rerun.clone() }))
        }
        (Bug::NewKeyForSameWork, Command::Restart(rerun)) => {
            core(Command::Restart(Rerun { is_same_work: false, ..rerun.clone() }))
        }
        (Bug::SiblingsLeftEnded, Command::RetryStep { name, input, .. }) => {
            core(Command::RetryStep { name: name.clone(), input: input.clone(), others: None })
        }
        (Bug::DriftEnds, Command::Release { lease, reason: ReleaseReason::Stuck(_), .. }) => {
            let error = task::Failure::new("drift", "the code is another one");
            let outcome = ExecutionOutcome::Failed { error, step: None, retries_exhausted: false };
            let (entries, cleanup) = (vec![], Cleanup::default());
            core(Command::Close(Close {
                lease: *lease,
                entries,
                ending: Ending::Outcome(outcome),
                cleanup,
                values: None,
            }))
        }
        (Bug::ChildrenLeftBehind, Command::Close(close)) => {
            let Ending::ContinueAsNew { input, .. } = &close.ending else { return None };
            let ending = Ending::ContinueAsNew { input: input.clone(), carried: vec![] };
            core(Command::Close(Close { ending, ..close.clone() }))
        }
        (Bug::LateResultRefused, Command::Record(_) | Command::Suspend(_) | Command::Close(_)) => {
            let turn = execution?.turn()?;
            let is_late = turn.lease_expires_at <= context.now;
            is_late.then(|| Decision::refuse(execution, Reject::TurnLost))
        }
        (Bug::HandlerNotHinted, _) => {
            let (before, mut decision) = (execution?, core(command.clone())?);
            if decision.record().is_some_and(|after| is_to_handle(before, command, after)) {
                decision.effects.retain(|effect| !matches!(effect, Effect::Turn { .. }));
            }
            Some(decision)
        }
        _ => None,
    }
}

/// Whether the code is to handle a failure or a cancellation from now on.
fn is_to_handle(before: &Execution, command: &Command, after: &Execution) -> bool {
    let is_pending = matches!(after.state, ExecutionState::Pending(_));
    let has_waited = matches!(before.state, ExecutionState::Waiting(_));
    let is_cancelled = has_waited && matches!(command, Command::Cancel);
    is_pending && (is_cancelled || before.failing.is_none() && after.failing.is_some())
}

/// The same of a task.
pub(super) fn on_a_task(bug: Bug, task: &Task, command: &OnTask, context: &Context<'_>) -> Option<OfTask> {
    match (bug, command) {
        (Bug::OldOutcomeCounts, OnTask::Retry(_)) if task.parent.is_some() && task.ended().is_some() => {
            Some(OfTask::unchanged(task, Ok(TaskReply::Revived)))
        }
        (Bug::OldInputRuns, OnTask::Retry(Some(_))) => {
            Some(task::decide(Some(task), &OnTask::Retry(None), context))
        }
        (Bug::LateResultRefused, OnTask::Complete(_) | OnTask::Fail(_)) => {
            let is_late = task.running()?.lease_expires_at <= context.now;
            is_late.then(|| OfTask::refuse(Some(task), Reject::LeaseLost))
        }
        _ => None,
    }
}

/// Whether a run in a worker's memory goes on there.
pub fn is_continued(bug: Option<Bug>, known: &Execution, record: &Execution, since: &[Entry]) -> bool {
    let is_same = || (known.incarnation, known.run) == (record.incarnation, record.run);
    replay::is_continued(known, record, since) || bug == Some(Bug::OthersTurnUnseen) && is_same()
}
