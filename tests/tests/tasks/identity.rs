//! Ids, idempotency keys, and calls that are repeated.

use axum::http::StatusCode;
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_tests::http::Caller;

#[tokio::test]
async fn scheduling_with_an_id_that_exists_returns_what_exists() {
    let caller = Caller::default();
    let body = json!({"id": "a", "queue": "work", "kind": "work", "input": [1, 2], "timeout": "1h"});
    let (status, first) = caller.post("/v1/tasks", body.clone()).await;
    assert_eq!(status, StatusCode::CREATED);
    caller.scene.clock.advance(Millis::from_secs(60));
    let (status, again) = caller.post("/v1/tasks", body).await;
    assert_eq!((status, &again["task"]["deadline_at"]), (StatusCode::OK, &first["task"]["deadline_at"]));
    let other = json!({"id": "a", "queue": "work", "kind": "work", "input": [1, 3]});
    assert_eq!(caller.refused("/v1/tasks", other).await, (409, "id_conflict".to_owned()));
}

#[tokio::test]
async fn an_idempotency_key_holds_for_a_day_and_while_its_task_is_open() {
    let caller = Caller::default();
    let body = json!({"idempotency_key": "order 7", "queue": "work", "kind": "work"});
    let (status, first) = caller.post("/v1/tasks", body.clone()).await;
    assert_eq!(status, StatusCode::CREATED);
    let id = first["task"]["id"].clone();
    caller.pass(3 * 86_400).await;
    let (status, again) = caller.post("/v1/tasks", body.clone()).await;
    assert_eq!((status, &again["task"]["id"]), (StatusCode::OK, &id), "still open");
    let lease = caller.lease().await;
    caller.ok(&format!("/v1/tasks/{}/complete", id.as_str().unwrap()), json!({"lease": lease})).await;
    let (status, fresh) = caller.post("/v1/tasks", body.clone()).await;
    assert_eq!(status, StatusCode::CREATED, "ended, and older than a day");
    assert_ne!(fresh["task"]["id"], id);
    let lease = caller.lease().await;
    let fresh_id = fresh["task"]["id"].as_str().unwrap();
    caller.ok(&format!("/v1/tasks/{fresh_id}/complete"), json!({"lease": lease})).await;
    caller.pass(3_600).await;
    let (status, same) = caller.post("/v1/tasks", body).await;
    assert_eq!((status, same["task"]["id"].as_str()), (StatusCode::OK, Some(fresh_id)), "ended, but young");
}

#[tokio::test]
async fn the_id_stays_through_all_attempts_and_each_attempt_has_a_lease_of_its_own() {
    let caller = Caller::default();
    caller.schedule("a", json!({"retry": "fixed(2, 0s)"})).await;
    let mut leases = std::collections::BTreeSet::new();
    for attempt in 1..=3 {
        let claimed = caller.claim().await.unwrap();
        assert_eq!((&claimed["id"], &claimed["attempt"]), (&json!("a"), &json!(attempt)));
        let lease = claimed["lease"].as_str().unwrap().to_owned();
        caller.fail("a", &lease, "boom").await;
        leases.insert(lease);
    }
    assert_eq!(leases.len(), 3);
}

#[tokio::test]
async fn every_report_can_be_repeated_and_is_answered_as_a_duplicate() {
    let caller = Caller::default();
    let large = "x".repeat(20_000);
    for (id, call, body) in [
        ("a", "complete", json!({"output": {"large": large}})),
        ("b", "fail", json!({"error": {"code": "boom"}})),
        ("c", "release", json!({})),
    ] {
        caller.schedule(id, json!({})).await;
        let mut body = body;
        body["lease"] = json!(caller.lease().await);
        let first = caller.ok(&format!("/v1/tasks/{id}/{call}"), body.clone()).await;
        let again = caller.ok(&format!("/v1/tasks/{id}/{call}"), body).await;
        assert_eq!(first.get("duplicate"), None);
        assert_eq!(again["duplicate"], true, "{call}");
        assert_eq!(again["task"]["status"], first["task"]["status"]);
        assert_eq!(again["task"]["output"], first["task"]["output"]);
        caller.ok(&format!("/v1/tasks/{id}/cancel"), json!({})).await;
    }
}

#[tokio::test]
async fn the_first_result_is_kept() {
    let caller = Caller::default();
    caller.schedule("a", json!({})).await;
    let lease = caller.lease().await;
    caller.ok("/v1/tasks/a/complete", json!({"lease": lease, "output": 1})).await;
    let again = caller.ok("/v1/tasks/a/complete", json!({"lease": lease, "output": 2})).await;
    assert_eq!((&again["duplicate"], &again["task"]["output"]), (&json!(true), &json!(1)));
    let refused = caller.refused("/v1/tasks/a/fail", json!({"lease": lease, "error": {"code": "x"}})).await;
    assert_eq!(refused, (409, "already_terminal".to_owned()));
}
