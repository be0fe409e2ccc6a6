//! The history of an execution, as the timeline shows it.

use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_core::execution::command::Ending;
use tickover_core::execution::journal::{FailedAttempt, Happened, StepOutcome};
use tickover_core::failure::Failure;
use tickover_core::timeout::{Expired, ExpiredKind};

use crate::worker::{Worker, completed, name};

pub(crate) fn kinds(timeline: &Value) -> Vec<&str> {
    let entries = timeline["entries"].as_array().expect("a list");
    entries.iter().map(|entry| entry["kind"].as_str().expect("a kind")).collect()
}

#[tokio::test]
async fn the_timeline_shows_a_lost_worker_with_its_attempt() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    let begun = || {
        let first_at = worker.entry(Happened::Patches { names: vec![] }).at;
        let (name, attempt, error, next_at, progress) = (name("charge"), 1, None, None, Some(0.5));
        worker.entry(Happened::Attempt {
            name,
            attempt,
            first_at,
            error,
            next_at,
            progress,
            details: None,
            is_ongoing: false,
            errors: vec![],
        })
    };
    let turn = worker.take("e").await;
    worker.record(&turn, vec![begun()]).await.unwrap();
    let seen = worker.seen("e").await;
    assert_eq!(seen["waits_for"], json!([{"kind": "attempt", "name": "charge", "attempt": 1}]));
    worker.caller.scene.clock.advance(Millis::from_secs(61));
    let turn = worker.take("e").await;
    let timeline = worker.get("/v1/executions/e/timeline").await;
    let expected = ["started", "step_attempt_started", "turn_lost", "step_attempt_lost", "turn_started"];
    assert_eq!(kinds(&timeline), expected);
    assert_eq!(timeline["entries"][1]["progress"], json!(0.5));
    assert_eq!(worker.seen("e").await["waits_for"], json!([]));
    worker.record(&turn, vec![begun()]).await.unwrap();
    let seen = worker.seen("e").await;
    assert_eq!(seen["waits_for"], json!([{"kind": "attempt", "name": "charge", "attempt": 2}]));
    worker.close(turn, vec![worker.step("charge", &json!("c-1"))], completed(&json!(1))).await;
    let timeline = worker.get("/v1/executions/e/timeline").await;
    let entries = timeline["entries"].as_array().unwrap();
    let ended = entries.iter().find(|entry| entry["kind"] == "step_completed").unwrap();
    assert_eq!((&ended["attempts"], &ended["lost"]), (&json!(2), &json!(1)));
    let seen = worker.seen("e").await;
    assert_eq!((&seen["completed_steps"], &seen["status"]), (&json!(1), &json!("completed")));
}

#[tokio::test]
async fn a_timeline_has_every_entry_in_the_order_of_time() {
    let worker = Worker::default();
    worker.start("e", json!({"execution_timeout": "1h", "run_timeout": "30m"})).await;
    let started = worker.get("/v1/executions/e/timeline").await["entries"][0].clone();
    assert_eq!((&started["execution_timeout"], &started["run_timeout"]), (&json!("1h"), &json!("30m")));
    assert_eq!(started["deadline_at"], worker.caller.after(3_600));
    assert_eq!(started["run_deadline_at"], worker.caller.after(1_800));

    let turn = worker.take("e").await;
    let attempt = worker.entry(Happened::Attempt {
        name: name("charge"),
        attempt: 1,
        first_at: worker.entry(Happened::Patches { names: vec![] }).at,
        error: None,
        next_at: None,
        progress: None,
        details: None,
        is_ongoing: false,
        errors: vec![],
    });
    worker.caller.scene.clock.advance(Millis::from_secs(2));
    let charge = worker.step("charge", &json!("c-1"));
    let until = charge.at.plus(Millis::from_secs(60));
    let sleep = worker.entry(Happened::Until { name: name("settle"), until });
    worker.suspend(turn, vec![attempt, charge, sleep], Some(until)).await;
    worker.caller.pass(60).await;
    worker.caller.ok("/v1/executions/e/events/shipped", json!({"payload": 1})).await;
    let turn = worker.take("e").await;
    worker.caller.scene.clock.advance(Millis::from_secs(1));
    let fired = worker.entry(Happened::Fired { name: name("settle") });
    let taken = worker.taken("shipped");
    worker.close(turn, vec![fired, taken], completed(&json!("receipt"))).await;

    let timeline = worker.get("/v1/executions/e/timeline").await;
    let expected = [
        "started",
        "step_attempt_started",
        "step_completed",
        "timer_started",
        "event_sent",
        "timer_fired",
        "wait_ended",
        "execution_completed",
    ];
    assert_eq!(kinds(&timeline), expected);
    assert_eq!(timeline["entries"][2]["duration_ms"], 2_000);
    assert_eq!((&timeline["id"], &timeline["run"]), (&json!("e"), &json!(1)));
    let (status, _) =
        worker.caller.send(axum::http::Method::GET, "/v1/executions/nobody/timeline", None).await;
    assert_eq!(status.as_u16(), 404);
}

#[tokio::test]
async fn a_timeline_says_which_time_limit_ended_a_step_and_the_execution() {
    let worker = Worker::default();
    worker.start("e", json!({"execution_timeout": "1h"})).await;
    let turn = worker.take("e").await;
    let at = worker.entry(Happened::Patches { names: vec![] }).at;
    let error = Failure::new("tls", "no certificate");
    let ended = worker.entry(Happened::Step {
        name: name("charge"),
        outcome: StepOutcome::TimedOut,
        attempts: Some(2),
        expired: Some(Expired { kind: ExpiredKind::Heartbeat, deadline_at: at }),
        errors: vec![FailedAttempt { at, attempt: 1, error }],
    });
    let until = at.plus(Millis::from_secs(86_400));
    let sleep = worker.entry(Happened::Until { name: name("settle"), until });
    worker.suspend(turn, vec![ended, sleep], Some(until)).await;
    worker.caller.pass(3_600).await;
    let timeline = worker.get("/v1/executions/e/timeline").await;
    let entry = |kind: &str| {
        let entries = timeline["entries"].as_array().expect("a list");
        entries.iter().find(|entry| entry["kind"] == kind).expect("an entry").clone()
    };
    let failed = entry("step_attempt_failed");
    assert_eq!((&failed["attempt"], &failed["error"]["code"]), (&json!(1), &json!("tls")));
    let step = entry("step_timed_out");
    assert_eq!((&step["timeout_kind"], &step["deadline_at"]), (&json!("heartbeat"), &step["at"]));
    let end = entry("execution_timed_out");
    assert_eq!(end["timeout_kind"], "execution");
    assert_eq!(end["deadline_at"], timeline["entries"][0]["deadline_at"]);
}

#[tokio::test]
async fn operators_calls_are_part_of_the_timeline() {
    let worker = Worker::default();
    worker.parked("e", json!({})).await;
    worker.operate("e", "pause").await;
    worker.operate("e", "resume").await;
    worker.operate("e", "cancel").await;
    let timeline = worker.get("/v1/executions/e/timeline").await;
    assert_eq!(kinds(&timeline), ["started", "paused", "resumed", "execution_cancelled"]);
}

#[tokio::test]
async fn a_timeline_shows_the_first_start_and_the_last_change_of_run() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    for _ in 0..2 {
        worker.caller.scene.clock.advance(Millis::from_secs(10));
        let turn = worker.take("e").await;
        worker.close(turn, vec![], Ending::ContinueAsNew { input: None, carried: vec![] }).await;
    }
    let turn = worker.take("e").await;
    worker.suspend(turn, vec![], None).await;
    let timeline = worker.get("/v1/executions/e/timeline").await;
    assert_eq!(kinds(&timeline), ["started", "run_continued", "run_started", "event_awaited"]);
    let runs: Vec<_> = (0..3).map(|place| &timeline["entries"][place]["run"]).collect();
    assert_eq!(runs, [&json!(1), &json!(2), &json!(3)]);
    assert_eq!(timeline["entries"][1]["at"], timeline["entries"][2]["at"]);

    worker.operate("e", "cancel").await;
    worker.operate("e", "restart").await;
    let timeline = worker.get("/v1/executions/e/timeline").await;
    assert_eq!(kinds(&timeline), ["started", "run_started", "restarted"]);
    assert_eq!(timeline["entries"][1]["run"], 4);
}
