//! A task that starts by the rate of a key: whether an attempt may start now, and what happens if not.

use crate::command::Context;
use crate::gate::rate::Reservation;
use crate::task::command::Claim;
use crate::task::decision::{ClaimReply, Decision, Reply};
use crate::task::transition;
use crate::task::{State, Task};
use crate::time::Timestamp;

/// Whether an attempt may start by the rate of its task's key.
pub(super) enum Pacing {
    /// Yes: it has no rate, or a reserved start that counts.
    Ready,
    /// A start must be reserved first.
    NeedsStart,
    /// Its reserved start comes later, and is in the record.
    Later(Timestamp),
    /// The start that was reserved for this claim comes later, and isn't in the record yet.
    PutOff(Reservation),
}

pub(super) fn pacing(task: &Task, claim: &Claim, now: Timestamp) -> Pacing {
    let Some(paced) = task.paced() else { return Pacing::Ready };
    let is_later = |start: &Reservation| start.start_at > now;
    let began_at = claim.began_at.unwrap_or(now);
    let has_own = claim.start.is_some_and(|start| start.counts(start.start_at, now));
    if has_own || paced.start.is_some_and(|start| start.counts(began_at, now)) {
        Pacing::Ready
    } else if let Some(start) = paced.start.filter(is_later) {
        Pacing::Later(start.start_at)
    } else {
        claim.start.filter(is_later).map_or(Pacing::NeedsStart, Pacing::PutOff)
    }
}

/// Records when the next attempt may start. A task whose last worker was lost stays as it is: its next attempt must run
/// alone.
pub(super) fn put_off(task: &Task, current: &Task, start: Reservation, context: &Context<'_>) -> Decision {
    let (mut after, available_at) = (current.clone(), start.start_at);
    after.set_reserved(Some(start));
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
