//! What must hold of the steps and children that an execution leaves open when it closes: remote steps are ended, and
//! children are treated by their close policy.

use tickover_core::execution::journal::{Entry, Happened, open_steps};
use tickover_core::execution::{Execution, ExecutionState, ParentClosePolicy};
use tickover_core::id::ExecutionId;
use tickover_core::time::Timestamp;
use tickover_service::executions::remote_id;

use super::found;
use super::story::{Step, Stories};
use crate::fault_plan::SKEW;
use crate::violation::{Invariant, Violation};

pub(super) fn of_step(step: &Step<'_>, stories: &Stories<'_>) -> Vec<Violation> {
    let was_ended = step.before.is_some_and(is_ended);
    let Some(journal) = step.journal.as_ref().filter(|_| is_ended(step.after) && !was_ended) else {
        return vec![];
    };
    let journal: Vec<Entry> = journal.iter().copied().cloned().collect();
    let open = open_steps(&journal);
    let wrong = open.into_iter().filter_map(|entry| {
        if let Happened::Child { execution, policy, .. } = &entry.what {
            return a_child_follows_its_policy(step, stories, execution, *policy);
        }
        let Happened::Remote { name } = &entry.what else { return None };
        let id = remote_id(step.after, name);
        let changes = stories.tasks.get(id.as_str())?.iter();
        let mut latest_first = changes.rev().filter(|(number, ..)| *number < step.number);
        let (last, before) = (latest_first.next()?, latest_first.next());
        // An operator retries it after it has been ended: its claim finds that it is part of nothing any more.
        let is_closing =
            |at: Timestamp| step.after.closed().is_some_and(|closed| at.plus(SKEW) >= closed.ended_at);
        let is_retried = before.is_some_and(|before| before.2) && is_closing(last.1);
        (!last.2 && !is_retried).then(|| format!("the remote step {name} is still running"))
    });
    wrong.map(|what| found(Invariant::Policies, step, what)).collect()
}

const fn is_ended(execution: &Execution) -> bool {
    matches!(execution.state, ExecutionState::Ended(_))
}

fn a_child_follows_its_policy(
    step: &Step<'_>,
    stories: &Stories<'_>,
    child: &ExecutionId,
    policy: ParentClosePolicy,
) -> Option<String> {
    // A child that was never started, or was started by a worker that had lost the turn, isn't this execution's.
    let steps = stories.latest(child, step.number)?;
    let until_now = steps.iter().filter(|one| one.number < step.number);
    let (mut asked, mut closed) = (false, false);
    for one in until_now {
        // The code that runs after a failure or a cancellation isn't asked.
        asked |= one.after.cancel_requested || one.after.failing.is_some();
        closed = one.after.closed().is_some();
    }
    match policy {
        ParentClosePolicy::Abandon => None,
        ParentClosePolicy::RequestCancel if asked || closed => None,
        ParentClosePolicy::Terminate if closed => None,
        ParentClosePolicy::RequestCancel => Some(format!("{child} wasn't asked to cancel")),
        ParentClosePolicy::Terminate => Some(format!("{child} is still running")),
    }
}
