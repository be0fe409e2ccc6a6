//! Whole task lives (schedule, claim, complete) beside raw updates by the same engine.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::json;
use tickover_core::limits::Limits;
use tickover_core::payload::Json;
use tickover_service::memory::{MemoryQueue, Queues};
use tickover_service::ports::Clock;
use tickover_service::system::{SystemClock, SystemIds};
use tickover_service::{Ports, Service};
use tickover_tests::scene::{claim_request, queue_name, request};
use tokio::task::JoinSet;

use crate::raw::{self, finished, rate};
use crate::{AT_ONCE, Disk, print};

const INPUT: &str = r#"{"to":"ada@example.com","template":"welcome"}"#;

/// Record writes of a life.
const WRITES: f64 = 3.0;

/// Lives per second, and the raw rate before and after them.
pub(crate) async fn run(name: &str, disk: &Disk, count: usize) -> Result<()> {
    let service = service(disk)?;
    run_lives(&service, count / 10).await?;
    let raw_before = raw::updates(disk.folder(), count).await?;
    let started = Instant::now();
    run_lives(&service, count).await?;
    let lives_per_s = rate(count, started);
    let raw = raw_before.between(raw::updates(disk.folder(), count).await?);
    print(&json!({
        "bench": name,
        "lives": count,
        "lives_per_s": lives_per_s.round(),
        "engine": raw.figures(lives_per_s * WRITES),
    }));
    Ok(())
}

fn service(disk: &Disk) -> Result<Service> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let ports = Ports {
        store: Arc::new(disk.store()?),
        queue: Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen)),
        clock,
        ids: Arc::new(SystemIds),
    };
    Ok(Service::new(ports, Limits::default()))
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
