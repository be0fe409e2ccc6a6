//! The results of crons' runs in metrics and logs.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use metrics_util::debugging::DebuggingRecorder;
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_tests::http::Caller;

use crate::lines::Log;
use crate::measures::{found, has};

async fn make(caller: &Caller, id: &str, fields: serde_json::Value) {
    let mut body = json!({"id": id, "task": {"queue": "work", "kind": "work"}});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    caller.ok("/v1/crons", body).await;
}

#[tokio::test]
async fn each_occurrence_of_a_cron_is_counted_once_by_its_result() {
    let recorder = DebuggingRecorder::new();
    let _recording = metrics::set_default_local_recorder(&recorder);
    Log::listen();
    let caller = Caller::default();
    // Of three occurrences, the first starts a run, which is open at the other two.
    make(&caller, "overlaps", json!({"every": "1h", "overlap": "skip"})).await;
    for _ in 0..=3 * 60 {
        caller.pass(60).await;
    }
    caller.ok("/v1/crons/overlaps/trigger", json!({})).await;
    caller.ok("/v1/crons/overlaps/pause", json!({})).await;
    let first = found(&recorder);
    has(&first, "tickover_cron_occurrences_total started", "2");
    has(&first, "tickover_cron_occurrences_total overlap", "2");

    // A cron that no tick read for a day.
    make(&caller, "missed", json!({"every": "1h"})).await;
    caller.scene.lose_messages(&QueueName::timers()).await;
    caller.scene.clock.advance(Millis::from_secs(24 * 3_600 + 1_800));
    caller.scene.tick().await.unwrap();
    has(&found(&recorder), "tickover_cron_occurrences_total missed", "1");

    let (started, skipped) = (Log::lines("run started"), Log::lines("run skipped"));
    assert_eq!((started.len(), skipped.len()), (2, 3), "{started:?} {skipped:?}");
    let expected = json!({"level": "INFO", "cron": "overlaps", "run": "overlaps-20260101T010000Z"});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&started[0][name], value, "{}", started[0]);
    }
    assert_eq!((&skipped[2]["level"], &skipped[2]["outcome"]), (&json!("WARN"), &json!("missed")));
    assert!(skipped[2]["lateness_ms"].as_u64().unwrap() > 60_000, "{}", skipped[2]);
}
