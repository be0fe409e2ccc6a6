//! The command that the demo's workers run for each task: it reads JSON and writes JSON.

use std::io::Read as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use serde::Deserialize;
use serde_json::json;

/// How often the handler that never ends checks whether its worker still exists.
const ORPHAN_CHECK: Duration = Duration::from_millis(100);

/// When it ends in any case: the worker may have been killed before the handler read its parent's id.
const HANG_MAX: Duration = Duration::from_secs(10);

/// The demo's handlers.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Handler {
    /// Do the work that the input describes
    Work,
    /// Run until the worker is gone
    Hang,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Input {
    /// Words to count.
    Document { text: String },
    /// Lines to sum up.
    Invoice {
        lines: Vec<Line>,
        #[serde(default)]
        fails_before_attempt: u32,
    },
}

#[derive(Deserialize)]
struct Line {
    quantity: u64,
    price_cents: u64,
}

impl Handler {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Work => work(),
            Self::Hang => hang(),
        }
    }
}

fn work() -> anyhow::Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let output = match serde_json::from_str(&text).context("the input is no task of the demo's")? {
        Input::Document { text } => {
            let longest = text.split_whitespace().max_by_key(|word| word.len()).unwrap_or_default();
            json!({"words": text.split_whitespace().count(), "longest": longest})
        }
        Input::Invoice { lines, fails_before_attempt } => {
            let attempt = attempt()?;
            if attempt < fails_before_attempt {
                bail!("the price service is not there yet (attempt {attempt})");
            }
            let total: u64 = lines.iter().map(|line| line.quantity * line.price_cents).sum();
            json!({"total_cents": total})
        }
    };
    crate::show::answer(&output)
}

#[expect(clippy::disallowed_methods, reason = "this is the worker's interface to its command")]
fn attempt() -> anyhow::Result<u32> {
    Ok(std::env::var("TICKOVER_ATTEMPT")?.parse()?)
}

/// A killed worker can't end its command, so the command checks for its parent.
fn hang() -> anyhow::Result<()> {
    let worker = std::os::unix::process::parent_id();
    let started = Instant::now();
    while std::os::unix::process::parent_id() == worker && started.elapsed() < HANG_MAX {
        std::thread::sleep(ORPHAN_CHECK);
    }
    bail!("the worker has ended")
}
