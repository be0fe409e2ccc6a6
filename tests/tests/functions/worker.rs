//! The worker of the example workflow: batches from the queue of its turns and its remote steps.

use std::time::Duration;

use aws_sdk_sqs::types::MessageSystemAttributeName;
use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::Happened;
use tickover_core::execution::{Execution, ExecutionStatus};
use tickover_core::id::{EventName, ExecutionId, QueueName, TaskId, WorkflowName};
use tickover_core::payload::Json;
use tickover_service::Service;
use tickover_service::executions::StartRequest;
use tickover_tests::emulator::aws_config;
use tickover_tests::runtime_api::Function;

use crate::deployment::{Deployment, batch, failed_messages, message_id, now, waiting_task};

/// How long messages may take to arrive.
const BOUND: Duration = Duration::from_mins(1);
/// An invocation's time limit, which is neither a worker's usual lease nor a queue's visibility timeout.
const LIMIT: Duration = Duration::from_secs(25);
/// Enough time to start a turn.
const BRIEF: Duration = Duration::from_secs(8);
/// Enough time for an answer, but not for any work.
const SHORT: Duration = Duration::from_millis(1_900);

/// A worker, and the service through which tests read its deployment.
pub(crate) struct Shop {
    pub(crate) deployment: Deployment,
    pub(crate) service: Service,
    pub(crate) worker: Function,
}

impl Shop {
    async fn open() -> Self {
        Self::logging("trace", "all").await
    }

    /// With a worker whose log has this level and these metrics.
    pub(crate) async fn logging(level: &str, metrics: &str) -> Self {
        let deployment = Deployment::new().await;
        let worker =
            deployment.start_with("worker", &[("TICKOVER_LOG", level), ("TICKOVER_METRICS", metrics)]).await;
        let service = deployment.service().await;
        assert_eq!(worker.init_error().await, None);
        Self { deployment, service, worker }
    }

    pub(crate) async fn order(&self, id: &str, order: Value) {
        let workflow = WorkflowName::parse("order-fulfilment").unwrap();
        let mut request = StartRequest::new(workflow, QueueName::parse("emails").unwrap());
        request.id = Some(ExecutionId::parse(id).unwrap());
        request.input = Json::parse(order.to_string());
        self.service.start(request).await.unwrap();
    }

    /// The bodies of so many messages, received and deleted.
    pub(crate) async fn messages(&self, count: usize) -> Vec<String> {
        let (sqs, url) = (aws_sdk_sqs::Client::new(&aws_config().await), self.deployment.emails());
        let mut bodies = Vec::new();
        let receive = async {
            while bodies.len() < count {
                let receive = sqs.receive_message().queue_url(url).max_number_of_messages(10);
                let received = receive.wait_time_seconds(1).send().await.unwrap();
                for message in received.messages.unwrap_or_default() {
                    let delete = sqs.delete_message().queue_url(url);
                    delete.receipt_handle(message.receipt_handle.unwrap()).send().await.unwrap();
                    bodies.extend(message.body);
                }
            }
        };
        let received = tokio::time::timeout(BOUND, receive).await;
        assert!(
            received.is_ok() && bodies.len() == count,
            "{count} messages: {bodies:?}; {}",
            self.worker.logs()
        );
        bodies
    }

    /// A batch with the next message, received as Lambda receives it: with the queue's own visibility timeout of six
    /// minutes.
    async fn received(&self) -> Value {
        let (sqs, url) = (aws_sdk_sqs::Client::new(&aws_config().await), self.deployment.emails());
        let next = async {
            loop {
                let call = sqs.receive_message().queue_url(url).visibility_timeout(360).wait_time_seconds(1);
                let count = MessageSystemAttributeName::ApproximateReceiveCount;
                let received = call.message_system_attribute_names(count.clone()).send().await.unwrap();
                if let Some(message) = received.messages.unwrap_or_default().pop() {
                    let times = message.attributes().unwrap()[&count].clone();
                    return (message, times);
                }
            }
        };
        let (message, times) = tokio::time::timeout(BOUND, next).await.expect("no message arrived");
        let mut batch = batch("sqs_ingress", message.body);
        let record = &mut batch["Records"][0];
        record["receiptHandle"] = json!(message.receipt_handle);
        record["attributes"]["ApproximateReceiveCount"] = json!(times);
        let name = url.rsplit('/').next().unwrap();
        record["eventSourceARN"] = json!(format!("arn:aws:sqs:us-east-1:000000000000:{name}"));
        batch
    }

    /// Invokes the worker with messages; returns how many failed.
    pub(crate) async fn deliver(&self, bodies: Vec<String>) -> usize {
        let answer = self.worker.invoke_within(batch("sqs_ingress", bodies), LIMIT).await.unwrap();
        failed_messages(&answer).len()
    }

    pub(crate) async fn record(&self, id: &str) -> Execution {
        self.service.execution(&ExecutionId::parse(id).unwrap()).await.unwrap().unwrap().execution
    }

    async fn output(&self, id: &str) -> Option<Value> {
        let found = self.service.execution(&ExecutionId::parse(id).unwrap()).await.unwrap().unwrap();
        found.output.map(|output| serde_json::from_str(output.as_str()).unwrap())
    }

    /// The steps that have ended, in order.
    async fn steps(&self, id: &str) -> Vec<String> {
        let journal = self.service.journal_of(&self.record(id).await).await.unwrap();
        let ended = journal.into_iter().filter_map(|entry| {
            let Happened::Step { name, .. } = entry.what else { return None };
            Some(name.to_string())
        });
        ended.collect()
    }
}

#[tokio::test]
async fn an_order_is_fulfilled_turn_by_turn_and_a_remote_steps_message_is_its_task() {
    let shop = Shop::open().await;
    shop.order("order-7", json!({"number": 7, "boxes": ["books", "lamps"], "express": true})).await;
    assert_eq!(shop.deliver(shop.messages(1).await).await, 0);
    assert_eq!(shop.record("order-7").await.status(), ExecutionStatus::Waiting);
    assert_eq!(shop.steps("order-7").await, ["charge"]);

    let labels = shop.messages(2).await;
    assert!(labels.iter().all(|body| body.contains("print-label")), "{labels:?}");
    assert_eq!(shop.deliver(labels.clone()).await, 0);
    // SQS delivers at least once: a message whose work is already done is no failure.
    assert_eq!(shop.deliver(labels).await, 0);
    assert_eq!(shop.deliver(shop.messages(1).await).await, 0);
    let waiting = shop.record("order-7").await;
    assert_eq!((waiting.status(), waiting.open_steps), (ExecutionStatus::Waiting, 0));

    let shipped = Json::parse(r#"{"carrier":"a bicycle"}"#);
    let event = EventName::parse("shipped").unwrap();
    shop.service.send_event(&waiting.id, event, None, shipped).await.unwrap();
    assert_eq!(shop.deliver(shop.messages(1).await).await, 0);
    let receipt = shop.output("order-7").await.unwrap();
    assert_eq!(
        receipt,
        json!({
            "charge": {"reference": "charge-7"},
            "labels": ["label for books", "label for lamps"],
            "carrier": "a bicycle",
        })
    );
    assert!(!shop.worker.logs().contains("bicycle"), "a payload is logged: {}", shop.worker.logs());
}

#[tokio::test]
async fn an_order_whose_label_cannot_be_printed_is_refunded() {
    let shop = Shop::open().await;
    shop.order("order-8", json!({"number": 8, "boxes": [""]})).await;
    // The turn with the charge, the label, the turn that fails, and the turn of the code for failures.
    for _ in 0..4 {
        assert_eq!(shop.deliver(shop.messages(1).await).await, 0);
    }
    assert_eq!(shop.record("order-8").await.status(), ExecutionStatus::Failed);
    assert_eq!(shop.steps("order-8").await, ["charge", "label[0]", "on_failure:give-back"]);
}

#[tokio::test]
async fn only_the_invalid_messages_of_a_batch_fail() {
    let shop = Shop::open().await;
    for id in ["first", "second"] {
        shop.order(id, json!({"number": 1, "boxes": ["books"]})).await;
    }
    let mut bodies = shop.messages(2).await;
    for bad in [r#"{"v":1,"turn":"seagull"}"#, r#"{"v":1,"task":"seagull"}"#] {
        bodies.insert(1, bad.to_owned());
    }
    let bodies = batch("sqs_ingress", bodies);
    let answer = shop.worker.invoke(bodies.clone()).await.unwrap();
    assert_eq!(failed_messages(&answer), [message_id(&bodies, 1), message_id(&bodies, 2)]);
    for id in ["first", "second"] {
        assert_eq!(shop.steps(id).await, ["charge"], "{id}");
    }
    assert!(!shop.worker.logs().contains("seagull"), "a message's body is logged: {}", shop.worker.logs());
}

#[tokio::test]
async fn no_work_starts_when_the_invocation_has_too_little_time_left() {
    let shop = Shop::open().await;
    shop.order("order-9", json!({"number": 9, "boxes": ["books"]})).await;
    let before = shop.record("order-9").await;
    let turn = shop.messages(1).await;
    let late = batch("sqs_ingress", turn.clone());
    let answer = shop.worker.invoke_within(late.clone(), SHORT).await.unwrap();
    assert_eq!(failed_messages(&answer), [message_id(&late, 0)]);
    assert_eq!(shop.record("order-9").await, before);
    let logs = shop.worker.logs();
    assert!(logs.contains("too little time is left"), "{logs}");

    assert_eq!(shop.deliver(turn).await, 0);
    let label = shop.messages(1).await;
    let late = batch("sqs_ingress", label);
    let answer = shop.worker.invoke_within(late.clone(), SHORT).await.unwrap();
    assert_eq!(failed_messages(&answer), [message_id(&late, 0)], "a remote step isn't started either");
}

#[tokio::test]
async fn a_turn_is_leased_until_its_invocation_ends() {
    let shop = Shop::open().await;
    // The charge is retried after two seconds: enough time to read the record.
    shop.order("order-5", json!({"number": 5, "boxes": ["books"], "card": "slow"})).await;
    let turn = shop.messages(1).await;
    let limit = Millis::new(u64::try_from(LIMIT.as_millis()).unwrap());
    let invoked_at = now();
    let look = async {
        loop {
            if let Some(turn) = shop.record("order-5").await.turn().cloned() {
                return (turn, now());
            }
        }
    };
    let look = tokio::time::timeout(BOUND, look);
    let (failed, seen) = tokio::join!(shop.deliver(turn), look);
    let (turn, seen_at) = seen.unwrap();
    assert_eq!(failed, 0);
    let expires_at = turn.lease_expires_at;
    assert!(invoked_at.plus(limit) <= expires_at && expires_at <= seen_at.plus(limit), "{turn:?}");
    // The charge may take five minutes, more than this invocation has left: so the next invocation retries it.
    assert_eq!(shop.steps("order-5").await, [""; 0]);
    assert_eq!(shop.deliver(shop.messages(1).await).await, 0);
    assert_eq!(shop.steps("order-5").await, ["charge"]);
}

#[tokio::test]
async fn the_work_of_a_dead_invocation_is_received_again_when_its_time_limit_ends() {
    let shop = Shop::open().await;
    shop.order("order-6", json!({"number": 6, "boxes": ["books"], "card": "slow"})).await;
    let batch = shop.received().await;
    let is_under_way = async {
        while shop.record("order-6").await.turn().is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = shop.worker.invoke_within(batch, BRIEF) => panic!("it is over: {answer:?}"),
        seen = tokio::time::timeout(BOUND, is_under_way) => seen.unwrap(),
    }
    shop.worker.kill().await.unwrap();
    let lost = shop.record("order-6").await;

    // The time limit of this receive is far below the queue's own six minutes.
    let again = shop.received().await;
    assert_eq!(again["Records"][0]["attributes"]["ApproximateReceiveCount"], "2");
    let other = shop.deployment.start("worker").await;
    let answer = other.invoke_within(again, LIMIT).await.unwrap();
    assert_eq!(failed_messages(&answer), [""; 0]);
    let record = shop.record("order-6").await;
    assert!(lost.turn().is_some() && record.turn() != lost.turn(), "{record:?}");
}

#[tokio::test]
async fn a_remote_step_that_no_worker_here_knows_is_left_to_others() {
    let shop = Shop::open().await;
    let schedule = shop.deployment.start("schedule").await;
    waiting_task(&schedule, "t", json!({})).await;
    let strange = shop.messages(1).await;
    assert_eq!(shop.deliver(strange).await, 1);
    let id = TaskId::parse("t").unwrap();
    let found = shop.service.describe(&id).await.unwrap();
    assert_eq!(found.task.attempt, 0);
    assert!(shop.worker.logs().contains("no step of this kind"), "{}", shop.worker.logs());
}
