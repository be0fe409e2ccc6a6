//! timer: an execution is read at the instant of its timer. What has passed is recorded. If a later instant follows
//! soon, the timer is sent again for it.

use crate::command::Context;
use crate::decision::DueReply;
use crate::due_slot;
use crate::execution::decision::{Decision, Reply};
use crate::execution::due::hint_under_way_at;
use crate::execution::update::turn;
use crate::execution::{Execution, closing};
use crate::time::Timestamp;

pub(super) fn decide(
    execution: &Execution,
    due_at: Timestamp,
    again: bool,
    context: &Context<'_>,
) -> Decision {
    if let Some(after) = closing::expire(execution, context) {
        return super::due::update_by_tick(execution, after, DueReply::TimedOut, context);
    }
    if let Some(after) = super::due::release_overdue_turn(execution, context) {
        return super::due::update_by_tick(execution, after, DueReply::TimedOut, context);
    }
    // The process that had this message may have died before it sent the hint.
    let hint = || hint_under_way_at(execution).map(|at| turn(execution, at.max(context.now)));
    let (reply, effect) = match due_slot::next_timer(execution, due_at, context.now) {
        Some(timer) => (DueReply::Waiting, Some(timer)),
        None if again => (DueReply::Nothing, hint()),
        None => (DueReply::Nothing, None),
    };
    let unchanged = Decision::unchanged(execution, Ok(Reply::Due(reply)));
    Decision { effects: effect.into_iter().collect(), ..unchanged }
}
