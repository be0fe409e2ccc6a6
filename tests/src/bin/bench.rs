//! Benchmarks: one JSON line a figure. They print, they never fail; ratios are taken within one run.

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::limits::Limits;
use tickover_core::payload::Json;
use tickover_dynamodb::{DynamoStore, Table};
use tickover_embedded::dynamodb::Embedded;
use tickover_service::memory::{MemoryQueue, Queues};
use tickover_service::ports::Clock;
use tickover_service::system::{SystemClock, SystemIds};
use tickover_service::{Ports, Service};
use tickover_tests::scene::{claim_request, queue_name, request};

/// Calls under way at once.
const AT_ONCE: usize = 16;
const INPUT: &str = r#"{"to":"ada@example.com","template":"welcome"}"#;

#[tokio::main]
async fn main() -> Result<()> {
    let only = std::env::args().nth(1);
    let wanted = |name: &str| only.as_deref().is_none_or(|only| name.contains(only));
    if wanted("lives-memory") {
        lives("lives-memory", &Embedded::memory()?, 6_000).await?;
    }
    if wanted("lives-file") {
        let folder = tempfile::tempdir()?;
        lives("lives-file", &Embedded::file(&folder.path().join("bench.db"))?, 1_500).await?;
    }
    Ok(())
}

/// Whole task lives (schedule, claim, complete) beside raw `UpdateItem` calls on the same store.
async fn lives(name: &str, database: &Embedded, count: usize) -> Result<()> {
    Table::new("tickover").create(&database.client()).await?;
    let service = service(database);
    run_lives(&service, count / 10).await?;
    let raw_before = raw_updates(&service, &database.client(), count).await?;
    let started = Instant::now();
    run_lives(&service, count).await?;
    let lives_per_s = rate(count, started);
    let raw_after = raw_updates(&service, &database.client(), count).await?;
    let raw_per_s = f64::midpoint(raw_before, raw_after);
    let line = serde_json::json!({
        "bench": name,
        "lives": count,
        "lives_per_s": lives_per_s.round(),
        "raw_updates_per_s": raw_per_s.round(),
        "ratio": (lives_per_s * 3.0 / raw_per_s * 100.0).round() / 100.0,
    });
    println!("{line}");
    Ok(())
}

fn service(database: &Embedded) -> Service {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let ports = Ports {
        store: Arc::new(DynamoStore::new(database.client(), "tickover")),
        queue: Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen)),
        clock,
        ids: Arc::new(SystemIds),
    };
    Service::new(ports, Limits::default())
}

async fn run_lives(service: &Service, count: usize) -> Result<()> {
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..AT_ONCE {
        let (service, queue) = (service.clone(), format!("bench-{worker}"));
        workers.spawn(async move {
            let name = queue_name(&queue);
            for _ in 0..count / AT_ONCE {
                service.schedule(request(&queue, None, Some(INPUT))).await?;
                let claimed = service.claim(&name, &claim_request(1)).await?;
                let task = claimed.first().context("what was scheduled can be claimed")?;
                service.complete(&task.task.id, &task.token, Json::parse("{\"ok\":true}")).await?;
            }
            anyhow::Ok(())
        });
    }
    finished(workers).await
}

/// Conditional updates of records as they are: the items of scheduled tasks, one attribute at a time.
async fn raw_updates(service: &Service, client: &Client, count: usize) -> Result<f64> {
    let mut items = Vec::new();
    for _ in 0..AT_ONCE {
        items.push(service.schedule(request("raw", None, Some(INPUT))).await?.task);
    }
    let started = Instant::now();
    let mut workers = tokio::task::JoinSet::new();
    for task in items {
        let client = client.clone();
        workers.spawn(async move {
            let text = |value: &str| AttributeValue::S(value.to_owned());
            for version in 1..=count / AT_ONCE {
                client
                    .update_item()
                    .table_name("tickover")
                    .key("pk", text(&format!("task#{}", task.id)))
                    .key("sk", text("task"))
                    .update_expression("SET ver = :next")
                    .condition_expression("ver = :now")
                    .expression_attribute_values(":now", AttributeValue::N(version.to_string()))
                    .expression_attribute_values(":next", AttributeValue::N((version + 1).to_string()))
                    .send()
                    .await?;
            }
            anyhow::Ok(())
        });
    }
    finished(workers).await?;
    Ok(rate(count, started))
}

async fn finished(mut workers: tokio::task::JoinSet<Result<()>>) -> Result<()> {
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a rate to be read by people")]
fn rate(count: usize, started: Instant) -> f64 {
    count as f64 / started.elapsed().as_secs_f64()
}
