//! close: a turn ends its run, and mostly the execution with it.

use crate::command::Context;
use crate::decision::Write;
use crate::error::Reject;
use crate::execution::command::{Close, Ending};
use crate::execution::decision::{ExecutionDecision, ExecutionReply};
use crate::execution::journal::{Entry, Happened};
use crate::execution::update::{held_by, settled_or_unchanged, update};
use crate::execution::{Execution, ExecutionOutcome, closing, entries, parts};
use crate::payload::{BlobRef, Payload};

use super::record;

pub(super) fn decide(execution: &Execution, close: &Close, context: &Context<'_>) -> ExecutionDecision {
    let settled = closing::settle(execution, context);
    if settled.is_some() || held_by(execution, &close.lease).is_none() {
        return settled_or_unchanged(execution, settled, context, Err(Reject::TurnLost));
    }
    let mut after = execution.clone();
    // Whatever the limits say: a run that has reached them must be able to end.
    entries::append(&mut after, &close.entries);
    record::goes_on(&mut after, &close.entries, close.on_failure);
    let closed = Ok(ExecutionReply::Closed { duplicate: false });
    match &close.ending {
        Ending::Outcome(outcome) => {
            closing::conclude(&mut after, outcome.clone(), context);
            update(execution, after, context, closed)
        }
        Ending::ContinueAsNew { .. } if execution.cancel_requested => {
            // Its code stops here: the next run wouldn't begin anything.
            closing::conclude(&mut after, ExecutionOutcome::Cancelled { terminated: false }, context);
            update(execution, after, context, closed)
        }
        Ending::ContinueAsNew { input, events } => {
            if let Some(failing) = &execution.failing {
                // What deals with a failure recovers with a result or not at all: another run could be too late
                // already, and would fail anew.
                closing::conclude(&mut after, failing.outcome.clone(), context);
                return update(execution, after, context, closed);
            }
            let Some(unseen) = unseen_events(execution, &after, events) else {
                // They lie in a sealed part: whoever takes the next turn sees them.
                return ExecutionDecision::refuse(Some(execution), Reject::TurnLost);
            };
            let events = [events.as_slice(), &unseen].concat();
            let old = after.clone();
            begin_anew(&mut after, input.as_ref(), &events, context);
            let expiries = let_go(&old, &after, context);
            let mut decision = update(execution, after, context, closed);
            decision.writes.splice(0..0, expiries);
            decision
        }
    }
}

/// Events that were offered after the turn last saw the record: as many as there are more than it knows of, and the
/// latest, since it has seen all before them. `None` if they aren't all at hand.
fn unseen_events(before: &Execution, after: &Execution, known: &[Entry]) -> Option<Vec<Entry>> {
    let pending = usize::try_from(after.pending_events).ok()?;
    let count = pending.saturating_sub(known.len());
    let offered = before.journal.iter().rev().filter(|entry| matches!(entry.what, Happened::Event { .. }));
    let mut unseen: Vec<Entry> = offered.take(count).cloned().collect();
    unseen.reverse();
    (unseen.len() == count).then_some(unseen)
}

/// The next run. The execution's deadline stays, a run's begins anew.
fn begin_anew(execution: &mut Execution, input: Option<&Payload>, events: &[Entry], context: &Context<'_>) {
    execution.input = input.cloned();
    execution.failing = None;
    new_run(execution, events, context);
    closing::await_turn(execution, context.now, context.now);
}

/// A run's own part of the record as it is when a run begins.
pub(super) fn new_run(execution: &mut Execution, begins_with: &[Entry], context: &Context<'_>) {
    execution.run += 1;
    execution.run_started_at = context.now;
    execution.run_deadline_at = execution.timeouts.run.map(|timeout| context.now.plus(timeout));
    execution.journal.clear();
    execution.sealed = None;
    execution.open_steps = 0;
    execution.pending_events = 0;
    entries::append(execution, begins_with);
}

/// The payloads that the record pointed to and no longer does may go, after the usual time.
fn let_go(old: &Execution, new: &Execution, context: &Context<'_>) -> Vec<Write> {
    let expires_at = context.now.plus(context.limits.retention);
    let kept: Vec<&BlobRef> = parts::blobs(new).collect();
    parts::blobs(old)
        .filter(|blob| kept.iter().all(|kept| kept.id != blob.id))
        .map(|blob| Write::ExtendBlob { at: BlobRef { expires_at, ..blob.clone() } })
        .collect()
}
