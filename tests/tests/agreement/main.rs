//! The store in memory, the one over `SQLite` and `DynamoDB`'s semantics agree: the same calls in the same order get the same answers and
//! leave the same records, and the same writes, old ones among them, meet the same fate.
//!
//! So whatever is found out by running many cases in memory holds of the table as well.
#![expect(clippy::unwrap_used, reason = "what a test expects and doesn't find is its failure")]

mod calls;
mod executions;
mod perform;
mod side;
mod stored;
mod stores;
mod writes;

use futures::FutureExt as _;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use calls::{Call, calls};
use side::Side;
use stores::Stores;
use writes::{RandomWrite, random_write};

/// Calls after which everything that is stored is compared; the answers are compared after each.
const CHECK_EVERY: usize = 8;

/// Runs a case in a time and a thread of its own.
///
/// Without tokio's budget, which makes a task that was busy for long wait once, in the middle of anything: what is
/// done at once in both would then be done in another order in one of them.
fn run(case: impl Future<Output = TestCaseResult>) -> TestCaseResult {
    let case = tokio::task::unconstrained(case);
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(case)
}

async fn same_answers(calls: Vec<Call>) -> TestCaseResult {
    let mut memory = Side::in_memory();
    let mut others = [("DynamoDB", Side::on_dynamodb().await), ("SQLite", Side::on_sqlite())];
    for (number, call) in calls.iter().enumerate() {
        let expected = memory.perform(call).await;
        let is_compared = number % CHECK_EVERY == CHECK_EVERY - 1 || number == calls.len() - 1;
        for (name, side) in &mut others {
            let answer = side.perform(call).await;
            prop_assert_eq!(answer, expected.clone(), "call {} on {}: {:?}", number, name, call);
            if is_compared {
                let everything = side.everything().await;
                prop_assert_eq!(everything, memory.everything().await, "on {} after call {}", name, number);
            }
        }
    }
    Ok(())
}

async fn same_fates(strokes: Vec<RandomWrite>) -> TestCaseResult {
    let mut stores = Stores::new().await;
    for (number, random_write) in strokes.iter().enumerate() {
        stores
            .apply_and_compare(random_write)
            .await
            .map_err(|problem| TestCaseError::fail(format!("write {number}, {random_write:?}: {problem}")))?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_calls_get_the_same_answers_and_leave_the_same_records(
        calls in calls()
    ) {
        run(same_answers(calls))?;
    }

    #[test]
    fn the_same_writes_meet_the_same_fate_in_every_store_and_in_the_model(
        strokes in prop::collection::vec(random_write(), 10..40)
    ) {
        run(same_fates(strokes))?;
    }
}

/// Random numbers are drawn in the order in which things happen. That is the same on all sides only while nothing
/// in any of them ever waits for something else to happen first.
#[test]
fn no_store_of_these_tests_ever_waits() {
    run(async {
        for side in [Side::on_dynamodb().await, Side::on_sqlite()] {
            for number in 0..2000 {
                prop_assert!(side.store.queues().now_or_never().is_some(), "call {} waited", number);
            }
        }
        Ok(())
    })
    .unwrap();
}
