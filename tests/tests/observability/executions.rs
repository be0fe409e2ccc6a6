//! Events, log lines and metrics of executions.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use metrics_util::debugging::DebuggingRecorder;
use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_core::execution::command::{Cleanup, Close, Ending, Suspend};
use tickover_core::execution::journal::{Entry, Happened, StepOutcome};
use tickover_core::execution::{ExecutionOutcome, ExecutionTimeouts};
use tickover_core::id::{ExecutionId, QueueName, StepName, TaskKind, WorkflowName};
use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::Failure;
use tickover_core::timeout::{LifeTimeout, Timeouts};
use tickover_service::Service;
use tickover_service::claim::ClaimRequest;
use tickover_service::executions::{RemoteStep, StartRequest, StartedTurn, Suspended, Work};

use crate::lines::Log;
use crate::measures::{found, has};
use crate::stage::{SECRET, events, types, with_events};

pub(crate) fn queue() -> QueueName {
    QueueName::parse("work").unwrap()
}

async fn start(service: &Service, id: &str, timeouts: ExecutionTimeouts) {
    let request = StartRequest {
        id: Some(ExecutionId::parse(id).unwrap()),
        input: Json::parse(json!({ "password": SECRET }).to_string()),
        memo: Json::parse(json!(SECRET).to_string()),
        timeouts,
        ..StartRequest::new(WorkflowName::parse("order").unwrap(), queue())
    };
    service.start(request).await.unwrap();
}

pub(crate) async fn next(service: &Service) -> Option<Work> {
    let request = ClaimRequest {
        worker: None,
        max: 1,
        lease: Millis::from_secs(60),
        wait: Millis::ZERO,
        provides: vec![],
    };
    service.next_work(&queue(), &request).await.unwrap().pop()
}

pub(crate) async fn turn(service: &Service) -> StartedTurn {
    match next(service).await {
        Some(Work::Turn(turn)) => *turn,
        other => panic!("no turn: {other:?}"),
    }
}

pub(crate) async fn close(
    service: &Service,
    turn: &StartedTurn,
    entries: Vec<Entry>,
    outcome: ExecutionOutcome,
) {
    let close = Close {
        lease: turn.lease,
        entries,
        ending: Ending::Outcome(outcome),
        cleanup: Cleanup::default(),
        values: None,
    };
    service.close_turn(&turn.execution, close).await.unwrap();
    service.done_with(&queue(), turn.receipt.as_deref().unwrap()).await;
}

fn step(service: &Service, name: &str, outcome: StepOutcome) -> Entry {
    let name = StepName::parse(name).unwrap();
    Entry {
        at: service.now(),
        what: Happened::Step { name, outcome, attempts: Some(1), expired: None, errors: vec![] },
    }
}

/// Suspends a turn in which a remote step was started.
pub(crate) async fn begin(service: &Service, turn: &StartedTurn, name: &str, timeout: Option<Millis>) {
    let name = StepName::parse(name).unwrap();
    let schedule_to_close = timeout.map(|after| LifeTimeout { after, is_error: true });
    let step = RemoteStep {
        any_queue: false,
        at_most: None,
        name: name.clone(),
        kind: TaskKind::parse("label").unwrap(),
        queue: queue(),
        input: None,
        retry: RetryPolicy::default(),
        flow: tickover_core::flow::FlowRequest::default(),
        timeouts: Timeouts { schedule_to_close, ..Timeouts::default() },
        given: vec![],
        slot: None,
    };
    service.start_remote(&turn.execution, vec![step]).await.all().unwrap();
    let suspend = Suspend {
        lease: turn.lease,
        entries: vec![Entry { at: service.now(), what: Happened::Remote { name } }],
        seen_version: turn.execution.version,
        seen_wakes: turn.execution.wakes,
        until: None,
        awaits_others: true,
        events: vec![],
        cleanup: Cleanup::default(),
        values: None,
    };
    assert!(matches!(service.suspend_turn(&turn.execution, suspend).await.unwrap(), Suspended::Done(_)));
    service.done_with(&queue(), turn.receipt.as_deref().unwrap()).await;
}

#[tokio::test]
async fn an_executions_end_sends_one_event_with_names_and_instants_but_no_payload() {
    let caller = with_events().await;
    let service = &caller.scene.service;
    let timeouts = ExecutionTimeouts { execution: Some(Millis::from_secs(60)), run: None };
    start(service, "slow", timeouts).await;
    caller.scene.clock.advance(Millis::new(60_250));
    caller.scene.tick().await.unwrap();
    caller.scene.tick().await.unwrap();
    start(service, "quick", ExecutionTimeouts::default()).await;
    let taken = turn(service).await;
    let failure = Failure::new("card_declined", SECRET);
    let outcome =
        ExecutionOutcome::Failed { error: failure, step: Some("charge".to_owned()), retries_exhausted: true };
    close(service, &taken, vec![], outcome).await;

    let events = events(&caller).await;
    let of_executions: Vec<Value> =
        events.into_iter().filter(|event| event.get("execution_id").is_some()).collect();
    assert_eq!(
        types(&of_executions),
        ["ExecutionStarted", "ExecutionTimedOut", "ExecutionStarted", "ExecutionFailed"]
    );
    assert_eq!(of_executions[1]["kind"], "execution");
    assert_eq!(of_executions[1]["deadline_at"], "2026-01-01T00:01:00.000Z");
    assert_eq!(of_executions[1]["lateness_ms"], 250);
    let expected = json!({
        "v": 1,
        "type": "ExecutionFailed",
        "error_code": "card_declined",
        "step": "charge",
        "execution_id": "quick",
        "incarnation": of_executions[3]["incarnation"],
        "version": 3,
        "queue": "work",
        "workflow": "order",
        "run": 1,
        "at": "2026-01-01T00:01:00.250Z",
    });
    assert_eq!(of_executions[3], expected);
    assert!(!format!("{of_executions:?}").contains(SECRET));
}

#[tokio::test]
async fn a_waiting_parent_is_woken_by_a_timeout_exactly_as_by_a_completion() {
    Log::listen();
    let caller = with_events().await;
    let service = &caller.scene.service;
    for (id, timeout) in [("completed", None), ("timed-out", Some(Millis::from_secs(30)))] {
        start(service, id, ExecutionTimeouts::default()).await;
        let first = turn(service).await;
        begin(service, &first, "label", timeout).await;
        let Some(Work::Task(task)) = next(service).await else { panic!("the step is a task") };
        if timeout.is_none() {
            service.complete(&task.task.id, &task.token, Json::parse("7")).await.unwrap();
        } else {
            assert!(next(service).await.is_none(), "nothing wakes it before");
            caller.scene.clock.advance(Millis::from_secs(30));
            caller.scene.fire().await;
        }
        let second = turn(service).await;
        assert_eq!(second.execution.id.as_str(), id);
        let names = [StepName::parse("label").unwrap()];
        let ended = service.remote_outcomes(&second.execution, &names).await.unwrap();
        assert_eq!(
            ended[&names[0]].outcome.as_str(),
            if timeout.is_none() { "completed" } else { "timed_out" }
        );
        close(service, &second, vec![], ExecutionOutcome::Completed { output: None }).await;
    }
    let resuming = Log::lines("resuming");
    let ids: Vec<_> = resuming.iter().map(|line| &line["execution.id"]).collect();
    assert_eq!(ids, ["completed", "timed-out"]);
    for line in &resuming {
        assert_eq!((&line["level"], &line["step.name"]), (&json!("INFO"), &json!("label")));
        assert!(line["task.id"].as_str().is_some_and(|id| id.starts_with("s-")), "{line}");
    }
    let expired = &Log::lines("TaskTimedOut")[0];
    assert_eq!((&expired["execution.id"], &expired["step.name"]), (&json!("timed-out"), &json!("label")));
}

#[tokio::test]
async fn executions_turns_and_steps_are_counted_and_timed_by_how_they_ended() {
    let recorder = DebuggingRecorder::new();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let caller = with_events().await;
    let service = &caller.scene.service;
    start(service, "a", ExecutionTimeouts::default()).await;
    caller.scene.clock.advance(Millis::from_secs(2));
    let taken = turn(service).await;
    caller.scene.clock.advance(Millis::from_secs(5));
    let steps = vec![
        step(service, "charge", StepOutcome::Completed { output: None }),
        step(service, "pack", StepOutcome::Completed { output: None }),
        step(service, "ship", StepOutcome::TimedOut),
    ];
    close(service, &taken, steps, ExecutionOutcome::Completed { output: None }).await;
    start(service, "b", ExecutionTimeouts { execution: None, run: Some(Millis::from_secs(10)) }).await;
    caller.scene.clock.advance(Millis::from_secs(11));
    caller.scene.tick().await.unwrap();

    let found = found(&recorder);
    has(&found, "tickover_executions_started_total work", "2");
    has(&found, "tickover_executions_ended_total work completed", "1");
    has(&found, "tickover_executions_ended_total work timed_out", "1");
    has(&found, "tickover_execution_duration_seconds work completed", "7");
    has(&found, "tickover_execution_timeouts_total work run", "1");
    has(&found, "tickover_deadline_lateness_seconds run", "1");
    has(&found, "tickover_turns_total work", "1");
    has(&found, "tickover_turn_lateness_seconds work", "2");
    has(&found, "tickover_steps_ended_total work completed", "2");
    has(&found, "tickover_steps_ended_total work timed_out", "1");
}
