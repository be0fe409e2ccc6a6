//! Steps that run as tasks, done by workers in any language.

use axum::http::Method;
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::execution::Slot;
use tickover_core::execution::journal::{Happened, StepOutcome};
use tickover_core::flow::{FlowRequest, Priority};
use tickover_core::id::{Nonce, TaskId, TaskKind};
use tickover_core::kind::Policy;
use tickover_core::retry::RetryPolicy;
use tickover_core::timeout::{LifeTimeout, Timeouts};
use tickover_service::executions::{EndedStep, RemoteStep, Suspended};
use tickover_tests::scene::queue_name;

use crate::worker::{Worker, completed, failed_by, name};

pub(crate) fn remote(step: &str, timeout: Option<u64>) -> RemoteStep {
    let whole = timeout.map(|seconds| LifeTimeout { after: Millis::from_secs(seconds), is_error: true });
    RemoteStep {
        any_queue: false,
        at_most: None,
        name: name(step),
        kind: TaskKind::parse("print-label").expect("a kind"),
        queue: queue_name("work"),
        input: None,
        retry: RetryPolicy::none(),
        flow: FlowRequest::default(),
        timeouts: Timeouts { schedule_to_close: whole, ..Timeouts::default() },
        given: vec![],
        slot: None,
    }
}

impl Worker {
    /// Starts an execution that waits for this remote step.
    async fn waiting_for(&self, id: &str, step: RemoteStep) {
        self.start(id, json!({})).await;
        self.goes_on(id, step).await;
    }

    /// Its next turn waits for this remote step.
    async fn goes_on(&self, id: &str, step: RemoteStep) {
        let turn = self.take(id).await;
        let begun = self.entry(Happened::Remote { name: step.name.clone() });
        self.caller.scene.service.start_remote(&turn.execution, vec![step]).await.all().expect("a step");
        let suspended = self.try_suspend(&turn, vec![begun], None, true).await.expect("a suspension");
        assert!(matches!(suspended, Suspended::Done(_)));
        self.done_with(&turn).await;
    }
}

/// A worker over HTTP takes the step "label", and its attempt fails for good. So does the run.
async fn fails_at_label(worker: &Worker) -> serde_json::Value {
    let task = worker.caller.claim().await.expect("a task");
    let path = format!("/v1/tasks/{}/fail", task["id"].as_str().expect("an id"));
    let error = json!({"code": "broken", "message": "", "retryable": false});
    worker.caller.ok(&path, json!({"lease": task["lease"], "error": error})).await;
    let turn = worker.take("e").await;
    let ended = worker.exhausted("label");
    worker.close(turn, vec![ended], failed_by("label")).await;
    task
}

#[tokio::test]
async fn a_worker_in_any_language_gets_the_same_idempotency_key_for_work_that_a_rerun_repeats() {
    let worker = Worker::default();
    worker.waiting_for("e", remote("label", None)).await;
    let first = fails_at_label(&worker).await;
    assert_eq!(first["idempotency_key"], first["id"]);
    for body in [json!({"preserve": true}), json!({"preserve": false})] {
        worker.caller.ok("/v1/executions/e/rerun", body.clone()).await;
        worker.goes_on("e", remote("label", None)).await;
        let again = fails_at_label(&worker).await;
        assert_ne!(again["id"], first["id"]);
        // Without its results, a rerun is new work.
        let is_same = body["preserve"] == true;
        assert_eq!(again["idempotency_key"] == first["id"], is_same, "{again}");
    }
}

#[tokio::test]
async fn a_remote_step_that_completes_wakes_its_parent_with_its_result() {
    let worker = Worker::default();
    worker.waiting_for("e", remote("label[0]", None)).await;
    let seen = worker.seen("e").await;
    assert_eq!((&seen["status"], &seen["open_steps"]), (&json!("waiting"), &json!(1)));
    assert!(worker.try_take().await.is_none());

    // A worker that knows nothing of workflows does it over HTTP.
    let task = worker.caller.claim().await.expect("a task");
    assert_eq!((&task["kind"], &task["id"]), (&json!("print-label"), &seen["waits_for"][0]["task"]));
    let path = format!("/v1/tasks/{}/complete", task["id"].as_str().unwrap());
    worker.caller.ok(&path, json!({"lease": task["lease"], "output": "a label"})).await;

    let turn = worker.take("e").await;
    let service = &worker.caller.scene.service;
    let ended = service.remote_outcomes(&turn.execution, &[name("label[0]")]).await.unwrap();
    let EndedStep { outcome, attempts, .. } = ended[&name("label[0]")].clone();
    assert!(matches!(&outcome, StepOutcome::Completed { output: Some(_) }), "{outcome:?}");
    let entry = worker.entry(Happened::Step {
        name: name("label[0]"),
        outcome,
        attempts: None,
        expired: None,
        errors: vec![],
    });
    worker.close(turn, vec![entry], completed(&json!(attempts))).await;
    let seen = worker.seen("e").await;
    assert_eq!((&seen["output"], &seen["open_steps"]), (&json!(1), &json!(0)));
}

#[tokio::test]
async fn a_remote_step_that_times_out_wakes_its_parent_just_as_one_that_completes() {
    let worker = Worker::default();
    worker.waiting_for("e", remote("label", Some(10))).await;
    worker.caller.pass(9).await;
    assert!(worker.try_take().await.is_none());
    // Long before a probe of the parent.
    worker.caller.pass(1).await;
    let turn = worker.take("e").await;
    let service = &worker.caller.scene.service;
    let ended = service.remote_outcomes(&turn.execution, &[name("label")]).await.unwrap();
    assert_eq!(ended[&name("label")].outcome, StepOutcome::TimedOut);
}

#[tokio::test]
async fn the_steps_that_an_execution_leaves_open_are_ended_with_it() {
    let worker = Worker::default();
    worker.waiting_for("e", remote("label", None)).await;
    let task = worker.seen("e").await["waits_for"][0]["task"].as_str().unwrap().to_owned();
    assert_eq!(worker.caller.task(&task).await["status"], "pending");
    worker.operate("e", "terminate").await;
    assert_eq!(worker.caller.task(&task).await["status"], "cancelled");
    assert_eq!(worker.seen("e").await["closing"], json!(null));
    let timeline = worker.get("/v1/executions/e/timeline").await;
    let kinds: Vec<_> = timeline["entries"].as_array().unwrap().iter().map(|entry| &entry["kind"]).collect();
    assert_eq!(kinds, ["started", "step_started", "step_cancelled", "execution_cancelled"]);
}

#[tokio::test]
async fn remote_steps_stand_in_their_queue_as_their_execution_does_unless_they_ask_for_more() {
    let worker = Worker::default();
    let begin = async |id: &str, priority: &str, flow: FlowRequest| {
        worker.start(id, json!({"priority": priority})).await;
        let turn = worker.take(id).await;
        let kind = TaskKind::parse(id).expect("a kind");
        let step = RemoteStep { flow, kind, ..remote("print", None) };
        worker.caller.scene.service.start_remote(&turn.execution, vec![step]).await.all().expect("a step");
    };
    begin("low", "low", FlowRequest::default()).await;
    begin("low-but-urgent", "low", FlowRequest { priority: Priority::High, ..FlowRequest::default() }).await;
    begin("plain", "normal", FlowRequest::default()).await;
    begin("high", "high", FlowRequest::default()).await;
    let mut order = Vec::new();
    while let Some(task) = worker.caller.claim().await {
        order.push(task["kind"].as_str().unwrap().to_owned());
    }
    assert_eq!(order, ["low-but-urgent", "high", "plain", "low"]);
}

#[tokio::test]
async fn remote_steps_get_the_defaults_of_their_kind_and_keep_their_own_options() {
    let worker = Worker::default();
    let defaults =
        json!({"retry": "fixed(3, 2s)", "timeout": "1h", "heartbeat_timeout": "1m", "requires": ["ink"]});
    let path = "/v1/queues/work/kinds/print-label";
    let (status, answer) = worker.caller.send(Method::PUT, path, Some(&defaults)).await;
    assert_eq!(status.as_u16(), 200, "{answer}");
    let begun = async |id: &str, step: RemoteStep| {
        worker.waiting_for(id, step).await;
        let task = worker.seen(id).await["waits_for"][0]["task"].as_str().unwrap().to_owned();
        worker.caller.scene.service.describe(&TaskId::parse(task).unwrap()).await.unwrap().task
    };
    let second = Millis::from_secs(1);
    let open = begun("open", remote("label", None)).await;
    let own = RemoteStep { retry: RetryPolicy::fixed(1, second), ..remote("label", Some(60)) };
    let own = begun("own", own).await;
    assert_eq!(
        (open.retry, own.retry),
        (RetryPolicy::fixed(3, second.saturating_mul(2)), RetryPolicy::fixed(1, second))
    );
    let times = |timeouts: Timeouts| {
        (timeouts.schedule_to_close.map(|whole| whole.after), timeouts.heartbeat.map(|beat| beat.after))
    };
    let minute = Some(Millis::from_secs(60));
    assert_eq!(times(open.timeouts), (Some(Millis::from_secs(3_600)), minute));
    assert_eq!(times(own.timeouts), (minute, minute));
    assert_eq!(open.flow.unwrap().requires, own.flow.unwrap().requires);
    let none = RemoteStep { given: vec![Policy::Retry, Policy::Requires], ..remote("label", None) };
    let none = begun("none", none).await;
    assert_eq!((none.retry, none.flow.map(|flow| flow.requires)), (RetryPolicy::none(), None));
    // A default's timeout is no longer than the time that the execution has left.
    let late = RemoteStep { at_most: Some(second), ..remote("label", None) };
    assert_eq!(times(begun("late", late).await.timeouts).0, Some(second));
}

#[tokio::test]
async fn each_step_of_a_fan_out_is_shown_with_its_own_end_before_its_execution_goes_on() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    let turn = worker.take("e").await;
    let names = ["label[0]", "label[1]", "label[2]"];
    let begun = names.map(|step| worker.entry(Happened::Remote { name: name(step) })).to_vec();
    let slot = |place| Slot { label: Nonce::from_bytes([7; 8]), item: 0, place, of: 3 };
    let steps = names.into_iter().zip(0..3);
    let steps = steps.map(|(step, place)| RemoteStep { slot: Some(slot(place)), ..remote(step, None) });
    let service = &worker.caller.scene.service;
    service.start_remote(&turn.execution, steps.collect()).await.all().expect("steps");
    let suspended = worker.try_suspend(&turn, begun, None, true).await.expect("a suspension");
    assert!(matches!(suspended, Suspended::Done(_)));
    worker.done_with(&turn).await;

    let mut expected = Vec::new();
    for (seconds, after) in [(2, 2_000), (3, 5_000)] {
        worker.caller.pass(seconds).await;
        let task = worker.caller.claim().await.expect("a task");
        let id = task["id"].as_str().unwrap();
        worker
            .caller
            .ok(&format!("/v1/tasks/{id}/complete"), json!({"lease": task["lease"], "output": 7}))
            .await;
        let task = worker.caller.task(id).await;
        assert_eq!(task["execution_id"], "e");
        expected.push((task["step"].clone(), json!(after), json!(7)));
        // All of them together wake it.
        assert_eq!(worker.seen("e").await["status"], "waiting");
        let timeline = worker.get("/v1/executions/e/timeline").await;
        let ends = timeline["entries"].as_array().unwrap().iter();
        let ends = ends.filter(|entry| entry["kind"] == "step_completed");
        let shown: Vec<_> = ends
            .map(|entry| (entry["name"].clone(), entry["duration_ms"].clone(), entry["output"].clone()))
            .collect();
        assert_eq!(shown, expected);
        assert_eq!(timeline["unread"], json!(null));
    }
}

#[tokio::test]
async fn a_step_that_ended_before_its_execution_is_not_shown_as_cancelled_with_it() {
    let worker = Worker::default();
    worker.waiting_for("e", remote("label", None)).await;
    worker.caller.pass(2).await;
    let task = worker.caller.claim().await.expect("a task");
    let path = format!("/v1/tasks/{}/complete", task["id"].as_str().unwrap());
    worker.caller.ok(&path, json!({"lease": task["lease"]})).await;
    worker.caller.scene.clock.advance(Millis::from_secs(1));
    worker.operate("e", "terminate").await;
    let timeline = worker.get("/v1/executions/e/timeline").await;
    let kinds: Vec<_> = timeline["entries"].as_array().unwrap().iter().map(|entry| &entry["kind"]).collect();
    assert_eq!(kinds, ["started", "step_started", "step_completed", "execution_cancelled"]);
}

#[tokio::test]
async fn a_timeline_says_how_many_open_steps_it_has_not_read() {
    let worker = Worker::default();
    worker.start("e", json!({})).await;
    let turn = worker.take("e").await;
    let begun = |number| worker.entry(Happened::Remote { name: name(&format!("label[{number}]")) });
    worker.record(&turn, (0..103).map(begun).collect()).await.expect("a record");
    assert_eq!(worker.get("/v1/executions/e/timeline").await["unread"], 3);
}

#[tokio::test]
async fn the_policies_of_a_steps_task_can_be_read_back() {
    let worker = Worker::default();
    let step =
        RemoteStep { retry: RetryPolicy::exponential(3, Millis::from_secs(2)), ..remote("label", Some(60)) };
    worker.waiting_for("e", step).await;
    let id = worker.seen("e").await["waits_for"][0]["task"].as_str().unwrap().to_owned();
    let task = worker.caller.task(&id).await;
    let retry =
        json!({"max_attempts": 4, "delay": "2s", "backoff": 2.0, "jitter": "full", "non_retryable": []});
    assert_eq!(task["retry"], retry);
    let whole = json!({"after": "1m", "on_timeout": "terminal", "error_on_timeout": true});
    assert_eq!(task["timeouts"], json!({"schedule_to_close": whole}));
}
