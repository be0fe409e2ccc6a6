//! What a cron costs, by the `ConsumedCapacity` of the database in this process.

use serde_json::json;
use tickover_core::duration::Millis;
use tickover_tests::http::Caller;
use tickover_tests::meter::Meter;
use tickover_tests::scene::Scene;

use super::{body, make, tasks};

/// A caller of the metered service.
fn caller(meter: &Meter) -> Caller {
    let Scene { service, clock, queue } = &meter.scene;
    Caller::of(Scene { service: service.clone(), clock: clock.clone(), queue: queue.clone() })
}

#[tokio::test]
async fn a_cron_costs_three_to_make_nothing_while_it_waits_and_six_a_run_its_task_included() {
    let meter = Meter::new().await.unwrap();
    let caller = caller(&meter);
    // The queue's record is made once; the task with which it is made is cancelled.
    caller.schedule("first", json!({})).await;
    caller.ok("/v1/tasks/first/cancel", json!({})).await;
    let (_, making) = meter.bill(make(&caller, "s", json!({"cron": "*/30 * * * *", "jitter": "1m"}))).await;
    assert!(making.writes <= 3.0 && making.sends == 0, "{making:?}");
    let (_, again) = meter.bill(caller.post("/v1/crons", body("s", json!({"every": "1h"})))).await;
    assert!(again.writes <= 0.0 && again.reads <= 1.0, "{again:?}");
    let ((), waiting) = meter.bill(caller.pass(60)).await;
    assert!(waiting.writes <= 0.0, "{waiting:?}");
    for runs in 1..=3 {
        caller.scene.clock.advance(Millis::from_secs(1_800));
        let ((), run) = meter.bill(caller.pass(0)).await;
        assert_eq!(tasks(&caller).await.len(), runs + 1);
        // The writes: the run is recorded, the task is created, and the start is confirmed with a new due slot. One
        // message: the task's hint.
        assert!(run.writes <= 6.0 && run.sends == 1, "{run:?}");
        caller.ok(&format!("/v1/tasks/{}/cancel", tasks(&caller).await.pop().unwrap()), json!({})).await;
    }
}
