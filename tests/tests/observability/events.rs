//! Lifecycle events on their queue.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_service::memory::MemoryStore;
use tickover_tests::dynamodb::LocalDynamo;
use tickover_tests::faults::AfterEachWrite;
use tickover_tests::http::Caller;

use crate::stage::{SECRET, eventful_life, events, of, types, with_events};

#[tokio::test]
async fn a_timed_out_task_sends_one_complete_event_however_many_ticks_run_at_once() {
    let caller = with_events().await;
    let scheduled = caller.schedule("a", json!({"timeout": "10s", "retry": "fixed(5, 1s)"})).await;
    caller.scene.clock.advance(Millis::from_secs(1));
    let claimed_at = caller.now();
    let lease = caller.lease().await;
    assert_eq!(types(&events(&caller).await), ["TaskScheduled", "TaskStarted"]);
    caller.scene.clock.advance(Millis::new(9_250));
    let late = caller.post("/v1/tasks/a/complete", json!({"lease": lease}));
    let (ticks, late) = futures::join!(join_all((0..8).map(|_| caller.scene.tick())), late);
    assert!(ticks.iter().all(Result::is_ok), "{ticks:?}");
    assert_eq!(late.1["code"], "deadline_exceeded");
    caller.pass(60).await;

    let events = events(&caller).await;
    assert_eq!(types(&events), ["TaskTimedOut"], "{events:#?}");
    let incarnation = events[0]["incarnation"].as_str().unwrap();
    assert!(!incarnation.is_empty());
    let expected = json!({
        "v": 1,
        "type": "TaskTimedOut",
        "task_id": "a",
        "incarnation": incarnation,
        "version": 3,
        "queue": "work",
        "task_kind": "work",
        "attempt": 1,
        "at": "2026-01-01T00:00:10.250Z",
        "kind": "schedule_to_close",
        "deadline_at": scheduled["deadline_at"],
        "lateness_ms": 250,
        "outcome": "timed_out",
        "started_at": claimed_at,
        "worker": "tester",
    });
    assert_eq!(events[0], expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_ticks_over_many_tasks_send_one_event_for_each() {
    let database = LocalDynamo::memory().unwrap();
    tickover_dynamodb::Table::new("told").create(&database.client()).await.unwrap();
    let store = Arc::new(tickover_dynamodb::DynamoStore::new(database.client(), "told"));
    let caller = of(Caller::over(store)).await;
    for number in 0..40 {
        caller.schedule(&format!("t{number}"), json!({"timeout": "10s"})).await;
    }
    caller.scene.clock.advance(Millis::from_secs(11));
    let ticks = (0..4).map(|_| {
        let service = caller.scene.service.clone();
        tokio::spawn(
            async move { service.tick(service.now(), service.now().plus(Millis::from_secs(50))).await },
        )
    });
    let reports = join_all(ticks).await;
    assert!(reports.iter().flatten().all(Result::is_ok), "{reports:?}");
    let events = events(&caller).await;
    let mut told: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "TaskTimedOut")
        .map(|event| event["task_id"].as_str().unwrap())
        .collect();
    told.sort_unstable();
    let mut all: Vec<_> = (0..40).map(|number| format!("t{number}")).collect();
    all.sort_unstable();
    assert_eq!(told, all);
}

#[tokio::test]
async fn a_whole_life_sends_its_events_in_order() {
    let caller = with_events().await;
    eventful_life(&caller, "a").await;
    let events = events(&caller).await;
    let expected = [
        "TaskScheduled",
        "TaskStarted",
        "TaskRetrying",
        "TaskStarted",
        "AttemptTimedOut",
        "TaskRetrying",
        "TaskStarted",
        "TaskCompleted",
    ];
    assert_eq!(types(&events), expected);
    let versions: Vec<_> = events.iter().map(|event| event["version"].as_u64().unwrap()).collect();
    assert!(versions.is_sorted(), "{versions:?}");
    assert!(events.iter().all(|event| event["incarnation"] == events[0]["incarnation"]));
    let attempts: Vec<_> = events.iter().map(|event| event["attempt"].as_u64().unwrap()).collect();
    assert_eq!(attempts, [0, 1, 1, 2, 2, 2, 3, 3]);
    assert_eq!((&events[2]["outcome"], &events[2]["error_code"]), (&json!("failed"), &json!("smtp")));
    assert_eq!(events[2]["retry_at"], events[3]["at"]);
    assert_eq!((&events[4]["kind"], &events[4]["lateness_ms"]), (&json!("start_to_close"), &json!(1_000)));
    assert_eq!(events[7]["started_at"], events[6]["at"]);
}

#[tokio::test]
async fn every_outcome_has_its_own_event() {
    let caller = with_events().await;
    let ends = |events: Vec<serde_json::Value>| events.last().cloned().unwrap();

    caller.schedule("failed", json!({})).await;
    let lease = caller.lease().await;
    caller.fail("failed", &lease, "boom").await;
    let end = ends(events(&caller).await);
    assert_eq!((&end["type"], &end["error_code"]), (&json!("TaskFailed"), &json!("boom")));

    caller.schedule("nobody", json!({"schedule_to_start_timeout": "5s"})).await;
    caller.pass(6).await;
    let end = ends(events(&caller).await);
    assert_eq!((&end["type"], &end["kind"]), (&json!("TaskTimedOut"), &json!("schedule_to_start")));
    assert_eq!((end.get("started_at"), end.get("worker")), (None, None));

    caller.schedule("doomed", json!({"timeout": "30s", "retry": "fixed(3, 1m)"})).await;
    let lease = caller.lease().await;
    caller.fail("doomed", &lease, "boom").await;
    let end = ends(events(&caller).await);
    assert_eq!((&end["type"], &end["doomed"]), (&json!("TaskTimedOut"), &json!(true)));
    assert_eq!((&end["lateness_ms"], &end["error_code"]), (&json!(0), &json!("boom")));

    caller.schedule("silent", json!({"maxRuntime": "5s"})).await;
    caller.lease().await;
    caller.pass(5).await;
    let end = ends(events(&caller).await);
    assert_eq!((&end["type"], &end["kind"]), (&json!("TaskCancelled"), &json!("start_to_close")));

    caller.schedule("skipped", json!({"retry": {"max_attempts": 0}})).await;
    assert_eq!(types(&events(&caller).await), ["TaskScheduled", "TaskSkipped"]);

    caller.schedule("asked", json!({})).await;
    caller.lease().await;
    caller.ok("/v1/tasks/asked/cancel", json!({})).await;
    caller.pass(61).await;
    assert!(caller.claim().await.is_none());
    caller.ok("/v1/tasks/asked/retry", json!({})).await;
    let told = ["TaskScheduled", "TaskStarted", "TaskCancelRequested", "TaskCancelled", "TaskRevived"];
    assert_eq!(types(&events(&caller).await), told);
}

#[tokio::test]
async fn a_repeated_call_sends_no_second_event() {
    let caller = with_events().await;
    caller.schedule("a", json!({})).await;
    caller.schedule("a", json!({})).await;
    let lease = caller.lease().await;
    for _ in 0..3 {
        caller.ok("/v1/tasks/a/heartbeat", json!({"lease": lease})).await;
    }
    for _ in 0..3 {
        caller.ok("/v1/tasks/a/complete", json!({"lease": lease})).await;
    }
    caller.pass(3_600).await;
    assert_eq!(types(&events(&caller).await), ["TaskScheduled", "TaskStarted", "TaskCompleted"]);
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_sends_one_event() {
    let story = async |lost: std::ops::Range<u64>| {
        let store = Arc::new(AfterEachWrite::losing(Arc::new(MemoryStore::default()), lost));
        let caller = of(Caller::over(store.clone())).await;
        eventful_life(&caller, "a").await;
        let events = events(&caller).await;
        (types(&events).iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), store.writes())
    };
    let (expected, writes) = story(0..0).await;
    assert!(writes >= 8, "{writes}");
    for number in 0..writes {
        assert_eq!(story(number..number + 1).await.0, expected, "the answer to write {number} was lost");
    }
}

#[tokio::test]
async fn no_event_contains_a_payload() {
    let caller = with_events().await;
    eventful_life(&caller, "a").await;
    let events = events(&caller).await;
    assert_eq!(events.len(), 8);
    assert!(events.iter().all(|event| !event.to_string().contains(SECRET)), "{events:#?}");
}
