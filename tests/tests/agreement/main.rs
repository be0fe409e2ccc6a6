//! The store in memory and `DynamoDB`'s semantics agree. The same calls in the same order get the same answers and
//! leave the same records. The same writes, some of them on old records, get the same result.
//!
//! So a result from many cases in memory holds for the table as well.
#![expect(clippy::unwrap_used, reason = "a test fails if it doesn't find what it expects")]

mod calls;
mod executions;
mod perform;
mod side;
mod stores;
mod writes;

use futures::FutureExt as _;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use calls::{Call, calls};
use side::Side;
use stores::Stores;
use writes::{Stroke, stroke};

/// The number of calls after which all stored records are compared; the answers are compared after each call.
const LOOK_EVERY: usize = 8;

/// Runs a case with its own virtual time on a thread of its own.
///
/// Without tokio's cooperative budget, which would make a busy task yield at an arbitrary await. Then one of the two
/// sides would run operations in another order.
fn run(case: impl Future<Output = TestCaseResult>) -> TestCaseResult {
    let case = tokio::task::unconstrained(case);
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(case)
}

async fn same_answers(calls: Vec<Call>) -> TestCaseResult {
    let (mut memory, mut dynamo) = (Side::in_memory(), Side::on_dynamodb().await);
    for (number, call) in calls.iter().enumerate() {
        let expected = memory.perform(call).await;
        let answer = dynamo.perform(call).await;
        prop_assert_eq!(answer, expected, "call {}: {:?}", number, call);
        if number % LOOK_EVERY == LOOK_EVERY - 1 || number == calls.len() - 1 {
            prop_assert_eq!(dynamo.everything().await, memory.everything().await, "after call {}", number);
        }
    }
    Ok(())
}

async fn same_fates(strokes: Vec<Stroke>) -> TestCaseResult {
    let mut stores = Stores::new().await;
    for (number, stroke) in strokes.iter().enumerate() {
        stores
            .strike(stroke)
            .await
            .map_err(|problem| TestCaseError::fail(format!("write {number}, {stroke:?}: {problem}")))?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_calls_get_the_same_answers_and_leave_the_same_records(
        calls in calls()
    ) {
        run(same_answers(calls))?;
    }

    #[test]
    fn the_same_writes_meet_the_same_fate_in_memory_on_dynamodb_and_in_the_model(
        strokes in prop::collection::vec(stroke(), 10..40)
    ) {
        run(same_fates(strokes))?;
    }
}

/// Random numbers are drawn in the order of the operations. That order is the same on both sides only while no
/// operation in either has to wait for another.
#[test]
fn the_embedded_store_never_waits() {
    run(async {
        let side = Side::on_dynamodb().await;
        for number in 0..2000 {
            prop_assert!(side.store.queues().now_or_never().is_some(), "call {} waited", number);
        }
        Ok(())
    })
    .unwrap();
}
