//! What the engine itself can do: updates of records like ours, a group of them in each transaction, nothing above.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::used::processor_s;
use crate::{float, rounded};

/// The schema of the store, of which the raw rate is taken as well.
const SCHEMA: &str = include_str!("../../../../shared/sqlite/src/schema/1.sql");
/// Updates of one transaction.
const GROUP: usize = 17;
const RECORDS: usize = 1_000;
/// A record with its journal has about as many bytes.
const BODY: usize = 700;

/// Updates, and what they took.
#[derive(Clone, Copy)]
pub(crate) struct Raw {
    pub(crate) updates_per_s: f64,
    /// A transaction of [`GROUP`] updates, its sync included, at the median.
    commit_ms: f64,
}

impl Raw {
    /// Halfway between what was before and what is after.
    pub(crate) fn between(self, other: Self) -> Self {
        Self {
            updates_per_s: f64::midpoint(self.updates_per_s, other.updates_per_s),
            commit_ms: f64::midpoint(self.commit_ms, other.commit_ms),
        }
    }

    /// The figures, and which part of the raw rate so many record writes a second are.
    pub(crate) fn figures(&self, writes_per_s: f64) -> Value {
        json!({
            "raw_updates_per_s": self.updates_per_s.round(),
            "raw_commit_ms": rounded(self.commit_ms, 2),
            "ratio": rounded(writes_per_s / self.updates_per_s, 2),
        })
    }
}

/// Updates records, one transaction after the other, in a database beside the one in `folder`; in memory if that is
/// `None`.
pub(crate) async fn updates(folder: Option<&Path>, count: usize) -> Result<Raw> {
    let path = folder.map(|folder| folder.join("raw.db"));
    tokio::task::spawn_blocking(move || measure(path.as_deref(), count)).await?
}

fn measure(path: Option<&Path>, count: usize) -> Result<Raw> {
    let mut connection = path.map_or_else(Connection::open_in_memory, Connection::open)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    if !connection.table_exists(None, "record")? {
        connection.execute_batch(SCHEMA)?;
        let transaction = connection.transaction()?;
        for number in 0..RECORDS {
            transaction.execute(
                "INSERT INTO record (kind, id, version, nonce, wakes, due_shard, due_at, due_kind, has_hint, is_open,
                     body)
                 VALUES (0, ?1, 1, 1, 0, 0, ?2, 'b', 0, 0, ?3)",
                params![format!("task-{number:06}"), number, "x".repeat(BODY)],
            )?;
        }
        transaction.commit()?;
    }
    let mut took = vec![];
    let started = Instant::now();
    for group in 0..count.div_ceil(GROUP) {
        let began = Instant::now();
        let transaction = connection.transaction()?;
        for number in 0..GROUP {
            let mut update = transaction.prepare_cached(
                "UPDATE record SET version = version + 1, nonce = ?2, body = ?3 WHERE kind = 0 AND id = ?1",
            )?;
            let id = format!("task-{:06}", (group * GROUP + number) % RECORDS);
            update.execute(params![id, group, "y".repeat(BODY)])?;
        }
        transaction.commit()?;
        took.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    let updates_per_s = rate(count.div_ceil(GROUP) * GROUP, started);
    took.sort_by(f64::total_cmp);
    Ok(Raw { updates_per_s, commit_ms: took.get(took.len() / 2).copied().unwrap_or(f64::NAN) })
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
