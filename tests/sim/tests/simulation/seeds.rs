//! The product without a bug.

use std::collections::BTreeSet;
use std::sync::{LazyLock, Mutex, PoisonError};

use tickover_sim::Run;
use tickover_sim::pairs::Pairs;
use tickover_sim::search::{Failure, first_failure_seen};

use crate::itself::happenings;

/// A thousand runs, made once for all tests: the first failure, the kinds of events that happened in any of them, and which
/// features met.
static THOUSAND: LazyLock<(Option<Failure>, BTreeSet<&str>, Pairs)> = LazyLock::new(|| {
    let seen = Mutex::new((BTreeSet::new(), Pairs::default()));
    let locked = || seen.lock().unwrap_or_else(PoisonError::into_inner);
    let see = |run: &Run| {
        let happened = happenings(run);
        let mut seen = locked();
        seen.0.extend(happened);
        seen.1.add(run);
    };
    let failure = first_failure_seen(1, 1_000, None, |_| true, see);
    let (happened, pairs) = std::mem::take(&mut *locked());
    (failure, happened, pairs)
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

/// What works alone must be tried together. `cargo xtask sim --pairs` shows how often each two features met.
#[test]
fn every_two_features_meet_within_a_thousand_runs() {
    let unmet = THOUSAND.2.unmet().into_iter().filter(|(one, other)| !one.rarely_meets(*other));
    let unmet: Vec<_> = unmet.map(|(one, other)| format!("{} and {}", one.name(), other.name())).collect();
    assert!(unmet.is_empty(), "never met: {unmet:#?}");
    // The list of those that can't is true.
    let features = tickover_sim::pairs::Feature::ALL;
    for one in features {
        for other in features.iter().filter(|other| one.never_meets(**other) && *other != one) {
            assert_eq!(THOUSAND.2.count(*one, *other), 0, "{} and {}", one.name(), other.name());
        }
    }
}
