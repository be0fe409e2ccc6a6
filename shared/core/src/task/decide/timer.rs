//! timer: somebody was to look at a task at this instant. What has passed is settled; if something comes later, the
//! timer goes on to it.

use crate::command::Context;
use crate::decision::{DueReply, Effect};
use crate::due::TIMER_HORIZON;
use crate::task::Task;
use crate::task::decision::{Decision, Reply};
use crate::task::due::visible_at;
use crate::task::transition;
use crate::time::Timestamp;
use crate::timer::Timer;

pub(super) fn decide(task: &Task, due_at: Timestamp, context: &Context<'_>) -> Decision {
    if let Some(after) = transition::settle(task, context) {
        return super::due::moved(task, after, DueReply::TimedOut, context);
    }
    let mut decision = Decision::unchanged(Some(task), Ok(Reply::Due(DueReply::Nothing)));
    // Elsewhere by now: whoever moved it sent another timer, or left it to a tick. Two would go on side by side.
    let stands = task.due.is_some_and(|due| due.at == due_at);
    // What is further away is the tick's: it finds the record here within a minute or two, and moves it there.
    let next = visible_at(task).filter(|at| stands && *at <= context.now.plus(TIMER_HORIZON));
    if let Some(at) = next {
        decision.effects.push(Effect::Timer(Timer { record: task.id.clone().into(), at, due_at }));
        decision.outcome = Ok(Reply::Due(DueReply::Waiting));
    }
    decision
}
