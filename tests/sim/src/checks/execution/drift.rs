//! What must hold of executions whose journal doesn't fit the code of a deployment: they wait, and only an operator, a
//! deadline or a parent goes on with them or ends them.

use tickover_core::execution::command::{Command, ReleaseReason};
use tickover_core::execution::{Execution, ExecutionOutcome, Stuck};

use super::found;
use super::story::{Step, Stories};
use crate::violation::{Invariant, Violation};

pub(super) fn of_run(stories: &Stories<'_>) -> Vec<Violation> {
    stories.steps().filter_map(only_who_may_ends_it).collect()
}

const fn is_stuck(execution: &Execution) -> bool {
    matches!(execution.stuck, Some(Stuck::Unreadable(_)))
}

fn only_who_may_ends_it(step: &Step<'_>) -> Option<Violation> {
    let before = step.before?;
    let ruling = step.ruling?;
    let reports_misfit = matches!(&ruling.command, Command::Release { reason: ReleaseReason::Stuck(_), .. });
    if !(is_stuck(before) || reports_misfit) || before.closed().is_some() {
        return None;
    }
    let ended = step.after.closed().map(|closed| &closed.outcome);
    let ended =
        ended.or(step.after.failing.as_ref().filter(|_| before.failing.is_none()).map(|one| &one.outcome))?;
    // A deadline goes on counting, and a cancellation has nobody to wait for.
    let may = matches!(ended, ExecutionOutcome::TimedOut { .. } | ExecutionOutcome::Cancelled { .. })
        || before.failing.as_ref().is_some_and(|failing| failing.outcome == *ended);
    (!may).then(|| {
        found(Invariant::Drift, step, "its code doesn't fit its journal, and it ended because of that")
    })
}
