//! claim: a worker takes a waiting task, or one whose worker was lost.

use crate::command::Context;
use crate::duration::Millis;
use crate::failure::Failure;
use crate::gate::rate::Reservation;
use crate::gate::{CLOCKS, Pacing, Places, pacing};
use crate::parked::Parked;
use crate::task::command::Claim;
use crate::task::decide::pace::put_off;
use crate::task::decision::{ClaimReply, Decision, Reply};
use crate::task::transition;
use crate::task::{Ending, Outcome, Running, State, Task};
use crate::time::{Timestamp, is_beyond};

pub(super) fn decide(task: &Task, claim: &Claim, context: &Context<'_>) -> Decision {
    if claim.hint.is_some_and(|hint| hint.incarnation != task.incarnation) {
        return Decision::unchanged(task, Ok(Reply::Claim(ClaimReply::Stale)));
    }
    // While its execution is paused, no timeout ends a task that waits.
    let is_held = claim.held && matches!(task.state, State::Pending(_));
    let expired_task = if is_held { None } else { transition::expire(task, context) };
    let now = context.now;
    let current = expired_task.as_ref().unwrap_or(task);
    let reply = |reply| Ok(Reply::Claim(reply));
    match &current.state {
        State::Ended(_) => reply_only(task, expired_task, ClaimReply::Stale, context),
        // The lease was granted before, and its attempt is over. No two attempts may have the same fence.
        State::Pending(_) | State::Running(_) if current.past_attempt(&claim.lease).is_some() => {
            reply_only(task, expired_task, ClaimReply::Stale, context)
        }
        State::Running(running) if running.lease == claim.lease => {
            Decision::unchanged(task, reply(ClaimReply::Claimed))
        }
        State::Running(running) if !running.is_lost(now, context.limits) && !is_left(running, claim, now) => {
            Decision::unchanged(task, reply(ClaimReply::Leased))
        }
        State::Running(running) => take_over(task, running, claim, context),
        // A newer hint was sent when the task became pending. If both were kept, each timed-out attempt would leave
        // one more message in the queue. If the newer one is lost, this message comes again, or the tick finds the task.
        State::Pending(pending) if claim.hint.is_some_and(|hint| hint.version < pending.since_version) => {
            let again = expired_task.is_none() && claim.hint.is_some_and(|hint| hint.again);
            if again {
                return super::again::decide(task, Reply::Claim(ClaimReply::Stale), context);
            }
            reply_only(task, expired_task, ClaimReply::Stale, context)
        }
        State::Pending(pending) if !current.is_ready(pending, now) => {
            // If its worker has just timed out, the retry has a hint of its own, and this one is stale.
            let has_another = expired_task.is_some() && task.running().is_some();
            let early = ClaimReply::Early { available_at: pending.available_at };
            let outcome = if has_another || pending.hint_later { ClaimReply::Stale } else { early };
            reply_only(task, expired_task, outcome, context)
        }
        State::Pending(_) if claim.held => hold(task, current, context),
        State::Pending(_) if claim.paused => park(task, current, context),
        State::Pending(_) => start(task, expired_task, claim, context),
    }
}

/// Whether its message came back though its lease isn't over: the clock was set back, and its worker hides the message no
/// more.
fn is_left(running: &Running, claim: &Claim, now: Timestamp) -> bool {
    claim.hint.is_some_and(|hint| hint.again)
        && is_beyond(running.lease_expires_at, running.lease_length, now)
}

/// Starts an attempt of a task that waits, once it has what it needs for that.
fn start(task: &Task, expired_task: Option<Task>, claim: &Claim, context: &Context<'_>) -> Decision {
    let current = expired_task.as_ref().unwrap_or(task);
    match lack(task, current, claim, context.now) {
        Lack::Reply(outcome) => reply_only(task, expired_task, outcome, context),
        Lack::PutOff(start) => put_off(task, current, start, context),
        Lack::Nothing => {
            let mut after = current.clone();
            transition::start_attempt(&mut after, claim, context.now);
            super::update(task, after, context, Ok(Reply::Claim(ClaimReply::Claimed)))
        }
    }
}

/// What an attempt lacks to start.
enum Lack {
    Nothing,
    /// The claim is answered so.
    Reply(ClaimReply),
    /// Its start comes later, and must be recorded.
    PutOff(Reservation),
}

fn lack(task: &Task, current: &Task, claim: &Claim, now: Timestamp) -> Lack {
    let is_its = claim.start_of.is_none_or(|version| version == task.version);
    match pacing(current.paced(), claim.start.filter(|_| is_its), now) {
        Pacing::Later(available_at) => Lack::Reply(ClaimReply::Early { available_at }),
        Pacing::PutOff(start) => Lack::PutOff(start),
        // The places come first: a start would be lost while the task waits for one.
        Pacing::NeedsStart | Pacing::Ready if lacks_places(task, claim, now) => {
            Lack::Reply(ClaimReply::NeedsPlaces)
        }
        Pacing::NeedsStart => Lack::Reply(ClaimReply::NeedsStart),
        Pacing::Ready => Lack::Nothing,
    }
}

/// Whether an attempt may not start yet, because the task needs places that weren't taken for this very record, or that
/// would end before half of its lease does. (The lease ends with them.)
fn lacks_places(task: &Task, claim: &Claim, now: Timestamp) -> bool {
    let half = Millis::new(claim.length.as_u64() / 2);
    let covers =
        |places: Places| places.count(task.version, now) && now.plus(half).plus(CLOCKS) <= places.until;
    !task.gates().is_empty() && !claim.places.is_some_and(covers)
}

/// The task's queue is paused: the hint of this claim is deleted, and resuming the queue sends another one.
fn park(task: &Task, current: &Task, context: &Context<'_>) -> Decision {
    if !current.parked.is_no() {
        return Decision::unchanged(task, Ok(Reply::Claim(ClaimReply::Parked)));
    }
    let after = Task { parked: Parked::Paused, ..current.clone() };
    super::update(task, after, context, Ok(Reply::Claim(ClaimReply::Parked)))
}

/// Its execution is paused: the same, and its time starts afresh when it is unparked.
fn hold(task: &Task, current: &Task, context: &Context<'_>) -> Decision {
    let mut after = current.clone();
    transition::hold(&mut after);
    if after == *task {
        return Decision::unchanged(task, Ok(Reply::Claim(ClaimReply::Parked)));
    }
    super::update(task, after, context, Ok(Reply::Claim(ClaimReply::Parked)))
}

fn reply_only(
    task: &Task,
    expired_task: Option<Task>,
    outcome: ClaimReply,
    context: &Context<'_>,
) -> Decision {
    match expired_task {
        Some(after) => super::update(task, after, context, Ok(Reply::Claim(outcome))),
        None => Decision::unchanged(task, Ok(Reply::Claim(outcome))),
    }
}

/// The lease has expired: the attempt is lost and the next one starts at once, unless too many were lost. A task that may
/// be what stopped its worker starts apart from others until an attempt ends in another way.
fn take_over(task: &Task, lost: &Running, claim: &Claim, context: &Context<'_>) -> Decision {
    let mut after = task.clone();
    let cancelling = transition::end_attempt(&mut after, Ending::Lost, None, context.now);
    if cancelling {
        transition::finish(&mut after, Outcome::Cancelled { timeout: None }, context);
    } else if after.losses > context.limits.losses {
        let message = format!("{} workers in a row were lost while they had this task", after.losses);
        let error = Failure::new("poisoned", message);
        transition::finish(&mut after, Outcome::Failed { error, message: None }, context);
    } else if claim.held {
        transition::wait_from(&mut after, context.now, context.now);
        return hold(task, &after, context);
    } else if claim.paused {
        return park(task, task, context);
    } else if claim.isolation.is_shared() && task.is_suspect(lost) {
        return Decision::unchanged(task, Ok(Reply::Claim(ClaimReply::Suspect)));
    } else {
        match lack(task, task, claim, context.now) {
            Lack::Reply(reply) => return Decision::unchanged(task, Ok(Reply::Claim(reply))),
            Lack::PutOff(start) => return put_off(task, task, start, context),
            Lack::Nothing => {}
        }
        transition::start_attempt(&mut after, claim, context.now);
    }
    let outcome = if after.ended().is_some() { ClaimReply::Stale } else { ClaimReply::Claimed };
    super::update(task, after, context, Ok(Reply::Claim(outcome)))
}
