//! One process dies right after one write, and everything else is in order: nothing ends later than by a lease and a moment.

use tickover_tests::sim::deaths::{EXCEPTIONS, check};

/// Each with two deaths.
const SEEDS: u64 = 60;

#[test]
fn after_one_death_nothing_is_later_than_a_lease_and_a_moment() {
    let found: Vec<_> = (1..=SEEDS).flat_map(|seed| check(seed, 2)).map(|found| found.to_string()).collect();
    assert!(found.is_empty(), "{}allowed is only: {EXCEPTIONS:#?}", found.concat());
}
