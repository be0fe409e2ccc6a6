//! Orders in an in-memory system with simulated time.

use std::sync::Arc;

use orders::{Order, charge, fulfil, give_back, reserve};
use tickover::prelude::*;
use tickover::test::{TestEnv, with_each_death};

fn bicycles(count: u32, cents: u32) -> Order {
    Order { item: "bicycle".to_owned(), count, cents }
}

fn env() -> TestEnv {
    TestEnv::new().workflow(fulfil).state(orders::Stock::new([("bicycle", 3)]))
}

#[tokio::test]
async fn a_small_order_is_paid_at_once() {
    let env = env();
    let run = env.start(&fulfil, bicycles(1, 500)).await.unwrap();
    assert!(run.result().await.unwrap().starts_with("500 cents"));
}

#[tokio::test]
async fn a_sold_out_item_is_not_retried() {
    let env = env();
    let run = env.start(&fulfil, bicycles(4, 500)).await.unwrap();
    assert!(run.result().await.unwrap_err().to_string().contains("only 3 are left"));
    assert!(!run.timeline().await.unwrap().contains("give-back"));
}

#[tokio::test]
async fn a_large_order_that_nobody_approves_is_given_back_after_two_days() {
    let env = env();
    let run = env.start(&fulfil, bicycles(2, 200_000)).await.unwrap();
    env.advance("47h").await.unwrap();
    assert!(run.describe().await.unwrap().is_live());
    let error = run.result().await.unwrap_err();
    assert!(error.to_string().contains("nobody approved"), "{error}");
    assert!(run.timeline().await.unwrap().contains("undo:give-back: completed"));
}

/// The worker crashes after each of its writes in turn. No call takes effect twice, and none is missing.
#[tokio::test]
async fn a_crash_after_any_write_does_not_change_the_outcome() {
    let ledger = Arc::new(std::sync::Mutex::new(vec![]));
    let noted = |what: &'static str| {
        let ledger = Arc::clone(&ledger);
        move || {
            let key = step_info().map(|info| info.idempotency_key).unwrap_or_default();
            let mut ledger = ledger.lock().unwrap();
            // The outside service recognises a repeated call by its key.
            if !ledger.contains(&(what, key.clone())) {
                ledger.push((what, key));
            }
        }
    };
    let env = || {
        let (reserved, returned, charged) = (noted("reserve"), noted("return"), noted("charge"));
        TestEnv::new()
            .workflow(fulfil)
            .mock::<reserve>(move |_| Ok(reserved()))
            .mock::<give_back>(move |_| Ok(returned()))
            .mock::<charge>(move |order| {
                charged();
                Ok(order.cents.to_string())
            })
    };
    let story = async |env: &TestEnv, approved: bool| {
        ledger.lock().unwrap().clear();
        let run = env.start(&fulfil, bicycles(2, 200_000)).await.unwrap();
        env.advance("1d").await.unwrap();
        run.send_event("approved", approved).await.unwrap();
        let ended = run.result().await.map_err(|error| error.to_string());
        let seen: Vec<_> = ledger.lock().unwrap().iter().map(|(what, _)| *what).collect();
        (ended.is_ok(), seen)
    };
    let outcome = with_each_death(env, async |env| story(env, true).await).await;
    assert_eq!(outcome, (true, vec!["reserve", "charge"]));
    let outcome = with_each_death(env, async |env| story(env, false).await).await;
    assert_eq!(outcome, (false, vec!["reserve", "return"]));
}
