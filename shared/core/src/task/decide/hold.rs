//! hold: the execution of a remote step is paused, or was until now. A timeout of the step's own doesn't end it while it
//! waits: its time stops, and starts afresh when it is unparked.

use crate::command::Context;
use crate::decision::DueReply;
use crate::task::Task;
use crate::task::decision::{Decision, Reply};
use crate::task::due::latest;
use crate::task::transition;

use super::due::{moved, rearm};

pub(super) fn decide(task: &Task, context: &Context<'_>) -> Decision {
    let nothing = Decision::unchanged(task, Ok(Reply::Due(DueReply::Nothing)));
    if !task.depends_on_a_pause(context.now) {
        return nothing;
    }
    let mut after = task.clone();
    transition::hold(&mut after);
    if after != *task {
        return moved(task, after, DueReply::Rearmed, context);
    }
    match latest(task, context.now, context.limits) {
        Some(latest) => rearm(task, latest, context.now),
        None => nothing,
    }
}
