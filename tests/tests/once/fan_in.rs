//! A thousand remote steps that end at once from sixteen workers, and the execution that waits for all of them.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::Arc;
use std::time::Instant;

use tickover_core::duration::Millis;
use tickover_core::execution::command::{Cleanup, Close, Ending, Suspend};
use tickover_core::execution::journal::{Entry, Happened, JOIN_MAX};
use tickover_core::execution::{Execution, ExecutionOutcome, ExecutionState, Slot};
use tickover_core::id::{ExecutionId, LeaseId, Nonce, QueueName, StepName, TaskKind, WorkflowName};
use tickover_core::limits::Limits;
use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;
use tickover_core::timeout::Timeouts;
use tickover_dynamodb::{DynamoStore, Table};
use tickover_service::claim::{ClaimRequest, ClaimedTask};
use tickover_service::executions::{EndedStep, RemoteStep, StartRequest, StartedTurn, Suspended, Work};
use tickover_service::memory::{MemoryQueue, Queues};
use tickover_service::ports::Clock;
use tickover_service::system::{SystemClock, SystemIds};
use tickover_service::{Ports, Service};
use tickover_tests::dynamodb::LocalDynamo;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

const STEPS: u16 = 1_000;
const WORKERS: usize = 16;

struct System {
    service: Service,
    store: Arc<DynamoStore>,
}

async fn system() -> System {
    let database = LocalDynamo::memory().unwrap();
    Table::new("fan-in").create(&database.client()).await.unwrap();
    let store = Arc::new(DynamoStore::new(database.client(), "fan-in"));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
    let ports = Ports { store: store.clone(), queue, clock, ids: Arc::new(SystemIds) };
    System { service: Service::new(ports, Limits::default()), store }
}

fn queue() -> QueueName {
    QueueName::parse("work").unwrap()
}

fn request() -> ClaimRequest {
    ClaimRequest {
        worker: None,
        max: 10,
        lease: Millis::from_secs(300),
        wait: Millis::ZERO,
        provides: vec![],
    }
}

fn name(place: u16) -> StepName {
    StepName::parse(format!("label[{place}]")).unwrap()
}

fn step(place: u16) -> RemoteStep {
    let item = place / JOIN_MAX;
    let of = JOIN_MAX.min(STEPS - item * JOIN_MAX);
    RemoteStep {
        name: name(place),
        kind: TaskKind::parse("print-label").unwrap(),
        queue: queue(),
        input: Json::parse(place.to_string()),
        retry: RetryPolicy::default(),
        flow: tickover_core::flow::FlowRequest::default(),
        timeouts: Timeouts::default(),
        given: vec![],
        slot: Some(Slot { label: Nonce::from_bytes([7; 8]), item, place: place % JOIN_MAX, of }),
        any_queue: false,
        at_most: None,
    }
}

/// Suspends the turn; returns the execution if it was woken meanwhile and the turn has to continue.
async fn suspend(
    service: &Service,
    lease: LeaseId,
    execution: &Execution,
    entries: Vec<Entry>,
) -> Option<Execution> {
    let suspend = Suspend {
        lease,
        entries,
        seen_version: execution.version,
        seen_wakes: execution.wakes,
        until: None,
        awaits_others: true,
        events: vec![],
        cleanup: Cleanup::default(),
        values: None,
    };
    match service.suspend_turn(execution, suspend).await.unwrap() {
        Suspended::Done(_) => None,
        Suspended::Continue(execution, _) => Some(*execution),
    }
}

/// Starts all steps and suspends the turn; returns the tasks that workers have claimed.
async fn begun(service: &Service) -> (ExecutionId, Vec<ClaimedTask>) {
    let id = ExecutionId::parse("fan-in").unwrap();
    let start = StartRequest {
        id: Some(id.clone()),
        ..StartRequest::new(WorkflowName::parse("labels").unwrap(), queue())
    };
    service.start(start).await.unwrap();
    let Some(Work::Turn(turn)) = service.next_work(&queue(), &request()).await.unwrap().pop() else {
        panic!("the first turn");
    };
    service.start_remote(&turn.execution, (0..STEPS).map(step).collect()).await.all().unwrap();
    let begin = |place| Entry { at: service.now(), what: Happened::Remote { name: name(place) } };
    let entries = (0..STEPS).map(begin).collect();
    assert!(suspend(service, turn.lease, &turn.execution, entries).await.is_none());
    service.done_with(&queue(), turn.receipt.as_deref().unwrap()).await;
    let mut tasks = Vec::new();
    while tasks.len() < usize::from(STEPS) {
        for work in service.next_work(&queue(), &request()).await.unwrap() {
            match work {
                Work::Task(task) => tasks.push(*task),
                Work::Turn(turn) => panic!("nothing has ended yet: {turn:?}"),
            }
        }
    }
    (id, tasks)
}

/// A turn of the parent records the steps that have ended. Returns whether it closed the run.
async fn go_on(service: &Service, turn: StartedTurn, open: &mut Vec<StepName>) -> bool {
    let (lease, mut execution) = (turn.lease, turn.execution);
    loop {
        let ended = service.remote_outcomes(&execution, open).await.unwrap();
        open.retain(|name| !ended.contains_key(name));
        let end = |(name, ended): (StepName, EndedStep)| Entry {
            at: service.now(),
            what: Happened::Step {
                name,
                outcome: ended.outcome,
                attempts: None,
                expired: None,
                errors: vec![],
            },
        };
        let entries: Vec<Entry> = ended.into_iter().map(end).collect();
        if open.is_empty() {
            let ending = Ending::Outcome(ExecutionOutcome::Completed { output: None });
            let close = Close { lease, entries, ending, cleanup: Cleanup::default(), values: None };
            service.close_turn(&execution, close).await.unwrap();
            return true;
        }
        match suspend(service, lease, &execution, entries).await {
            Some(fresh) => execution = fresh,
            None => return false,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_steps_that_end_at_once_from_sixteen_workers_finish_and_none_is_tried_more_than_five_times()
 {
    let started = Instant::now();
    let System { service, store } = system().await;
    let (id, tasks) = begun(&service).await;
    let refused = store.usage().failed_conditions;
    let tasks = Arc::new(Mutex::new(tasks));
    let mut workers = JoinSet::new();
    let ending = Instant::now();
    for _ in 0..WORKERS {
        let (service, tasks) = (service.clone(), Arc::clone(&tasks));
        workers.spawn(async move {
            loop {
                let Some(task) = tasks.lock().await.pop() else { break };
                service.complete(&task.task.id, &task.token, Json::parse("true")).await.unwrap();
            }
        });
    }
    while let Some(ended) = workers.join_next().await {
        ended.unwrap();
    }
    // Each try beyond the first is a failed condition; marking a join and waking the parent have no conditions that
    // fail.
    let again = store.usage().failed_conditions - refused;
    assert!(again <= 4, "{again} writes were refused while {STEPS} steps ended");
    let took = ending.elapsed();

    let mut open: Vec<StepName> = (0..STEPS).map(name).collect();
    let mut closed = false;
    while !closed {
        let work = service.next_work(&queue(), &request()).await.unwrap();
        assert!(!work.is_empty(), "the execution isn't woken, and {} steps are open", open.len());
        for work in work {
            let Work::Turn(turn) = work else { panic!("all tasks have ended") };
            let receipt = turn.receipt.clone().unwrap();
            closed |= go_on(&service, *turn, &mut open).await;
            service.done_with(&queue(), &receipt).await;
        }
    }
    let execution = service.execution(&id).await.unwrap().unwrap().execution;
    assert!(matches!(execution.state, ExecutionState::Ended(_)), "{execution:?}");
    println!("{STEPS} steps ended in {took:?}, the whole took {:?}", started.elapsed());
}
