//! Tries many seeds on several threads.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::Run;
use super::bugs::Bug;
use super::checks;
use super::plan::Plan;
use super::violation::Violation;

/// How many threads share the work: as many as the machines of continuous integration have cores.
const THREADS: usize = 2;

/// A seed with violations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub seed: u64,
    /// The bug that was switched on.
    pub bug: Option<Bug>,
    /// The violations, earliest first.
    pub violations: Vec<Violation>,
}

/// Tries seeds from `first` to `last` in order and stops at the first that fails.
pub fn first_failure(first: u64, last: u64, bug: Option<Bug>) -> Option<Failure> {
    first_failure_among(first, last, bug, |_| true)
}

/// The same with only those seeds whose plan is selected.
pub fn first_failure_among(
    first: u64,
    last: u64,
    bug: Option<Bug>,
    wished: impl Fn(&Plan) -> bool + Sync,
) -> Option<Failure> {
    first_failure_seen(first, last, bug, wished, |_| {})
}

/// The same, and calls `see` with each run, in no order.
pub fn first_failure_seen(
    first: u64,
    last: u64,
    bug: Option<Bug>,
    wished: impl Fn(&Plan) -> bool + Sync,
    see: impl Fn(&Run) + Sync,
) -> Option<Failure> {
    first_failure_of(first..=last, bug, wished, see)
}

/// The same with these seeds.
pub fn first_failure_of(
    seeds: impl Iterator<Item = u64> + Send,
    bug: Option<Bug>,
    wished: impl Fn(&Plan) -> bool + Sync,
    see: impl Fn(&Run) + Sync,
) -> Option<Failure> {
    let seeds = Mutex::new(seeds);
    let found: Mutex<Option<Failure>> = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let next = seeds.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let earlier = found.lock().unwrap_or_else(PoisonError::into_inner).is_some();
                    let Some(seed) = next.filter(|_| !earlier) else { return };
                    if !wished(&Plan::of(seed)) {
                        continue;
                    }
                    let run = super::run(seed, bug);
                    see(&run);
                    let violations = checks::check(&run);
                    if violations.is_empty() {
                        continue;
                    }
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    // Of two seeds tried at once, the lower one: the result must not depend on the machine.
                    if found.as_ref().is_none_or(|other| seed < other.seed) {
                        *found = Some(Failure { seed, bug, violations });
                    }
                }
            });
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The command that replays a seed step by step.
pub fn replay(seed: u64, bug: Option<Bug>) -> String {
    let with = bug.map_or_else(String::new, |bug| format!(" --bug {}", bug.name()));
    format!("cargo xtask sim --seed {seed}{with}")
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}:", self.seed)?;
        self.violations.iter().try_for_each(|violation| writeln!(f, "  {violation}"))?;
        write!(f, "step by step: {}", replay(self.seed, self.bug))
    }
}
