//! Measures the functions as they are deployed, in processes that run as on Lambda: one JSON line for each figure. It
//! fails if a figure exceeds its bound. Bounds are on counts, sizes and ratios, never on time.
//!
//! ```text
//! measure FOLDER    the functions are there as tickover-NAME/bootstrap, and so is the empty one
//! ```

#![expect(clippy::print_stdout, reason = "the output is the result of the program")]

mod load;
mod start;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::json;

/// A cold start, as a multiple of the cold start of a function that does nothing.
const START_RATIO_MAX: f64 = 2.0;
/// The highest resident memory.
const PEAK_MIB_MAX: f64 = 40.0;

/// The functions to measure.
const FUNCTIONS: [&str; 6] = ["schedule", "claim", "complete", "tick", "gateway", "worker"];

/// The folder of the binaries.
struct Built(PathBuf);

impl Built {
    fn function(&self, name: &str) -> PathBuf {
        self.0.join(format!("tickover-{name}/bootstrap"))
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let folder = std::env::args().nth(1).context("the argument FOLDER is missing")?;
    let built = Built(Path::new(&folder).to_owned());
    let mut beyond = Vec::new();
    for start in start::all(&built).await? {
        println!("{}", start.line());
        if start.ratio > START_RATIO_MAX {
            beyond.push(format!(
                "{} takes {:.2} times as long to start as the empty function",
                start.name, start.ratio
            ));
        }
    }
    for used in load::all(&built).await? {
        let peak = rounded(used.peak_mib);
        println!(
            "{}",
            json!({"name": "memory", "function": used.name, "invocations": used.invocations, "peak_mib": peak})
        );
        if used.peak_mib > PEAK_MIB_MAX {
            beyond.push(format!("{} used {peak} MiB", used.name));
        }
    }
    ensure!(beyond.is_empty(), "over their bounds: {}", beyond.join("; "));
    Ok(())
}

/// Rounds to two decimals, for people to read.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
