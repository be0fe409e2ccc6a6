//! When a worker inside Lambda asks SQS to hide its messages: each such request is billed.

use std::sync::{Arc, Mutex};

use serde_json::{json, value::to_raw_value};
use tickover::prelude::*;
use tickover::{Registry, Worker, WorkerSettings};
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::limits::Limits;
use tickover_lambda::metrics::Metrics;
use tickover_lambda::{App, Event, Invocation};
use tickover_service::config::Config;
use tickover_service::memory::{ManualClock, MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::{Clock as _, Queue as _};
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};
use tickover_sqs::SqsQueue;
use tickover_tests::recorder::Recorder;
use tickover_tests::scene::{START, request};

/// An invocation's time limit, and how long the queue hides a message by itself.
const INVOCATION: Millis = Millis::from_secs(25);
const VISIBILITY: Millis = Millis::from_secs(30);
const STEP: Millis = Millis::from_secs(20);

/// What a step finds in its own queue at its end.
struct Looker {
    clock: Arc<ManualClock>,
    queue: Arc<MemoryQueue>,
    found: Arc<Mutex<usize>>,
}

#[tickover::step("work")]
async fn look(#[state] looker: &Looker, input: u32) -> Result<u32> {
    looker.clock.sleep_until(looker.clock.now().plus(STEP)).await;
    let found = looker.queue.receive(&work(), 10, VISIBILITY, Millis::ZERO).await.unwrap();
    *looker.found.lock().unwrap() += found.len();
    Ok(input)
}

fn work() -> QueueName {
    QueueName::parse("work").unwrap()
}

fn config() -> Config {
    let config = Config::read(|name| match name {
        "TICKOVER_TABLE" => Some("t".to_owned()),
        "TICKOVER_QUEUES" => Some("work=http://q/1/t-work-work".to_owned()),
        "TICKOVER_TIMERS" => Some("http://q/1/t-timers".to_owned()),
        _ => None,
    });
    config.unwrap()
}

/// One invocation with a task's message that Lambda has kept for this long. Returns how many messages the step has found,
/// and how many requests have changed when the message is visible.
async fn kept_for(kept: Millis, receives: &str) -> (usize, u64) {
    let clock = Arc::new(ManualClock::new(START));
    let messages = Arc::new(MemoryQueue::new(clock.clone(), Queues::Fixed(vec![work()])));
    let recorder = Recorder::new(messages.clone()).unwrap();
    let config = config();
    let queue = SqsQueue::new(aws_sdk_sqs::Client::new(&recorder.config()), config.queue_urls());
    let (store, ids) = (Arc::new(MemoryStore::default()), Arc::new(SystemIds));
    let ports = Ports { store, queue: Arc::new(queue), clock: clock.clone(), ids };
    let service = Service::new(ports, Limits::default());
    let found = Arc::default();
    let looker = Looker { clock: clock.clone(), queue: messages.clone(), found: Arc::clone(&found) };
    let registry = Registry::new().with_step::<look>().with_state(looker);
    let settings = WorkerSettings { heartbeat: Some(Millis::ZERO), ..WorkerSettings::default() };
    let worker = Worker::new(service.clone(), registry, settings).unwrap();
    service.schedule(request("work", None, Some("1"))).await.unwrap();

    let received_at = clock.now();
    let message = messages.receive(&work(), 1, VISIBILITY, Millis::ZERO).await.unwrap().pop().unwrap();
    clock.advance(kept);
    let event = json!({"Records": [{
        "messageId": "m", "body": message.body, "receiptHandle": message.receipt,
        "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:t-work-work",
        "attributes": {
            "ApproximateReceiveCount": receives,
            "ApproximateFirstReceiveTimestamp": received_at.as_millis().to_string(),
        },
    }]});
    let event = Event::read(to_raw_value(&event).unwrap());
    let invocation = Invocation { event, deadline_at: clock.now().plus(INVOCATION) };
    let app = App { service, config: Arc::new(config), metrics: Metrics::default() };
    recorder.take();
    let answer = clock.drive(tickover::handle_in_lambda(&app, &worker, 10, invocation)).await.unwrap();
    assert_eq!(answer.get(), r#"{"batchItemFailures":[]}"#);
    let found = *found.lock().unwrap();
    let changes = recorder.take().into_iter().filter(|(target, _)| target.contains("Visibility"));
    (found, changes.map(|(_, count)| count).sum())
}

#[tokio::test]
async fn only_a_message_that_its_queue_would_show_too_soon_is_hidden_for_the_invocation() {
    assert_eq!(kept_for(Millis::ZERO, "1").await, (0, 0));
    // Lambda could invoke no function for 20 seconds: the queue would show it in the middle of the step.
    assert_eq!(kept_for(Millis::from_secs(20), "1").await, (0, 1));
    // When it was received this time isn't known.
    assert_eq!(kept_for(Millis::ZERO, "2").await, (0, 1));
}
