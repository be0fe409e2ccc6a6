//! Whole task lives (schedule, claim, complete) beside raw `UpdateItem` calls on the same store.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::json;
use tickover_core::limits::Limits;
use tickover_core::payload::Json;
use tickover_dynamodb::{DynamoStore, Table};
use tickover_embedded::dynamodb::Embedded;
use tickover_service::memory::{MemoryQueue, Queues};
use tickover_service::ports::Clock;
use tickover_service::system::{SystemClock, SystemIds};
use tickover_service::{Ports, Service};
use tickover_tests::scene::{claim_request, queue_name, request};
use tokio::task::JoinSet;

use crate::raw::{self, Change, Raw, TABLE, finished, rate};
use crate::{AT_ONCE, print, rounded};

const INPUT: &str = r#"{"to":"ada@example.com","template":"welcome"}"#;

/// Lives per second, and the raw rate before and after them.
pub(crate) async fn run(name: &str, database: &Embedded, count: usize) -> Result<()> {
    Table::new(TABLE).create(&database.client()).await?;
    let service = service(database);
    run_lives(&service, count / 10).await?;
    let raw_before = raw_updates(&service, database, count).await?;
    let started = Instant::now();
    run_lives(&service, count).await?;
    let lives_per_s = rate(count, started);
    let raw_after = raw_updates(&service, database, count).await?;
    let raw = raw_before.between(raw_after);
    print(&json!({
        "bench": name,
        "lives": count,
        "lives_per_s": lives_per_s.round(),
        "raw_updates_per_s": raw.per_s.round(),
        "ratio": rounded(lives_per_s * 3.0 / raw.per_s, 2),
    }));
    Ok(())
}

fn service(database: &Embedded) -> Service {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let ports = Ports {
        store: Arc::new(DynamoStore::new(database.client(), TABLE)),
        queue: Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen)),
        clock,
        ids: Arc::new(SystemIds),
    };
    Service::new(ports, Limits::default())
}

async fn run_lives(service: &Service, count: usize) -> Result<()> {
    let mut workers = JoinSet::new();
    for worker in 0..AT_ONCE {
        let (service, queue) = (service.clone(), format!("bench-{worker}"));
        workers.spawn(async move {
            let name = queue_name(&queue);
            for _ in 0..count / AT_ONCE {
                service.schedule(request(&queue, None, Some(INPUT))).await?;
                let claimed = service.claim(&name, &claim_request(1)).await?;
                let task = claimed.first().context("a scheduled task to claim")?;
                service.complete(&task.task.id, &task.token, Json::parse("{\"ok\":true}")).await?;
            }
            anyhow::Ok(())
        });
    }
    finished(workers).await
}

async fn raw_updates(service: &Service, database: &Embedded, count: usize) -> Result<Raw> {
    let mut tasks = Vec::new();
    for _ in 0..AT_ONCE {
        tasks.push(service.schedule(request("raw", None, Some(INPUT))).await?.task);
    }
    raw::updates(&database.client(), &tasks, count / AT_ONCE, Change::VersionOnly).await
}
