//! What an execution consumes with the SDK's own worker, over the embedded database.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use tickover::{Registry, Worker, WorkerSettings};
use tickover_core::id::{ExecutionId, QueueName, WorkflowName};
use tickover_core::limits::Limits;
use tickover_core::payload::Json;
use tickover_dynamodb::{DynamoStore, Table};
use tickover_service::executions::StartRequest;
use tickover_service::memory::{ManualClock, MemoryQueue, Queues};
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};

use crate::dynamodb::LocalDynamo;
use crate::scene::START;

/// The units of an execution, and its output.
pub struct ExecutionBill {
    /// Write units, those of failed conditions included.
    pub writes: f64,
    pub reads: f64,
    pub output: String,
}

/// Runs an execution of this workflow to its end. The clock stands still: nothing is late, and no timeout passes.
pub async fn execution_bill(
    registry: Registry,
    workflow: &str,
    input: &str,
    limits: Limits,
) -> Result<ExecutionBill> {
    let database = LocalDynamo::memory()?;
    Table::new("tickover").create(&database.client()).await?;
    let store = Arc::new(DynamoStore::new(database.client(), "tickover"));
    let clock = Arc::new(ManualClock::new(START));
    let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
    let ports = Ports { store: store.clone(), queue, clock, ids: Arc::new(SystemIds) };
    let service = Service::new(ports, limits);
    let settings = WorkerSettings {
        wait: tickover::Millis::ZERO,
        heartbeat: Some(tickover::Millis::ZERO),
        concurrency: 100,
        ..WorkerSettings::default()
    };
    let worker = Worker::new(service.clone(), registry, settings)?;
    let id = ExecutionId::parse("one")?;
    let before = store.usage();
    let request = StartRequest {
        id: Some(id.clone()),
        input: Json::parse(input),
        ..StartRequest::new(WorkflowName::parse(workflow)?, QueueName::parse("workflows")?)
    };
    service.start(request).await?;
    while worker.run_once().await? > 0 {}
    let described = service.execution(&id).await?.context("it is gone")?;
    let output = described.output.context("it has no output")?;
    let used = store.usage().since(before);
    Ok(ExecutionBill {
        writes: used.write_units + used.failed_condition_units,
        reads: used.read_units,
        output: output.as_str().to_owned(),
    })
}
