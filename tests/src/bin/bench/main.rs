//! Benchmarks: one JSON line for each figure. They print figures and check no bounds; ratios are taken within one run.
//!
//! ```text
//! bench            all of them
//! bench NAME       those with NAME in their names: lives-memory, lives-file, sweep-memory, sweep-file, idle,
//!                  keys, workflows-memory, workflows-file, fan-out, waits, lateness-dev, lateness-sqs
//! ```

#![expect(clippy::print_stdout, reason = "the output is the result of the program")]

mod clock;
mod flows;
mod idle;
mod keys;
mod lateness;
mod lives;
mod raw;
mod sweep;
mod used;
mod workflows;

use anyhow::Result;
use serde_json::Value;
use tickover_embedded::dynamodb::Embedded;

/// Calls in flight at once.
const AT_ONCE: usize = 16;

#[tokio::main]
async fn main() -> Result<()> {
    let only = std::env::args().nth(1);
    let wanted = |name: &str| only.as_deref().is_none_or(|only| name.contains(only));
    if wanted("lives-memory") {
        lives::run("lives-memory", &Embedded::memory()?, 6_000).await?;
    }
    if wanted("lives-file") {
        let folder = tempfile::tempdir()?;
        lives::run("lives-file", &Embedded::file(&folder.path().join("bench.db"))?, 1_500).await?;
    }
    if wanted("sweep-memory") {
        sweep::run("sweep-memory", &Embedded::memory()?, 100_000).await?;
    }
    // Fewer tasks, because each write waits for the disk. This run shows what memory is used beside the store's own.
    if wanted("sweep-file") {
        let folder = tempfile::tempdir()?;
        sweep::run("sweep-file", &Embedded::file(&folder.path().join("bench.db"))?, 20_000).await?;
    }
    if wanted("keys") {
        keys::run("keys").await?;
    }
    if wanted("workflows-memory") {
        workflows::rates("workflows-memory", &Embedded::memory()?, 5_000).await?;
    }
    if wanted("workflows-file") {
        let folder = tempfile::tempdir()?;
        workflows::rates("workflows-file", &Embedded::file(&folder.path().join("bench.db"))?, 2_000).await?;
    }
    if wanted("fan-out") {
        workflows::fan_outs("fan-out-memory", &Embedded::memory()?).await?;
        let folder = tempfile::tempdir()?;
        workflows::fan_outs("fan-out-file", &Embedded::file(&folder.path().join("bench.db"))?).await?;
    }
    if wanted("waits") {
        workflows::lateness("waits").await?;
    }
    if wanted("idle") {
        idle::run().await?;
    }
    // Side by side, because each of them mostly waits, for minutes.
    futures::try_join!(
        lateness::dev(wanted("lateness-dev")), //
        lateness::sqs(wanted("lateness-sqs")),
    )?;
    Ok(())
}

/// Prints one figure as one line.
fn print(figure: &Value) {
    println!("{figure}");
}

/// Rounds to so many decimals, for people to read.
fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value * scale).round() / scale
}

/// A count as a float. Counts of a benchmark are far below the largest integer that a float holds exactly.
#[expect(clippy::cast_precision_loss, reason = "the count is for people to read")]
fn float(count: usize) -> f64 {
    count as f64
}
