//! A message of a task was received again: the process that had it may have died between the write that made the task
//! wait and the hint that follows. The hint is sent again, once for each wait.

use crate::command::Context;
use crate::task::decision::{Decision, Reply};
use crate::task::{State, Task};

pub(super) fn decide(task: &Task, reply: Reply, context: &Context<'_>) -> Decision {
    let is_sent = matches!(&task.state, State::Pending(pending) if !pending.hint_later);
    if !is_sent || !task.parked.is_no() || task.hinted_at.is_some() {
        return Decision::unchanged(task, Ok(reply));
    }
    let mut after = task.clone();
    after.hinted_at = Some(context.now);
    let mut decision = super::update(task, after, context, Ok(reply));
    let hint = decision.record().map(super::dispatch);
    decision.effects.extend(hint);
    decision
}
