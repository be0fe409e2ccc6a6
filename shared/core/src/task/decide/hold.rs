//! hold: the execution of a remote step is paused. A timeout of the step's own doesn't end it while it waits: its time
//! stops, and starts afresh when it is unparked.

use crate::command::Context;
use crate::decision::DueReply;
use crate::due_slot::SlotChange;
use crate::task::decision::{Decision, Reply};
use crate::task::due::latest;
use crate::task::transition;
use crate::task::{State, Task};

use super::due::rearm;

pub(super) fn decide(task: &Task, context: &Context<'_>) -> Decision {
    let nothing = Decision::unchanged(task, Ok(Reply::Due(DueReply::Nothing)));
    let State::Pending(pending) = &task.state else { return nothing };
    let has_time = task.deadline_at.is_some() || pending.schedule_to_start_at.is_some();
    if has_time && task.parent.is_some() {
        let mut after = task.clone();
        transition::hold(&mut after);
        // A slot that is still ahead stays, as at a claim: if nobody unparks the step, the tick does it then.
        let is_due = task.due.is_some_and(|due| due.at <= context.now);
        let placement = if is_due { SlotChange::Latest } else { SlotChange::KeepOrLower };
        let reply = Ok(Reply::Due(DueReply::Rearmed));
        return super::update_in_slot(task, after, placement, context, reply);
    }
    if !task.depends_on_a_pause(context.now) {
        return nothing;
    }
    match latest(task, context.now, context.limits) {
        Some(latest) => rearm(task, latest, context.now),
        None => nothing,
    }
}
