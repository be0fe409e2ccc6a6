//! Lost answers of the store, concurrent ticks, and interrupted writes: each run still starts once.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_service::memory::MemoryStore;
use tickover_tests::faults::AfterEachWrite;
use tickover_tests::http::Caller;

use super::{cron, make, states, tasks};

#[tokio::test]
async fn many_ticks_at_once_start_each_run_once() {
    let caller = Caller::default();
    for number in 0..20 {
        make(&caller, &format!("s{number:02}"), json!({"every": "10m"})).await;
    }
    caller.scene.clock.advance(Millis::from_secs(600));
    let ticks = join_all((0..5).map(|_| caller.scene.tick())).await;
    assert!(ticks.iter().all(Result::is_ok), "{ticks:?}");
    assert_eq!(tasks(&caller).await.len(), 20);
    for number in 0..20 {
        let cron = cron(&caller, &format!("s{number:02}")).await;
        assert_eq!((&cron["started"], states(&cron)), (&json!(1), vec!["open".to_owned()]));
    }
}

#[tokio::test]
async fn any_answer_of_the_store_may_be_lost_and_each_run_starts_once() {
    // The first cron runs one run after the other, the second two beside each other.
    for lost in 0..40 {
        let store = Arc::new(AfterEachWrite::losing(Arc::new(MemoryStore::new()), lost..lost + 1));
        let caller = Caller::over(store);
        make(&caller, "one", json!({"every": "10m", "overlap": "terminate_other", "max_runs": 2})).await;
        make(&caller, "two", json!({"every": "1m", "overlap": "allow_all", "max_runs": 2})).await;
        for _ in 0..25 {
            caller.pass(60).await;
            caller.scene.fire().await;
        }
        let expected =
            ["one-20260101T001000Z", "one-20260101T002000Z", "two-20260101T000100Z", "two-20260101T000200Z"];
        assert_eq!(tasks(&caller).await, expected, "answer {lost} lost");
        for id in ["one", "two"] {
            assert_eq!(cron(&caller, id).await["started"], 2, "answer {lost} lost");
        }
    }
}

#[tokio::test]
async fn a_cron_survives_the_process_that_made_it() {
    let store = Arc::new(MemoryStore::new());
    let caller = Caller::over(store.clone());
    make(&caller, "s", json!({"every": "1h"})).await;
    let next = Caller::over(store);
    next.pass(3_600).await;
    assert_eq!(tasks(&next).await, ["s-20260101T010000Z"]);
}

#[tokio::test]
async fn a_request_too_large_for_its_record_is_started_too() {
    let caller = Caller::default();
    let input = "x".repeat(5_000);
    let task = json!({"queue": "work", "kind": "work", "input": input});
    make(&caller, "s", json!({"every": "1h", "task": task})).await;
    caller.scene.lose_messages(&QueueName::timers()).await;
    caller.pass(3_600).await;
    assert_eq!(caller.task("s-20260101T010000Z").await["input"], input);
    assert_eq!(cron(&caller, "s").await["task"], task);
}
