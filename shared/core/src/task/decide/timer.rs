//! timer: a timer has arrived. It records an expired timeout. If the record has a later instant, the timer is sent
//! again for it.

use crate::command::Context;
use crate::decision::DueReply;
use crate::due_slot;
use crate::task::Task;
use crate::task::decision::{Decision, Reply};
use crate::task::transition;
use crate::time::Timestamp;

pub(super) fn decide(task: &Task, due_at: Timestamp, again: bool, context: &Context<'_>) -> Decision {
    if let Some(after) = transition::expire(task, context) {
        return super::due::moved(task, after, DueReply::TimedOut, context);
    }
    let (reply, timer) = match due_slot::next_timer(task, due_at, context.now) {
        Some(timer) => (DueReply::Waiting, vec![timer]),
        None if again => return super::again::decide(task, Reply::Due(DueReply::Nothing), context),
        None => (DueReply::Nothing, vec![]),
    };
    Decision { effects: timer, ..Decision::unchanged(task, Ok(Reply::Due(reply))) }
}
