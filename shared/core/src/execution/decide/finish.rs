//! finish: the steps and children that an execution left open have been ended, and its items are kept as long as its
//! record. It is closed for good.

use crate::command::Context;
use crate::decision::Effect;
use crate::error::Reject;
use crate::execution::command::End;
use crate::execution::decision::{Decision, Reply};
use crate::execution::update::update;
use crate::execution::{Closed, Execution, ExecutionState, retention};

pub(super) fn decide(execution: &Execution, end: End, context: &Context<'_>) -> Decision {
    if End::of(execution).is_some_and(|latest| latest != end) {
        // It was reopened meanwhile. Another caller ends the steps and children that it left open at its latest end.
        return Decision::unchanged(execution, Ok(Reply::Changed { changed: false }));
    }
    match &execution.state {
        // Its items must be kept longer first.
        ExecutionState::Closing(_) if retention::expires_before_record(execution) => {
            Decision::unchanged(execution, Ok(Reply::Changed { changed: false }))
        }
        ExecutionState::Closing(closed) => finish(execution, closed, context),
        ExecutionState::Ended(_) => {
            // The same call, repeated: the parent may not have been notified.
            let mut decision = Decision::unchanged(execution, Ok(Reply::Changed { changed: false }));
            decision.effects.extend(execution.parent.clone().map(Effect::NotifyParent));
            decision.effects.extend(execution.end_of_run());
            decision
        }
        ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_) => {
            let reject = Reject::ExecutionOpen { status: execution.status(), needs: "has ended" };
            Decision::refuse(Some(execution), reject)
        }
    }
}

fn finish(execution: &Execution, closed: &Closed, context: &Context<'_>) -> Decision {
    let mut after = execution.clone();
    after.hinted_at = None;
    after.progress = None;
    after.state = ExecutionState::Ended(closed.clone());
    update(execution, after, context, Ok(Reply::Changed { changed: true }))
}
