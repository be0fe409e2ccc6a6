//! Ten thousand records that are due in one second.

use tickover_sim::flood::Flood;

#[track_caller]
fn holds(flood: Flood) {
    let found = flood.check(None);
    assert!(found.is_empty(), "{} violations, the first: {}", found.len(), found[0]);
}

/// A timer is sent once for each record, and the record is processed as soon as its instant has come.
#[test]
fn ten_thousand_deadlines_of_one_second_are_noticed_at_once() {
    holds(Flood::Fair);
}

/// The next tick finds them a minute later at most. It passes what is more than its share on by messages, shard by
/// shard.
#[test]
fn ten_thousand_deadlines_whose_timers_are_lost_are_found_by_the_next_tick() {
    holds(Flood::TimersLost);
}

/// When a tick dies, the messages that it sent for shards and the next tick process what it has left.
#[test]
fn a_tick_that_dies_among_ten_thousand_deadlines_loses_none_and_duplicates_no_sweep() {
    holds(Flood::TickKilled);
}
