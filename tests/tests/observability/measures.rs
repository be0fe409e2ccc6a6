//! Metrics as the installed recorder gets them.

use std::collections::BTreeMap;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_tests::http::Caller;

use crate::stage::eventful_life;

/// What was recorded: under the metric's name and its labels' values, the count or the values in order.
pub(crate) fn found(recorder: &DebuggingRecorder) -> BTreeMap<String, String> {
    let snapshot = recorder.snapshotter().snapshot().into_vec();
    let values = snapshot.into_iter().map(|(key, _, _, value)| {
        let (_, key) = key.into_parts();
        let labels: Vec<_> = key.labels().map(metrics::Label::value).collect();
        let value = match value {
            DebugValue::Counter(count) => count.to_string(),
            DebugValue::Gauge(value) => value.to_string(),
            DebugValue::Histogram(values) => {
                values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            }
        };
        ([&[key.name()], labels.as_slice()].concat().join(" "), value)
    });
    values.collect()
}

#[track_caller]
pub(crate) fn has(found: &BTreeMap<String, String>, key: &str, value: &str) {
    assert_eq!(found.get(key).map(String::as_str), Some(value), "{key}: {found:#?}");
}

#[tokio::test]
async fn tasks_and_attempts_are_counted_and_timed_by_how_they_ended() {
    let recorder = DebuggingRecorder::new();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let caller = Caller::default();
    eventful_life(&caller, "a").await;
    caller.schedule("b", json!({})).await;
    let lease = caller.lease().await;
    caller.scene.clock.advance(Millis::from_secs(3));
    caller.fail("b", &lease, "boom").await;

    let found = found(&recorder);
    has(&found, "tickover_tasks_scheduled_total work", "2");
    has(&found, "tickover_tasks_ended_total work completed", "1");
    has(&found, "tickover_tasks_ended_total work failed", "1");
    has(&found, "tickover_task_duration_seconds work completed", "21");
    has(&found, "tickover_task_duration_seconds work failed", "3");
    has(&found, "tickover_attempts_ended_total work failed", "2");
    has(&found, "tickover_attempts_ended_total work timed_out", "1");
    has(&found, "tickover_attempts_ended_total work completed", "1");
    has(&found, "tickover_attempt_duration_seconds work timed_out", "11");
    has(&found, "tickover_start_lateness_seconds work", "0 0 0 0");
}

#[tokio::test]
async fn the_duration_of_a_task_that_timed_out_is_measured_as_such() {
    let recorder = DebuggingRecorder::new();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let caller = Caller::default();
    // From its scheduling, whether it was claimed or not, and over all its attempts.
    caller.schedule("unclaimed", json!({"timeout": "10s"})).await;
    caller.pass(10).await;
    assert!(caller.claim().await.is_none());
    caller.schedule("twice", json!({"start_to_close_timeout": "5s", "retry": "fixed(1, 2s)"})).await;
    for waits in [4, 2] {
        caller.pass(waits).await;
        caller.lease().await;
        caller.pass(5).await;
    }

    let found = found(&recorder);
    has(&found, "tickover_task_duration_seconds work timed_out", "10 16");
    has(&found, "tickover_attempt_duration_seconds work timed_out", "5 5");
    let others = found.keys().filter(|key| key.starts_with("tickover_task_duration_seconds "));
    assert_eq!(others.count(), 1, "{found:#?}");
}

#[tokio::test]
async fn every_enforced_timeout_is_counted_and_its_lateness_measured_by_kind() {
    let recorder = DebuggingRecorder::new();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let caller = Caller::default();
    // One without a claim, one with a lease, and one whose timeout isn't an error.
    caller.schedule("a", json!({"timeout": "10s"})).await;
    caller.scene.clock.advance(Millis::new(10_250));
    caller.scene.tick().await.unwrap();
    caller.schedule("b", json!({"heartbeat_timeout": "10s", "retry": "fixed(1, 0s)"})).await;
    caller.lease().await;
    caller.pass(12).await;
    // The claim comes before any tick, so the claim notices the timeout.
    caller.lease().await;
    caller.scene.clock.advance(Millis::from_secs(13));
    assert!(caller.claim().await.is_none());
    caller.pass(60).await;
    caller.schedule("c", json!({"maxRuntime": "5s"})).await;
    caller.lease().await;
    caller.pass(5).await;
    // It ended before its deadline, so it isn't late.
    caller.schedule("d", json!({"timeout": "30s", "retry": "fixed(3, 1m)"})).await;
    let lease = caller.lease().await;
    caller.fail("d", &lease, "boom").await;

    let found = found(&recorder);
    has(&found, "tickover_task_timeouts_total work schedule_to_close", "2");
    has(&found, "tickover_task_timeouts_total work heartbeat", "2");
    has(&found, "tickover_task_timeouts_total work start_to_close", "1");
    has(&found, "tickover_deadline_lateness_seconds schedule_to_close", "0.25");
    has(&found, "tickover_deadline_lateness_seconds start_to_close", "0");
    let heartbeats = &found["tickover_deadline_lateness_seconds heartbeat"];
    assert!(heartbeats.starts_with("2 ") && heartbeats.split(' ').count() == 2, "{heartbeats}");
    has(&found, "tickover_tasks_ended_total work timed_out", "3");
    has(&found, "tickover_tasks_ended_total work cancelled", "1");
}

#[tokio::test]
async fn heartbeats_are_counted_by_their_answers_and_leases_while_they_are_valid() {
    let recorder = DebuggingRecorder::new();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let caller = Caller::default();
    let mut leases = Vec::new();
    for id in ["a", "b", "c"] {
        caller.schedule(id, json!({"timeout": "50s"})).await;
        leases.push(caller.lease().await);
    }
    for (id, lease) in ["a", "b", "c"].iter().zip(&leases) {
        for _ in 0..2 {
            caller.ok(&format!("/v1/tasks/{id}/heartbeat"), json!({"lease": lease})).await;
        }
    }
    caller.ok("/v1/tasks/a/complete", json!({"lease": leases[0]})).await;
    caller.refused("/v1/tasks/a/heartbeat", json!({"lease": leases[0]})).await;
    caller.scene.service.observe_heartbeats();
    let first = found(&recorder);
    has(&first, "tickover_heartbeats_total renewed", "6");
    has(&first, "tickover_heartbeats_total already_terminal", "1");
    has(&first, "tickover_active_heartbeats", "2");

    caller.scene.clock.advance(Millis::from_secs(50));
    caller.refused("/v1/tasks/b/heartbeat", json!({"lease": leases[1]})).await;
    caller.scene.service.observe_heartbeats();
    let then = found(&recorder);
    has(&then, "tickover_heartbeats_total deadline_exceeded", "1");
    has(&then, "tickover_active_heartbeats", "0");
}

#[tokio::test]
async fn a_queues_depth_is_measured_when_the_queue_is_read() {
    let recorder = DebuggingRecorder::new();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let caller = Caller::default();
    for (id, fields) in [("a", json!({})), ("b", json!({})), ("c", json!({})), ("d", json!({"delay": "5m"}))]
    {
        caller.schedule(id, fields).await;
    }
    caller.lease().await;
    caller.scene.service.observe_queues().await;
    let found = found(&recorder);
    has(&found, "tickover_queue_depth work visible", "2");
    has(&found, "tickover_queue_depth work in_flight", "1");
    has(&found, "tickover_queue_depth work delayed", "1");
}

#[tokio::test]
async fn no_metric_label_has_a_value_that_users_choose_freely() {
    let recorder = DebuggingRecorder::new();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let caller = Caller::default();
    for number in 0..20 {
        let fields = json!({"kind": format!("kind-{number}"), "timeout": "5s"});
        caller.schedule(&format!("id-{number}"), fields).await;
        let body = json!({"worker": format!("worker-{number}"), "max": 1});
        let claimed = caller.ok("/v1/queues/work/claim", body).await;
        let lease = claimed["tasks"][0]["lease"].as_str().unwrap().to_owned();
        caller.fail(&format!("id-{number}"), &lease, &format!("code-{number}")).await;
    }
    let found = found(&recorder);
    has(&found, "tickover_tasks_ended_total work failed", "20");
    let chosen = ["kind-", "id-", "worker-", "code-"];
    let leaks = found.keys().filter(|key| chosen.iter().any(|prefix| key.contains(prefix)));
    assert_eq!(leaks.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[tokio::test]
async fn places_and_waiting_tasks_are_measured_by_key() {
    let recorder = DebuggingRecorder::new();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let caller = Caller::default();
    for id in ["a", "b", "c"] {
        caller.schedule(id, json!({"concurrency": [{"key": "measured", "limit": 1}]})).await;
    }
    let lease = caller.lease().await;
    assert!(caller.scene.claim("work").await.unwrap().is_none());
    // Who waits is counted by the tick.
    caller.scene.tick().await.unwrap();
    let first = found(&recorder);
    has(&first, "tickover_limit_taken measured", "1");
    has(&first, "tickover_limit_waiting measured", "2");
    caller.ok("/v1/tasks/a/complete", json!({"lease": lease})).await;
    caller.scene.tick().await.unwrap();
    let then = found(&recorder);
    has(&then, "tickover_limit_taken measured", "1");
    has(&then, "tickover_limit_waiting measured", "1");
}
