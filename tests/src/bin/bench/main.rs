//! Benchmarks: one JSON line a figure. They print, they never fail; ratios are taken within one run.
//!
//! ```text
//! bench            all of them
//! bench NAME       those with NAME in their names: lives-memory, lives-file, http-memory,
//!                  http-file, backlog-memory, backlog-file, lists, page, idle-local, sweep-memory, sweep-file, idle,
//!                  keys, workflows-memory, workflows-file, fan-out, long, flow, waits, lateness-dev,
//!                  lateness-sqs
//! ```

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

mod clock;
mod flow;
mod flows;
mod idle;
mod keys;
mod lateness;
mod line;
mod lists;
mod lives;
mod local;
mod long;
mod page;
mod raw;
mod sweep;
mod used;
mod workflows;

use std::path::Path;

use anyhow::Result;
use serde_json::Value;
use tempfile::TempDir;
use tickover_embedded::Storage;
use tickover_sqlite::SqliteStore;

/// Calls under way at once.
const AT_ONCE: usize = 16;

#[tokio::main]
async fn main() -> Result<()> {
    let only = std::env::args().nth(1);
    let wanted = |name: &str| only.as_deref().is_none_or(|only| name.contains(only));
    // First: the memory that other benchmarks have used isn't all given back.
    if wanted("idle-local") {
        local::idle("idle-local", &Disk::file()?).await?;
    }
    if wanted("lives-memory") {
        lives::run("lives-memory", &Disk::memory(), 20_000).await?;
    }
    if wanted("lives-file") {
        lives::run("lives-file", &Disk::file()?, 20_000).await?;
    }
    if wanted("http-memory") {
        local::http("http-memory", &Disk::memory(), 20_000).await?;
    }
    if wanted("http-file") {
        local::http("http-file", &Disk::file()?, 20_000).await?;
    }
    if wanted("backlog-memory") {
        local::backlog("backlog-memory", &Disk::memory(), 100_000).await?;
    }
    if wanted("backlog-file") {
        local::backlog("backlog-file", &Disk::file()?, 1_000_000).await?;
    }
    if wanted("lists") {
        lists::run("lists", &Disk::file()?, 100_000).await?;
    }
    if wanted("page") {
        page::run("page", &Disk::file()?, 100_000, 20_000).await?;
    }
    if wanted("sweep-memory") {
        sweep::run("sweep-memory", &Disk::memory(), 20_000).await?;
    }
    if wanted("sweep-file") {
        sweep::run("sweep-file", &Disk::file()?, 20_000).await?;
    }
    if wanted("keys") {
        keys::run("keys").await?;
    }
    if wanted("workflows-memory") {
        workflows::rates("workflows-memory", &Disk::memory(), 5_000).await?;
    }
    if wanted("workflows-file") {
        workflows::rates("workflows-file", &Disk::file()?, 2_000).await?;
    }
    if wanted("fan-out") {
        workflows::fan_outs("fan-out-memory", &Disk::memory()).await?;
        workflows::fan_outs("fan-out-file", &Disk::file()?).await?;
    }
    if wanted("long") {
        long::run("long").await?;
    }
    if wanted("flow") {
        flow::run("flow", 100_000).await?;
    }
    if wanted("flow-line") {
        line::run("flow-line").await?;
    }
    if wanted("waits") {
        workflows::lateness("waits").await?;
    }
    if wanted("idle") {
        idle::run().await?;
    }
    // Side by side: they are there to wait, each for minutes.
    futures::try_join!(
        lateness::dev(wanted("lateness-dev")), //
        lateness::sqs(wanted("lateness-sqs")),
    )?;
    Ok(())
}

/// Where a benchmark has its records.
pub(crate) struct Disk(Option<TempDir>);

impl Disk {
    const fn memory() -> Self {
        Self(None)
    }

    fn file() -> Result<Self> {
        Ok(Self(Some(tempfile::tempdir()?)))
    }

    /// The folder of the file, if it is one.
    fn folder(&self) -> Option<&Path> {
        self.0.as_ref().map(TempDir::path)
    }

    /// Where a local server has its records there.
    fn storage(&self) -> Storage {
        self.folder().map_or(Storage::Memory, |folder| Storage::File(folder.join("local.db")))
    }

    /// The store.
    fn store(&self) -> Result<SqliteStore> {
        Ok(match self.folder() {
            Some(folder) => SqliteStore::file(&folder.join("bench.db"))?,
            None => SqliteStore::memory()?,
        })
    }
}

/// One figure, one line.
fn print(figure: &Value) {
    println!("{figure}");
}

/// To so many decimals, for people to read.
fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value * scale).round() / scale
}

/// A count for arithmetic. Those of a benchmark stay far below what a float holds exactly.
#[expect(clippy::cast_precision_loss, reason = "a count to be read by people")]
fn float(count: usize) -> f64 {
    count as f64
}
