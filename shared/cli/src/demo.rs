//! `tickover demo`: runs the whole system for a few seconds and checks every outcome.
//!
//! It starts a real server on a free port of this machine and workers in their own processes, and kills one of them
//! while it runs a task.

mod handler;
mod order;
mod orders;
mod plan;
mod report;
mod workers;

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use tickover::Client;
use tickover::client::Http;
use tickover_core::duration::Millis;
use tickover_core::id::{TaskId, WorkerName};
use tickover_core::limits::Limits;
use tickover_core::task::Status;
use tickover_embedded::{Local, Storage, Ticks};
use tickover_service::Service;
use tickover_wire::answer::{ClaimedView, TaskView};
use tickover_wire::request::{ClaimRequest, CompleteRequest};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::show::print;
use plan::{INTERRUPTED, OVERDUE, Planned};
use workers::Workers;

/// How often the tasks' statuses are read.
const POLL_EVERY: Duration = Duration::from_millis(50);
/// When the demo gives up.
const BOUND: Duration = Duration::from_secs(18);

/// Options of `tickover demo`.
#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Run the command of one of the demo's workers: reads a task's input, writes its result
    #[arg(long, hide = true)]
    handle: Option<handler::Handler>,
}

/// Runs the demo, or the command of one of its workers.
pub(crate) async fn run(args: DemoArgs) -> anyhow::Result<()> {
    if let Some(handler) = args.handle {
        return handler.run();
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    let local = Local::open(&Storage::Memory, Limits::default()).await?;
    let service = local.service().clone();
    let (stop, stopped) = oneshot::channel();
    let server = tokio::spawn(local.serve(listener, Ticks::default(), async {
        // Resolves when the demo asks the server to stop, or when the demo has been dropped.
        drop(stopped.await);
    }));
    let client = Client::from(Http::new(&endpoint)?.tries(1));
    let outcome = show(&client, &service, &endpoint).await;
    // Sending fails only if the server has already ended: then there is nothing to stop.
    let _already_ended = stop.send(());
    server.await??;
    outcome
}

async fn show(client: &Client, service: &Service, endpoint: &str) -> anyhow::Result<()> {
    let started = Instant::now();
    let plan = plan::plan()?;
    let bar = progress(plan.len());
    say(&bar, format!("a server with a tick each minute is listening on {endpoint}"));
    let mut workers = Workers::new(endpoint)?;

    let abandoned = abandon(client, &plan, &bar).await?;
    kill_a_worker(client, &plan, &mut workers, &bar).await?;
    for planned in plan.iter().filter(|planned| !planned.is_special()) {
        client.api().schedule(&planned.request).await.with_context(|| planned.id.to_string())?;
    }
    say(&bar, format!("{} tasks are scheduled; four workers start", plan.len()));
    workers.start(&["documents", "documents", "invoices", "invoices"])?;

    let tasks = watch(client, &plan, &bar, started).await?;
    let refusal = report_late(client, &abandoned, &bar).await?;
    workers.stop().await?;
    let timeline = orders::show(client, service, &bar).await?;
    bar.finish_and_clear();

    let unexpected = report::print(&plan, &tasks, &refusal, started.elapsed())?;
    print(&format!("\nThe order, step by step:\n{timeline}\n"))?;
    ensure!(unexpected == 0, "{unexpected} outcomes are not the expected ones");
    Ok(())
}

/// A worker claims a task and stops without a report. The task's deadline passes while no worker runs it.
async fn abandon(client: &Client, plan: &[Planned], bar: &ProgressBar) -> anyhow::Result<ClaimedView> {
    let planned = plan::find(plan, OVERDUE)?;
    client.api().schedule(&planned.request).await?;
    let worker = Some(WorkerName::parse("forgetful")?);
    let claim = ClaimRequest { worker, lease: Some(Millis::from_secs(60).into()), ..ClaimRequest::default() };
    let claimed = client.api().claim(planned.queue()?, &claim).await?.tasks.pop();
    say(bar, format!("{OVERDUE}: a worker claimed it and stopped without a report"));
    claimed.with_context(|| format!("{OVERDUE} can be claimed"))
}

/// A worker is killed while it runs a task. Another worker takes the task over when the lease expires.
async fn kill_a_worker(
    client: &Client,
    plan: &[Planned],
    workers: &mut Workers,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let planned = plan::find(plan, INTERRUPTED)?;
    client.api().schedule(&planned.request).await?;
    let mut hanging = workers.start_hanging(planned.queue()?.as_str())?;
    let id = &planned.id;
    let started = Instant::now();
    while describe(client, id).await?.status != Status::Running {
        ensure!(started.elapsed() < BOUND, "the worker never claimed {INTERRUPTED}");
        tokio::time::sleep(POLL_EVERY).await;
    }
    // SIGKILL: the worker can't report anything.
    hanging.kill().await?;
    say(bar, format!("{INTERRUPTED}: its worker was killed in the middle of it"));
    Ok(())
}

/// The worker that stopped reports a result after the deadline.
async fn report_late(client: &Client, task: &ClaimedView, bar: &ProgressBar) -> anyhow::Result<String> {
    let report = CompleteRequest { lease: task.lease.clone(), output: None };
    match client.api().complete(&task.id, &report).await {
        Ok(_) => bail!("the late result of {OVERDUE} was accepted"),
        Err(error) => {
            let code = error.code().unwrap_or("no answer").to_owned();
            say(bar, format!("{OVERDUE}: its worker reported too late and was refused: {code}"));
            Ok(code)
        }
    }
}

/// Reads the tasks until all have ended. Returns them in the order of the plan.
async fn watch(
    client: &Client,
    plan: &[Planned],
    bar: &ProgressBar,
    started: Instant,
) -> anyhow::Result<Vec<TaskView>> {
    let mut tasks: Vec<Option<TaskView>> = vec![None; plan.len()];
    while started.elapsed() < BOUND {
        for (planned, seen) in plan.iter().zip(&mut tasks) {
            if seen.is_some() {
                continue;
            }
            let task = describe(client, &planned.id).await?;
            if !task.is_live() {
                say(bar, report::progress_line(&task));
                bar.inc(1);
                *seen = Some(task);
            }
        }
        if tasks.iter().all(Option::is_some) {
            return Ok(tasks.into_iter().flatten().collect());
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
    bail!("not all tasks have ended after {} s", BOUND.as_secs())
}

async fn describe(client: &Client, id: &TaskId) -> anyhow::Result<TaskView> {
    Ok(client.api().task(id).await?.task)
}

/// Prints a line above the progress bar, or to standard error if the bar is hidden.
fn say(bar: &ProgressBar, line: String) {
    if bar.is_hidden() {
        crate::show::say(&line);
    } else {
        bar.println(line);
    }
}

fn progress(tasks: usize) -> ProgressBar {
    let bar = ProgressBar::new(u64::try_from(tasks).unwrap_or(u64::MAX));
    let style = ProgressStyle::with_template("{bar:32} {pos} of {len} tasks have ended, {elapsed}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
