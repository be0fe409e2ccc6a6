//! The tick, by each event that can bring it.

use std::time::Duration;

use serde_json::json;
use tickover_core::duration::Millis;

use crate::deployment::{Deployment, event, now, running_task};

/// How long ticks may take to find what falls due after a second.
const BOUND: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_tick_times_out_what_is_due_while_nobody_works_on_it() {
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
async fn every_sort_of_schedule_ticks_now_and_is_dropped_when_it_comes_late() {
    let deployment = Deployment::new().await;
    let tick = deployment.start("tick").await;
    for (name, field) in
        [("scheduler_input", "scheduled_at"), ("scheduler_default", "time"), ("events_rule", "time")]
    {
        let mut scheduled = event(name);
        let dropped = tick.invoke(scheduled.clone()).await.unwrap();
        assert_eq!(dropped["dropped"], true, "{name}: {dropped}");
        assert_eq!(dropped["scheduled_at"], "2026-01-31T12:00:00.000Z", "{name}: {dropped}");

        scheduled[field] = json!(now().minus(Millis::from_secs(30)).to_rfc3339());
        let report = tick.invoke(scheduled).await.unwrap();
        assert_eq!((&report["looked_at"], &report["failed"]), (&json!(0), &json!(0)), "{name}: {report}");
    }
    assert!(tick.logs().contains("an old tick dropped"), "{}", tick.logs());
}
