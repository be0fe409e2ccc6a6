//! One death: a process dies right after one write, everything else is in order, and nothing ends later than without it
//! but by the lease of a worker and a moment.

use std::collections::BTreeMap;
use std::fmt;

use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionState;
use tickover_core::time::Timestamp;

use super::dice::Dice;
use super::history::{Actor, Fault, What};
use super::plan::Plan;
use super::violation::Violation;
use super::{Run, checks, run_plan};
use crate::sim::trace::clock;

/// How much later something may end: the longest lease of the workers, and a moment.
pub const LATER: Millis = Millis::from_secs(60 + 5);

/// What may end later than that, by how much, and why.
pub const EXCEPTIONS: [(Exception, Millis, &str); 2] = [
    (
        Exception::TickThatDispatches,
        Millis::from_secs(12 * 60),
        "a tick writes that it has dispatched a start of the next minutes, dies, and no message is there: the record's \
         backstop finds it, ten minutes after the start. A sooner one would cost a move of the slot for each such start",
    ),
    (
        Exception::PlaceOfTwoClaims,
        Millis::from_secs(2 * 60),
        "a place that two claims of one task have taken is freed by the patrol of the lines",
    ),
];

/// Where the law is another one. Calm plans have no rates and no timeouts: a start that a dead process had reserved is
/// lost for one interval of the rate, and what a timeout makes of an attempt is what the user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// A tick dies after it has dispatched something.
    TickThatDispatches,
    /// There are limits of keys, and a worker dies.
    PlaceOfTwoClaims,
}

/// How much later something may end in a run.
fn allowed(run: &Run) -> Millis {
    let died = run.events.iter().find_map(|event| match event.what {
        What::Fault(Fault::Crashed(_)) => Some(event.actor),
        _ => None,
    });
    let applies = |exception: Exception| match exception {
        Exception::TickThatDispatches => matches!(died, Some(Actor::Ticker(_))),
        Exception::PlaceOfTwoClaims => {
            matches!(died, Some(Actor::Worker(_))) && !run.world.ledger.gates().is_empty()
        }
    };
    let extra = EXCEPTIONS.iter().filter(|(exception, ..)| applies(*exception)).map(|(_, extra, _)| *extra);
    LATER.saturating_add(extra.max().unwrap_or(Millis::ZERO))
}

/// What one death has done.
#[derive(Clone, Debug)]
pub struct Found {
    pub seed: u64,
    /// After which write the process died.
    pub write: u64,
    /// What ended too late: its id, when it ended without the death, and when with it.
    pub late: Vec<(String, Timestamp, Option<Timestamp>)>,
    pub violations: Vec<Violation>,
}

/// How many writes an undisturbed run of a seed has, and when everything ends in it.
pub fn undisturbed(seed: u64) -> (u64, BTreeMap<String, Timestamp>) {
    let run = run_plan(seed, Plan::calm(seed, None), None);
    (run.world.writes(), ends(&run))
}

/// Runs a seed with a death after a write, and compares.
pub fn with_death(seed: u64, write: u64, undisturbed: &BTreeMap<String, Timestamp>) -> Option<Found> {
    let run = run_plan(seed, Plan::calm(seed, Some(write)), None);
    let (ends, allowed) = (ends(&run), allowed(&run));
    let mut late = Vec::new();
    for (id, at) in undisturbed {
        let end = ends.get(id).copied();
        if end.is_none_or(|end| end > at.plus(allowed)) {
            late.push((id.clone(), *at, end));
        }
    }
    let violations = checks::check(&run);
    (!late.is_empty() || !violations.is_empty()).then_some(Found { seed, write, late, violations })
}

/// Some deaths of a seed, at random writes.
pub fn check(seed: u64, deaths: u64) -> Vec<Found> {
    let (writes, ends) = undisturbed(seed);
    let dice = Dice::new(seed, "deaths");
    (0..deaths).filter_map(|_| with_death(seed, dice.between(1, writes.max(1)), &ends)).collect()
}

/// When each of the clients' tasks and executions ended.
fn ends(run: &Run) -> BTreeMap<String, Timestamp> {
    let mut ends = BTreeMap::new();
    for event in &run.events {
        let (id, ended) = if let Some(stored) = event.what.task_change() {
            (stored.after.id.as_str(), stored.after.ended().is_some())
        } else if let Some(change) = event.what.execution_change() {
            (change.after.id.as_str(), matches!(change.after.state, ExecutionState::Ended(_)))
        } else {
            continue;
        };
        // The ids of remote steps and children depend on random numbers.
        if !(id.starts_with("t-") || id.starts_with("e-")) {
            continue;
        }
        if ended {
            ends.entry(id.to_owned()).or_insert(event.at);
        } else {
            ends.remove(id);
        }
    }
    ends
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, a death after write {}:", self.seed, self.write)?;
        for (id, at, end) in &self.late {
            let end = end.map_or_else(|| "never".to_owned(), clock);
            writeln!(f, "  {id} ended at {end}, and without the death at {}", clock(*at))?;
        }
        self.violations.iter().try_for_each(|violation| writeln!(f, "  {violation}"))
    }
}
