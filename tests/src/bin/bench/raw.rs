//! What the store itself can do: conditional updates of records as they are, one attribute at a time.

use std::time::Instant;

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::task::Task;
use tokio::task::JoinSet;

use crate::{AT_ONCE, float};

/// The table of all benchmarks.
pub(crate) const TABLE: &str = "tickover";

/// Updates each of these records so many times, [`AT_ONCE`] at once, and answers updates per second.
pub(crate) async fn updates_per_s(client: &Client, tasks: &[Task], times: usize) -> Result<f64> {
    let started = Instant::now();
    let mut workers = JoinSet::new();
    for share in tasks.chunks(tasks.len().div_ceil(AT_ONCE).max(1)) {
        let (client, share) = (client.clone(), share.to_vec());
        workers.spawn(async move {
            for task in share {
                let first = usize::try_from(task.version)?;
                for version in first..first + times {
                    update(&client, &task, version).await?;
                }
            }
            anyhow::Ok(())
        });
    }
    finished(workers).await?;
    Ok(rate(tasks.len() * times, started))
}

async fn update(client: &Client, task: &Task, version: usize) -> Result<()> {
    let text = |value: &str| AttributeValue::S(value.to_owned());
    client
        .update_item()
        .table_name(TABLE)
        .key("pk", text(&format!("task#{}", task.id)))
        .key("sk", text("task"))
        .update_expression("SET ver = :next")
        .condition_expression("ver = :now")
        .expression_attribute_values(":now", AttributeValue::N(version.to_string()))
        .expression_attribute_values(":next", AttributeValue::N((version + 1).to_string()))
        .send()
        .await?;
    Ok(())
}

/// Waits for all, and fails with the first that failed.
pub(crate) async fn finished(mut workers: JoinSet<Result<()>>) -> Result<()> {
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    Ok(())
}

/// So many a second.
pub(crate) fn rate(count: usize, started: Instant) -> f64 {
    float(count) / started.elapsed().as_secs_f64()
}
