//! The rate of the store itself: conditional updates of one attribute in existing records.

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

/// The number of updates and the time that they took.
#[derive(Clone, Copy)]
pub(crate) struct Raw {
    pub(crate) per_s: f64,
    pub(crate) processor_s_each: Option<f64>,
}

impl Raw {
    /// The mean of a measurement before and a measurement after.
    pub(crate) fn between(self, other: Self) -> Self {
        let both = self.processor_s_each.zip(other.processor_s_each);
        let processor_s_each = both.map(|(before, after)| f64::midpoint(before, after));
        Self { per_s: f64::midpoint(self.per_s, other.per_s), processor_s_each }
    }
}

/// What an update changes besides the version.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing: no index is touched.
    VersionOnly,
    /// The keys of the indexes: out of the list of dead tasks, and into the due index. A timeout makes the opposite
    /// change.
    Place,
}

/// Updates each of these records `times` times, with [`AT_ONCE`] updates in flight.
pub(crate) async fn updates(client: &Client, tasks: &[Task], times: usize, change: Change) -> Result<Raw> {
    let (started, processor) = (Instant::now(), processor_s());
    let mut workers = JoinSet::new();
    for share in tasks.chunks(tasks.len().div_ceil(AT_ONCE).max(1)) {
        let (client, share) = (client.clone(), share.to_vec());
        workers.spawn(async move {
            for task in share {
                let first = usize::try_from(task.version)?;
                for version in first..first + times {
                    update(&client, &task, version, change).await?;
                }
            }
            anyhow::Ok(())
        });
    }
    finished(workers).await?;
    let count = tasks.len() * times;
    Ok(Raw { per_s: rate(count, started), processor_s_each: processor_s_each(count, processor) })
}

async fn update(client: &Client, task: &Task, version: usize, change: Change) -> Result<()> {
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let number = |value: usize| AttributeValue::N(value.to_string());
    let update = client
        .update_item()
        .table_name(TABLE)
        .key("pk", text(&format!("task#{}", task.id)))
        .key("sk", text("task"))
        .condition_expression("ver = :now")
        .expression_attribute_values(":now", number(version))
        .expression_attribute_values(":next", number(version + 1));
    let update = match change {
        Change::VersionOnly => update.update_expression("SET ver = :next"),
        Change::Place => update
            .update_expression(
                "SET ver = :next, due_shard = :shard, due_at = :at, due_kind = :kind REMOVE list_key, list_at",
            )
            .expression_attribute_values(":shard", text("0"))
            .expression_attribute_values(":at", number(version))
            .expression_attribute_values(":kind", text("b")),
    };
    update.send().await?;
    Ok(())
}

/// Waits for all, and returns the first error.
pub(crate) async fn finished(mut workers: JoinSet<Result<()>>) -> Result<()> {
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    Ok(())
}

/// Processor time since `since`, divided by `count`.
pub(crate) fn processor_s_each(count: usize, since: Option<f64>) -> Option<f64> {
    Some((processor_s()? - since?) / float(count))
}

/// The rate per second.
pub(crate) fn rate(count: usize, started: Instant) -> f64 {
    float(count) / started.elapsed().as_secs_f64()
}
