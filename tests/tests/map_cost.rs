//! What maps cost an item, by `DynamoDB`'s own `ConsumedCapacity`, with the SDK's own worker.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::Arc;

use tickover::prelude::*;
use tickover::{Registry, Worker, WorkerSettings};
use tickover_core::id::{ExecutionId, QueueName, WorkflowName};
use tickover_core::limits::Limits;
use tickover_core::payload::Json;
use tickover_dynamodb::{DynamoStore, Table};
use tickover_service::executions::StartRequest;
use tickover_service::memory::{ManualClock, MemoryQueue, Queues};
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};
use tickover_tests::dynamodb::LocalDynamo;
use tickover_tests::scene::START;

const ITEMS: u32 = 1_000;
const PAGE: usize = 100;

#[tickover::step("double-it")]
async fn double(number: u32) -> Result<u32> {
    Ok(number * 2)
}

#[tickover::workflow("mapped")]
async fn mapped(ctx: Ctx, (is_remote, at_once): (bool, usize)) -> Result<usize> {
    let one = |number| if is_remote { double(number).remote() } else { double(number) };
    let results = ctx.map("double", 0..ITEMS, one).at_once(at_once).paged(PAGE).await?;
    Ok(results.len())
}

/// The write and read units of a map, for each item.
async fn each(is_remote: bool, at_once: usize) -> (f64, f64) {
    let database = LocalDynamo::memory().unwrap();
    Table::new("tickover").create(&database.client()).await.unwrap();
    let store = Arc::new(DynamoStore::new(database.client(), "tickover"));
    // It stands still: nothing is late, and no timeout passes.
    let clock = Arc::new(ManualClock::new(START));
    let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
    let ports = Ports { store: store.clone(), queue, clock, ids: Arc::new(SystemIds) };
    let service = Service::new(ports, Limits::default());
    let settings = WorkerSettings {
        wait: tickover::Millis::ZERO,
        heartbeat: false,
        concurrency: 100,
        ..WorkerSettings::default()
    };
    let registry = Registry::new().with(mapped).with_step::<double>();
    let worker = Worker::new(service.clone(), registry, settings).unwrap();
    let id = ExecutionId::parse("map").unwrap();
    let queue = QueueName::parse("workflows").unwrap();
    let before = store.usage();
    let request = StartRequest {
        id: Some(id.clone()),
        input: Json::parse(format!("[{is_remote},{at_once}]")),
        ..StartRequest::new(WorkflowName::parse("mapped").unwrap(), queue)
    };
    service.start(request).await.unwrap();
    while worker.run_once().await.unwrap() > 0 {}
    let output = service.execution(&id).await.unwrap().unwrap().output.unwrap();
    assert_eq!(output.as_str(), ITEMS.to_string());
    let used = store.usage().since(before);
    let items = f64::from(ITEMS);
    ((used.write_units + used.failed_condition_units) / items, used.read_units / items)
}

/// Items that end together are one write of their page's record. With 8 items at once, each page has one at a time.
#[tokio::test]
async fn an_inline_item_of_a_map_costs_less_than_a_third_of_a_write_unit_and_at_most_one_and_a_third() {
    let (together, reads) = each(false, 1_000).await;
    assert!(together <= 0.3 && reads <= 0.1, "{together} write units, {reads} read units");
    let (alone, reads) = each(false, 8).await;
    assert!(together < alone && alone <= 1.3 && reads <= 0.1, "{alone} write units, {reads} read units");
}

/// A remote item is a task: it costs what a remote step of a fan-out costs, and the turns of its page.
#[tokio::test]
async fn a_remote_item_of_a_map_costs_at_most_eight_write_units() {
    let (writes, reads) = each(true, 20).await;
    assert!((5.0..=8.0).contains(&writes) && reads <= 6.0, "{writes} write units, {reads} read units");
}
