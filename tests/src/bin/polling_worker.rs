//! A worker as it runs in a container: a process of its own that polls its queues. Its steps wait at gates, which are
//! files, so that a test decides what happens while a step runs.
//!
//! ```text
//! polling_worker LEASE GRACE     such as `polling_worker 10m 20s`
//! polling_worker start ID        starts an errand straight in the table, signs for it, and prints its log
//! polling_worker note KEY        schedules a task under this idempotency key, which has two seconds to start
//! ```

#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "it prints why it can't start, and the log of an errand"
)]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tickover::prelude::*;
use tickover::{Millis, WorkerSettings};

/// How often a step checks whether its gate is open.
const CHECK_EVERY: Duration = Duration::from_millis(20);
/// A poll this short ends before a worker that is asked to stop would cancel it.
const POLL: Millis = Millis::from_secs(1);

/// The input of the workflow.
#[derive(Clone, Serialize, Deserialize)]
struct Errand {
    /// The gate before the first parcel.
    gate: Option<PathBuf>,
    /// The parcels, carried one after the other.
    parcels: Vec<Parcel>,
    /// The file for the token with which somebody signs, in place of the event.
    #[serde(default)]
    letter: Option<PathBuf>,
}

/// The input of a step.
#[derive(Clone, Serialize, Deserialize)]
struct Parcel {
    name: String,
    /// The gate of this step.
    gate: Option<PathBuf>,
    /// Whether the step aborts its process.
    #[serde(default)]
    deadly: bool,
}

/// Writes to the gate's file that a step waits there, and waits until the file with the extension `.open` exists.
async fn wait_at_gate(gate: &Path) -> Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(gate)?;
    file.write_all(b"here\n")?;
    let open = gate.with_extension("open");
    let mut looks = tokio::time::interval(CHECK_EVERY);
    while !open.exists() {
        looks.tick().await;
    }
    Ok(())
}

#[tickover::step]
async fn pass(gate: Option<PathBuf>) -> Result<String> {
    if let Some(gate) = gate {
        wait_at_gate(&gate).await?;
    }
    Ok("passed".to_owned())
}

#[tickover::step(remote)]
async fn carry(parcel: Parcel) -> Result<String> {
    if let Some(gate) = &parcel.gate {
        wait_at_gate(gate).await?;
    }
    if parcel.deadly {
        std::process::abort();
    }
    Ok(format!("{} carried", parcel.name))
}

#[tickover::workflow("errand", queue = "emails", timeout = "1h")]
async fn run_errand(ctx: Ctx, errand: Errand) -> Result<Vec<String>> {
    let mut log = vec![ctx.step(pass(errand.gate)).await?];
    log.extend(ctx.join_all("carry", errand.parcels.into_iter().map(carry)).await?);
    let name: String = match errand.letter {
        None => ctx.wait_for_event("signed", within("1h")).await?,
        Some(letter) => {
            let callback = ctx.callback("signature", within("1h")).await?;
            let token = callback.token().to_owned();
            let post = move || {
                let written = std::fs::write(&letter, &token);
                async move { Ok::<(), Error>(written?) }
            };
            ctx.step(tickover::step("post", post)).await?;
            callback.result().await?
        }
    };
    log.push(format!("signed by {name}"));
    Ok(log)
}

/// Runs an errand from its start to its end, as a program beside the deployment does.
async fn ask(id: &str) -> std::result::Result<Vec<String>, Box<dyn std::error::Error>> {
    let parcel = Parcel { name: "books".to_owned(), gate: None, deadly: false };
    let client = tickover::Client::direct().await?;
    let run =
        client.start(&run_errand, Errand { gate: None, parcels: vec![parcel], letter: None }).id(id).await?;
    run.send_event("signed", "Ada").await?;
    Ok(run.result().await?)
}

/// Schedules a task, as a program beside the deployment does.
async fn note(key: &str) -> std::result::Result<Vec<String>, Box<dyn std::error::Error>> {
    let client = tickover::Client::direct().await?;
    let note = client.task::<()>("note", "remember").queue("emails").idempotency_key(key);
    Ok(vec![note.schedule_to_start_timeout("2s").await?.id().to_string()])
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [what @ ("start" | "note"), about] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        let done = if what == "start" { ask(about).await } else { note(about).await };
        return match done {
            Ok(log) => {
                println!("{}", log.join(", "));
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let spans: Vec<_> = arguments.iter().map(|text| Millis::parse(text)).collect();
    let [Ok(lease), Ok(grace)] = spans[..] else {
        eprintln!("usage: polling_worker LEASE GRACE | start ID | note KEY");
        return ExitCode::from(2);
    };
    let settings = WorkerSettings { lease, grace, wait: POLL, ..WorkerSettings::default() };
    tickover::serve((run_errand,)).settings(settings).step::<carry>().await;
    ExitCode::SUCCESS
}
