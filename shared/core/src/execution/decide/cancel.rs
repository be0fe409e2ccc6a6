//! cancel: at once if no turn is in progress and nothing has to be undone; otherwise a turn sees the request, stops the
//! code and undoes what it has done. terminate: at once in any case.

use crate::command::Context;
use crate::execution::decision::{Decision, Reply};
use crate::execution::journal::TERMINATED;
use crate::execution::update::{expired_or_unchanged, turn, update};
use crate::execution::{Execution, ExecutionOutcome, append, closing, due};

pub(super) fn decide(execution: &Execution, terminate: bool, context: &Context<'_>) -> Decision {
    let after_expiry = closing::expire(execution, context);
    let current = after_expiry.as_ref().unwrap_or(execution);
    let outcome = |changed| Ok(Reply::Changed { changed });
    // Code that handles a failure or a cancellation ends by itself: it has a deadline of its own.
    let is_ending = current.failing.is_some() || current.cancel_requested;
    if current.closed().is_some() || !terminate && is_ending {
        let mut decision = expired_or_unchanged(execution, after_expiry, context, outcome(false));
        if decision.writes.is_empty() {
            // This may be the same call, repeated, and its hint may have been lost.
            let hint = due::hint_under_way_at(execution).filter(|at| *at <= context.now);
            decision.effects.extend(hint.map(|at| turn(execution, at)));
        }
        return decision;
    }
    let mut after = current.clone();
    if terminate {
        if context.by.is_some() {
            append::note(&mut after, TERMINATED, context);
        }
        closing::conclude(&mut after, ExecutionOutcome::Cancelled { terminated: true }, context);
    } else {
        closing::cancel(&mut after, context);
        if after.cancel_requested {
            append::note(&mut after, "cancel_requested", context);
        } else if context.by.is_some() {
            // It has ended at once: what is noted comes before its end.
            after = current.clone();
            append::note(&mut after, "cancel_requested", context);
            closing::cancel(&mut after, context);
        }
    }
    update(execution, after, context, outcome(true))
}
