//! Seconds, from a server whose tick comes once a minute and forty seconds late.

use serde_json::{Value, json};
use tickover_core::time::Timestamp;

use crate::scene::Scene;

/// A tick would notice an instant 20 s late or more: only a timer is this fast.
const LATENESS_MAX_MS: u64 = 10_000;

/// By how many milliseconds one instant of an answer is after another; it must not be before it.
fn late_ms(due: &Value, done: &Value) -> u64 {
    let instant = |value: &Value| Timestamp::parse_rfc3339(value.as_str().unwrap_or_default());
    let (due, done) = (instant(due).expect("an instant"), instant(done).expect("an instant"));
    assert!(done >= due, "early: {due:?} {done:?}");
    done.since(due).as_u64()
}

#[tokio::test]
async fn deadlines_and_timeouts_of_a_second_take_a_second() {
    let scene = Scene::start().await;
    let plain = |id: &str, field: &str| json!({"id": id, "queue": "work", "kind": "k", field: "1s"});
    scene.schedule(&plain("deadline", "timeout")).await;
    scene.schedule(&plain("start", "schedule_to_start_timeout")).await;
    let deadline = scene.until_status("deadline", "timed_out").await;
    assert!(late_ms(&deadline["deadline_at"], &deadline["ended_at"]) < LATENESS_MAX_MS, "{deadline}");
    let start = scene.until_status("start", "timed_out").await;
    assert!(late_ms(&start["created_at"], &start["ended_at"]) < 1_000 + LATENESS_MAX_MS, "{start}");

    for field in ["start_to_close_timeout", "heartbeat_timeout"] {
        scene.schedule(&plain(field, field)).await;
        let claimed = scene.post("queues/work/claim", &json!({"worker": "silent", "wait": "5s"})).await;
        let running = &claimed["tasks"][0];
        assert_eq!(running["id"], field, "{claimed}");
        let ended = scene.until_status(field, "timed_out").await;
        let claimed_at = &ended["attempts"][0]["claimed_at"];
        let late = late_ms(claimed_at, &ended["ended_at"]);
        assert!((1_000..1_000 + LATENESS_MAX_MS).contains(&late), "{late}: {ended}");
    }
}

#[tokio::test]
async fn a_backoff_and_a_delay_of_a_second_take_a_second() {
    let scene = Scene::start().await;
    let _worker = scene.worker(&[], r#"[ "$TICKOVER_ATTEMPT" = 2 ] || [ "$TICKOVER_TASK_ID" = delayed ]"#);
    scene.schedule(&json!({"id": "delayed", "queue": "work", "kind": "k", "delay": "1s"})).await;
    scene.schedule(&json!({"id": "again", "queue": "work", "kind": "k", "retry": "fixed(1, 1s)"})).await;
    let delayed = scene.until_status("delayed", "completed").await;
    let waited = late_ms(&delayed["created_at"], &delayed["attempts"][0]["claimed_at"]);
    assert!((1_000..1_000 + LATENESS_MAX_MS).contains(&waited), "{waited}: {delayed}");
    let again = scene.until_status("again", "completed").await;
    let waited = late_ms(&again["attempts"][0]["ended_at"], &again["attempts"][1]["claimed_at"]);
    assert!((1_000..1_000 + LATENESS_MAX_MS).contains(&waited), "{waited}: {again}");
}
