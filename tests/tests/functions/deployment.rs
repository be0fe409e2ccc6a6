//! A table, a queue and the functions on top of them, for one test alone.

use aws_config::SdkConfig;
use serde_json::Value;
use tickover_core::time::Timestamp;
use tickover_dynamodb::Table;
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemClock;
use tickover_tests::emulator::{aws_config, endpoint, unique};
use tickover_tests::runtime_api::Function;

/// What every function is configured with.
pub(crate) struct Deployment {
    table: String,
    queues: String,
}

impl Deployment {
    /// Makes a table, and the queue `emails`.
    pub(crate) async fn new() -> Self {
        let aws: SdkConfig = aws_config().await;
        let name = unique("functions");
        Table::new(&name).create(&aws_sdk_dynamodb::Client::new(&aws)).await.unwrap();
        let url = tickover_sqs::create_queue(&aws_sdk_sqs::Client::new(&aws), &name, []).await.unwrap();
        Self { table: name, queues: format!("emails={url}") }
    }

    /// A deployment whose store and queue nobody can reach.
    pub(crate) fn unreachable() -> Self {
        Self { table: "t".to_owned(), queues: "emails=http://127.0.0.1:1/000000000000/emails".to_owned() }
    }

    /// Starts the function, pointed at the emulator.
    pub(crate) async fn start(&self, function: &str) -> Function {
        self.start_at(function, &endpoint()).await
    }

    /// Starts the function, pointed at any endpoint.
    pub(crate) async fn start_at(&self, function: &str, endpoint: &str) -> Function {
        let environment = [
            ("AWS_ENDPOINT_URL", endpoint),
            ("TICKOVER_TABLE", &self.table),
            ("TICKOVER_QUEUES", &self.queues),
            ("TICKOVER_DUE_SHARDS", "2"),
            // Everything the functions would ever log: tests look for payloads in it.
            ("TICKOVER_LOG", "trace"),
        ];
        Function::start(&format!("tickover-{function}"), &environment).await.unwrap()
    }
}

/// An event of the folder `tests/events`.
pub(crate) fn event(name: &str) -> Value {
    let path = format!("{}/events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The ids of the messages that a batch's answer gives back to their queue.
pub(crate) fn failed_messages(answer: &Value) -> Vec<&str> {
    let failures = answer["batchItemFailures"].as_array().unwrap();
    failures.iter().map(|failure| failure["itemIdentifier"].as_str().unwrap()).collect()
}

/// Schedules a task without more than it needs, and takes it: its lease.
pub(crate) async fn running_task(schedule: &Function, claim: &Function, id: &str, more: Value) -> String {
    let mut task = serde_json::json!({"id": id, "queue": "emails", "kind": "send-email"});
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let scheduled = schedule.invoke(task).await.unwrap();
    assert_eq!(scheduled["task"]["status"], "pending", "{scheduled}");
    let claimed = claim.invoke(serde_json::json!({"id": id, "worker": "worker-1"})).await.unwrap();
    claimed["tasks"][0]["lease"].as_str().unwrap_or_else(|| panic!("{claimed}")).to_owned()
}

/// Now, for events.
pub(crate) fn now() -> Timestamp {
    SystemClock.now()
}
