//! A table, its queues and the functions on top of them, for one test alone.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::{Value, json};
use tickover_core::id::QueueName;
use tickover_core::limits::Limits;
use tickover_core::time::Timestamp;
use tickover_dynamodb::{DynamoStore, Table};
use tickover_service::ports::Clock;
use tickover_service::system::{SystemClock, SystemIds};
use tickover_service::{Ports, Service};
use tickover_sqs::SqsQueue;
use tickover_tests::emulator::{REGION, aws_config, endpoint, judge, unique};
use tickover_tests::runtime_api::Function;

/// Long polls of 5 s, one of which receives a message.
const RECEIVES: usize = 4;

/// The configuration of every function. Everything has the names that the templates would give it, in a system of its own.
pub(crate) struct Deployment {
    table: String,
    emails: String,
    timers: String,
    /// Variables that its functions have in place of the usual ones.
    other: Vec<(&'static str, String)>,
}

impl Deployment {
    /// Makes a table, the queue `emails` and the queue of timers.
    pub(crate) async fn new() -> Self {
        let aws: SdkConfig = aws_config().await;
        let name = unique("functions");
        Table::new(&name).create(&aws_sdk_dynamodb::Client::new(&aws)).await.unwrap();
        let sqs = aws_sdk_sqs::Client::new(&aws);
        let emails = tickover_sqs::create_queue(&sqs, &format!("{name}-work-emails"), []).await.unwrap();
        let timers = tickover_sqs::create_queue(&sqs, &format!("{name}-timers"), []).await.unwrap();
        Self { table: name, emails, timers, other: vec![] }
    }

    /// The same, whose functions have what the templates give them: any queue, a queue of lifecycle events,
    /// and a list of all executions.
    pub(crate) async fn with_everything(mut self) -> Self {
        let sqs = aws_sdk_sqs::Client::new(&aws_config().await);
        let events = tickover_sqs::create_queue(&sqs, &format!("{}-events", self.table), []).await.unwrap();
        let pattern = self.emails.replace("-work-emails", "-work-{name}");
        self.other = vec![
            ("TICKOVER_QUEUES", "*".to_owned()),
            ("TICKOVER_QUEUE_URLS", pattern),
            ("TICKOVER_EVENTS", events),
            ("TICKOVER_LISTS", "all".to_owned()),
        ];
        self
    }

    /// The same with a secret of callbacks in Secrets Manager.
    pub(crate) async fn with_callbacks(self, secrets: &str) -> Self {
        let named = self.naming_callbacks();
        named.callbacks("CreateSecret", secrets).await;
        named
    }

    /// The same, whose secret isn't there yet.
    pub(crate) fn naming_callbacks(mut self) -> Self {
        self.other.push(("TICKOVER_CALLBACK_SECRET_ID", format!("{}-callbacks", self.table)));
        self
    }

    /// Makes the secret of callbacks, or gives it another value, by an operation of Secrets Manager.
    pub(crate) async fn callbacks(&self, operation: &str, secrets: &str) {
        let name = format!("{}-callbacks", self.table);
        let id = if operation == "CreateSecret" { "Name" } else { "SecretId" };
        secret(operation, &json!({id: name, "SecretString": secrets})).await;
    }

    /// The functions of the core.
    pub(crate) async fn core(&self) -> [Function; 5] {
        [
            self.start("schedule").await,
            self.start("claim").await,
            self.start("complete").await,
            self.start("tick").await,
            self.start("gateway").await,
        ]
    }

    /// The bodies of the messages in the queue of timers, at least of one. They are deleted.
    pub(crate) async fn due_timers(&self) -> Vec<String> {
        received(&self.timers).await
    }

    /// The bodies of the messages in the queue `emails`, at least of one. They are deleted.
    pub(crate) async fn hints(&self) -> Vec<String> {
        received(&self.emails).await
    }

    /// The same of the queue of a class of `emails`, which [`Deployment::class_queue`] has made, with its name.
    pub(crate) async fn hints_of(&self, class: &str) -> (String, Vec<String>) {
        (format!("{}-work-emails__{class}", self.table), received(&format!("{}__{class}", self.emails)).await)
    }

    /// Makes the queue of a class of `emails`.
    pub(crate) async fn class_queue(&self, class: &str) {
        let sqs = aws_sdk_sqs::Client::new(&aws_config().await);
        let name = format!("{}-work-emails__{class}", self.table);
        tickover_sqs::create_queue(&sqs, &name, []).await.unwrap();
    }

    /// A deployment whose store and queues can't be reached.
    pub(crate) fn unreachable() -> Self {
        let url = |name| format!("http://127.0.0.1:1/000000000000/{name}");
        Self { table: "t".to_owned(), emails: url("emails"), timers: url("timers"), other: vec![] }
    }

    /// A deployment that was never made: its table and its queues don't exist.
    pub(crate) fn empty() -> Self {
        Self::named(&unique("nothing"))
    }

    /// A deployment that has its table, and no queue at all.
    pub(crate) async fn without_queues() -> Self {
        Self::named(&Self::new().await.table)
    }

    /// The names of a deployment, without making anything.
    fn named(system: &str) -> Self {
        let url = |queue| format!("{}/000000000000/{system}-{queue}", endpoint());
        Self {
            emails: url("work-none"),
            timers: url("work-no-timers"),
            table: system.to_owned(),
            other: vec![],
        }
    }

    /// The URL of the queue `emails`.
    pub(crate) fn emails(&self) -> &str {
        &self.emails
    }

    /// Gives the queue `emails` a dead-letter queue, and returns its URL. A message moves there when it is received
    /// once more than this.
    pub(crate) async fn dead_letters(&self, after_receives: u32) -> String {
        let sqs = aws_sdk_sqs::Client::new(&aws_config().await);
        let url = tickover_sqs::create_queue(&sqs, &format!("{}-dead", self.table), []).await.unwrap();
        let name = QueueAttributeName::QueueArn;
        let found = sqs.get_queue_attributes().queue_url(&url).attribute_names(name.clone()).send();
        let found = found.await.unwrap();
        let arn = found.attributes().and_then(|all| all.get(&name)).unwrap().clone();
        let policy = json!({"deadLetterTargetArn": arn, "maxReceiveCount": after_receives}).to_string();
        let set = sqs.set_queue_attributes().queue_url(&self.emails);
        set.attributes(QueueAttributeName::RedrivePolicy, policy).send().await.unwrap();
        url
    }

    /// The service over the same table and queue, in this process.
    pub(crate) async fn service(&self) -> Service {
        self.service_at(Arc::new(SystemClock)).await
    }

    /// The same with another clock.
    pub(crate) async fn service_at(&self, clock: Arc<dyn Clock>) -> Service {
        let aws = aws_config().await;
        let store = DynamoStore::new(aws_sdk_dynamodb::Client::new(&aws), &self.table);
        let emails = QueueName::parse("emails").unwrap();
        let urls =
            BTreeMap::from([(emails, self.emails.clone()), (QueueName::timers(), self.timers.clone())]);
        let queue = SqsQueue::new(aws_sdk_sqs::Client::new(&aws), urls);
        let (store, queue) = (Arc::new(store), Arc::new(queue));
        let ports = Ports { store, queue, clock, ids: Arc::new(SystemIds) };
        Service::new(ports, Limits { due_shards: 2, ..Limits::default() })
    }

    /// A task's complete item in the table.
    pub(crate) async fn item(&self, task: &str) -> HashMap<String, AttributeValue> {
        let dynamodb = aws_sdk_dynamodb::Client::new(&aws_config().await);
        let get = dynamodb.get_item().table_name(&self.table).set_key(Some(key(task))).consistent_read(true);
        get.send().await.unwrap().item.unwrap()
    }

    /// Changes a task's record to one of a newer build: of the next format, with an unknown attribute in it.
    pub(crate) async fn make_newer(&self, task: &str) {
        let dynamodb = aws_sdk_dynamodb::Client::new(&aws_config().await);
        let update = dynamodb.update_item().table_name(&self.table).set_key(Some(key(task)));
        let update = update.update_expression("SET v = :v, mood = :mood");
        let update = update.expression_attribute_values(":v", AttributeValue::N("2".to_owned()));
        let update = update.expression_attribute_values(":mood", AttributeValue::S("bright".to_owned()));
        update.send().await.unwrap();
    }

    /// All items of the table.
    pub(crate) async fn items(&self) -> Vec<HashMap<String, AttributeValue>> {
        let dynamodb = aws_sdk_dynamodb::Client::new(&aws_config().await);
        let scan = dynamodb.scan().table_name(&self.table).consistent_read(true);
        scan.send().await.unwrap().items.unwrap()
    }

    /// Starts the function, with the emulator as its endpoint and these variables in place of the usual ones.
    pub(crate) async fn start_with(&self, function: &str, variables: &[(&str, &str)]) -> Function {
        let usual = self.environment(function, &judge());
        let usual = usual.iter().map(|(name, value)| (*name, value.as_str()));
        let environment: Vec<_> = usual.chain(variables.iter().copied()).collect();
        Function::start(&format!("tickover-{function}"), &environment).await.unwrap()
    }

    /// Starts the function, with the emulator as its endpoint.
    pub(crate) async fn start(&self, function: &str) -> Function {
        self.start_at(function, &judge()).await
    }

    /// Starts the function, with any endpoint.
    pub(crate) async fn start_at(&self, function: &str, endpoint: &str) -> Function {
        let environment = self.environment(function, endpoint);
        let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Function::start(&format!("tickover-{function}"), &environment).await.unwrap()
    }

    /// The environment of a process that uses this deployment with the permissions of this function. The worker is that of
    /// the queue `emails`.
    pub(crate) fn environment(&self, function: &str, endpoint: &str) -> Vec<(&'static str, String)> {
        let queue = if function == "worker" { "-emails" } else { "" };
        let usual = [
            ("AWS_SESSION_TOKEN", format!("{}-{function}{queue}", self.table)),
            ("AWS_ENDPOINT_URL", endpoint.to_owned()),
            ("TICKOVER_TABLE", self.table.clone()),
            ("TICKOVER_QUEUES", format!("emails={}", self.emails)),
            ("TICKOVER_TIMERS", self.timers.clone()),
            ("TICKOVER_DUE_SHARDS", "2".to_owned()),
            ("TICKOVER_METRICS", "all".to_owned()),
            // The most detailed log: tests search it for payloads.
            ("TICKOVER_LOG", "trace".to_owned()),
        ];
        usual.into_iter().chain(self.other.clone()).collect()
    }
}

/// Calls Secrets Manager. No crate of the AWS SDK is needed for that.
async fn secret(operation: &str, body: &Value) {
    let scope = format!("test/20260101/{REGION}/secretsmanager/aws4_request");
    let authorization = format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0");
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = http.post(endpoint()).header("x-amz-target", format!("secretsmanager.{operation}"));
    let request = request.header("content-type", "application/x-amz-json-1.1").body(body.to_string());
    let answer = request.header("authorization", authorization).send().await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
}

/// The bodies of the messages in a queue, which are deleted.
async fn received(url: &str) -> Vec<String> {
    let sqs = aws_sdk_sqs::Client::new(&aws_config().await);
    let mut bodies = vec![];
    for _ in 0..RECEIVES {
        if !bodies.is_empty() {
            break;
        }
        let receive = sqs.receive_message().queue_url(url).max_number_of_messages(10).wait_time_seconds(5);
        for message in receive.send().await.unwrap().messages.unwrap_or_default() {
            let delete = sqs.delete_message().queue_url(url);
            delete.receipt_handle(message.receipt_handle.unwrap()).send().await.unwrap();
            bodies.extend(message.body);
        }
    }
    assert!(!bodies.is_empty(), "no message is in {url}");
    bodies
}

fn key(task: &str) -> HashMap<String, AttributeValue> {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    HashMap::from([("pk".to_owned(), text(&format!("task#{task}"))), ("sk".to_owned(), text("task"))])
}

/// An event of the folder `tests/events`.
pub(crate) fn event(name: &str) -> Value {
    let path = format!("{}/events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A batch of SQS messages, like one of the folder `tests/events`, with these bodies and with new ids.
pub(crate) fn batch(name: &str, bodies: impl IntoIterator<Item = String>) -> Value {
    let mut batch = event(name);
    let record = batch["Records"][0].take();
    let records = bodies.into_iter().enumerate().map(|(place, body)| {
        let mut record = record.clone();
        record["messageId"] = json!(format!("059f36b4-87a3-44ab-83d2-66197000000{place}"));
        record["body"] = json!(body);
        record
    });
    batch["Records"] = records.collect();
    batch
}

/// The id of a batch's message.
pub(crate) fn message_id(batch: &Value, place: usize) -> &str {
    batch["Records"][place]["messageId"].as_str().unwrap()
}

/// The ids of the messages that failed, by a batch's answer.
pub(crate) fn failed_messages(answer: &Value) -> Vec<&str> {
    let failures = answer["batchItemFailures"].as_array().unwrap();
    failures.iter().map(|failure| failure["itemIdentifier"].as_str().unwrap()).collect()
}

/// Schedules a task with only the necessary fields.
pub(crate) async fn waiting_task(schedule: &Function, id: &str, more: Value) -> Value {
    let mut task = json!({"id": id, "queue": "emails", "kind": "send-email"});
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let scheduled = schedule.invoke(task).await.unwrap();
    assert_eq!(scheduled["task"]["status"], "pending", "{scheduled}");
    scheduled["task"].clone()
}

/// Schedules a task with only the necessary fields, and claims it; returns its lease.
pub(crate) async fn running_task(schedule: &Function, claim: &Function, id: &str, more: Value) -> String {
    waiting_task(schedule, id, more).await;
    let claimed = claim.invoke(json!({"id": id, "worker": "worker-1"})).await.unwrap();
    claimed["tasks"][0]["lease"].as_str().unwrap_or_else(|| panic!("{claimed}")).to_owned()
}

/// The present time, for events.
pub(crate) fn now() -> Timestamp {
    SystemClock.now()
}
