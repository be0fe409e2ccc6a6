//! Steps that run as tasks, done by workers in any language.

use axum::http::Method;
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Happened, StepOutcome};
use tickover_core::flow::{FlowRequest, Priority};
use tickover_core::id::{TaskId, TaskKind};
use tickover_core::kind::Policy;
use tickover_core::retry::RetryPolicy;
use tickover_core::timeout::{LifeTimeout, Timeouts};
use tickover_service::executions::{EndedStep, RemoteStep, Suspended};
use tickover_tests::scene::queue_name;

use crate::worker::{Worker, completed, name};

fn remote(step: &str, timeout: Option<u64>) -> RemoteStep {
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
        let turn = self.take(id).await;
        let begun = self.entry(Happened::Remote { name: step.name.clone() });
        self.caller.scene.service.start_remote(&turn.execution, vec![step]).await.all().expect("a step");
        let suspended = self.try_suspend(&turn, vec![begun], None, true).await.expect("a suspension");
        assert!(matches!(suspended, Suspended::Done));
        self.done_with(&turn).await;
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
    let entry = worker.entry(Happened::Step { name: name("label[0]"), outcome, attempts: None });
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
