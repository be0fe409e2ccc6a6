//! A request that can't be a cron is refused, and the answer names the field.

use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_tests::http::Caller;

use super::{body, cron, make, until};

async fn refused(caller: &Caller, asked: Value) -> (u16, Value) {
    let (status, answer) = caller.post("/v1/crons", asked).await;
    (status.as_u16(), answer)
}

#[tokio::test]
async fn every_wrong_field_is_named_with_its_expected_value() {
    let caller = Caller::default();
    let of_execution = json!({
        "every": "1h", "task": null, "execution": {"workflow": "w", "event": {"name": "go"}}
    });
    let task = |fields: Value| {
        let mut task = json!({"queue": "work", "kind": "work"});
        task.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({"every": "1h", "task": task})
    };
    for (fields, field, told) in [
        (json!({}), "cron", "required"),
        (json!({"cron": "61 * * * *"}), "cron", "in the field minute numbers from 0 to 59"),
        (json!({"cron": "MON * * * *"}), "cron", "names belong in month and day of week"),
        (json!({"cron": "0 MON-FRI * * *"}), "cron", "in the field hour numbers from 0 to 23"),
        (json!({"cron": "* * *"}), "cron", "five fields"),
        (json!({"cron": "0 0 30 2 *"}), "cron", "some date fits"),
        (json!({"cron": "0 9 * * *", "time_zone": "Mars/Olympus"}), "time_zone", "Mars/Olympus"),
        (json!({"cron": "0 9 * * *", "every": "1h"}), "every", "cron"),
        (json!({"every": "1h", "time_zone": "UTC"}), "time_zone", "cron"),
        (json!({"every": "500ms"}), "every", "at least 1s"),
        (json!({"every": "1500ms"}), "every", "whole seconds"),
        (json!({"every_seconds": 0}), "every_seconds", "zero"),
        (json!({"every": "1h", "overlap": "never"}), "overlap", "buffer_one"),
        (json!({"every": "1h", "missed": "all"}), "missed", "run_once"),
        (json!({"every": "1h", "max_runs": 0}), "max_runs", "from 1"),
        (json!({"every": "1h", "jitter": "2 years"}), "jitter", "2 years"),
        (json!({"every": "1h", "colour": 1}), "colour", "unknown field"),
        (task(json!({"id": "fixed"})), "task.id", "{occurrence}"),
        (task(json!({"id": "a b {occurrence}"})), "task.id", "A-Z"),
        (task(json!({"idempotency_key": "k"})), "task.idempotency_key", "not allowed"),
        (task(json!({"run_at": "2026-01-01T00:00:00Z"})), "task.run_at", "not allowed"),
        (task(json!({"queue": null})), "task.queue", "required"),
        (json!({"every": "1h", "execution": {"workflow": "w"}}), "execution", "task"),
        (of_execution, "execution.event", "not allowed"),
    ] {
        let (status, problem) = refused(&caller, body("s", fields.clone())).await;
        assert_eq!((status, &problem["field"]), (400, &json!(field)), "{fields}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(told), "{told} in {problem}");
    }
    let (status, problem) = refused(&caller, json!({"every": "1h"})).await;
    assert_eq!((status, &problem["field"]), (400, &json!("task")));
}

#[tokio::test]
async fn more_triggered_runs_than_a_cron_tracks_are_refused_with_the_limit() {
    let caller = Caller::default();
    make(&caller, "s", json!({"every": "1h"})).await;
    for _ in 0..3 {
        caller.ok("/v1/crons/s/trigger", json!({})).await;
    }
    assert_eq!(caller.refused("/v1/crons/s/trigger", json!({})).await, (413, "limit_exceeded".to_owned()));
}

/// It has no occurrence at which it would look at its runs.
#[tokio::test]
async fn a_cron_that_plans_nothing_is_triggered_as_often_as_its_runs_end() {
    for more in [json!({"every": "1h", "paused": true}), json!({"every": "1h", "max_runs": 1})] {
        let caller = Caller::default();
        make(&caller, "s", more).await;
        until(&caller, "2026-01-01T01:30:00Z").await;
        for _ in 0..5 {
            let run = caller.ok("/v1/crons/s/trigger", json!({})).await["run"].take();
            caller.ok(&format!("/v1/tasks/{}/cancel", run.as_str().unwrap()), json!({"force": true})).await;
            caller.scene.clock.advance(Millis::from_secs(1));
        }
        assert_eq!(cron(&caller, "s").await["next_at"], Value::Null);
    }
}
