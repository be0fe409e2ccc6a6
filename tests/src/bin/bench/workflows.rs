//! Executions of workflows written with the SDK: how many a second, how soon one has its result, and how late sleeps
//! and step timeouts are.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use tickover::{Registry, Worker, WorkerSettings};
use tickover_core::duration::Millis;
use tickover_core::execution::command::StartPolicy;
use tickover_core::execution::{ExecutionStatus, ExecutionTimeouts};
use tickover_core::id::{ExecutionId, QueueName, WorkflowName};
use tickover_core::limits::Limits;
use tickover_core::payload::Json;
use tickover_service::executions::StartRequest;
use tickover_service::memory::{MemoryQueue, Queues};
use tickover_service::ports::{Clock, Store};
use tickover_service::system::{SystemClock, SystemIds};
use tickover_service::{Ports, Service};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::flows::{double, fan_out, five, one, sleeper, step_timeout};
use crate::long::{long_events, long_sleeps, long_steps};
use crate::{Disk, float, print, raw, rounded};

/// Executions under way at once where the rate is asked for.
const IN_FLIGHT: usize = 50;
/// Steps of the fan-out.
const FAN_OUT: u32 = 100;
/// Sleeps, and step timeouts, side by side.
const SLEEPERS: usize = 200;
/// The time between two of them where they don't all begin at once.
const APART: Millis = Millis::new(10);
/// How long one execution may take.
const TIMEOUT: Millis = Millis::from_secs(20);

/// A service over a database, with a worker beside it in this process.
pub(crate) struct System {
    pub(crate) service: Service,
    stop: oneshot::Sender<()>,
    worker: JoinHandle<()>,
}

impl System {
    fn start(disk: &Disk) -> Result<Self> {
        Self::over(Arc::new(disk.store()?), Limits::default())
    }

    pub(crate) fn over(store: Arc<dyn Store>, limits: Limits) -> Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let ports = Ports {
            store,
            queue: Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen)),
            clock,
            ids: Arc::new(SystemIds),
        };
        let service = Service::new(ports, limits);
        let registry = Registry::new()
            .with((one, five, fan_out, sleeper, step_timeout))
            .with((long_steps, long_sleeps, long_events))
            .with_step::<double>();
        let settings = WorkerSettings { concurrency: 250, ..WorkerSettings::default() };
        let worker = Worker::new(service.clone(), registry, settings)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = tokio::spawn(async move { worker.run(async { drop(stopped.await) }).await });
        Ok(Self { service, stop, worker })
    }

    pub(crate) async fn end(self) -> Result<()> {
        drop(self.stop);
        Ok(self.worker.await?)
    }

    /// Runs so many executions, so many at once: how long all took, and each in milliseconds, in order.
    async fn run_many(&self, workflow: &str, count: usize, at_once: usize) -> Result<(Duration, Vec<f64>)> {
        let started = Instant::now();
        let mut took: Vec<f64> = stream::iter(0..count)
            .map(|number| async move {
                let began = Instant::now();
                run(&self.service, workflow, &json!(number)).await?;
                anyhow::Ok(began.elapsed().as_secs_f64() * 1_000.0)
            })
            .buffer_unordered(at_once)
            .collect::<Vec<_>>()
            .await
            .into_iter()
            .collect::<Result<_>>()?;
        took.sort_by(f64::total_cmp);
        Ok((started.elapsed(), took))
    }
}

/// Starts an execution and waits for its result.
async fn run(service: &Service, workflow: &str, input: &Value) -> Result<Value> {
    let id = start(service, workflow, input).await?;
    let ended = service.wait_for_execution(&id, TIMEOUT).await?.context("it exists")?;
    ensure!(ended.execution.status() == ExecutionStatus::Completed, "{:?}", ended.execution);
    Ok(ended.output.map(|json| serde_json::from_str(json.as_str())).transpose()?.unwrap_or_default())
}

/// Starts an execution.
pub(crate) async fn start(service: &Service, workflow: &str, input: &Value) -> Result<ExecutionId> {
    let request = StartRequest {
        input: Json::parse(input.to_string()),
        timeouts: ExecutionTimeouts::default(),
        policy: StartPolicy::Reject,
        ..StartRequest::new(WorkflowName::parse(workflow)?, QueueName::parse("workflows")?)
    };
    Ok(service.start(request).await?.execution.id)
}

fn percentile(sorted: &[f64], part: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small index")]
    let index = (float(last) * part).round() as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

/// Executions a second, and from start to result.
pub(crate) async fn rates(name: &str, disk: &Disk, count: usize) -> Result<()> {
    let system = System::start(disk)?;
    system.run_many("bench-one", count / 10, IN_FLIGHT).await?;
    // The start, one write for each step but the last, whose result is in the write that closes; the first write of a
    // turn takes its lease.
    for (workflow, steps, writes) in [("bench-one", 1, 3), ("bench-five", 5, 7)] {
        let raw_before = raw::updates(disk.folder(), count).await?;
        let (took, each) = system.run_many(workflow, count, IN_FLIGHT).await?;
        let raw = raw_before.between(raw::updates(disk.folder(), count).await?);
        let per_s = float(count) / took.as_secs_f64();
        print(&json!({
            "bench": name,
            "inline_steps": steps,
            "in_flight": IN_FLIGHT,
            "executions": count,
            "executions_per_s": per_s.round(),
            "engine": raw.figures(per_s * float(writes)),
            "start_to_result_p50_ms": rounded(percentile(&each, 0.5), 1),
            "start_to_result_p99_ms": rounded(percentile(&each, 0.99), 1),
        }));
        let (_, each) = system.run_many(workflow, count / 10, 1).await?;
        print(&json!({
            "bench": name,
            "inline_steps": steps,
            "in_flight": 1,
            "executions": count / 10,
            "start_to_result_p50_ms": rounded(percentile(&each, 0.5), 2),
            "start_to_result_p99_ms": rounded(percentile(&each, 0.99), 2),
        }));
    }
    system.end().await
}

/// One fan-out of a hundred remote steps, several times.
pub(crate) async fn fan_outs(name: &str, disk: &Disk) -> Result<()> {
    let system = System::start(disk)?;
    let mut took = Vec::new();
    for _ in 0..20 {
        let began = Instant::now();
        let sum = run(&system.service, "bench-fan-out", &json!(FAN_OUT)).await?;
        ensure!(sum == json!(FAN_OUT * (FAN_OUT - 1)), "the sum is {sum}");
        took.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    took.sort_by(f64::total_cmp);
    let (p50, max) = (rounded(percentile(&took, 0.5), 1), rounded(percentile(&took, 1.0), 1));
    print(
        &json!({ "bench": name, "remote_steps": FAN_OUT, "runs": took.len(), "p50_ms": p50, "max_ms": max }),
    );
    system.end().await
}

/// How late sleeps end and step timeouts are noticed.
pub(crate) async fn lateness(name: &str) -> Result<()> {
    let system = System::start(&Disk::memory())?;
    let (sleeps, timeouts) = ("bench-sleep", "bench-step-timeout");
    for (workflow, what, apart) in [
        (sleeps, "sleeps of 2 s, one each 10 ms", APART),
        (timeouts, "step timeouts of 3 s, one each 10 ms", APART),
        (sleeps, "sleeps of 2 s, all at once", Millis::ZERO),
        (timeouts, "step timeouts of 3 s, all at once", Millis::ZERO),
    ] {
        let late: Vec<Result<f64>> = stream::iter(0..u64::try_from(SLEEPERS)?)
            .map(|number| {
                let service = &system.service;
                async move {
                    let begins_at = SystemClock.now().plus(apart.saturating_mul(number));
                    SystemClock.sleep_until(begins_at).await;
                    let late = run(service, workflow, &json!(number)).await?;
                    late.as_f64().context("milliseconds")
                }
            })
            .buffer_unordered(SLEEPERS)
            .collect()
            .await;
        let mut late = late.into_iter().collect::<Result<Vec<f64>>>()?;
        late.sort_by(f64::total_cmp);
        print(&json!({
            "bench": name,
            "what": what,
            "count": late.len(),
            "early": late.iter().filter(|late| **late < 0.0).count(),
            "p50_ms": percentile(&late, 0.5),
            "p99_ms": percentile(&late, 0.99),
            "max_ms": percentile(&late, 1.0),
        }));
    }
    system.end().await
}
