//! Batches of messages, over a service in memory.

use tickover_core::flow::FlowRequest;
use tickover_core::id::{Capability, QueueName, TaskId, TaskKind};
use tickover_core::limits::Limits;
use tickover_core::task::Status;
use tickover_service::config::Config;
use tickover_service::memory::{ManualClock, MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::Queue as _;
use tickover_service::system::SystemIds;
use tickover_service::tasks::schedule::{Asked, ScheduleRequest};
use tickover_service::{Ports, Service};

use super::*;
use crate as tickover;
use crate::prelude::*;

#[tickover::step("render")]
async fn render(scene: String) -> Result<String> {
    Ok(scene)
}

const INVOCATION: Millis = Millis::from_secs(25);

struct Scene {
    app: App,
    clock: Arc<ManualClock>,
    queue: Arc<MemoryQueue>,
}

impl Scene {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_767_225_600_000)));
        let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
        let (store, ids) = (Arc::new(MemoryStore::default()), Arc::new(SystemIds));
        let ports = Ports { store, queue: queue.clone(), clock: clock.clone(), ids };
        let config = Config::read(|name| match name {
            "TICKOVER_TABLE" => Some("t".to_owned()),
            "TICKOVER_QUEUES" => Some("studio=http://q/1/studio".to_owned()),
            "TICKOVER_TIMERS" => Some("http://q/1/timers".to_owned()),
            _ => None,
        });
        let service = Service::new(ports, Limits::default());
        Self {
            app: App {
                service,
                config: Arc::new(config.unwrap()),
                metrics: tickover_lambda::metrics::Metrics::default(),
            },
            clock,
            queue,
        }
    }

    /// A worker of the queue, which has announced itself.
    async fn worker(&self, provides: &[&str]) -> Worker {
        let settings = WorkerSettings {
            heartbeat: Some(Millis::ZERO),
            queues: vec![studio()],
            provides: names(provides),
            ..WorkerSettings::default()
        };
        let registry = Registry::new().with_step::<render>();
        let worker = Worker::new(self.app.service.clone(), registry, settings).unwrap();
        worker.announce().await;
        worker
    }

    /// The event of a function with all messages of the queue.
    async fn event(&self) -> Event {
        let received = self.queue.receive(&studio(), 10, INVOCATION, Millis::ZERO).await.unwrap();
        let records = received.into_iter().map(|received| {
            serde_json::json!({
                "messageId": "m", "body": received.body, "receiptHandle": received.receipt,
                "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-central-1:1:studio",
            })
        });
        let event = serde_json::json!({"Records": records.collect::<Vec<_>>()});
        Event::read(serde_json::value::to_raw_value(&event).unwrap())
    }

    async fn schedule(&self, id: &str, requires: &[&str], any_queue: bool) -> QueueName {
        let flow = FlowRequest { requires: names(requires), ..FlowRequest::default() };
        let queue = if any_queue { QueueName::parse("workflows").unwrap() } else { studio() };
        let request = ScheduleRequest {
            id: TaskId::parse(id).ok(),
            idempotency_key: None,
            queue,
            kind: TaskKind::parse("render").unwrap(),
            input: Some(tickover_core::payload::Json::string(id)),
            labels: None,
            retry: tickover_core::retry::RetryPolicy::none(),
            timeouts: tickover_core::timeout::Timeouts::default(),
            flow,
            start: tickover_core::task::command::Start::After(Millis::ZERO),
            trace: None,
            asked: Asked { any_queue, ..Asked::default() },
        };
        self.app.service.schedule(request).await.unwrap().task.queue
    }

    /// The messages that are in the queue, as Lambda passes them to a function.
    async fn messages(&self) -> Vec<SqsMessage> {
        let received = self.queue.receive(&studio(), 10, INVOCATION, Millis::ZERO).await.unwrap();
        let message = |received: tickover_service::ports::Received| {
            let hint = Hint::parse(&received.body).unwrap();
            let message = serde_json::json!({
                "messageId": hint.task.id, "body": received.body, "receiptHandle": received.receipt,
            });
            serde_json::from_value(message).unwrap()
        };
        received.into_iter().map(message).collect()
    }

    /// One invocation with all messages of the queue; returns the ids of those that failed.
    async fn invoke(&self, worker: &Worker) -> Vec<String> {
        let now = self.app.service.now();
        let deadline_at = now.plus(INVOCATION);
        let limit_at = stop_at(now, deadline_at);
        let work =
            InvocationWork { app: &self.app, worker, limit_at, deadline_at, suspects: Mutex::default() };
        work.process_all(self.messages().await, 10).await
    }

    async fn status(&self, id: &str) -> Status {
        self.app.service.describe(&TaskId::parse(id).unwrap()).await.unwrap().task.status()
    }
}

fn studio() -> QueueName {
    QueueName::parse("studio").unwrap()
}

fn names(names: &[&str]) -> Vec<Capability> {
    names.iter().map(|name| Capability::parse(*name).unwrap()).collect()
}

#[tokio::test]
async fn a_function_gets_only_tasks_whose_requirements_it_provides_and_is_found_by_what_it_provides() {
    let scene = Scene::new();
    let worker = scene.worker(&["gpu", "avx"]).await;
    scene.schedule("plain", &[], false).await;
    scene.schedule("own", &["gpu"], false).await;
    scene.schedule("other", &["tpu", "gpu"], false).await;
    assert_eq!(scene.schedule("routed", &["avx", "gpu"], true).await, studio());
    // The message of a task that it can't do comes back, for another worker of the queue.
    assert_eq!(scene.invoke(&worker).await, ["other"]);
    for (id, status) in [
        ("plain", Status::Completed),
        ("own", Status::Completed),
        ("routed", Status::Completed),
        ("other", Status::Pending),
    ] {
        assert_eq!(scene.status(id).await, status, "{id}");
    }
}

/// Where the step below writes down when its lease ends.
struct Studio {
    service: Service,
    leases: Arc<Mutex<Vec<Timestamp>>>,
}

/// Takes 20 of the invocation's 25 seconds.
#[tickover::step("render")]
async fn render_slowly(#[state] studio: &Studio, scene: String) -> Result<String> {
    let clock = studio.service.clock();
    clock.sleep_until(clock.now().plus(Millis::from_secs(20))).await;
    let id = TaskId::parse(step_info().map(|info| info.idempotency_key).unwrap_or_default())?;
    let task = studio.service.describe(&id).await?.task;
    studio.leases.lock().unwrap().extend(task.running().map(|running| running.lease_expires_at));
    Ok(scene)
}

#[tokio::test]
async fn a_function_takes_its_invocations_deadline_as_lease_and_sends_no_heartbeat() {
    let scene = Scene::new();
    let service = scene.app.service.clone();
    let leases = Arc::default();
    let studio = Studio { service: service.clone(), leases: Arc::clone(&leases) };
    let registry = Registry::new().with_step::<render_slowly>().with_state(studio);
    let settings = WorkerSettings { heartbeat: Some(Millis::ZERO), ..WorkerSettings::default() };
    let worker = Worker::new(service.clone(), registry, settings).unwrap();
    scene.schedule("long", &[], false).await;
    let deadline_at = service.now().plus(INVOCATION);
    let invocation = Invocation { event: scene.event().await, deadline_at };
    let answer = scene.clock.drive(handle(&scene.app, &worker, 10, invocation)).await.unwrap();
    assert_eq!(answer.get(), r#"{"batchItemFailures":[]}"#);
    assert_eq!(*leases.lock().unwrap(), [deadline_at]);
    let task = service.describe(&TaskId::parse("long").unwrap()).await.unwrap().task;
    // It was scheduled, claimed and completed: no other write.
    assert_eq!((task.status(), task.version), (Status::Completed, 3));
}
