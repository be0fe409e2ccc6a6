//! The overlap policies: what happens to an occurrence while an earlier run is open.

use serde_json::json;
use tickover_tests::http::Caller;

use super::{complete_all, cron, make, states, tasks, until};

async fn hourly(overlap: &str) -> Caller {
    let caller = Caller::default();
    make(&caller, "s", json!({"every": "1h", "overlap": overlap})).await;
    caller
}

#[tokio::test]
async fn skip_leaves_an_occurrence_out_while_a_run_is_open() {
    let caller = hourly("skip").await;
    until(&caller, "2026-01-01T02:30:00Z").await;
    assert_eq!(states(&cron(&caller, "s").await), ["open", "skipped: overlap"]);
    complete_all(&caller).await;
    until(&caller, "2026-01-01T03:00:00Z").await;
    assert_eq!(tasks(&caller).await, ["s-20260101T010000Z", "s-20260101T030000Z"]);
}

#[tokio::test]
async fn buffer_one_starts_the_last_buffered_occurrence_soon_after_the_open_run_has_ended() {
    let caller = hourly("buffer_one").await;
    until(&caller, "2026-01-01T03:30:00Z").await;
    assert_eq!(cron(&caller, "s").await["waiting"], 1);
    complete_all(&caller).await;
    until(&caller, "2026-01-01T03:35:00Z").await;
    assert_eq!(tasks(&caller).await, ["s-20260101T010000Z", "s-20260101T020000Z"]);
}

#[tokio::test]
async fn buffer_all_starts_all_buffered_occurrences_one_after_the_other() {
    let caller = hourly("buffer_all").await;
    until(&caller, "2026-01-01T04:30:00Z").await;
    assert_eq!(cron(&caller, "s").await["waiting"], 3);
    for minute in [35, 40, 45] {
        complete_all(&caller).await;
        until(&caller, &format!("2026-01-01T04:{minute}:00Z")).await;
    }
    let hours = ["01", "02", "03", "04"].map(|hour| format!("s-20260101T{hour}0000Z"));
    assert_eq!(tasks(&caller).await, hours);
}

#[tokio::test]
async fn allow_all_starts_runs_beside_each_other() {
    let caller = hourly("allow_all").await;
    until(&caller, "2026-01-01T03:30:00Z").await;
    assert_eq!(tasks(&caller).await.len(), 3);
}

#[tokio::test]
async fn cancel_other_asks_the_open_run_to_stop_and_starts_once_it_has() {
    let caller = hourly("cancel_other").await;
    until(&caller, "2026-01-01T01:30:00Z").await;
    let task = caller.claim_for("12h").await.unwrap();
    until(&caller, "2026-01-01T02:01:00Z").await;
    assert_eq!(tasks(&caller).await.len(), 1);
    let beat = caller.ok("/v1/tasks/s-20260101T010000Z/heartbeat", json!({"lease": task["lease"]})).await;
    assert_eq!(beat["cancel_requested"], true);
    caller.ok("/v1/tasks/s-20260101T010000Z/release", json!({"lease": task["lease"]})).await;
    until(&caller, "2026-01-01T02:07:00Z").await;
    assert_eq!(tasks(&caller).await, ["s-20260101T010000Z", "s-20260101T020000Z"]);
    assert_eq!(caller.task("s-20260101T010000Z").await["status"], "cancelled");
}

#[tokio::test]
async fn cancel_other_starts_at_once_where_the_open_run_only_waited() {
    let caller = hourly("cancel_other").await;
    until(&caller, "2026-01-01T02:00:00Z").await;
    assert_eq!(caller.task("s-20260101T010000Z").await["status"], "cancelled");
    assert_eq!(caller.task("s-20260101T020000Z").await["status"], "pending");
}

#[tokio::test]
async fn terminate_other_ends_the_open_run_even_while_a_worker_has_it() {
    let caller = hourly("terminate_other").await;
    until(&caller, "2026-01-01T01:30:00Z").await;
    caller.claim_for("12h").await.unwrap();
    until(&caller, "2026-01-01T02:00:00Z").await;
    assert_eq!(caller.task("s-20260101T010000Z").await["status"], "cancelled");
    assert_eq!(caller.task("s-20260101T020000Z").await["status"], "pending");
}
