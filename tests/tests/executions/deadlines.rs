//! Deadlines of executions and of runs.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use serde_json::json;
use tickover_core::execution::command::{Cleanup, Ending};
use tickover_core::execution::journal::Happened;

use crate::remote::remote;
use crate::timeline::kinds;
use crate::worker::{Worker, completed, name};

#[tokio::test]
async fn an_execution_that_waits_for_ever_times_out_at_its_deadline() {
    let worker = Worker::default();
    worker.parked("e", json!({"execution_timeout": "10m"})).await;
    worker.caller.pass(599).await;
    assert_eq!(worker.seen("e").await["status"], "waiting");
    worker.caller.pass(1).await;
    let seen = worker.seen("e").await;
    assert_eq!((&seen["status"], &seen["timeout_kind"]), (&json!("timed_out"), &json!("execution")));
    assert_eq!(seen["cause"], json!({"category": "timeout", "kind": "execution"}));
    assert_eq!(seen["error"]["code"], "timed_out");
    assert_eq!(seen["ended_at"], worker.caller.now());
    assert!(worker.try_take().await.is_none());
}

#[tokio::test]
async fn the_executions_deadline_wins_over_the_runs_at_the_same_instant() {
    let worker = Worker::default();
    worker.parked("run", json!({"execution_timeout": "10m", "run_timeout": "1m"})).await;
    worker.parked("both", json!({"execution_timeout": "1m", "run_timeout": "1m"})).await;
    worker.caller.pass(60).await;
    assert_eq!(worker.seen("run").await["timeout_kind"], "run");
    assert_eq!(worker.seen("both").await["timeout_kind"], "execution");
}

#[tokio::test]
async fn no_turn_starts_after_the_deadline_and_one_across_it_is_fenced() {
    let worker = Worker::default();
    worker.start("late", json!({"execution_timeout": "10s"})).await;
    worker.caller.scene.clock.advance(tickover_core::duration::Millis::from_secs(10));
    assert!(worker.try_take().await.is_none());
    assert_eq!(worker.seen("late").await["status"], "timed_out");

    worker.start("slow", json!({"execution_timeout": "10s"})).await;
    let turn = worker.take("slow").await;
    worker.caller.scene.clock.advance(tickover_core::duration::Millis::from_secs(10));
    let refused = worker.try_close(&turn, vec![], completed(&json!("too late"))).await;
    assert!(refused.is_err(), "{refused:?}");
    let seen = worker.seen("slow").await;
    assert_eq!((&seen["status"], &seen["output"]), (&json!("timed_out"), &json!(null)));
}

#[tokio::test]
async fn continuing_as_new_keeps_the_executions_deadline_and_resets_the_runs() {
    let worker = Worker::default();
    let fields = json!({"execution_timeout": "1h", "run_timeout": "10m", "input": 1});
    let started = worker.start("e", fields).await;
    worker.caller.pass(300).await;
    worker.caller.ok("/v1/executions/e/events/more", json!({"payload": "kept"})).await;
    let turn = worker.take("e").await;
    let input = Some(crate::worker::payload(&json!(2)));
    let events = turn.journal.clone();
    worker.close(turn, vec![], Ending::ContinueAsNew { input, carried: events }).await;
    let seen = worker.seen("e").await;
    assert_eq!((&seen["run"], &seen["input"], &seen["status"]), (&json!(2), &json!(2), &json!("pending")));
    assert_eq!(seen["deadline_at"], started["deadline_at"]);
    assert_eq!(seen["run_deadline_at"], worker.caller.after(600));
    assert_eq!((&seen["created_at"], &seen["pending_events"]), (&started["created_at"], &json!(1)));
    let turn = worker.take("e").await;
    assert_eq!((turn.execution.run, turn.input.unwrap().as_str()), (2, "2"));
}

/// An execution with code for failures, whose deadline has just passed while it waited.
async fn overdue(worker: &Worker, id: &str) {
    worker.start(id, json!({"execution_timeout": "10m"})).await;
    let mut turn = worker.take(id).await;
    let (service, entries) = (&worker.caller.scene.service, vec![worker.step("charge", &json!(1))]);
    let budget = Some(tickover_core::duration::Millis::from_secs(60));
    turn.execution = service
        .record_turn(
            &turn.execution,
            turn.lease,
            entries,
            Cleanup { on_failure: budget, ..Cleanup::default() },
        )
        .await
        .unwrap();
    worker.suspend(turn, vec![], None).await;
    worker.caller.pass(600).await;
}

#[tokio::test]
async fn after_the_deadline_the_code_for_failures_has_its_own_time_and_may_recover() {
    let worker = Worker::default();
    overdue(&worker, "recovered").await;
    let seen = worker.seen("recovered").await;
    let cause = json!({"category": "timeout", "kind": "execution"});
    assert_eq!((&seen["status"], &seen["failing"]["cause"]), (&json!("pending"), &cause));
    assert_eq!(seen["failing"]["deadline_at"], worker.caller.after(60));
    assert_eq!(seen["next"], json!({"what": "on_failure_timeout", "at": worker.caller.after(60)}));
    let timeline = worker.get("/v1/executions/recovered/timeline").await;
    assert_eq!(timeline["entries"][2]["kind"], "on_failure_started");

    let turn = worker.take("recovered").await;
    worker.close(turn, vec![], completed(&json!("refunded"))).await;
    let seen = worker.seen("recovered").await;
    assert_eq!((&seen["status"], &seen["output"]), (&json!("completed"), &json!("refunded")));
    // No worker handles this failure in time.
    overdue(&worker, "given-up").await;
    worker.caller.pass(60).await;
    let seen = worker.seen("given-up").await;
    assert_eq!((&seen["status"], &seen["timeout_kind"]), (&json!("timed_out"), &json!("execution")));
}

#[tokio::test]
async fn the_open_steps_and_timers_of_a_run_end_at_its_deadline_and_are_in_its_timeline() {
    for deadline in ["execution_timeout", "run_timeout"] {
        let worker = Worker::default();
        worker.start("e", json!({deadline: "10m"})).await;
        let turn = worker.take("e").await;
        worker
            .caller
            .scene
            .service
            .start_remote(&turn.execution, vec![remote("label", None)])
            .await
            .all()
            .unwrap();
        let step = worker.entry(Happened::Remote { name: name("label") });
        let until = step.at.plus(tickover_core::duration::Millis::from_secs(3_600));
        let sleep = worker.entry(Happened::Until { name: name("settle"), until });
        worker.try_suspend(&turn, vec![step, sleep], Some(until), true).await.unwrap();
        worker.done_with(&turn).await;
        let waits = worker.seen("e").await["waits_for"].take();
        let task =
            waits.as_array().unwrap().iter().find_map(|wait| wait["task"].as_str()).unwrap().to_owned();
        worker.caller.pass(599).await;
        assert_eq!(worker.caller.task(&task).await["status"], "pending", "{deadline}");

        worker.caller.pass(1).await;
        let ended = worker.caller.task(&task).await;
        assert_eq!(
            (&ended["status"], &ended["ended_at"]),
            (&json!("cancelled"), &json!(worker.caller.now()))
        );
        let timeline = worker.get("/v1/executions/e/timeline").await;
        let before = ["started", "step_started", "timer_started"];
        let at_the_end = ["step_cancelled", "timer_cancelled", "execution_timed_out"];
        assert_eq!(kinds(&timeline), [before, at_the_end].concat(), "{deadline}");
        for (place, name) in [(3, "label"), (4, "settle")] {
            let entry = &timeline["entries"][place];
            assert_eq!((&entry["name"], &entry["at"]), (&json!(name), &json!(worker.caller.now())));
        }
    }
}
