//! The bytes that the functions write to their logs and to the table, and their metrics, in the units of the bill.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use tickover_core::id::{EventName, TaskId};
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;
use tickover_core::timer::{Timer, Wake};
use tickover_service::cost::{self, Units, metrics};
use tickover_tests::process::until;
use tickover_tests::runtime_api::Function;

use crate::deployment::{Deployment, batch, running_task, waiting_task};
use crate::worker::Shop;

/// Of a bill's bytes, at least this part is really there. The rest is for longer names, and for metrics of an invocation
/// that are written in two lines instead of one.
const USED_PART: f64 = 0.55;

#[expect(clippy::cast_precision_loss, reason = "a few thousand bytes")]
fn bytes(count: usize) -> f64 {
    count as f64
}

/// How many lines of a function's output have been counted.
#[derive(Default)]
struct Counted {
    stdout: usize,
    stderr: usize,
}

impl Counted {
    /// The bytes of the lines that so many invocations have written since, as its logs would be billed, and all lines as
    /// counted. During an invocation metrics are written ten times a second: what a slow machine writes again counts once
    /// for each invocation.
    fn bytes_since(&self, function: &Function, invocations: usize) -> (f64, Self) {
        let (stdout, stderr) = (function.stdout(), function.stderr());
        let mut written = HashMap::new();
        let is_new = |line: &&str| {
            let document: Value = serde_json::from_str(line).unwrap();
            let labels = document["_aws"]["CloudWatchMetrics"][0]["Dimensions"][0].as_array().unwrap();
            let labels: Vec<_> =
                labels.iter().filter_map(|label| document[label.as_str()?].as_str()).collect();
            let metrics = format!("{} {labels:?}", document["_aws"]["CloudWatchMetrics"]);
            let times = written.entry(metrics).or_insert(0);
            *times += 1;
            *times <= invocations
        };
        let metrics = stdout.lines().skip(self.stdout).filter(is_new);
        let all = metrics.chain(stderr.lines().skip(self.stderr));
        let new = all.map(|line| bytes(line.len()) + cost::LOG_LINE_BYTES).sum();
        (new, Self { stdout: stdout.lines().count(), stderr: stderr.lines().count() })
    }
}

/// Checks what an invocation of the function has written since the last call with the same state. Its lines may arrive
/// after its answer.
async fn is_logged(function: &Function, counted: &mut Counted, units: Units, what: &str) {
    are_logged(1, function, counted, units, what).await;
}

/// The same of several invocations.
async fn are_logged(
    invocations: usize,
    function: &Function,
    counted: &mut Counted,
    units: Units,
    what: &str,
) {
    let so_far = || counted.bytes_since(function, invocations).0;
    let is_written = async || (so_far() >= units.log_bytes * USED_PART).then_some(());
    until(what, is_written).await;
    let (new, all) = counted.bytes_since(function, invocations);
    *counted = all;
    let log = function.stdout() + &function.stderr();
    assert!(new <= units.log_bytes, "{what}: {new} bytes, and the bill has {}:\n{log}", units.log_bytes);
}

/// The metrics that a function has written: their names with the values of their labels.
fn written_metrics(function: &Function) -> BTreeSet<String> {
    let documents = function.stdout();
    let documents = documents.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let all = documents.flat_map(|document| {
        let directive = &document["_aws"]["CloudWatchMetrics"][0];
        let labels = directive["Dimensions"][0].as_array().unwrap().iter();
        let labels: Vec<&str> = labels.filter_map(|label| document[label.as_str()?].as_str()).collect();
        let names = directive["Metrics"].as_array().unwrap().iter();
        names.map(|metric| format!("{} {labels:?}", metric["Name"])).collect::<Vec<_>>()
    });
    all.collect()
}

/// The size of a value, as `DynamoDB` counts it ("Item sizes and formats" in its developer guide).
fn size(value: &AttributeValue) -> f64 {
    match value {
        AttributeValue::S(text) => bytes(text.len()),
        AttributeValue::N(digits) => bytes(digits.len().div_ceil(2) + 1),
        AttributeValue::B(blob) => bytes(blob.as_ref().len()),
        AttributeValue::Ns(numbers) => numbers.iter().map(|digits| bytes(digits.len().div_ceil(2) + 1)).sum(),
        AttributeValue::Ss(texts) => texts.iter().map(|text| bytes(text.len())).sum(),
        AttributeValue::Bool(_) | AttributeValue::Null(_) => 1.0,
        AttributeValue::L(list) => 3.0 + list.iter().map(|value| size(value) + 1.0).sum::<f64>(),
        AttributeValue::M(map) => {
            3.0 + map.iter().map(|(name, value)| bytes(name.len()) + size(value) + 1.0).sum::<f64>()
        }
        other => panic!("no such values: {other:?}"),
    }
}

fn part(item: &HashMap<String, AttributeValue>, names: &[&str]) -> f64 {
    let attributes = item.iter().filter(|(name, _)| names.contains(&name.as_str()));
    cost::ITEM_BYTES + attributes.map(|(name, value)| bytes(name.len()) + size(value)).sum::<f64>()
}

/// The size of items with their index entries. The records of queues and ticks, one of each, are left out.
fn stored(items: &[HashMap<String, AttributeValue>]) -> f64 {
    let is_work = |item: &&HashMap<String, AttributeValue>| {
        !["queue#", "tick#"].iter().any(|kind| item["pk"].as_s().unwrap().starts_with(kind))
    };
    let of = |item: &HashMap<String, AttributeValue>| {
        let all: Vec<&str> = item.keys().map(String::as_str).collect();
        let due = ["pk", "sk", "due_shard", "due_at", "due_kind"];
        let list = ["pk", "sk", "list_key", "list_at"];
        let all_workflows = ["pk", "sk", "all_key", "list_at"];
        let in_index =
            |key: &str, names: &[&str]| if item.contains_key(key) { part(item, names) } else { 0.0 };
        part(item, &all)
            + in_index("due_shard", &due)
            + in_index("list_key", &list)
            + in_index("all_key", &all_workflows)
    };
    items.iter().filter(is_work).map(of).sum()
}

#[track_caller]
fn is_stored(items: &[HashMap<String, AttributeValue>], units: Units) {
    let (found, billed) = (stored(items), units.stored_bytes);
    assert!(found <= billed, "{found} bytes, and the bill has {billed}");
    assert!(found >= billed * USED_PART, "only {found} bytes, and the bill has {billed}");
}

#[tokio::test]
async fn an_order_writes_the_bytes_and_the_metrics_of_the_bill() {
    let shop = Shop::logging("info", "essential").await;
    let order = json!({"number": 7, "boxes": ["books", "lamps"], "second_thoughts": "1s"});
    shop.order("order-1234567", order).await;
    let mut counted = Counted::default();
    let mut turn = async |messages, units: Units, what| {
        // Each in an invocation of its own, as under a moderate load.
        for message in shop.messages(messages).await {
            assert_eq!(shop.deliver(vec![message]).await, 0);
        }
        are_logged(messages, &shop.worker, &mut counted, units, what).await;
    };
    // Starting the remote steps is part of their wait.
    let starts = cost::TURN.and(cost::JOIN);
    turn(1, starts.and(cost::WAIT.times(-1.0)), "the first turn").await;
    turn(2, cost::REMOTE_STEP.times(2.0), "the remote steps").await;
    turn(1, cost::WAIT, "the turn after them").await;
    turn(1, cost::SLEEP, "the turn after the sleep").await;
    let record = shop.record("order-1234567").await;
    let shipped = Json::parse(r#"{"carrier":"a bicycle"}"#);
    shop.service.send_event(&record.id, EventName::parse("shipped").unwrap(), None, shipped).await.unwrap();
    turn(1, cost::WAIT.and(cost::CLOSE), "the last turn").await;

    let whole = cost::START.and(cost::TURN).and(cost::REMOTE_STEP.times(2.0)).and(cost::JOIN);
    let whole = whole.and(cost::SLEEP).and(cost::WAIT).and(cost::CLOSE);
    is_stored(&shop.deployment.items().await, whole);
    let written = written_metrics(&shop.worker);
    assert_eq!(written.len(), usize::from(metrics::EXECUTIONS + metrics::TASKS), "{written:#?}");
}

#[tokio::test]
async fn tasks_and_ticks_write_the_bytes_of_the_bill() {
    let deployment = Deployment::new().await;
    let info = [("TICKOVER_LOG", "info"), ("TICKOVER_METRICS", "essential")];
    let schedule = deployment.start_with("schedule", &info).await;
    let claim = deployment.start_with("claim", &info).await;
    let complete = deployment.start_with("complete", &info).await;
    let tick = deployment.start_with("tick", &info).await;
    let (mut by_complete, mut by_tick) = (Counted::default(), Counted::default());

    let lease = running_task(&schedule, &claim, "welcome-1234567", json!({})).await;
    is_logged(&schedule, &mut Counted::default(), cost::SCHEDULE, "a schedule").await;
    is_logged(&claim, &mut Counted::default(), cost::CLAIM, "a claim").await;
    let report = json!({"id": "welcome-1234567", "lease": lease, "output": {"sent": true}});
    complete.invoke(report).await.unwrap();
    is_logged(&complete, &mut by_complete, cost::COMPLETE, "a completion").await;
    is_stored(&deployment.items().await, cost::SCHEDULE);

    let retry = json!({"retry": "fixed(1, 1s)"});
    let lease = running_task(&schedule, &claim, "welcome-1234568", retry).await;
    let error = json!({"code": "smtp", "message": "it broke"});
    let report = json!({"id": "welcome-1234568", "lease": lease, "error": error});
    complete.invoke(json!({"v": 1, "type": "fail", "body": report})).await.unwrap();
    is_logged(&complete, &mut by_complete, cost::RETRY, "a retry").await;

    let late = waiting_task(&schedule, "welcome-1234569", json!({"timeout": "1s"})).await;
    let at = Timestamp::parse_rfc3339(late["deadline_at"].as_str().unwrap()).unwrap();
    let timer = Timer { record: TaskId::parse("welcome-1234569").unwrap().into(), at, due_at: at };
    tick.invoke(batch("sqs_timers", [Wake::Timer(timer).body().unwrap()])).await.unwrap();
    is_logged(&tick, &mut by_tick, cost::END_BADLY, "a deadline that passed").await;
    tick.invoke(json!({})).await.unwrap();
    is_logged(&tick, &mut by_tick, cost::TICK, "a tick").await;
}
