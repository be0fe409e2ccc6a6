//! `wait_in_line`: a key of the task is full. It waits in the line, and whoever gives it a place sends its hint.

use crate::command::Context;
use crate::due_slot::SlotChange;
use crate::flow::Paced;
use crate::gate::Position;
use crate::parked::Parked;
use crate::task::Task;
use crate::task::decision::{ClaimReply, Decision, Reply};
use crate::task::transition;

pub(super) fn decide(task: &Task, seen_version: u64, context: &Context<'_>) -> Decision {
    let reply = |reply| Ok(Reply::Claim(reply));
    if let Some(after) = transition::expire(task, context) {
        return super::update(task, after, context, reply(ClaimReply::Stale));
    }
    let Some(since) = task.ready_at().filter(|_| !task.gates().is_empty()) else {
        return Decision::unchanged(task, reply(ClaimReply::Stale));
    };
    if task.version != seen_version || since > context.now {
        return Decision::unchanged(task, reply(ClaimReply::NeedsPlaces));
    }
    let position = Position { since, version: task.version + 1 };
    let mut after = task.clone();
    // The pause is over in which its time stopped.
    transition::start_time(&mut after, context.now);
    after.parked = Parked::InLine(position);
    // It reserves another one when it has a place: others may use this one meanwhile.
    after.paced_mut().into_iter().for_each(Paced::forget_start);
    super::update_in_slot(
        task,
        after,
        SlotChange::in_line(context.limits),
        context,
        reply(ClaimReply::Parked),
    )
}
