//! `tickover work`: makes any program a worker. It runs the command once for each claimed task.
//!
//! `pool` claims tasks, and `attempt` runs one from its claim to its report. In it, `process` is the running command,
//! `sign` reads its signs of life, `lease` sends the heartbeats, `report` sends the outcome, and `guard` ends the commands of
//! a worker that was killed.

mod attempt;
mod backoff;
mod capture;
mod claim_failures;
pub(crate) mod guard;
mod lease;
mod pool;
mod process;
mod report;
mod result;
mod sign;
mod stop;
mod tally;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tickover::Client;
use tickover_core::duration::Millis;
use tickover_core::id::{Capability, QueueName, WorkerName, WorkerVersion};
use tickover_core::limits::{LEASE_RANGE, WAIT_MAX, WORKER_MAX};

use crate::argument::{Usage, duration, duration_or_zero, name};
use crate::show::say;
use crate::system::Place;

use guard::Guard;
use pool::{Bounds, Pool};
use stop::Stop;
use tally::Heartbeats;

/// How long a claim waits by default. With `--direct`, longer waits are cheaper, and nobody else pays for them.
const WAIT_OVER_HTTP: Millis = Millis::from_secs(5);
/// The exit status of a program that Ctrl-C interrupted.
const INTERRUPTED: u8 = 130;

/// Options of `tickover work`.
#[derive(clap::Args, Debug)]
pub(crate) struct WorkArgs {
    /// The queue to claim tasks from
    #[arg(value_parser = name(QueueName::parse))]
    queue: QueueName,
    /// How many tasks to run at once
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    concurrency: u16,
    /// How long the lease of a task lasts without a heartbeat
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = lease_length)]
    lease: Millis,
    /// Time between the heartbeats that keep the lease, 0 for none; by default a third of the lease. A task's own
    /// heartbeat timeout asks for signs of life of its command: output, or a line such as `::progress 0.4`
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero)]
    heartbeat: Option<Millis>,
    /// What the worker provides, such as `gpu`: tasks that require anything else are left to others; may be repeated
    #[arg(long, value_name = "NAME", value_parser = name(Capability::parse))]
    provides: Vec<Capability>,
    /// The worker's name; by default the host's name and the process id
    #[arg(long, value_name = "NAME", value_parser = name(WorkerName::parse))]
    worker: Option<WorkerName>,
    /// The version of its code, for the list of workers
    #[arg(long, value_name = "VERSION", value_parser = name(WorkerVersion::parse))]
    code_version: Option<WorkerVersion>,
    /// How long each claim may wait for a task, at most 20s; by default 5s, with --direct 20s. The worker ends only
    /// after its last claim is answered
    #[arg(long, value_name = "DURATION", value_parser = wait_length)]
    wait: Option<Millis>,
    /// Time between SIGTERM and SIGKILL for a command that has to end
    #[arg(long, default_value = "5s", value_name = "DURATION", value_parser = duration_or_zero)]
    grace: Millis,
    /// End after this many tasks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tasks: Option<u64>,
    /// End after this long without a task
    #[arg(long, value_name = "DURATION", value_parser = duration_or_zero)]
    idle_exit: Option<Millis>,
    /// Use the table and the queues of the stack that --stack names, instead of its HTTP API
    #[arg(long)]
    pub(crate) direct: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The data that all attempts of this worker share.
#[derive(Debug)]
struct Worker {
    client: Client,
    /// For messages and for the command's environment.
    place: Place,
    queue: QueueName,
    name: WorkerName,
    version: Option<WorkerVersion>,
    command: Vec<OsString>,
    provides: Vec<Capability>,
    lease: Millis,
    /// Time between the heartbeats that keep a lease; `None` to send none.
    heartbeat_every: Option<Duration>,
    grace: Duration,
    heartbeats: Heartbeats,
    guard: Guard,
}

/// Runs until it is asked to stop or has reached a limit.
pub(crate) async fn run(args: WorkArgs, client: Client, place: Place) -> anyhow::Result<ExitCode> {
    let stop = Stop::listen()?;
    let concurrency = usize::from(args.concurrency);
    let bounds = Bounds {
        concurrency,
        wait: args.wait.unwrap_or(if args.direct { WAIT_MAX } else { WAIT_OVER_HTTP }),
        max_tasks: args.max_tasks,
        idle_exit: args.idle_exit.map(Duration::from),
    };
    if let Some(every) = args.heartbeat.filter(|every| *every >= args.lease) {
        let lease = args.lease;
        let message = format!(
            "a lease of {lease} is lost before a heartbeat after {every}: --heartbeat must be less than --lease"
        );
        return Err(Usage(message).into());
    }
    let heartbeat_every = args.heartbeat.map_or(Duration::from(args.lease) / 3, Duration::from);
    let worker = Arc::new(Worker {
        client,
        place,
        queue: args.queue,
        name: args.worker.map_or_else(own_name, Ok)?,
        version: args.code_version,
        command: args.command,
        provides: args.provides,
        lease: args.lease,
        heartbeat_every: (!heartbeat_every.is_zero()).then_some(heartbeat_every),
        grace: args.grace.into(),
        heartbeats: Heartbeats::default(),
        guard: Guard::start(),
    });
    let (name, queue, place) = (&worker.name, &worker.queue, &worker.place);
    say(&format!("worker {name} claims tasks of queue {queue} at {place}, {concurrency} at once"));
    let tally = Pool::new(Arc::clone(&worker), bounds, stop.clone()).work().await?;
    say(&format!("worker {name} ends: {tally}; heartbeats: {}", worker.heartbeats));
    Ok(if stop.is_aborting() { INTERRUPTED.into() } else { ExitCode::SUCCESS })
}

/// The host's name and the process id, in the characters that a worker's name allows.
fn own_name() -> anyhow::Result<WorkerName> {
    let host = nix::unistd::gethostname().unwrap_or_default();
    let pid = std::process::id().to_string();
    let capacity = WORKER_MAX - pid.len() - 1;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    let host: String =
        host.to_string_lossy().chars().map(|c| if allowed(c) { c } else { '-' }).take(capacity).collect();
    let host = if host.is_empty() { "worker" } else { &host };
    Ok(WorkerName::parse(format!("{host}-{pid}"))?)
}

fn lease_length(text: &str) -> Result<Millis, String> {
    let length = duration(text)?;
    let (shortest, longest) = LEASE_RANGE;
    if (shortest..=longest).contains(&length) {
        Ok(length)
    } else {
        Err(format!("must be from {shortest} to {longest}"))
    }
}

fn wait_length(text: &str) -> Result<Millis, String> {
    let wait = duration_or_zero(text)?;
    if wait <= WAIT_MAX { Ok(wait) } else { Err(format!("must be at most {WAIT_MAX}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_always_finds_a_name_for_itself() {
        let name = own_name().unwrap();
        assert!(name.as_str().ends_with(&format!("-{}", std::process::id())));
    }

    #[test]
    fn lengths_that_the_server_would_refuse_are_wrong_usage() {
        assert!(
            lease_length("999ms").is_err() && lease_length("13h").is_err() && lease_length("12h").is_ok()
        );
        assert!(wait_length("21s").is_err() && wait_length("0").is_ok());
    }
}
