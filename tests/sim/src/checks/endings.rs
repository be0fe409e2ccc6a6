//! What must hold of the end: every task and every execution has ended, and so has the run.

use std::collections::BTreeMap;

use crate::Run;
use crate::history::What;
use crate::history::execution::Happening;
use crate::trace::{self, brief};
use crate::violation::{Invariant, Violation};

pub(super) fn everything_ends(run: &Run) -> Vec<Violation> {
    let found = |what: String| Violation::new(Invariant::Liveness, run.ended_at, what);
    if run.events.len() > crate::world::EVENTS_MAX {
        return vec![found("the run has too many events".to_owned())];
    }
    let (mut tasks, mut executions) = (BTreeMap::new(), BTreeMap::new());
    for event in &run.events {
        match &event.what {
            What::Stored(stored) => drop(tasks.insert(&stored.after.id, &stored.after)),
            What::OfExecution(happening) => {
                if let Happening::Stored(change) = &**happening {
                    executions.insert(&change.after.id, &change.after);
                }
            }
            What::Called { .. }
            | What::Answered { .. }
            | What::Decided(_)
            | What::Message { .. }
            | What::Fault(_) => {}
        }
    }
    let live = tasks.into_values().filter(|task| task.status().is_live());
    let live = live.map(|task| found(format!("{} never ended", brief(task))));
    let open = executions.into_values().filter(|one| one.closed().is_none() || one.due.is_some());
    let open = open.map(|one| found(format!("{} never ended", trace::execution::brief(one))));
    live.chain(open).collect()
}
