//! Memory under load: some hundreds of invocations with batches and payloads, against a table and queues over the
//! network. The figure is the highest resident memory.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use aws_sdk_sqs::Client as Sqs;
use serde_json::{Value, json};
use tickover_dynamodb::Table;
use tickover_tests::emulator::{aws_config, endpoint, unique};
use tickover_tests::runtime_api::Function;
use tokio::process::Command;

use super::Built;

/// Messages in a batch: the most that SQS delivers at once.
const BATCH: usize = 10;
/// Batches of tasks that are scheduled. Each task has an input of [`INPUT_BYTES`] bytes.
const BATCHES: usize = 40;
const INPUT_BYTES: usize = 20_000;
/// Invocations of functions that get one request at a time.
const SINGLE: usize = 200;
/// Executions that the worker runs to their ends.
const ORDERS: usize = 40;

pub(crate) struct Used {
    pub(crate) name: &'static str,
    pub(crate) invocations: usize,
    pub(crate) peak_mib: f64,
}

/// A function under load.
struct Loaded {
    name: &'static str,
    function: Function,
    invocations: AtomicUsize,
}

/// A table and its queues, and the functions over them.
struct Deployment<'a> {
    built: &'a Built,
    sqs: Sqs,
    table: String,
    emails: String,
    orders: String,
    timers: String,
}

/// Runs one function after the other, so that each finds the work that the one before has created.
pub(crate) async fn all(built: &Built) -> Result<Vec<Used>> {
    let deployment = Deployment::make(built).await?;
    let schedule = deployment.start("schedule").await?;
    for batch in 0..BATCHES {
        let tasks = (0..BATCH).map(|place| task_message(batch * BATCH + place));
        schedule.batch(tasks).await?;
    }
    let claim = deployment.start("claim").await?;
    let complete = deployment.start("complete").await?;
    for _ in 0..BATCHES {
        let claimed = claim.invoke(json!({"queue": "emails", "worker": "w", "max": BATCH})).await?;
        let tasks = claimed["tasks"].as_array().context("no tasks")?;
        let report =
            |task: &Value| json!({"id": task["id"], "lease": task["lease"], "output": task["input"]});
        complete.invoke(json!({"tasks": tasks.iter().map(report).collect::<Vec<_>>()})).await?;
    }
    for _ in 0..SINGLE {
        claim.invoke(json!({"queue": "emails", "worker": "w"})).await?;
        complete.invoke(json!({"id": "task-0", "lease": "none"})).await?;
    }
    let gateway = deployment.start("gateway").await?;
    for number in 0..SINGLE {
        gateway.request("POST", "/v1/tasks", &task(BATCHES * BATCH + number).to_string()).await?;
        gateway.request("GET", "/v1/tasks?status=pending&limit=50", "").await?;
    }
    let tick = deployment.start("tick").await?;
    for _ in 0..SINGLE {
        tick.invoke(json!({})).await?;
    }
    let worker = deployment.work(&schedule).await?;
    [schedule, claim, complete, tick, gateway, worker].iter().map(Loaded::used).collect()
}

impl<'a> Deployment<'a> {
    async fn make(built: &'a Built) -> Result<Self> {
        let aws = aws_config().await;
        let table = unique("measured");
        Table::new(&table).create(&aws_sdk_dynamodb::Client::new(&aws)).await?;
        let sqs = Sqs::new(&aws);
        let emails = tickover_sqs::create_queue(&sqs, &table, []).await?;
        let orders = tickover_sqs::create_queue(&sqs, &format!("{table}-orders"), []).await?;
        let timers = tickover_sqs::create_queue(&sqs, &format!("{table}-timers"), []).await?;
        Ok(Self { built, sqs, table, emails, orders, timers })
    }

    async fn start(&self, name: &'static str) -> Result<Loaded> {
        let (endpoint, queues) = (endpoint(), format!("emails={},orders={}", self.emails, self.orders));
        let environment = [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("TICKOVER_TABLE", &self.table),
            ("TICKOVER_QUEUES", &queues),
            ("TICKOVER_TIMERS", &self.timers),
        ];
        let command = Command::new(self.built.function(name));
        let function = Function::from_command(command, name, &environment).await?;
        Ok(Loaded { name, function, invocations: AtomicUsize::new(0) })
    }

    /// Runs the worker until each order has its receipt. Every second card makes the reader panic: a build in which a
    /// panic aborts the process would never finish.
    async fn work(&self, schedule: &Loaded) -> Result<Loaded> {
        let worker = self.start("worker").await?;
        for number in 0..ORDERS {
            let card = if number % 2 == 0 { "good" } else { "bent" };
            let order = json!({"number": number, "boxes": ["books", "lamps"], "express": true, "card": card});
            let id = format!("order-{number}");
            let start = json!({"workflow": "order-fulfilment", "id": id, "queue": "orders", "input": order});
            schedule.invoke(json!({"type": "execution", "body": start})).await?;
            let shipped = json!({"id": id, "name": "shipped", "payload": {"carrier": "a bicycle"}});
            schedule.invoke(json!({"type": "event", "body": shipped})).await?;
        }
        loop {
            let bodies = self.receive().await?;
            if bodies.is_empty() {
                break;
            }
            worker.batch(bodies).await?;
        }
        let gateway = self.start("gateway").await?;
        for number in 0..ORDERS {
            let answer = gateway.request("GET", &format!("/v1/executions/order-{number}"), "").await?;
            ensure!(
                answer.contains("charge-"),
                "order {number} isn't fulfilled: {answer}; {}",
                worker.function.logs()
            );
        }
        Ok(worker)
    }

    /// Receives messages from the queue of orders; returns none if none arrives within a second.
    async fn receive(&self) -> Result<Vec<String>> {
        let receive = self.sqs.receive_message().queue_url(&self.orders).max_number_of_messages(10);
        let received = receive.wait_time_seconds(1).send().await?.messages.unwrap_or_default();
        let mut bodies = Vec::new();
        for message in received {
            let delete = self.sqs.delete_message().queue_url(&self.orders);
            delete.set_receipt_handle(message.receipt_handle).send().await?;
            bodies.extend(message.body);
        }
        Ok(bodies)
    }
}

impl Loaded {
    async fn invoke(&self, event: Value) -> Result<Value> {
        self.invocations.fetch_add(1, Ordering::Relaxed);
        let answer = self.function.invoke(event).await;
        answer.with_context(|| format!("{}: {}", self.name, self.function.logs()))
    }

    /// Invokes the function with a batch of messages, none of which may fail.
    async fn batch(&self, bodies: impl IntoIterator<Item = String>) -> Result<()> {
        let record = |(place, body): (usize, String)| {
            let arn = "arn:aws:sqs:us-east-1:000000000000:measured";
            let id = format!("m-{place}");
            json!({"messageId": id, "body": body, "eventSource": "aws:sqs", "eventSourceARN": arn})
        };
        let records: Vec<_> = bodies.into_iter().enumerate().map(record).collect();
        let answer = self.invoke(json!({ "Records": records })).await?;
        let failed = &answer["batchItemFailures"];
        ensure!(failed == &json!([]), "{}: {failed} failed: {}", self.name, self.function.logs());
        Ok(())
    }

    /// Invokes the function as an HTTP API does; returns the answer's body.
    async fn request(&self, method: &str, target: &str, body: &str) -> Result<String> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let http = json!({
            "method": method,
            "path": path,
            "protocol": "HTTP/1.1",
            "sourceIp": "203.0.113.7",
            "userAgent": "measure",
        });
        let context = json!({
            "accountId": "000000000000",
            "apiId": "measured",
            "domainName": "measured.example.com",
            "domainPrefix": "measured",
            "http": http,
            "requestId": "r",
            "routeKey": "$default",
            "stage": "$default",
            "time": "31/Jan/2026:12:00:00 +0000",
            "timeEpoch": 1_769_860_800_000_u64,
        });
        let event = json!({
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": path,
            "rawQueryString": query,
            "headers": {"content-type": "application/json", "host": "measured.example.com"},
            "requestContext": context,
            "body": body,
            "isBase64Encoded": false,
        });
        let answer = self.invoke(event).await?;
        let status = answer["statusCode"].as_u64().unwrap_or_default();
        ensure!((200..300).contains(&status), "{target}: {answer}");
        Ok(answer["body"].as_str().unwrap_or_default().to_owned())
    }

    /// The highest resident memory, as Linux reports it.
    fn used(&self) -> Result<Used> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.function.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: f64 = line.and_then(|line| line.split_whitespace().next()).context("no VmHWM")?.parse()?;
        let invocations = self.invocations.load(Ordering::Relaxed);
        Ok(Used { name: self.name, invocations, peak_mib: kib / 1_024.0 })
    }
}

fn task(number: usize) -> Value {
    let input = json!({"text": "x".repeat(INPUT_BYTES)});
    let id = format!("task-{number}");
    json!({"id": id, "queue": "emails", "kind": "send-email", "input": input, "timeout": "1h"})
}

fn task_message(number: usize) -> String {
    json!({"v": 1, "type": "task", "body": task(number)}).to_string()
}
