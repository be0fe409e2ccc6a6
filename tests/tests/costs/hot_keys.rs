//! No key of the table or of an index takes more than its share of the writes: one key takes 1,000 units a second, and
//! an index that is throttled refuses the write of the record. `cargo xtask bench keys` does the same with larger
//! loads.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use tickover_tests::keys::{Hottest, Load, Target, Work, run};

/// At 16 shards, at most an eighth of a second's writes.
const SHARE: f64 = 1.0 / 8.0;

async fn hottest(work: Work, count: usize) -> Vec<Hottest> {
    let load = Load { work, count, per_second: count / 2, due_shards: 16 };
    let found = run(load).await.unwrap();
    let targets: Vec<Target> = found.iter().map(|hottest| hottest.target).collect();
    let expected = [Target::Table, Target::Due, Target::List, Target::All];
    assert_eq!(targets, expected[..if work == Work::Executions { 4 } else { 3 }]);
    found
}

#[tokio::test]
async fn no_key_takes_more_than_an_eighth_of_a_seconds_writes() {
    for (work, count) in [(Work::Tasks, 2_000), (Work::TimedTasks, 2_000), (Work::Executions, 1_000)] {
        for hottest in hottest(work, count).await {
            assert!(hottest.share <= SHARE, "{work:?}: {hottest:?}");
        }
    }
}

#[tokio::test]
async fn a_life_costs_the_indexes_the_calculated_units() {
    let all = |found: &[Hottest]| found.iter().map(|hottest| hottest.all).collect::<Vec<_>>();
    // Two units in the due index, four with a timeout of each attempt; one in a list for each failure. The queue's
    // record is also in a list, and is written a few times in all. An execution is in its workflow's list and, where all
    // are listed, in that of all workflows, where a failure moves it.
    let with_a_few = |found: Vec<u64>, least: &[u64]| {
        let is_near = |(found, least): (&u64, &u64)| (*least..*least + 10).contains(found);
        assert!(found.iter().zip(least).all(is_near), "{found:?}");
    };
    with_a_few(all(&hottest(Work::Tasks, 2_000).await), &[6_000, 4_000, 400]);
    with_a_few(all(&hottest(Work::TimedTasks, 2_000).await), &[6_000, 8_000, 400]);
    let executions = all(&hottest(Work::Executions, 1_000).await);
    with_a_few(executions[1..].to_vec(), &[2_000, 1_000, 1_400]);
}
