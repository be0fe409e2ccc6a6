//! timer: somebody was to look at an execution at this instant. What has passed is settled; if something comes later,
//! the timer goes on to it.

use crate::command::Context;
use crate::decision::{DueReply, Effect};
use crate::due::TIMER_HORIZON;
use crate::execution::decision::{ExecutionDecision, ExecutionReply};
use crate::execution::due::visible_at;
use crate::execution::{Execution, closing};
use crate::time::Timestamp;
use crate::timer::Timer;

pub(super) fn decide(execution: &Execution, due_at: Timestamp, context: &Context<'_>) -> ExecutionDecision {
    if let Some(after) = closing::settle(execution, context) {
        return super::due::moved(execution, after, DueReply::TimedOut, context);
    }
    if let Some(after) = super::due::lost_in_an_attempt(execution, context) {
        return super::due::moved(execution, after, DueReply::TimedOut, context);
    }
    let nothing = Ok(ExecutionReply::Due(DueReply::Nothing));
    let mut decision = ExecutionDecision::unchanged(Some(execution), nothing);
    // As with tasks: whoever moved the record has sent another timer, or left it to a tick.
    let stands = execution.due.is_some_and(|due| due.at == due_at);
    let next = visible_at(execution).filter(|at| stands && *at <= context.now.plus(TIMER_HORIZON));
    if let Some(at) = next {
        decision.effects.push(Effect::Timer(Timer { record: execution.id.clone().into(), at, due_at }));
        decision.outcome = Ok(ExecutionReply::Due(DueReply::Waiting));
    }
    decision
}
