//! Unique keys and bursts of executions: races, and processes that die between two writes.

use futures::future::join_all;
use tickover_core::decision::{Condition, Write};
use tickover_core::duration::Millis;
use tickover_core::execution::command::{Cleanup, Close, Ending};
use tickover_core::execution::{ExecutionOutcome, ExecutionStatus};
use tickover_core::flow::{FlowRequest, Unique};
use tickover_core::id::{EventId, EventName, FlowKey, TaskKind, WorkflowName};
use tickover_core::limits::SPAN_MAX;
use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::Start as TaskStart;
use tickover_core::timeout::Timeouts;

use super::*;
use crate::claim::ClaimRequest;
use crate::executions::tests::mortal::NEVER;
use crate::executions::tests::scene::{DAY, Scene, id};
use crate::executions::{SentEvent, StartedTurn, Work};
use crate::tasks::schedule::{Asked, ScheduleRequest};
use crate::tasks::single::GRACE;

fn queue() -> QueueName {
    QueueName::parse("work").unwrap()
}

fn key() -> FlowKey {
    FlowKey::parse("sync of 7").unwrap()
}

fn request(input: &str, flow: FlowRequest) -> StartRequest {
    let workflow = WorkflowName::parse("sync").unwrap();
    StartRequest { input: Json::parse(input), flow: Box::new(flow), ..StartRequest::new(workflow, queue()) }
}

fn unique(input: &str, window: UniqueWindow, on_conflict: OnConflict) -> StartRequest {
    let unique = Some(Unique { key: key(), window, on_conflict });
    request(input, FlowRequest { unique, ..FlowRequest::default() })
}

fn open(input: &str) -> StartRequest {
    unique(input, UniqueWindow::Open, OnConflict::Existing)
}

fn bounced(input: &str) -> StartRequest {
    let (wait, at_most) = (Millis::from_secs(10), Millis::from_secs(60));
    let debounce = Some(Debounce { key: key(), wait, at_most });
    request(input, FlowRequest { debounce, ..FlowRequest::default() })
}

impl Scene {
    async fn start_one(&self, request: StartRequest) -> Started {
        self.service.start(request).await.unwrap()
    }

    async fn take_one(&self) -> Option<StartedTurn> {
        let lease = Millis::from_secs(60);
        let request = ClaimRequest { worker: None, max: 1, lease, wait: Millis::ZERO, provides: vec![] };
        match self.service.next_work(&queue(), &request).await.unwrap().pop()? {
            Work::Turn(turn) => Some(*turn),
            Work::Task(task) => panic!("a task: {task:?}"),
        }
    }

    async fn run_turn(&self) -> Option<String> {
        let turn = self.take_one().await?;
        let ending = Ending::Outcome(ExecutionOutcome::Completed { output: None });
        let close =
            Close { lease: turn.lease, entries: vec![], ending, cleanup: Cleanup::default(), values: None };
        self.service.close_turn(&turn.execution, close).await.unwrap();
        self.service.done_with(&queue(), turn.receipt.as_deref().unwrap()).await;
        turn.input.map(|json| json.as_str().to_owned())
    }
}

#[tokio::test]
async fn while_an_execution_of_the_key_is_open_it_is_the_answer() {
    let scene = Scene::new();
    let first = scene.start_one(open("1")).await;
    let second = scene.start_one(open("2")).await;
    assert_eq!((second.existed, &second.execution.id), (true, &first.execution.id));
    assert_eq!(scene.run_turn().await.as_deref(), Some("1"));
    let next = scene.start_one(open("3")).await;
    assert_eq!((next.existed, next.execution.id == first.execution.id), (false, false));
}

#[tokio::test]
async fn a_key_is_kept_until_the_first_turn_or_for_a_time_if_the_request_says_so() {
    let scene = Scene::new();
    let waiting = |input| unique(input, UniqueWindow::Waiting, OnConflict::Existing);
    scene.start_one(waiting("1")).await;
    assert!(scene.start_one(waiting("2")).await.existed);
    let _running = scene.take_one().await.unwrap();
    assert!(!scene.start_one(waiting("3")).await.existed);

    let scene = Scene::new();
    let minute = |input| unique(input, UniqueWindow::For(Millis::from_secs(60)), OnConflict::Existing);
    scene.start_one(minute("1")).await;
    assert_eq!(scene.run_turn().await.unwrap(), "1");
    scene.advance(59);
    assert!(scene.start_one(minute("2")).await.existed);
    scene.advance(1);
    assert!(!scene.start_one(minute("3")).await.existed);
}

#[tokio::test]
async fn another_execution_is_refused_or_replaced_if_the_request_says_so() {
    let scene = Scene::new();
    let first = scene.start_one(open("1")).await.execution.id;
    let refused = scene.service.start(unique("2", UniqueWindow::Open, OnConflict::Refuse)).await;
    let Err(ServiceError::Rejected(reject)) = refused else { panic!("it was not refused") };
    assert_eq!(reject.to_string(), format!("another execution has this unique key: {first}"));
    assert_eq!(reject, Reject::NotUnique { by: first.clone().into() });
    let third = scene.start_one(unique("3", UniqueWindow::Open, OnConflict::Replace)).await;
    assert!(!third.existed);
    assert_eq!(scene.execution(first.as_str()).await.status(), ExecutionStatus::Cancelled);
    assert_eq!((scene.run_turn().await.as_deref(), scene.run_turn().await), (Some("3"), None));
}

#[tokio::test]
async fn a_repeated_start_with_an_id_finds_its_own_execution_after_the_key_went_on() {
    let scene = Scene::new();
    let own = || StartRequest { id: Some(id("mine")), ..open("1") };
    scene.start_one(own()).await;
    scene.run_turn().await.unwrap();
    scene.start_one(open("2")).await;
    let again = scene.start_one(own()).await;
    assert_eq!((again.existed, again.execution.status()), (true, ExecutionStatus::Completed));
}

#[tokio::test]
async fn of_many_starts_at_once_one_begins() {
    let scene = Scene::new();
    scene.interleave();
    let all = join_all((0..8).map(|number| scene.service.start(open(&number.to_string())))).await;
    let started: Vec<_> = all.into_iter().filter_map(Result::ok).collect();
    assert_eq!(started.iter().filter(|one| !one.existed).count(), 1);
    let first = &started[0].execution.id;
    assert!(started.iter().all(|one| one.execution.id == *first));
    assert!(scene.run_turn().await.is_some() && scene.run_turn().await.is_none());
}

fn sending(id: &str, request: StartRequest) -> StartRequest {
    let name = EventName::parse("add").unwrap();
    // Every other one has a payload that doesn't fit into a record.
    let payload = if id.ends_with('1') { "x".repeat(2_000) } else { "x".to_owned() };
    let event = SentEvent { name, id: EventId::parse(id).ok(), payload: Some(Json::string(&payload)) };
    StartRequest { event: Some(event), ..request }
}

/// The ids of the events that wait for an execution, sorted.
async fn sent(scene: &Scene, id: &ExecutionId) -> Vec<String> {
    let events = scene.service.events(id).await.unwrap();
    let mut ids: Vec<_> = events.iter().filter_map(|event| Some(event.id.as_ref()?.to_string())).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn of_many_starts_at_once_with_events_one_begins_with_its_event_and_gets_all_others() {
    let with_id = StartRequest { id: Some(id("mine")), ..request("1", FlowRequest::default()) };
    for request in [with_id, open("1"), StartRequest { id: Some(id("mine")), ..open("1") }] {
        let scene = Scene::new();
        scene.interleave();
        // Each call is made twice, as by a caller that got no answer.
        let calls = (0..4)
            .flat_map(|number| [number, number])
            .map(|number| scene.service.start(sending(&format!("event-{number}"), request.clone())));
        let all = join_all(calls).await;
        let started: Vec<_> = all.into_iter().map(Result::unwrap).collect();
        assert_eq!(started.iter().filter(|one| !one.existed).count(), 1);
        let first = &started[0].execution.id;
        assert!(started.iter().all(|one| one.execution.id == *first));
        assert_eq!(sent(&scene, first).await, ["event-0", "event-1", "event-2", "event-3"]);
    }
}

#[tokio::test]
async fn an_execution_that_has_ended_takes_no_first_event_and_its_key_begins_another_one() {
    let scene = Scene::new();
    let first = scene.start_one(sending("event-0", open("1"))).await.execution.id;
    scene.run_turn().await.unwrap();
    let next = scene.start_one(sending("event-1", open("2"))).await;
    assert!(!next.existed && next.execution.id != first);
    assert_eq!(sent(&scene, &next.execution.id).await, ["event-1"]);

    let scene = Scene::new();
    let own = |event| sending(event, StartRequest { id: Some(id("mine")), ..open("1") });
    scene.start_one(own("event-0")).await;
    scene.run_turn().await.unwrap();
    assert!(scene.start_one(own("event-0")).await.existed, "a repeated call");
    let refused = scene.service.start(own("event-1")).await.unwrap_err();
    let status = ExecutionStatus::Completed;
    assert!(
        matches!(refused, ServiceError::Rejected(Reject::ExecutionClosed { status: of }) if of == status)
    );
}

#[tokio::test]
async fn a_start_with_an_event_is_not_one_of_a_burst_nor_of_the_callers_own_transaction() {
    let scene = Scene::new();
    let refused = scene.service.start(sending("event-0", bounced("1"))).await.unwrap_err();
    assert!(refused.to_string().contains("debounce: not allowed with `event`"), "{refused}");
    let prepared = scene.service.prepare_start(sending("event-0", request("1", FlowRequest::default())));
    assert!(prepared.await.unwrap_err().to_string().contains("event: not allowed"));
}

#[tokio::test]
async fn a_process_that_dies_between_the_key_and_its_execution_leaves_the_key_to_the_next() {
    let mut survived = false;
    for last in 0.. {
        let scene = Scene::new();
        scene.service.open_queue(&queue()).await.unwrap();
        scene.crash_after(last);
        survived = scene.service.start(open("1")).await.is_ok();
        scene.crash_after(NEVER);
        scene.advance(GRACE.as_u64() / 1_000);
        let next = scene.start_one(open("2")).await;
        // The first one exists only if its process got as far as to write it.
        assert_eq!(next.existed, last >= 2, "{last}");
        let mut ran = vec![scene.run_turn().await, scene.run_turn().await];
        // The hint of the first may be lost: a tick finds that.
        scene.pass(DAY).await;
        ran.push(scene.run_turn().await);
        assert_eq!(ran.iter().flatten().count(), 1, "{last}: {ran:?}");
        if survived {
            break;
        }
    }
    assert!(survived);
}

/// A process that has written its key and not yet its execution: the identity that it still has to start.
async fn late(scene: &Scene, request: &StartRequest) -> (ExecutionId, Incarnation) {
    scene.service.open_queue(&queue()).await.unwrap();
    let id = request.id.clone().unwrap_or_else(|| scene.service.new_execution_id());
    let own = (id, scene.service.new_incarnation());
    let (now, nonce) = (scene.now(), scene.service.new_nonce());
    let record = KeyRecord {
        key: Single::of(&request.flow).unwrap().digest("execution"),
        owner: Owner::Execution(own.0.clone()),
        incarnation: own.1,
        created_at: now,
        nonce,
        expires_at: now.plus(SPAN_MAX),
    };
    scene.store.commit(&[Write::put(record, Condition::SameOrAbsent)]).await.unwrap();
    scene.advance(GRACE.as_u64() / 1_000);
    own
}

async fn goes_on(scene: &Scene, own: (ExecutionId, Incarnation), request: StartRequest) -> Execution {
    scene.service.start_as(request, queue(), Some(own), None).await.unwrap().execution
}

#[tokio::test]
async fn a_process_that_is_late_with_its_execution_cannot_start_it_once_another_one_has_the_key() {
    for request in [open("1"), bounced("1")] {
        let scene = Scene::new();
        let first = late(&scene, &request).await;
        let second = scene.start_one(StartRequest { input: Json::parse("2"), ..request.clone() }).await;
        assert!(!second.existed);
        assert!(is_fence(&goes_on(&scene, first, request).await));
        scene.advance(10);
        assert_eq!((scene.run_turn().await.as_deref(), scene.run_turn().await), (Some("2"), None));
    }
}

#[tokio::test]
async fn an_execution_that_was_started_late_but_first_keeps_its_key_and_a_repeated_start_gets_its_id() {
    let scene = Scene::new();
    let first = late(&scene, &open("1")).await;
    let first = goes_on(&scene, first, open("1")).await;
    let second = scene.start_one(open("2")).await;
    assert_eq!((second.existed, second.execution.id), (true, first.id));

    let scene = Scene::new();
    let own = || StartRequest { id: Some(id("mine")), ..open("1") };
    let first = late(&scene, &own()).await;
    let again = scene.start_one(own()).await;
    assert_eq!((again.existed, again.execution.id.as_str()), (false, "mine"));
    assert_eq!(goes_on(&scene, first, own()).await.incarnation, again.execution.incarnation);
}

#[tokio::test]
async fn of_a_burst_of_starts_the_last_one_runs_once_it_is_quiet_and_at_its_bound_at_the_latest() {
    let scene = Scene::new();
    let first = scene.start_one(bounced("1")).await;
    for number in 2..=4 {
        scene.advance(9);
        let next = scene.start_one(bounced(&number.to_string())).await;
        assert_eq!((next.existed, &next.execution.id), (true, &first.execution.id));
    }
    scene.advance(8);
    assert_eq!(scene.run_turn().await, None);
    scene.advance(2);
    assert_eq!((scene.run_turn().await.as_deref(), scene.run_turn().await), (Some("4"), None));
    let next = scene.start_one(bounced("5")).await;
    assert_eq!((next.existed, next.execution.id == first.execution.id), (false, false));

    let scene = Scene::new();
    scene.start_one(bounced("0")).await;
    for number in 1..=6 {
        scene.advance(9);
        scene.start_one(bounced(&number.to_string())).await;
    }
    scene.advance(6);
    assert_eq!(scene.run_turn().await.as_deref(), Some("6"));
}

#[tokio::test]
async fn a_bounce_of_a_start_keeps_large_payloads_aside_and_an_ended_one_begins_a_new_burst() {
    let scene = Scene::new();
    let large = || Json::string(&"x".repeat(5_000));
    scene.start_one(bounced("1")).await;
    scene.start_one(StartRequest { input: Some(large()), memo: Json::parse("7"), ..bounced("2") }).await;
    scene.advance(10);
    let turn = scene.take_one().await.unwrap();
    assert_eq!(turn.input.as_ref(), Some(&large()));
    scene.assert_whole(turn.execution.id.as_str()).await;
    // It runs, so the next request doesn't change it.
    let next = scene.start_one(bounced("3")).await;
    assert!(!next.existed);
}

#[tokio::test]
async fn a_key_of_executions_costs_one_write_and_a_bounce_one() {
    let scene = Scene::new();
    // The queue's own record is written with the first execution.
    scene.start_one(request("0", FlowRequest::default())).await;
    let writes = async |request| {
        let before = scene.writes();
        scene.start_one(request).await;
        scene.writes() - before
    };
    assert_eq!(writes(request("1", FlowRequest::default())).await, 1);
    assert_eq!(writes(bounced("1")).await, 2);
    assert_eq!(writes(bounced("2")).await, 1);
    assert_eq!(writes(open("1")).await, 2);
    assert_eq!(writes(open("2")).await, 0);
}

#[tokio::test]
async fn an_acknowledged_start_of_a_burst_is_never_lost_though_processes_die_after_any_write() {
    let mut survived = false;
    for last in 0.. {
        let scene = Scene::new();
        scene.start_one(bounced("1")).await;
        scene.advance(5);
        scene.crash_after(last);
        survived = scene.service.start(bounced("2")).await.is_ok();
        scene.crash_after(NEVER);
        scene.advance(10);
        let ran = scene.run_turn().await;
        // Without an answer, either of them may be the last.
        assert!(ran.as_deref() == Some("2") || (!survived && ran.as_deref() == Some("1")), "{last}: {ran:?}");
        assert_eq!(scene.run_turn().await, None);
        if survived {
            break;
        }
    }
    assert!(survived);
}

#[tokio::test]
async fn a_task_and_an_execution_of_one_key_do_not_meet() {
    let scene = Scene::new();
    let task = || ScheduleRequest {
        id: None,
        idempotency_key: None,
        queue: queue(),
        kind: TaskKind::parse("sync").unwrap(),
        input: None,
        labels: None,
        retry: RetryPolicy::none(),
        timeouts: Timeouts::default(),
        flow: *open("1").flow,
        start: TaskStart::After(Millis::ZERO),
        trace: None,
        asked: Asked::default(),
    };
    assert!(!scene.start_one(open("1")).await.existed);
    assert!(!scene.service.schedule(task()).await.unwrap().existed);
    assert!(
        scene.start_one(open("2")).await.existed && scene.service.schedule(task()).await.unwrap().existed
    );
}

#[tokio::test]
async fn a_bounce_while_the_queue_is_paused_runs_when_it_is_resumed() {
    let scene = Scene::new();
    scene.start_one(bounced("1")).await;
    scene.advance(10);
    scene.service.pause_queue(&queue(), true).await.unwrap();
    assert!(scene.take_one().await.is_none());
    assert!(scene.start_one(bounced("2")).await.existed);
    scene.service.pause_queue(&queue(), false).await.unwrap();
    scene.advance(10);
    while scene.fire(50_000).await > 0 {}
    assert_eq!(scene.run_turn().await.as_deref(), Some("2"));
}

#[tokio::test]
async fn what_contradicts_a_key_of_executions_is_refused() {
    let scene = Scene::new();
    let both = FlowRequest { unique: open("1").flow.unique.clone(), ..*bounced("1").flow };
    for (contradiction, field) in [
        (StartRequest { id: Some(id("mine")), ..bounced("1") }, "debounce"),
        (StartRequest { delay: Millis::from_secs(1), ..bounced("1") }, "debounce"),
        (request("1", both), "debounce"),
    ] {
        let refused = scene.service.start(contradiction).await;
        let Err(ServiceError::Rejected(Reject::InvalidRequest { field: named, .. })) = refused else {
            panic!("{field}: it was not refused")
        };
        assert_eq!(named, field);
    }
    assert!(scene.service.prepare_start(open("1")).await.is_err());
    assert!(scene.service.prepare_start(bounced("1")).await.is_err());
    assert_eq!(scene.writes(), 0);
}
