//! Code that blocks its thread longer than its lease: it keeps the lease, and its effect is made once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tickover::prelude::*;
use tickover::{Client, Millis, Registry, Worker, WorkerSettings};
use tickover_core::id::{ExecutionId, QueueName, StepName};
use tickover_core::limits::Limits;
use tickover_core::time::Timestamp;
use tickover_embedded::{Local, Storage};
use tickover_service::Service;
use tickover_service::executions::remote_id;

/// Long enough that a busy machine extends it in time.
const LEASE: Millis = Millis::from_secs(5);
/// A test that takes longer has failed.
const LIMIT: Duration = Duration::from_mins(1);

/// The steps block their thread until they get a word.
#[derive(Clone)]
struct Gate {
    words: Arc<Mutex<Receiver<()>>>,
    begun: Arc<AtomicUsize>,
}

impl Gate {
    fn new() -> (Self, Sender<()>) {
        let (sender, receiver) = channel();
        (Self { words: Arc::new(Mutex::new(receiver)), begun: Arc::default() }, sender)
    }

    fn block(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.words.lock().unwrap().recv().unwrap();
    }
}

#[tickover::step]
async fn near(#[state] gate: &Gate, n: u32) -> Result<u32> {
    gate.block();
    // The worker sees a lease that it hasn't extended itself.
    tokio::task::yield_now().await;
    Ok(n)
}

#[tickover::step(remote)]
async fn far(#[state] gate: &Gate, n: u32) -> Result<u32> {
    gate.block();
    tokio::task::yield_now().await;
    Ok(n)
}

#[tickover::workflow]
async fn goes_near(ctx: Ctx, n: u32) -> Result<u32> {
    Ok(ctx.step(near(n)).await?)
}

#[tickover::workflow]
async fn goes_far(ctx: Ctx, n: u32) -> Result<u32> {
    Ok(ctx.step(far(n)).await?)
}

/// Since when the work has been leased, and until when.
type Lease = (Timestamp, Timestamp);

async fn of_turn(service: &Service) -> Option<Lease> {
    let id = ExecutionId::parse("e").unwrap();
    let execution = service.execution(&id).await.unwrap()?.execution;
    execution.turn().map(|turn| (turn.claimed_at, turn.lease_expires_at))
}

async fn of_step(service: &Service) -> Option<Lease> {
    let id = ExecutionId::parse("e").unwrap();
    let execution = service.execution(&id).await.unwrap()?.execution;
    let step = remote_id(&execution, &StepName::parse("far").unwrap());
    let task = service.describe(&step).await.ok()?.task;
    task.running().map(|running| (running.claimed_at, running.lease_expires_at))
}

/// The step goes on once its lease was extended to twice its length.
async fn keeps_its_lease(
    workflow: &impl AsWorkflow<Input = u32, Output = u32>,
    lease: impl AsyncFn(&Service) -> Option<Lease>,
) {
    let (gate, words) = Gate::new();
    let local = Local::open(&Storage::Memory, Limits::default()).await.unwrap();
    let service = local.service().clone();
    let registry = Registry::new().with((goes_near, goes_far)).with_step::<far>().with_state(gate.clone());
    let queues = vec![QueueName::parse("workflows").unwrap()];
    let settings = WorkerSettings { lease: LEASE, queues, ..WorkerSettings::default() };
    let worker = Worker::new(service.clone(), registry, settings).unwrap();
    tokio::spawn(async move { worker.run(std::future::pending()).await });
    let client = Client::from(service.clone());
    let run = client.start(workflow, 7).id("e").await.unwrap();
    let is_kept = async {
        let long = LEASE.saturating_mul(2);
        while lease(&service).await.is_none_or(|(since, until)| until.since(since) < long) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, is_kept).await.unwrap();
    words.send(()).unwrap();
    assert_eq!(tokio::time::timeout(LIMIT, run.result()).await.unwrap().unwrap(), 7);
    assert_eq!(gate.begun.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_inline_step_that_blocks_its_thread_keeps_its_lease_and_runs_once() {
    keeps_its_lease(&goes_near, of_turn).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_remote_step_that_blocks_its_thread_keeps_its_lease_and_runs_once() {
    keeps_its_lease(&goes_far, of_step).await;
}
