//! What must hold of the end: every task has ended, and so has the run.

use crate::sim::Run;
use crate::sim::history::What;
use crate::sim::trace::brief;
use crate::sim::violation::{Invariant, Violation};

pub(super) fn every_task_ends(run: &Run) -> Vec<Violation> {
    let found = |what: String| Violation::new(Invariant::Liveness, run.ended_at, what);
    if run.world.is_runaway() {
        return vec![found("it goes on for ever".to_owned())];
    }
    let mut left = std::collections::BTreeMap::new();
    for event in &run.events {
        if let What::Stored(stored) = &event.what {
            left.insert(&stored.after.id, &stored.after);
        }
    }
    let live = left.into_values().filter(|task| task.status().is_live());
    live.map(|task| found(format!("{} never ended", brief(task)))).collect()
}
