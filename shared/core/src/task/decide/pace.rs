//! A task whose start comes later, by the rate of its key.

use crate::command::Context;
use crate::gate::rate::Reservation;
use crate::task::decision::{ClaimReply, Decision, Reply};
use crate::task::transition;
use crate::task::{State, Task};

/// Records when the next attempt may start. A task whose last worker was lost stays as it is: its next attempt must run
/// alone.
pub(super) fn put_off(task: &Task, current: &Task, start: Reservation, context: &Context<'_>) -> Decision {
    let (mut after, available_at) = (current.clone(), start.start_at);
    after.paced_mut().into_iter().for_each(|paced| paced.put_off(start));
    let reply = match &current.state {
        State::Pending(_) => {
            // It has a new hint. If the old ones were kept, their number would grow with each time.
            transition::wait_from(&mut after, available_at, context.now);
            ClaimReply::Stale
        }
        State::Running(_) | State::Ended(_) => ClaimReply::Early { available_at },
    };
    super::update(task, after, context, Ok(Reply::Claim(reply)))
}

/// Whether the start of a task that waits was put off: then it has another one in its record.
pub(super) fn is_put_off(before: &Task, after: &Task) -> bool {
    after.reserved().is_some() && before.reserved() != after.reserved()
}
