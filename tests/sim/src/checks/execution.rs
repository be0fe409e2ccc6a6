//! What must hold of executions.

mod again;
mod bursts;
pub(crate) mod callbacks;
mod calls;
mod children;
mod deadlines;
mod drift;
mod events;
mod journals;
mod pauses;
mod promptness;
mod published;
mod records;
mod story;
mod turns;
mod waking;

use crate::Run;
use crate::trace::execution::brief;
use crate::violation::{Invariant, Violation};
pub(super) use story::{Step, Stories};

/// All violations, in no order.
pub(super) fn of_run(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    let mut found = Vec::new();
    for step in stories.steps() {
        found.extend(records::of_step(step, run));
        found.extend(deadlines::of_step(step));
        found.extend(turns::of_step(step));
        found.extend(bursts::of_step(step));
        found.extend(children::of_step(step, stories));
    }
    found.extend(turns::each_lease_is_granted_once(stories, run));
    found.extend(journals::of_run(stories));
    found.extend(events::of_run(stories, run));
    found.extend(published::of_run(stories, run));
    found.extend(pauses::of_run(stories, run));
    found.extend(calls::of_run(stories, run));
    found.extend(callbacks::of_run(stories, run));
    found.extend(drift::of_run(stories));
    found.extend(again::of_run(stories));
    found.extend(waking::of_run(stories, run));
    found.extend(promptness::of_run(stories, run));
    found
}

fn found(invariant: Invariant, step: &Step<'_>, what: impl Into<String>) -> Violation {
    Violation::new(invariant, step.at, format!("{}: {}", brief(step.after), what.into()))
}
