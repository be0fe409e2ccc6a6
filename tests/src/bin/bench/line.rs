//! The line of a limit on one machine, in a file: how many places a second go on to the next of very many, and how long
//! one takes that is behind very many that were cancelled.

use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::json;
use tickover_core::id::TaskId;
use tickover_tests::scene::queue_name;

use crate::flow::{System, key, limited};
use crate::raw::rate;
use crate::{Disk, print, rounded};

/// Tasks that wait at a key of which one runs at a time.
const WAITING: usize = 100_000;
/// Hand-overs that are timed.
const HANDOVERS: usize = 2_000;
/// Tasks that are cancelled while they wait ahead of one.
const CANCELLED: usize = 10_000;

/// Both.
pub(crate) async fn run(name: &str) -> Result<()> {
    handovers(name).await?;
    behind_cancelled(name).await
}

async fn handovers(name: &str) -> Result<()> {
    let disk = Disk::file()?;
    let system = System::on(&disk).await?;
    let (alone, queue) = (key("alone")?, queue_name("handed"));
    system.schedule("handed", 1, |_| limited(alone.clone(), 1)).await?;
    let mut running = system.next(&queue).await?;
    let began = Instant::now();
    system.schedule("handed", WAITING, |_| limited(alone.clone(), 1)).await?;
    let scheduled_per_s = rate(WAITING, began);
    let began = Instant::now();
    for _ in 0..HANDOVERS {
        system.service.complete(&running.task.id, &running.token, None).await?;
        running = system.next(&queue).await?;
    }
    print(&json!({
        "bench": name,
        "what": "places that go on to the next in a line",
        "waiting": WAITING,
        "scheduled_per_s": scheduled_per_s.round(),
        "handovers": HANDOVERS,
        "handovers_per_s": rate(HANDOVERS, began).round(),
    }));
    Ok(())
}

async fn behind_cancelled(name: &str) -> Result<()> {
    let disk = Disk::file()?;
    let system = System::on(&disk).await?;
    let (alone, queue) = (key("alone")?, queue_name("handed"));
    system.schedule("handed", 1, |_| limited(alone.clone(), 1)).await?;
    let running = system.next(&queue).await?;
    let ids = system.schedule("handed", CANCELLED + 1, |_| limited(alone.clone(), 1)).await?;
    let (live, cancelled): (&TaskId, &[TaskId]) = ids.split_last().context("tasks")?;
    for id in cancelled {
        system.service.cancel(id, false).await?;
    }
    let began = Instant::now();
    system.service.complete(&running.task.id, &running.token, None).await?;
    let next = system.next(&queue).await?;
    anyhow::ensure!(next.task.id == *live, "{} came instead of {live}", next.task.id);
    print(&json!({
        "bench": name,
        "what": "a task behind cancelled ones",
        "cancelled": CANCELLED,
        "took_s": rounded(began.elapsed().as_secs_f64(), 3),
    }));
    Ok(())
}
