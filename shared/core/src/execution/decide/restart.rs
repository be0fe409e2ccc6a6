//! restart and rerun: an operator starts a new run of an execution that has ended, with new deadlines.

use crate::command::Context;
use crate::error::Reject;
use crate::execution::command::{Given, Rerun};
use crate::execution::decision::{Decision, Reply};
use crate::execution::journal::{Entry, Happened, RESTARTED};
use crate::execution::update::{new_segments, turn, update};
use crate::execution::{Execution, ExecutionState, append, closing, due, retention};
use crate::time::earliest;

use super::close::new_run;
use super::start::spill;

/// What one that has an outcome still needs before it can run again.
pub(super) const CLEANED_UP: &str =
    "has ended its children and its open steps as well, which takes a minute at most: try again then";

pub(super) fn decide(execution: &Execution, rerun: &Rerun, context: &Context<'_>) -> Decision {
    match &execution.state {
        ExecutionState::Ended(_) => run_again(execution, execution.clone(), rerun, None, context),
        ExecutionState::Pending(_)
        | ExecutionState::Running(_)
        | ExecutionState::Waiting(_)
        | ExecutionState::Closing(_) => {
            if is_untouched(execution) {
                return repeated(execution);
            }
            let is_closing = matches!(execution.state, ExecutionState::Closing(_));
            let needs = if is_closing { CLEANED_UP } else { "has ended" };
            let reject = Reject::ExecutionOpen { status: execution.status(), needs };
            Decision::refuse(Some(execution), reject)
        }
    }
}

/// Whether nothing has happened to the execution since its restart.
fn is_untouched(execution: &Execution) -> bool {
    let is_note = |entry: &Entry| matches!(&entry.what, Happened::Note { kind, .. } if kind == RESTARTED);
    execution.untouched_since().is_some_and(is_note)
}

impl Execution {
    /// The entry by which an operator had it run again, if nothing has happened to it since: its hint may have been lost.
    pub fn untouched_since(&self) -> Option<&Entry> {
        let is_untouched = matches!(self.state, ExecutionState::Pending(_)) && self.idle_turns == 0;
        self.journal.last().filter(|last| {
            let by_operator = match &last.what {
                Happened::Note { kind, .. } => kind == RESTARTED,
                Happened::Reopened { .. } => true,
                _ => false,
            };
            is_untouched && by_operator
        })
    }
}

/// The answer to a call that is repeated before anything has come of it: its hint is sent again.
pub(super) fn repeated(execution: &Execution) -> Decision {
    let mut decision = Decision::unchanged(execution, Ok(Reply::Changed { changed: false }));
    decision.effects.extend(due::hint_under_way_at(execution).map(|at| turn(execution, at)));
    decision
}

/// Starts a new run of an execution that has ended, on the terms of `after`: with this input, or that of its last run.
pub(super) fn run_again(
    execution: &Execution,
    mut after: Execution,
    rerun: &Rerun,
    given: Option<&Given>,
    context: &Context<'_>,
) -> Decision {
    after.deadline_at = after.timeouts.execution.map(|timeout| context.now.plus(timeout));
    after.failing = None;
    after.cancel_requested = false;
    closing::make_pending(&mut after, context.now, context.now);
    new_run(&mut after, &rerun.preserved, context.now);
    after.repeats = rerun.is_same_work.then(|| execution.work());
    let mut new_items = vec![];
    if let Some(given) = given {
        let kept = after.kept.filter(|_| !rerun.preserved.is_empty());
        (after, new_items) = spill(after, given, context);
        after.kept = earliest([kept, after.kept]);
    }
    append::note(&mut after, RESTARTED, context);
    new_items.extend(new_segments(execution, append::seal_run(execution, context), context));
    let mut decision = reopened(execution, after, context);
    if !decision.writes.is_empty() {
        decision.new_items.extend(new_items);
    }
    decision
}

/// The decision to reopen an execution that has ended. The items that it points to must be kept long enough first.
pub(super) fn reopened(before: &Execution, after: Execution, context: &Context<'_>) -> Decision {
    if retention::required_expiry(&after, context.now, context.limits).is_some() {
        return Decision::unchanged(before, Ok(Reply::ExpiresTooSoon));
    }
    update(before, after, context, Ok(Reply::Changed { changed: true }))
}
