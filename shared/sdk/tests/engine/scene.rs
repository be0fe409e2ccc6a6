//! A whole system in one future and in virtual time: a service in memory, a tick, timers and a worker.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::{Either, join3, pending, select};
use serde::de::DeserializeOwned;
use tickover::prelude::*;
use tickover::{Expired, Registry, Worker, WorkerSettings};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::{Execution, ExecutionOutcome, ExecutionStatus, Stuck};
use tickover_core::id::{EventName, ExecutionId, QueueName, StepName, WorkerName, WorkflowName};
use tickover_core::limits::Limits;
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;
use tickover_service::claim::ClaimRequest;
use tickover_service::executions::{Described, StartRequest, Work, remote_id};
use tickover_service::memory::{ManualClock, MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::{Clock as _, Depth, Queue};
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};

/// 2026-01-01T00:00:00Z.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);
/// How often the tests check whether an execution has ended.
const LOOK: Millis = Millis::from_secs(10);

/// A step's result, or the step and the time limit that ended it.
pub(crate) fn shown<T: Debug>(outcome: Result<T, StepError<Failure>>) -> String {
    match outcome {
        Err(StepError::TimedOut { step, expired: Some(Expired { kind, .. }), .. }) => {
            format!("{step} timed out: {}", kind.as_str())
        }
        Err(StepError::Cancelled { step, expired: Some(Expired { kind, .. }) }) => {
            format!("{step} was cancelled: {}", kind.as_str())
        }
        outcome => format!("{outcome:?}"),
    }
}

/// The system without a worker.
pub(crate) struct Scene {
    pub(crate) service: Service,
    pub(crate) clock: Arc<ManualClock>,
    queue: Arc<MemoryQueue>,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        Self::made_of(limits, |queue| queue)
    }

    /// The same scene with queues that wrap those in memory.
    pub(crate) fn with_queue(around: impl FnOnce(Arc<MemoryQueue>) -> Arc<dyn Queue>) -> Self {
        Self::made_of(Limits::default(), around)
    }

    fn made_of(limits: Limits, around: impl FnOnce(Arc<MemoryQueue>) -> Arc<dyn Queue>) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
        let ports = Ports {
            store: Arc::new(MemoryStore::default()),
            queue: around(queue.clone()),
            clock: clock.clone(),
            ids: Arc::new(SystemIds),
        };
        Self { service: Service::new(ports, limits), clock, queue }
    }

    #[expect(clippy::unwrap_used, reason = "a test's own registry")]
    pub(crate) fn worker(&self, registry: Registry) -> Worker {
        Worker::new(self.service.clone(), registry, settings()).unwrap()
    }

    /// A worker of one queue.
    #[expect(clippy::unwrap_used, reason = "a test's own registry")]
    pub(crate) fn worker_of(&self, registry: Registry, queue: &str) -> Worker {
        let settings = WorkerSettings { queues: vec![QueueName::parse(queue).unwrap()], ..settings() };
        Worker::new(self.service.clone(), registry, settings).unwrap()
    }

    /// Runs another worker while the future runs.
    pub(crate) async fn with<F: Future>(&self, worker: &Worker, future: F) -> F::Output {
        match select(Box::pin(worker.run(pending())), Box::pin(future)).await {
            Either::Left(_) => unreachable!("a worker runs for ever"),
            Either::Right((output, _)) => output,
        }
    }

    /// The status of the task that runs a remote step.
    #[expect(clippy::unwrap_used, reason = "a test's own step")]
    pub(crate) async fn remote_status(&self, execution: &Execution, name: &str) -> &'static str {
        let id = remote_id(execution, &StepName::parse(name).unwrap());
        self.service.describe(&id).await.unwrap().task.status().as_str()
    }

    /// Starts an execution with this id, as a caller does who knows the workflow's name and queue and not the options
    /// in its attribute.
    #[expect(clippy::unwrap_used, reason = "a test's own request")]
    pub(crate) async fn start<W: AsWorkflow<Input: serde::Serialize>>(
        &self,
        workflow: &W,
        id: &str,
        input: &W::Input,
    ) {
        let workflow = workflow.as_workflow();
        let options = workflow.options();
        let mut request = StartRequest::new(
            WorkflowName::parse(workflow.name()).unwrap(),
            QueueName::parse(options.queue).unwrap(),
        );
        request.id = Some(execution_id(id));
        request.input = Json::parse(serde_json::to_string(input).unwrap());
        self.service.start(request).await.unwrap();
    }

    /// Runs the system with this worker until the future has ended.
    pub(crate) async fn until<F: Future>(&self, worker: &Worker, goal: F) -> F::Output {
        let system = Box::pin(join3(worker.run(pending()), self.tick(), self.fire()));
        let goal = Box::pin(goal);
        match Box::pin(self.clock.drive(select(system, goal))).await {
            Either::Left(_) => unreachable!("a system runs for ever"),
            Either::Right((output, _)) => output,
        }
    }

    /// Runs the system until an execution has ended.
    #[expect(clippy::unwrap_used, reason = "a test's own execution")]
    pub(crate) async fn finish(&self, worker: &Worker, id: &str) -> Ended {
        let id = execution_id(id);
        let ended = Box::pin(async {
            loop {
                let described = self.service.execution(&id).await.unwrap().unwrap();
                if described.execution.closed().is_some() {
                    let journal = self.service.journal_of(&described.execution).await.unwrap();
                    return Ended { described, journal };
                }
                self.clock.sleep_until(self.clock.now().plus(LOOK)).await;
            }
        });
        Box::pin(self.until(worker, ended)).await
    }

    /// Runs the system for this span.
    pub(crate) async fn pass(&self, worker: &Worker, span: Millis) {
        let until = self.clock.now().plus(span);
        Box::pin(self.until(worker, self.clock.sleep_until(until))).await;
    }

    /// Runs a future whose steps use this scene's clock.
    pub(crate) async fn inside<F: Future>(&self, future: F) -> F::Output {
        CLOCK.scope(Clock(Arc::clone(&self.clock)), Box::pin(future)).await
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How many messages a queue has.
    #[expect(clippy::unwrap_used, reason = "a test's own queue")]
    pub(crate) async fn depth(&self, queue: &str) -> Depth {
        self.queue.depth(&QueueName::parse(queue).unwrap()).await.unwrap()
    }

    /// Waits by the system's clock.
    pub(crate) async fn after(&self, span: Millis) {
        self.clock.sleep_until(self.clock.now().plus(span)).await;
    }

    #[expect(clippy::unwrap_used, reason = "a test's own event")]
    pub(crate) async fn send_event(&self, id: &str, event: &str, payload: impl serde::Serialize) {
        let payload = Json::parse(serde_json::to_string(&payload).unwrap());
        let event = EventName::parse(event).unwrap();
        self.service.send_event(&execution_id(id), event, None, payload).await.unwrap();
    }

    #[expect(clippy::unwrap_used, reason = "a test's own execution")]
    pub(crate) async fn status(&self, id: &str) -> ExecutionStatus {
        self.service.execution(&execution_id(id)).await.unwrap().unwrap().execution.status()
    }

    /// Why an execution is stuck: the error's code, its message, and the number of tries.
    #[expect(clippy::unwrap_used, clippy::panic, reason = "a test's own execution")]
    pub(crate) async fn stuck(&self, id: &str) -> (String, String, u32) {
        let described = self.service.execution(&execution_id(id)).await.unwrap().unwrap();
        match described.execution.stuck {
            Some(Stuck::Code { failure, tries }) => (failure.code, failure.message, tries),
            other => panic!("its code hasn't stopped it: {other:?}"),
        }
    }

    /// Receives the work of a queue and leases it, in place of a worker.
    #[expect(clippy::unwrap_used, reason = "a test's own queue")]
    pub(crate) async fn work(&self, queue: &str, lease: Millis) -> Vec<Work> {
        let request = ClaimRequest {
            worker: WorkerName::parse("test").ok(),
            max: 10,
            lease,
            wait: Millis::ZERO,
            provides: vec![],
        };
        self.service.next_work(&QueueName::parse(queue).unwrap(), &request).await.unwrap()
    }

    /// The same, in place of a worker whose process has other work.
    #[expect(clippy::unwrap_used, reason = "a test's own queue")]
    pub(crate) async fn work_beside_others(&self, queue: &str, lease: Millis) -> Vec<Work> {
        let request = ClaimRequest { worker: None, max: 10, lease, wait: Millis::ZERO, provides: vec![] };
        let queue = QueueName::parse(queue).unwrap();
        self.service.work_apart(&queue, &request, &|_| true).await.unwrap().work
    }

    async fn tick(&self) {
        loop {
            let now = self.clock.now();
            drop(self.service.tick(now, now.plus(Millis::from_secs(50))).await);
            self.clock.sleep_until(now.plus(Millis::from_secs(60))).await;
        }
    }

    #[expect(clippy::unwrap_used, reason = "the queue of timers exists as long as the scene")]
    async fn fire(&self) {
        let timers = QueueName::timers();
        loop {
            let wait = Millis::from_secs(20);
            for message in self.queue.receive(&timers, 10, Millis::from_secs(60), wait).await.unwrap() {
                let stop_at = self.clock.now().plus(Millis::from_secs(50));
                self.service.fire(&message, stop_at).await.unwrap();
                self.queue.delete(&timers, &message.receipt).await.unwrap();
            }
        }
    }
}

/// Settings of the tests' workers.
pub(crate) fn settings() -> WorkerSettings {
    WorkerSettings { lease: Millis::from_secs(60), ..WorkerSettings::default() }
}

/// An execution that has ended.
pub(crate) struct Ended {
    pub(crate) described: Described,
    pub(crate) journal: Vec<Entry>,
}

impl Ended {
    #[expect(clippy::panic, clippy::unwrap_used, reason = "an unexpected end fails the test")]
    pub(crate) fn output<T: DeserializeOwned>(&self) -> T {
        match self.outcome() {
            ExecutionOutcome::Completed { .. } => {
                let output = self.described.output.as_ref().map_or("null", |json| json.as_str());
                serde_json::from_str(output).unwrap()
            }
            other => panic!("it ended in another way: {other:?}"),
        }
    }

    #[expect(clippy::unwrap_used, reason = "it has ended")]
    pub(crate) fn outcome(&self) -> &ExecutionOutcome {
        &self.described.execution.closed().unwrap().outcome
    }

    #[expect(clippy::panic, reason = "an unexpected end fails the test")]
    pub(crate) fn code(&self) -> &str {
        match self.outcome() {
            ExecutionOutcome::Failed { error, .. } => &error.code,
            other => panic!("it ended in another way: {other:?}"),
        }
    }

    #[expect(clippy::panic, reason = "an unexpected end fails the test")]
    pub(crate) fn message(&self) -> &str {
        match self.outcome() {
            ExecutionOutcome::Failed { error, .. } => &error.message,
            other => panic!("it ended in another way: {other:?}"),
        }
    }

    /// How long the execution took, in milliseconds.
    #[expect(clippy::unwrap_used, reason = "it has ended")]
    pub(crate) fn took(&self) -> u64 {
        self.described.execution.closed().unwrap().ended_at.since(START).as_u64()
    }

    /// How many entries of a kind its journal has.
    pub(crate) fn count(&self, sort: impl Fn(&Happened) -> bool) -> usize {
        self.journal.iter().filter(|entry| sort(&entry.what)).count()
    }
}

#[expect(clippy::unwrap_used, reason = "a test's own id")]
pub(crate) fn execution_id(id: &str) -> ExecutionId {
    ExecutionId::parse(id).unwrap()
}

tokio::task_local! {
    static CLOCK: Clock;
}

/// The clock of the scene that a step runs in.
#[derive(Clone)]
pub(crate) struct Clock(Arc<ManualClock>);

impl Clock {
    pub(crate) async fn after(&self, span: Millis) {
        self.0.sleep_until(self.0.now().plus(span)).await;
    }

    /// How many milliseconds have passed since the beginning.
    pub(crate) fn passed(&self) -> u64 {
        self.0.now().since(START).as_u64()
    }

    /// Advances the time without letting any other future run.
    pub(crate) fn block(&self, span: Millis) {
        self.0.advance(span);
    }
}

/// The clock of the scene that a step runs in, for steps that take time.
pub(crate) fn clock() -> Clock {
    CLOCK.with(Clock::clone)
}

/// Counts how often a function ran.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU32);

impl Count {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Adds one; returns the count before.
    pub(crate) fn add(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}
