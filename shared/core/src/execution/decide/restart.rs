//! restart and rerun: an operator starts a new run of an execution that has ended, with new deadlines.

use crate::command::Context;
use crate::error::Reject;
use crate::execution::command::{Given, Rerun};
use crate::execution::decision::{Decision, Reply};
use crate::execution::journal::{CALLBACK_PREFIX, Entry, Happened, RESTARTED};
use crate::execution::update::{new_segments, turn, update};
use crate::execution::{Execution, ExecutionState, append, closing, due, retention};
use crate::id::StepName;
use crate::limits;
use crate::time::{Timestamp, earliest};

use super::close::new_run;
use super::start::spill;

/// What one that has an outcome still needs before it can run again.
pub(super) const CLEANED_UP: &str = "has ended its children and its open steps as well: try again soon";

pub(super) fn decide(execution: &Execution, rerun: &Rerun, context: &Context<'_>) -> Decision {
    match &execution.state {
        ExecutionState::Ended(_) => {
            run_again(execution, execution.clone(), rerun, rerun.given.as_deref(), context)
        }
        ExecutionState::Pending(_)
        | ExecutionState::Running(_)
        | ExecutionState::Waiting(_)
        | ExecutionState::Closing(_) => {
            if let Some((_, None)) = execution.untouched_since() {
                return repeated(execution);
            }
            let is_closing = matches!(execution.state, ExecutionState::Closing(_));
            let needs = if is_closing { CLEANED_UP } else { "has ended" };
            let reject = Reject::ExecutionOpen { status: execution.status(), needs };
            Decision::refuse(Some(execution), reject)
        }
    }
}

impl Execution {
    /// When an operator had it run again, and the step if it was one, if nothing has happened to it since: its hint may have
    /// been lost.
    pub fn untouched_since(&self) -> Option<(Timestamp, Option<&StepName>)> {
        let ExecutionState::Pending(ready) = &self.state else { return None };
        if self.idle_turns > 0 {
            return None;
        }
        match self.journal.last() {
            Some(Entry { at, what: Happened::Note { kind, .. } }) if kind == RESTARTED => Some((*at, None)),
            Some(Entry { at, what: Happened::Reopened { name, .. } }) => Some((*at, Some(name))),
            Some(_) => None,
            // What the run has kept is in segments, with the note of its restart.
            None => {
                let is_sealed = self.sealed.is_some() && ready.available_at == self.run_started_at;
                is_sealed.then_some((self.run_started_at, None))
            }
        }
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
    // Whoever cancels it before its first turn has what is kept undone: only the code knows whether that is anything.
    after.undoes = rerun.preserved.iter().any(|entry| matches!(entry.what, Happened::Step { .. }));
    after.first_run = execution.takes_terms().then_some(after.run);
    after.repeats = rerun.is_same_work.then(|| execution.work());
    // What has a token goes on with the results that are kept, whatever is done once more.
    let keeps_callbacks = rerun.preserved.iter().any(|entry| is_start_of_callback(&entry.what));
    let callbacks = keeps_callbacks.then(|| execution.run_of_callbacks());
    after.callbacks = callbacks.filter(|run| *run != after.work());
    let mut new_items = vec![];
    if let Some(given) = given {
        let has_older = !rerun.preserved.is_empty() || after.values.is_some();
        let kept = after.kept.filter(|_| has_older);
        (after, new_items) = spill(after, given, context);
        after.kept = earliest([kept, after.kept]);
    }
    append::note(&mut after, RESTARTED, context);
    if let Err(reject) = limits::check("journal_entries", after.entries(), context.limits.journal_entries) {
        return Decision::refuse(Some(execution), reject);
    }
    new_items.extend(new_segments(execution, append::seal_run(execution, context), context));
    let mut decision = reopened(execution, after, context);
    if !decision.writes.is_empty() {
        decision.new_items.extend(new_items);
    }
    decision
}

fn is_start_of_callback(what: &Happened) -> bool {
    matches!(what, Happened::Captured { name, .. } if name.as_str().starts_with(CALLBACK_PREFIX))
}

/// The decision to reopen an execution that has ended. The items that it points to must be kept long enough first.
pub(super) fn reopened(before: &Execution, after: Execution, context: &Context<'_>) -> Decision {
    if retention::required_expiry(&after, context.now, context.limits).is_some() {
        return Decision::unchanged(before, Ok(Reply::ExpiresTooSoon));
    }
    update(before, after, context, Ok(Reply::Changed { changed: true }))
}
