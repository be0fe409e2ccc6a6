//! An operation that completed has left out no record that it was for.

use std::collections::BTreeMap;

use tickover_core::duration::Millis;
use tickover_core::execution::{Execution, ExecutionStatus};
use tickover_core::id::ExecutionId;
use tickover_core::operation::{Action, HowEnded, Operation};
use tickover_core::payload::Payload;
use tickover_service::operations::{Details, Selection};

use super::{Records, violation};
use crate::Run;
use crate::fault_plan::SKEW;
use crate::violation::Violation;

/// Executions that the operation was for, and that nobody changed between its start and its end. There may be as many
/// as refused the action.
pub(super) fn it_leaves_nothing_out(run: &Run, records: &Records) -> Option<Violation> {
    // A list leaves out what only a newer build can read.
    if run.plan.hardship.two_builds {
        return None;
    }
    let ((began, first), (ended, last)) = (records.first()?, records.last()?);
    let end = last.end.as_ref().filter(|end| end.how == HowEnded::Completed && !last.dry_run)?;
    let Selection::Executions { filter, ids } = details(run, last)?.selection else { return None };
    let mut at_start: BTreeMap<&ExecutionId, &Execution> = BTreeMap::new();
    for (number, event) in run.events.iter().enumerate().take(*ended) {
        let Some(change) = event.what.execution_change() else { continue };
        if number < *began {
            at_start.insert(&change.after.id, &change.after);
        } else {
            at_start.remove(&change.after.id);
        }
    }
    let is_wanted = |execution: &Execution| {
        let fits = if ids.is_empty() {
            filter.workflow.as_ref() == Some(&execution.workflow)
        } else {
            ids.contains(&execution.id)
        };
        let is_old = execution.created_at.plus(SKEW) <= first.created_at;
        fits && is_old && can_change(first.action, execution, first)
    };
    let is_kept = |execution: &Execution| {
        let gone_at = execution.closed().map(|closed| closed.expires_at);
        gone_at.is_none_or(|at| at > end.at.plus(Millis::from_secs(60)))
    };
    let left: Vec<_> = at_start.values().filter(|one| is_wanted(one) && is_kept(one)).collect();
    let refused: u64 = last.counts.refused.values().sum();
    let names: Vec<_> = left.iter().map(|one| one.id.as_str()).collect();
    // Absent ids are refused as well.
    let absent = ids.iter().filter(|id| id.as_str().starts_with("absent")).count();
    let refused = usize::try_from(refused).unwrap_or(usize::MAX).saturating_sub(absent);
    (names.len() > refused).then(|| violation(end.at, last, &format!("has left out {names:?}")))
}

fn can_change(action: Action, execution: &Execution, operation: &Operation) -> bool {
    match action {
        Action::Retry | Action::RetryStep | Action::Restart => {
            let has_failed =
                matches!(execution.status(), ExecutionStatus::Failed | ExecutionStatus::TimedOut);
            let ended_at = execution.closed().map(|closed| closed.ended_at);
            has_failed
                && execution.due.is_none()
                && ended_at.is_some_and(|at| at.plus(SKEW) <= operation.created_at)
        }
        // The code that runs after a failure or a cancellation ends by itself.
        Action::Cancel => {
            execution.closed().is_none() && !execution.cancel_requested && execution.failing.is_none()
        }
        Action::Terminate | Action::SendEvent => execution.closed().is_none(),
    }
}

fn details(run: &Run, operation: &Operation) -> Option<Details> {
    let json = match &operation.details {
        Payload::Inline(json) => json.clone(),
        Payload::Blob(at) => run.world.ledger.blob(&at.id)?,
    };
    serde_json::from_str(json.as_str()).ok()
}
