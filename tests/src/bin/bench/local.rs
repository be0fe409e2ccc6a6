//! The local server as users reach it: lives of tasks over HTTP, and a backlog of very many tasks.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use reqwest::Client;
use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::limits::{Limits, WAIT_MAX};
use tickover_core::task::Status;
use tickover_embedded::{Local, Ticks};
use tickover_service::Service;
use tickover_service::claim::ClaimRequest;
use tickover_service::ports::{Clock as _, TaskFilter};
use tickover_service::system::SystemClock;
use tickover_tests::scene::{claim_request, queue_name, request};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::raw::{self, finished, rate};
use crate::{AT_ONCE, Disk, print, rounded, used};

/// Record writes of a life.
const WRITES: f64 = 3.0;
/// Queues on which a worker waits while the server is idle.
const IDLE_POLLS: usize = 10;
/// Longer than a tick's minute.
const IDLE_FOR: Millis = Millis::from_secs(70);
/// Backlogs that are compared.
const FEW: usize = 1_000;
/// Calls that are timed at each backlog.
const CALLS: usize = 500;

/// A running server.
pub(crate) struct Server {
    service: Service,
    /// Its address.
    pub(crate) base: String,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(disk: &Disk) -> Result<Self> {
        let local = Local::open(&disk.storage(), Limits::default()).await?;
        let service = local.service().clone();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let base = format!("http://{}", listener.local_addr()?);
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = local.serve(listener, Ticks::default(), async { drop(stopped.await) });
        // If the server failed, the callers' requests fail.
        let served = tokio::spawn(async move { drop(serve.await) });
        Ok(Self { service, base, stop, served })
    }

    pub(crate) async fn end(self) -> Result<()> {
        drop(self.stop);
        Ok(self.served.await?)
    }
}

/// Lives a second over HTTP: schedule, claim and complete, by callers that each keep a connection.
pub(crate) async fn http(name: &str, disk: &Disk, count: usize) -> Result<()> {
    let server = Server::start(disk).await?;
    lives(&server.base, count / 10).await?;
    let raw_before = raw::updates(disk.folder(), count).await?;
    let started = Instant::now();
    lives(&server.base, count).await?;
    let lives_per_s = rate(count, started);
    let raw = raw_before.between(raw::updates(disk.folder(), count).await?);
    print(&json!({
        "bench": name,
        "connections": AT_ONCE,
        "lives": count,
        "lives_per_s": lives_per_s.round(),
        "engine": raw.figures(lives_per_s * WRITES),
    }));
    server.end().await
}

async fn lives(base: &str, count: usize) -> Result<()> {
    let mut callers = JoinSet::new();
    for caller in 0..AT_ONCE {
        let (base, queue, client) = (base.to_owned(), format!("http-{caller}"), Client::new());
        callers.spawn(async move {
            let post = async |path: String, body: Value| {
                let answer = client.post(format!("{base}{path}")).json(&body).send().await?;
                anyhow::Ok(answer.error_for_status()?.json::<Value>().await?)
            };
            for _ in 0..count / AT_ONCE {
                post("/v1/tasks".to_owned(), json!({"queue": queue, "kind": "k", "input": {"n": 1}})).await?;
                let claimed = post(format!("/v1/queues/{queue}/claim"), json!({})).await?;
                let task = claimed["tasks"].get(0).context("what was scheduled can be claimed")?;
                let id = task["id"].as_str().context("an id")?;
                let body = json!({"lease": task["lease"], "output": {"ok": true}});
                post(format!("/v1/tasks/{id}/complete"), body).await?;
            }
            anyhow::Ok(())
        });
    }
    finished(callers).await
}

/// The processor and the memory that a server needs while nothing happens but ten long polls and the tick.
pub(crate) async fn idle(name: &str, disk: &Disk) -> Result<()> {
    let server = Server::start(disk).await?;
    let mut polls = JoinSet::new();
    for number in 0..IDLE_POLLS {
        let (service, queue) = (server.service.clone(), queue_name(&format!("idle-{number}")));
        service.open_queue(&queue).await?;
        let request = ClaimRequest { wait: WAIT_MAX, ..claim_request(1) };
        polls.spawn(async move {
            loop {
                if let Err(error) = service.claim(&queue, &request).await {
                    return error;
                }
            }
        });
    }
    let before = used::processor_s();
    SystemClock.sleep_until(SystemClock.now().plus(IDLE_FOR)).await;
    let used = used::processor_s().zip(before).map(|(after, before)| after - before);
    if let Some(error) = polls.try_join_next() {
        return Err(error?.into());
    }
    polls.abort_all();
    print(&json!({
        "bench": name,
        "long_polls": IDLE_POLLS,
        "seconds": IDLE_FOR.as_u64() / 1_000,
        "processor_percent": used.map(|used| rounded(used / Duration::from(IDLE_FOR).as_secs_f64() * 100.0, 2)),
        "memory_mib": used::memory_mib(),
    }));
    server.end().await
}

/// Claims, lists and the depth of a queue, with few and with very many waiting tasks; and a start with them.
pub(crate) async fn backlog(name: &str, disk: &Disk, count: usize) -> Result<()> {
    let server = Server::start(disk).await?;
    let queue = queue_name("work");
    schedule(&server.service, FEW).await?;
    let few = timed(&server.service, &queue).await?;
    schedule(&server.service, count - FEW).await?;
    let many = timed(&server.service, &queue).await?;
    print(&json!({
        "bench": name,
        "waiting": count,
        "claims_per_s": many.claims_per_s.round(),
        "claims_ratio_to_few": rounded(many.claims_per_s / few.claims_per_s, 2),
        "list_ms": rounded(many.list_ms, 2),
        "list_completed_ms": rounded(many.completed_ms, 2),
        "queue_ms": rounded(many.queue_ms, 2),
        "memory_mib": used::memory_mib(),
    }));
    server.end().await?;

    let started = Instant::now();
    let server = Server::start(disk).await?;
    let opened_ms = started.elapsed().as_secs_f64() * 1_000.0;
    if disk.folder().is_some() {
        let claimed = server.service.claim(&queue, &claim_request(1)).await?;
        ensure!(claimed.len() == 1, "a task can be claimed");
        let first_claim_ms = started.elapsed().as_secs_f64() * 1_000.0;
        print(&json!({
            "bench": name,
            "waiting": count,
            "start_ms": rounded(opened_ms, 1),
            "start_to_first_claim_ms": rounded(first_claim_ms, 1),
        }));
    }
    server.end().await
}

/// What calls take at a backlog.
struct Timed {
    claims_per_s: f64,
    list_ms: f64,
    completed_ms: f64,
    queue_ms: f64,
}

async fn timed(service: &Service, queue: &QueueName) -> Result<Timed> {
    let started = Instant::now();
    for _ in 0..CALLS {
        let claimed = service.claim(queue, &claim_request(1)).await?;
        let task = claimed.first().context("a task waits")?;
        service.complete(&task.task.id, &task.token, None).await?;
    }
    let claims_per_s = rate(CALLS, started);
    let list = async |statuses: Vec<Status>| {
        let filter = TaskFilter { queue: Some(queue.clone()), statuses, ..TaskFilter::default() };
        let started = Instant::now();
        service.list(&filter, 100, None).await?;
        anyhow::Ok(started.elapsed().as_secs_f64() * 1_000.0)
    };
    let (list_ms, completed_ms) = (list(vec![]).await?, list(vec![Status::Completed]).await?);
    let started = Instant::now();
    service.describe_queue(queue).await?;
    let queue_ms = started.elapsed().as_secs_f64() * 1_000.0;
    Ok(Timed { claims_per_s, list_ms, completed_ms, queue_ms })
}

async fn schedule(service: &Service, count: usize) -> Result<()> {
    let mut callers = JoinSet::new();
    let batch = service.limits().batch;
    for caller in 0..AT_ONCE {
        let service = service.clone();
        callers.spawn(async move {
            for _ in (caller..count.div_ceil(batch)).step_by(AT_ONCE) {
                let requests = vec![request("work", None, Some("1")); batch];
                for scheduled in service.schedule_batch(requests).await? {
                    scheduled?;
                }
            }
            anyhow::Ok(())
        });
    }
    finished(callers).await
}
