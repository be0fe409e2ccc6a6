//! pause and resume: an operator stops the turns of an execution, and allows them again. Its deadlines keep running.

use crate::command::Context;
use crate::error::Reject;
use crate::execution::decision::{Decision, Reply};
use crate::execution::journal::RESUMED;
use crate::execution::update::{expired_or_unchanged, turn, update};
use crate::execution::{Execution, ExecutionState, Ready, Waiting, append, closing, due, size};
use crate::limits::QUEUE_DELAY_MAX;
use crate::parked::Parked;

pub(super) fn pause(execution: &Execution, context: &Context<'_>) -> Decision {
    change(execution, context, |current| {
        if current.paused {
            return None;
        }
        let mut after = current.clone();
        after.paused = true;
        // It can't come to a place. The end of the pause sends its hint, and its turn comes by when it could have started.
        if after.parked.in_line().is_some() {
            after.parked = Parked::No;
        }
        append::note(&mut after, "paused", context);
        Some(after)
    })
}

/// This also resumes an execution that is stuck: its operator has removed the cause.
pub(super) fn resume(execution: &Execution, context: &Context<'_>) -> Decision {
    let mut decision = change(execution, context, |current| {
        if !current.paused && current.stuck.is_none() {
            return None;
        }
        let mut after = current.clone();
        let was_stuck = after.stuck.take().is_some();
        after.paused = false;
        append::note(&mut after, RESUMED, context);
        catch_up(&mut after, was_stuck, context);
        Some(after)
    });
    if decision.reply() == Ok(&Reply::Changed { changed: false }) && decision.writes.is_empty() {
        // This may be the same call, repeated, and its hint may have been lost.
        let hint = due::hint_under_way_at(execution).filter(|at| *at <= context.now);
        decision.effects.extend(hint.map(|at| turn(execution, at)));
    }
    decision
}

/// Allows what the pause has delayed. Hints that arrived during the pause were deleted.
fn catch_up(execution: &mut Execution, at_once: bool, context: &Context<'_>) {
    match &execution.state {
        ExecutionState::Pending(_) if at_once => {
            execution.state = ExecutionState::Pending(Ready { available_at: context.now, hint_later: false });
        }
        // Its turn could have started before, but its hint is sent only now. So is one that the tick has missed.
        ExecutionState::Pending(ready) => {
            let Ready { available_at, hint_later } = *ready;
            let hint_later = hint_later && available_at.since(context.now) > QUEUE_DELAY_MAX;
            if available_at < context.now {
                execution.hinted_at = Some(context.now);
            }
            execution.state = ExecutionState::Pending(Ready { available_at, hint_later });
        }
        // Its message was deleted when the lease expired.
        ExecutionState::Running(turn) if turn.lease_expires_at <= context.now => {
            execution.idle_turns = closing::idle_turns(execution);
            closing::lose_turn(execution, context.now);
            size::note_if_it_fits(execution, append::TURN_LOST, context);
        }
        // During the pause, steps may have become ready that no turn started. So a turn checks, whatever the execution
        // waits for.
        ExecutionState::Waiting(waiting) => {
            execution.state = ExecutionState::Waiting(Waiting { wake_requested: true, ..waiting.clone() });
            execution.hinted_at = Some(context.now);
        }
        ExecutionState::Running(_) | ExecutionState::Closing(_) | ExecutionState::Ended(_) => {}
    }
}

fn change(
    execution: &Execution,
    context: &Context<'_>,
    changed: impl Fn(&Execution) -> Option<Execution>,
) -> Decision {
    let after_expiry = closing::expire(execution, context);
    let current = after_expiry.as_ref().unwrap_or(execution);
    if let Some(closed) = current.closed() {
        let reject = Reject::ExecutionClosed { status: closed.outcome.status() };
        return expired_or_unchanged(execution, after_expiry, context, Err(reject));
    }
    let answer = |changed| Ok(Reply::Changed { changed });
    match changed(current) {
        Some(after) => update(execution, after, context, answer(true)),
        None => expired_or_unchanged(execution, after_expiry, context, answer(false)),
    }
}
