//! A clock that jumps back an hour: no timeout fires twice, no deadline moves, and nothing that has ended is woken.

#![expect(clippy::unwrap_used, reason = "test code, outside of test functions as well")]

use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_core::timer::{Timer, Wake};
use tickover_service::claim::Delivered;
use tickover_service::timers::Fired;
use tickover_tests::http::Caller;
use tickover_tests::scene::task_id;

use super::outcomes;

const HOUR: Millis = Millis::from_secs(3_600);

fn instant(task: &Value, name: &str) -> Timestamp {
    Timestamp::parse_rfc3339(task[name].as_str().unwrap()).unwrap()
}

/// A timer for this task fires, by the clock as it is now.
async fn fire(caller: &Caller, id: &str) -> Fired {
    let at = caller.scene.service.now();
    let body = Wake::Timer(Timer { record: task_id(id).into(), at, due_at: at }).body().unwrap();
    caller.scene.service.fire(Delivered::first(&body), at.plus(HOUR)).await.unwrap()
}

/// How many times a tick and then a timer for this task record a timeout.
async fn timed_out(caller: &Caller, id: &str) -> u64 {
    let report = caller.scene.tick().await.unwrap();
    assert_eq!((report.failed, report.out_of_time), (0, false), "{report:?}");
    report.timed_out + u64::from(fire(caller, id).await == Fired::TimedOut)
}

#[tokio::test]
async fn a_timed_out_task_does_not_change_when_the_clock_is_before_its_deadline_again() {
    let caller = Caller::default();
    caller.schedule("a", json!({"timeout": "10m", "retry": "fixed(5, 1s)"})).await;
    let lease = caller.lease().await;
    caller.pass(600).await;
    let ended = caller.task("a").await;
    assert_eq!((&ended["status"], outcomes(&ended)), (&json!("timed_out"), vec!["timed_out"]));

    caller.scene.clock.set_back(HOUR);
    assert!(caller.scene.service.now() < instant(&ended, "created_at"));
    assert_eq!(timed_out(&caller, "a").await, 0);
    assert_eq!(caller.claim().await, None);
    let by_id = caller.refused("/v1/tasks/a/claim", json!({"worker": "tester"})).await;
    assert_eq!(by_id, (409, "already_terminal".to_owned()));
    for (report, body) in [
        ("complete", json!({"lease": lease, "output": 1})),
        ("heartbeat", json!({"lease": lease})),
        ("release", json!({"lease": lease})),
        ("fail", json!({"lease": lease, "error": {"code": "late", "message": "too late"}})),
    ] {
        let refused = caller.refused(&format!("/v1/tasks/a/{report}"), body).await;
        assert_eq!(refused, (409, "deadline_exceeded".to_owned()), "{report}");
    }
    assert_eq!(caller.task("a").await, ended);

    // And when the clock moves forward again, past every instant of the task.
    for _ in 0..3 {
        caller.scene.clock.advance(HOUR);
        assert_eq!(timed_out(&caller, "a").await, 0);
        assert_eq!(caller.claim().await, None);
    }
    assert_eq!(caller.task("a").await, ended);
}

#[tokio::test]
async fn an_attempt_that_has_timed_out_counts_once() {
    let caller = Caller::default();
    caller.schedule("a", json!({"start_to_close_timeout": "10s", "retry": "fixed(2, 0s)"})).await;
    let late = caller.lease().await;
    caller.pass(10).await;
    let waiting = caller.task("a").await;
    assert_eq!((&waiting["status"], outcomes(&waiting)), (&json!("pending"), vec!["timed_out"]));

    caller.scene.clock.set_back(HOUR);
    assert_eq!(timed_out(&caller, "a").await, 0);
    let refused = caller.refused("/v1/tasks/a/complete", json!({"lease": late, "output": 1})).await;
    assert_eq!(refused, (409, "deadline_exceeded".to_owned()));
    // What was ready stays ready.
    let second = caller.claim().await.unwrap();
    assert_eq!(second["attempt"], 2, "{second}");
    caller.scene.clock.advance(HOUR);
    assert_eq!(timed_out(&caller, "a").await, 1);
}

#[tokio::test]
async fn a_heartbeat_under_a_clock_that_jumped_back_extends_no_deadline() {
    let caller = Caller::default();
    let fields = json!({"timeout": "2h", "start_to_close_timeout": "90m"});
    let scheduled = caller.schedule("a", fields).await;
    let lease = caller.lease().await;
    let running = caller.task("a").await;
    let beat = json!({"lease": lease});
    caller.pass(60).await;
    caller.ok("/v1/tasks/a/heartbeat", beat.clone()).await;

    caller.scene.clock.set_back(HOUR);
    assert_eq!(timed_out(&caller, "a").await, 0);
    caller.ok("/v1/tasks/a/heartbeat", beat.clone()).await;
    let beaten = caller.task("a").await;
    assert_eq!(beaten["status"], "running");
    assert_eq!(beaten["deadline_at"], scheduled["deadline_at"]);
    assert_eq!(beaten["start_to_close_at"], running["start_to_close_at"]);
    assert_eq!(beaten["lease_expires_at"], caller.after(60));

    // Forward again, and on with the work until its deadline.
    caller.scene.clock.advance(HOUR);
    let mut times = 0;
    let mut task = caller.task("a").await;
    for _ in 0..40 {
        times += timed_out(&caller, "a").await;
        task = caller.task("a").await;
        if task["status"] == "running" {
            caller.ok("/v1/tasks/a/heartbeat", beat.clone()).await;
        }
        caller.scene.clock.advance(Millis::from_secs(240));
    }
    assert_eq!(times, 1, "{task}");
    assert_eq!((&task["status"], outcomes(&task)), (&json!("timed_out"), vec!["timed_out"]));
    assert_eq!(task["timeout_kind"], "start_to_close");
}
