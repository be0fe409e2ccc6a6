//! One thing goes wrong, everything else is in order, and two runs are compared. If a process dies right after one write,
//! nothing ends later than without that but by the lease of a worker and a moment. If a caller leaves, only by a moment.

use std::collections::BTreeMap;
use std::fmt;

use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionState;
use tickover_core::time::Timestamp;

use super::bugs::Bug;
use super::dice::Dice;
use super::hardship::Hardship;
use super::history::{Actor, Fault, What};
use super::plan::Plan;
use super::violation::Violation;
use super::{Run, checks, run_plan};
use crate::trace::clock;

/// A moment. Any difference may let other workers take what is there, and work takes each of them another time.
const MOMENT: Millis = Millis::from_secs(5);
/// How much later something may end: the longest lease of the workers, and a moment.
pub const LATER: Millis = Millis::from_secs(60).saturating_add(MOMENT);

/// How much later what a place holds up may end: the patrol of the lines frees a place that two claims of one task have
/// taken. Calm plans have no rates and no timeouts: a start that a dead process had reserved is lost for one interval of the
/// rate, and what a timeout makes of an attempt is what the user asked for.
pub const PATROL: Millis = Millis::from_secs(2 * 60);

/// How much later something may end in a run.
fn allowed(run: &Run) -> Millis {
    let died = run.events.iter().find_map(|event| match event.what {
        What::Fault(Fault::Crashed(_)) => Some(event.actor),
        _ => None,
    });
    let has_places = !run.world.ledger.gates().is_empty();
    let held_up = matches!(died, Some(Actor::Worker(_))) && has_places;
    LATER.saturating_add(if held_up { PATROL } else { Millis::ZERO })
}

/// What one death, or one caller that left, has done.
#[derive(Clone, Debug)]
pub struct Found {
    pub seed: u64,
    /// After which write the process died, or at which request or answer the caller left.
    pub number: u64,
    /// What ended too late: its id, when it ended undisturbed, and when it did here.
    pub late: Vec<(String, Timestamp, Option<Timestamp>)>,
    pub violations: Vec<Violation>,
}

/// The run of a seed in which nothing goes wrong.
pub fn undisturbed(seed: u64) -> Run {
    run_plan(seed, Plan::calm(seed, Hardship::default()), None)
}

/// The condition that a process dies after this write.
pub fn dies_after(write: u64) -> Hardship {
    Hardship { dies_after: Some(write), ..Hardship::default() }
}

/// Runs a seed with a death after a write, and compares.
pub fn with_death(seed: u64, write: u64, undisturbed: &Run) -> Option<Found> {
    let run = run_plan(seed, Plan::calm(seed, dies_after(write)), None);
    compare(undisturbed, &run, write, allowed(&run))
}

/// Runs a seed in which a caller leaves at this request or answer, and compares.
pub fn with_leaver(seed: u64, leg: u64, undisturbed: &Run, bug: Option<Bug>) -> Option<Found> {
    let leaves = Hardship { leaves_at: Some(leg), ..Hardship::default() };
    let run = run_plan(seed, Plan::calm(seed, leaves), bug);
    compare(undisturbed, &run, leg, MOMENT)
}

fn compare(undisturbed: &Run, run: &Run, number: u64, allowed: Millis) -> Option<Found> {
    let ends_here = ends(run);
    let is_late = |(id, at): (String, Timestamp)| {
        let end = ends_here.get(&id).copied();
        end.is_none_or(|end| end > at.plus(allowed)).then_some((id, at, end))
    };
    let late: Vec<_> = ends(undisturbed).into_iter().filter_map(is_late).collect();
    let violations = checks::check(run);
    (!late.is_empty() || !violations.is_empty()).then_some(Found { seed: run.seed, number, late, violations })
}

/// Some deaths of a seed, at random writes.
pub fn check(seed: u64, deaths: u64) -> Vec<Found> {
    let undisturbed = undisturbed(seed);
    let dice = Dice::new(seed, "deaths");
    let write = || dice.between(1, undisturbed.world.writes().max(1));
    (0..deaths).filter_map(|_| with_death(seed, write(), &undisturbed)).collect()
}

/// Each of a seed's callers that leaves, at each of its requests and answers.
pub fn check_leavers(seed: u64, bug: Option<Bug>) -> Vec<Found> {
    let undisturbed = undisturbed(seed);
    let legs = 1..=undisturbed.world.legs();
    legs.filter_map(|leg| with_leaver(seed, leg, &undisturbed, bug)).collect()
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
        writeln!(f, "seed {}, what goes wrong is number {}:", self.seed, self.number)?;
        for (id, at, end) in &self.late {
            let end = end.map_or_else(|| "never".to_owned(), clock);
            writeln!(f, "  {id} ended at {end}, and undisturbed at {}", clock(*at))?;
        }
        self.violations.iter().try_for_each(|violation| writeln!(f, "  {violation}"))
    }
}
