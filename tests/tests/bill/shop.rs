//! The guide's order with the code that runs in Lambda: the routes of the gateway, a worker's invocations, the ticks. AWS
//! is in this process, and each request to it is recorded.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json, value::to_raw_value};
use tickover::prelude::*;
use tickover::{Registry, Worker, WorkerSettings};
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_dynamodb::{DynamoStore, Table, Usage};
use tickover_lambda::metrics::Metrics;
use tickover_lambda::{App, Event, Invocation};
use tickover_service::config::Config;
use tickover_service::memory::{ManualClock, MemoryQueue, Queues};
use tickover_service::ports::{Clock, Queue as _, Received};
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};
use tickover_sqs::SqsQueue;
use tickover_tests::recorder::{Recorder, Requests};
use tickover_tests::scene::START;
use tower::ServiceExt as _;

/// The timeouts of the template's worker and of its queue.
const TIMEOUT: Millis = Millis::from_secs(60);
const VISIBILITY: Millis = Millis::from_secs(360);
/// The most that a test reads of an answer.
const ANSWER_MAX: usize = 1024 * 1024;

#[tickover::step]
async fn check(order: u32) -> Result<u32> {
    Ok(order)
}

#[tickover::step]
async fn charge(order: u32) -> Result<String> {
    Ok(format!("charge-{order}"))
}

#[tickover::step]
async fn thank(carrier: String) -> Result<String> {
    Ok(carrier)
}

#[tickover::step("print-label", remote)]
async fn print_label(content: String) -> Result<String> {
    Ok(format!("label for {content}"))
}

#[tickover::workflow("order-fulfilment", queue = "orders")]
async fn fulfil(ctx: Ctx, order: u32) -> Result<String> {
    let order = ctx.step(check(order)).await?;
    ctx.step(charge(order)).await?;
    let prints = ["books", "lamps"].map(|content| print_label(content.to_owned()));
    ctx.join_all("label", prints).await?;
    ctx.sleep("second-thoughts", "1h").await?;
    let carrier: String = ctx.wait_for_event("shipped", forever()).await?;
    Ok(ctx.step(thank(carrier)).await?)
}

/// What a part of the work has used.
#[derive(Clone, Debug)]
pub(crate) struct Used {
    pub(crate) writes: f64,
    pub(crate) reads: f64,
    pub(crate) requests: Requests,
    /// Of functions.
    pub(crate) invocations: u64,
    /// Messages that Lambda has received, one at a time, and deleted.
    pub(crate) messages: u64,
}

impl Used {
    /// The requests to SQS, Lambda's own included.
    pub(crate) fn sqs_requests(&self) -> u64 {
        let ours = self.requests.iter().filter(|(target, _)| target.starts_with("AmazonSQS."));
        ours.map(|(_, count)| count).sum::<u64>() + 2 * self.messages
    }
}

/// A function with its own clients, which know nothing of other functions'.
struct Process {
    service: Service,
    store: Arc<DynamoStore>,
    config: Arc<Config>,
}

pub(crate) struct Shop {
    recorder: Recorder,
    clock: Arc<ManualClock>,
    queues: Arc<MemoryQueue>,
    gateway: Process,
    tick: Process,
    worker: Process,
    runner: Worker,
    seen: Usage,
    invocations: u64,
    messages: u64,
}

fn orders() -> QueueName {
    QueueName::parse("orders").unwrap()
}

impl Shop {
    pub(crate) async fn open() -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let queues = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
        queues.open(&orders()).await.unwrap();
        queues.open(&QueueName::timers()).await.unwrap();
        let recorder = Recorder::new(queues.clone()).unwrap();
        Table::new("tickover").create(&recorder.unrecorded()).await.unwrap();
        let process = || Process::start(&recorder, clock.clone());
        let (gateway, tick, worker) = (process(), process(), process());
        // No bill counts on it that a run is still in memory.
        let settings =
            WorkerSettings { heartbeat: Some(Millis::ZERO), kept_runs: 0, ..WorkerSettings::default() };
        let registry = Registry::new().with(fulfil).with_step::<print_label>();
        let runner = Worker::new(worker.service.clone(), registry, settings).unwrap();
        runner.announce().await;
        let seen = Usage::default();
        Self { recorder, clock, queues, gateway, tick, worker, runner, seen, invocations: 0, messages: 0 }
    }

    /// What has been used since the last call.
    pub(crate) fn used(&mut self) -> Used {
        let now = [&self.gateway, &self.tick, &self.worker].map(|process| process.store.usage());
        let sum = |of: fn(&Usage) -> f64| now.iter().map(of).sum::<f64>();
        let total = Usage {
            read_units: sum(|usage| usage.read_units),
            write_units: sum(|usage| usage.write_units),
            failed_condition_units: sum(|usage| usage.failed_condition_units),
            requests: now.iter().map(|usage| usage.requests).sum(),
            ..Usage::default()
        };
        let used = total.since(std::mem::replace(&mut self.seen, total));
        let requests = self.recorder.take();
        let tables = requests.iter().filter(|(target, _)| target.starts_with("DynamoDB"));
        assert_eq!(tables.map(|(_, count)| count).sum::<u64>(), used.requests, "each has said its capacity");
        Used {
            writes: used.write_units + used.failed_condition_units,
            reads: used.read_units,
            requests,
            invocations: std::mem::take(&mut self.invocations),
            messages: std::mem::take(&mut self.messages),
        }
    }

    /// A request over HTTP.
    pub(crate) async fn post(&mut self, path: &str, body: &Value) {
        self.invocations += 1;
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(body.to_string())).unwrap();
        let routes = tickover_api::router(self.gateway.service.clone());
        let answer = routes.oneshot(request).await.unwrap();
        let status = answer.status();
        let body = axum::body::to_bytes(answer.into_body(), ANSWER_MAX).await.unwrap();
        assert!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(&body));
    }

    /// Invokes the worker with each message that is visible, one at a time, as Lambda does.
    pub(crate) async fn work(&mut self) {
        loop {
            let Some(message) = self.received().await else { return };
            self.invocations += 1;
            self.messages += 1;
            let record = json!({
                "messageId": "m", "body": message.body, "receiptHandle": message.receipt, "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:tickover-work-orders",
                "attributes": {
                    "ApproximateReceiveCount": message.receive_count.to_string(),
                    "ApproximateFirstReceiveTimestamp": self.clock.now().as_millis().to_string(),
                },
            });
            let event = Event::read(to_raw_value(&json!({"Records": [record]})).unwrap());
            let invocation = Invocation { event, deadline_at: self.clock.now().plus(TIMEOUT) };
            let answer = tickover::handle_in_lambda(&self.worker.app(), &self.runner, 10, invocation).await;
            assert!(!answer.unwrap().get().contains("itemIdentifier"), "{}", message.body);
            self.queues.delete(&orders(), &message.receipt).await.unwrap();
        }
    }

    async fn received(&self) -> Option<Received> {
        self.queues.receive(&orders(), 1, VISIBILITY, Millis::ZERO).await.unwrap().pop()
    }

    /// The tick of a minute.
    pub(crate) async fn tick(&mut self) {
        self.invocations += 1;
        let now = self.clock.now();
        let tick = self.tick.service.tick(now, now.plus(Millis::from_secs(50)));
        self.clock.drive(tick).await.unwrap();
    }

    /// Moves the clock to this long after the opening.
    pub(crate) fn at(&self, since: Millis) {
        self.clock.set(START.plus(since).max(self.clock.now()));
    }

    /// Whether the execution has its outcome.
    pub(crate) async fn completed(&self, id: &str) -> bool {
        let id = tickover_core::id::ExecutionId::parse(id).unwrap();
        let found = self.gateway.service.execution(&id).await.unwrap().unwrap();
        found.execution.closed().is_some()
    }
}

impl Process {
    fn start(recorder: &Recorder, clock: Arc<dyn Clock>) -> Self {
        let config = Config::read(|name| {
            let value = match name {
                "TICKOVER_TABLE" => "tickover",
                "TICKOVER_QUEUES" => "*",
                "TICKOVER_QUEUE_URLS" => "http://aws.invalid/000000000000/tickover-work-{name}",
                "TICKOVER_TIMERS" => "http://aws.invalid/000000000000/tickover-timers",
                "TICKOVER_RETENTION" => "7d",
                _ => return None,
            };
            Some(value.to_owned())
        });
        let config = Arc::new(config.unwrap());
        let aws = recorder.config();
        let store = Arc::new(DynamoStore::new(aws_sdk_dynamodb::Client::new(&aws), &config.table));
        let queue = SqsQueue::new(aws_sdk_sqs::Client::new(&aws), config.queue_urls());
        let queue = Arc::new(queue.finding(config.any_queue.clone()));
        let ports = Ports { store: store.clone(), queue, clock, ids: Arc::new(SystemIds) };
        Self { service: Service::new(ports, config.limits.clone()), store, config }
    }

    fn app(&self) -> App {
        App { service: self.service.clone(), config: self.config.clone(), metrics: Metrics::default() }
    }
}
