//! What must hold of the remote steps of a paused execution: none that waits ends by a timeout of its own.

use std::collections::HashMap;

use tickover_core::id::Nonce;
use tickover_core::task::{Outcome, State};

use super::story::Stories;
use crate::sim::Run;
use crate::sim::history::{Stored, What};
use crate::sim::trace::brief;
use crate::sim::violation::{Invariant, Violation};

pub(super) fn of_run(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    let (mut calls, mut began) = (HashMap::new(), HashMap::<Nonce, usize>::new());
    let mut violations = Vec::new();
    for (number, event) in run.events.iter().enumerate() {
        match &event.what {
            What::Called { call, .. } => drop(calls.insert(*call, number)),
            What::Decided(decided) => {
                began.extend(calls.get(&decided.call).map(|call| (decided.nonce, *call)));
            }
            What::Stored(stored) if times_out_while_it_waits(stored) => {
                let since = began.get(&stored.after.nonce);
                if since.is_some_and(|since| is_paused(stories, stored, *since, number)) {
                    let what = format!("{}: it timed out, and its execution is paused", brief(&stored.after));
                    violations.push(Violation::new(Invariant::Policies, event.at, what));
                }
            }
            What::Stored(_)
            | What::OfExecution(_)
            | What::Answered { .. }
            | What::Message { .. }
            | What::Fault(_) => {}
        }
    }
    violations
}

fn times_out_while_it_waits(Stored { before, after }: &Stored) -> bool {
    let waited = before.as_ref().is_some_and(|before| matches!(before.state, State::Pending(_)));
    let outcome = after.ended().map(|ended| &ended.outcome);
    waited && matches!(outcome, Some(Outcome::TimedOut { .. } | Outcome::Cancelled { timeout: Some(_) }))
}

/// Whether its execution waited for it and was paused from the beginning of the call until now.
fn is_paused(stories: &Stories<'_>, stored: &Stored, since: usize, now: usize) -> bool {
    let Some(parent) = &stored.after.parent else { return false };
    let steps = stories.execution(parent.incarnation);
    let (earlier, later) = steps.split_at(steps.partition_point(|step| step.number < since));
    let meanwhile = later.iter().take_while(|step| step.number < now);
    let mut seen = earlier.last().into_iter().chain(meanwhile);
    !earlier.is_empty() && seen.all(|step| step.after.paused && parent.is_open_in(Some(step.after)))
}
