//! `send_event`: an event is pending in the journal until the execution takes it.

use crate::command::Context;
use crate::error::Reject;
use crate::execution::command::SendEvent;
use crate::execution::decision::{Decision, Reply};
use crate::execution::journal::{Entry, Happened};
use crate::execution::update::{expired_or_unchanged, turn, update};
use crate::execution::{Execution, ExecutionState, Waiting, append, closing, due};
use crate::id::EventId;

pub(super) fn decide(execution: &Execution, event: &SendEvent, context: &Context<'_>) -> Decision {
    let after_expiry = closing::expire(execution, context);
    let current = after_expiry.as_ref().unwrap_or(execution);
    let is_known = event.known || event.id.as_ref().is_some_and(|id| holds(current, id));
    let may_have_left = event.id.is_some() && event.seen != current.stage() && !is_known;
    if let Some(closed) = current.closed().filter(|_| !may_have_left) {
        let reject = Reject::ExecutionClosed { status: closed.outcome.status() };
        let outcome = if is_known { Ok(Reply::EventSent { duplicate: true }) } else { Err(reject) };
        return expired_or_unchanged(execution, after_expiry, context, outcome);
    }
    let is_bound = event.bound.is_none_or(|bound| bound.holds(execution, context.now));
    if !is_bound || event.id.is_some() && event.seen != current.stage() {
        return expired_or_unchanged(execution, after_expiry, context, Ok(Reply::Changed { changed: false }));
    }
    if is_known {
        return repeat(execution, after_expiry, context);
    }
    let mut after = current.clone();
    after.trace = current.trace.or(event.trace);
    let what =
        Happened::Event { name: event.name.clone(), id: event.id.clone(), payload: event.payload.clone() };
    if let Err(reject) = append::record(&mut after, &[Entry { at: context.now, what }], context) {
        return expired_or_unchanged(execution, after_expiry, context, Err(reject));
    }
    request_wake(&mut after, context);
    update(execution, after, context, Ok(Reply::EventSent { duplicate: false }))
}

/// The same event, repeated. If no turn has seen it yet, its hint may have been lost: this call sends it again.
fn repeat(execution: &Execution, after_expiry: Option<Execution>, context: &Context<'_>) -> Decision {
    let is_unseen = matches!(&execution.state, ExecutionState::Waiting(waiting) if waiting.wake_requested);
    let hint = due::hint_under_way_at(execution).filter(|_| after_expiry.is_none() && is_unseen);
    let reply = Ok(Reply::EventSent { duplicate: true });
    let mut decision = expired_or_unchanged(execution, after_expiry, context, reply);
    decision.effects.extend(hint.map(|at| turn(execution, at)));
    decision
}

fn holds(execution: &Execution, event: &EventId) -> bool {
    execution.journal.iter().any(|entry| entry.is_event(event))
}

/// A waiting execution may continue. A turn in progress sees the new version before it ends.
fn request_wake(execution: &mut Execution, context: &Context<'_>) {
    if let ExecutionState::Waiting(waiting) = &execution.state
        && !waiting.wake_requested
    {
        execution.state = ExecutionState::Waiting(Waiting { wake_requested: true, ..waiting.clone() });
        execution.hinted_at = Some(context.now);
    }
}
