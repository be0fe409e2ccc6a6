//! The overlap policies: what happens to an occurrence while an earlier run is open.

use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_service::ports::Queue as _;
use tickover_tests::http::Caller;

use super::{complete_all, cron, make, states, tasks, until};

async fn hourly(overlap: &str) -> Caller {
    let caller = Caller::default();
    make(&caller, "s", json!({"every": "1h", "overlap": overlap})).await;
    caller
}

/// Loses the timers that have arrived, and returns how many there were.
async fn lose_timers(caller: &Caller) -> usize {
    let (queue, timers) = (&caller.scene.queue, QueueName::timers());
    let arrived = queue.receive(&timers, 10, Millis::from_secs(60), Millis::ZERO).await.unwrap();
    for message in &arrived {
        queue.delete(&timers, &message.receipt).await.unwrap();
    }
    arrived.len()
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
async fn buffer_one_starts_the_last_buffered_occurrence_at_once_when_the_open_run_has_ended() {
    let caller = hourly("buffer_one").await;
    until(&caller, "2026-01-01T03:30:00Z").await;
    assert_eq!(cron(&caller, "s").await["waiting"], 1);
    complete_all(&caller).await;
    // No time passes, and no tick comes: the end of the run tells the cron.
    caller.scene.fire().await;
    assert_eq!(tasks(&caller).await, ["s-20260101T010000Z", "s-20260101T020000Z"]);
}

#[tokio::test]
async fn buffer_all_starts_all_buffered_occurrences_one_after_the_other() {
    let caller = hourly("buffer_all").await;
    until(&caller, "2026-01-01T04:30:00Z").await;
    assert_eq!(cron(&caller, "s").await["waiting"], 3);
    for _ in 0..3 {
        complete_all(&caller).await;
        caller.scene.fire().await;
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
    caller.scene.fire().await;
    assert_eq!(tasks(&caller).await, ["s-20260101T010000Z", "s-20260101T020000Z"]);
    assert_eq!(caller.task("s-20260101T010000Z").await["status"], "cancelled");
}

#[tokio::test]
async fn a_cron_that_is_not_told_of_the_end_of_a_run_finds_it_within_minutes() {
    let caller = hourly("buffer_one").await;
    until(&caller, "2026-01-01T03:30:00Z").await;
    complete_all(&caller).await;
    assert_eq!(lose_timers(&caller).await, 1);
    until(&caller, "2026-01-01T03:35:00Z").await;
    assert_eq!(tasks(&caller).await, ["s-20260101T010000Z", "s-20260101T020000Z"]);
}

#[tokio::test]
async fn the_run_of_a_cron_that_waits_for_nothing_tells_nobody() {
    let caller = hourly("skip").await;
    until(&caller, "2026-01-01T01:30:00Z").await;
    complete_all(&caller).await;
    assert_eq!(lose_timers(&caller).await, 0);
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
