//! One process dies right after one write, or one caller leaves, and everything else is in order: nothing ends later than by
//! a lease and a moment, or at all.

use tickover_sim::bugs::Bug;
use tickover_sim::deaths::{check, check_leavers};

/// Each with two deaths.
const SEEDS: u64 = 60;
/// Each with one caller that leaves, at each request and answer.
const LEFT: u64 = 3;

#[test]
fn after_one_death_nothing_is_later_than_a_lease_and_a_moment() {
    let found: Vec<_> = (1..=SEEDS).flat_map(|seed| check(seed, 2)).map(|found| found.to_string()).collect();
    assert!(found.is_empty(), "{}", found.concat());
}

#[test]
fn a_caller_that_leaves_delays_nothing() {
    let found: Vec<_> = (1..=LEFT).flat_map(|seed| check_leavers(seed, None)).collect();
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{}", found.concat());
}

#[test]
fn a_call_that_stops_where_its_caller_leaves_is_caught() {
    assert!((1..=LEFT).any(|seed| !check_leavers(seed, Some(Bug::CallsCut)).is_empty()));
}
