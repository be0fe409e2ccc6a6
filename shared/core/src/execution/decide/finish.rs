//! finish: what an execution left open has been ended, and its parts are kept as long as the record: it is closed for
//! good.

use crate::command::Context;
use crate::decision::Effect;
use crate::error::Reject;
use crate::execution::command::End;
use crate::execution::decision::{Decision, Reply};
use crate::execution::update::update;
use crate::execution::{Closed, Execution, ExecutionState, retention};

pub(super) fn decide(execution: &Execution, end: End, context: &Context<'_>) -> Decision {
    if End::of(execution).is_some_and(|latest| latest != end) {
        // It went on meanwhile, and what it left open at its latest end is for others to see to.
        return Decision::unchanged(execution, Ok(Reply::Changed { changed: false }));
    }
    match &execution.state {
        // There is more to do first.
        ExecutionState::Closing(_) if retention::ends_too_early(execution) => {
            Decision::unchanged(execution, Ok(Reply::Changed { changed: false }))
        }
        ExecutionState::Closing(closed) => finish(execution, closed, context),
        ExecutionState::Ended(_) => {
            // The same call again: perhaps the parent wasn't told.
            let mut decision = Decision::unchanged(execution, Ok(Reply::Changed { changed: false }));
            decision.effects.extend(execution.parent.clone().map(Effect::NotifyParent));
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
