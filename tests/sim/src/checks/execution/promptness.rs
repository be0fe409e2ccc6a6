//! What must hold of how soon an execution's deadlines are noticed, parked or not, and the timeout of an attempt whose
//! worker is lost.

use super::story::{Stories, watched_instant};
use crate::Run;
use crate::checks::timeliness::{Passing, of_instants};
use crate::trace::execution::brief;
use crate::violation::Violation;

pub(super) fn of_run(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    let mut all = Vec::new();
    for steps in stories.executions() {
        let ends = steps.iter().skip(1).map(|step| step.at).chain([run.ended_at]);
        all.extend(steps.iter().zip(ends).filter_map(|(step, until)| {
            let instant = watched_instant(step.after)?;
            Some(Passing { since: step.at, instant, until, brief: brief(step.after), acts: 1 })
        }));
    }
    of_instants(&all, run)
}
