//! The tick, by each event that can invoke it.

use std::time::Duration;

use serde_json::json;
use tickover_core::duration::Millis;

use crate::deployment::{Deployment, event, now, running_task};

/// How long ticks may take to find an instant that is one second ahead.
const BOUND: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_tick_times_out_due_tasks_without_a_worker() {
    let deployment = Deployment::new().await;
    let [schedule, claim, complete, tick] = [
        deployment.start("schedule").await,
        deployment.start("claim").await,
        deployment.start("complete").await,
        deployment.start("tick").await,
    ];
    let lease = running_task(&schedule, &claim, "t", json!({"timeout": "1s"})).await;

    let timed_out = async {
        loop {
            let report = tick.invoke(json!({})).await.unwrap();
            assert_eq!((&report["failed"], &report["out_of_time"]), (&json!(0), &json!(false)), "{report}");
            if report["timed_out"] != 0 {
                return report;
            }
        }
    };
    let report = tokio::time::timeout(BOUND, timed_out).await.unwrap();
    assert_eq!(report["timed_out"], 1, "{report}");
    let late = complete.invoke(json!({"id": "t", "lease": lease, "output": 1})).await.unwrap();
    assert_eq!(late["status"], 409, "{late}");
}

#[tokio::test]
async fn every_kind_of_schedule_event_ticks_and_is_dropped_when_late() {
    let deployment = Deployment::new().await;
    let tick = deployment.start("tick").await;
    for (name, field) in
        [("scheduler_input", "scheduled_at"), ("scheduler_default", "time"), ("events_rule", "time")]
    {
        let mut scheduled = event(name);
        let dropped = tick.invoke(scheduled.clone()).await.unwrap();
        assert_eq!(dropped["dropped"], true, "{name}: {dropped}");
        assert_eq!(dropped["scheduled_at"], "2026-01-31T12:00:00.000Z", "{name}: {dropped}");

        // Scheduler may take a minute, and a cold start adds to that.
        scheduled[field] = json!(now().minus(Millis::from_secs(70)).to_rfc3339());
        let report = tick.invoke(scheduled).await.unwrap();
        assert_eq!((&report["looked_at"], &report["failed"]), (&json!(0), &json!(0)), "{name}: {report}");
    }
    assert!(tick.logs().contains("an old tick dropped"), "{}", tick.logs());
}

#[tokio::test]
async fn a_malformed_tick_is_refused_with_what_was_expected() {
    let deployment = Deployment::new().await;
    let tick = deployment.start("tick").await;
    let mut rule = event("events_rule");
    rule["time"] = json!(1_769_860_800_000_i64);
    let (ahead, instant) =
        ("expected an instant at most 1m after", "expected `scheduled_at` to be an RFC 3339 instant");
    for (scheduled, expected) in [
        (json!({"scheduled_at": now().plus(Millis::from_secs(3 * 3_600)).to_rfc3339()}), ahead),
        (json!({"scheduled_at": "9999-12-31T23:59:59Z"}), ahead),
        (json!({"scheduled_at": "<aws.scheduler.scheduled-time>"}), instant),
        (json!({"scheduled_at": 1_769_860_800}), instant),
        (json!({"scheduled_at": {"at": "noon"}}), instant),
        (rule, "expected `time` to be an RFC 3339 instant"),
    ] {
        let error = tick.invoke(scheduled.clone()).await.unwrap_err();
        assert_eq!(error.error_type, "malformed_tick", "{scheduled}: {error}");
        assert!(error.error_message.starts_with(expected), "{scheduled}: {error}");
    }
    // None of these ticks has changed what the next tick processes.
    let report = tick.invoke(json!({"scheduled_at": now().to_rfc3339()})).await.unwrap();
    assert_eq!(report["failed"], 0, "{report}");
}
