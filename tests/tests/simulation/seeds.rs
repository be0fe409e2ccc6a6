//! The product without a bug.

use std::collections::BTreeSet;
use std::sync::{LazyLock, Mutex, PoisonError};

use tickover_tests::sim::search::{Failure, first_failure_seen};

use crate::itself::happenings;

/// A thousand runs, made once for all tests: the first failure, and the kinds of events that happened in any of them.
static THOUSAND: LazyLock<(Option<Failure>, BTreeSet<&str>)> = LazyLock::new(|| {
    let seen = Mutex::new(BTreeSet::new());
    let locked = || seen.lock().unwrap_or_else(PoisonError::into_inner);
    let failure = first_failure_seen(1, 1_000, None, |_| true, |run| locked().extend(happenings(run)));
    let seen = std::mem::take(&mut *locked());
    (failure, seen)
});

#[test]
fn every_invariant_holds_in_a_thousand_runs() {
    if let Some(failure) = &THOUSAND.0 {
        panic!("{failure}");
    }
}

/// A simulation in which nothing happens would find nothing.
#[test]
fn everything_that_can_happen_happens_within_a_thousand_runs() {
    let missing: Vec<_> = crate::itself::ALL.iter().filter(|name| !THOUSAND.1.contains(*name)).collect();
    assert!(missing.is_empty(), "never happened: {missing:?}");
}
