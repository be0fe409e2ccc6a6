//! unpark: a task's queue or execution was resumed. The task gets the hint again that was deleted during the pause.

use crate::command::Context;
use crate::due_slot::SlotChange;
use crate::task::Task;
use crate::task::decision::{Decision, Reply};
use crate::task::transition;

pub(super) fn decide(task: &Task, context: &Context<'_>) -> Decision {
    let reply = |was_parked| Ok(Reply::Unparked { was_parked });
    if let Some(after) = transition::expire(task, context) {
        return super::update(task, after, context, reply(false));
    }
    if !task.parked.is_paused() {
        return Decision::unchanged(task, reply(false));
    }
    unparked(task, SlotChange::KeepOrLower, context, reply(true))
}

/// The task with a new hint. All instants count from it.
pub(super) fn unparked(
    task: &Task,
    placement: SlotChange,
    context: &Context<'_>,
    outcome: Result<Reply, crate::error::Reject>,
) -> Decision {
    let mut after = task.clone();
    transition::unpark(&mut after, context.now);
    let mut decision = super::update_in_slot(task, after, placement, context, outcome);
    // A lost worker's task gets its hint for the end of the lease. For a later start, the tick sends it.
    let hint = decision.record().filter(|task| task.running().is_some()).map(super::dispatch);
    decision.effects.extend(hint);
    decision
}
