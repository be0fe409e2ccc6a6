//! What the store itself can do: conditional updates of records as they are, one attribute at a time.

use std::time::Instant;

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use tickover_core::task::Task;
use tokio::task::JoinSet;

use crate::used::processor_s;
use crate::{AT_ONCE, float};

/// The table of all benchmarks.
pub(crate) const TABLE: &str = "tickover";

/// Updates, and what they took.
#[derive(Clone, Copy)]
pub(crate) struct Raw {
    pub(crate) per_s: f64,
    pub(crate) processor_s_each: Option<f64>,
}

impl Raw {
    /// Halfway between what was before and what is after.
    pub(crate) fn between(self, other: Self) -> Self {
        let both = self.processor_s_each.zip(other.processor_s_each);
        let processor_s_each = both.map(|(before, after)| f64::midpoint(before, after));
        Self { per_s: f64::midpoint(self.per_s, other.per_s), processor_s_each }
    }
}

/// Updates each of these records so many times, [`AT_ONCE`] at once.
pub(crate) async fn updates(client: &Client, tasks: &[Task], times: usize) -> Result<Raw> {
    let (started, processor) = (Instant::now(), processor_s());
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
    let count = tasks.len() * times;
    Ok(Raw { per_s: rate(count, started), processor_s_each: processor_s_each(count, processor) })
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

/// Processor time since then for each of so many.
pub(crate) fn processor_s_each(count: usize, since: Option<f64>) -> Option<f64> {
    Some((processor_s()? - since?) / float(count))
}

/// So many a second.
pub(crate) fn rate(count: usize, started: Instant) -> f64 {
    float(count) / started.elapsed().as_secs_f64()
}
