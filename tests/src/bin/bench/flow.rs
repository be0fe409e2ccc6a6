//! Flow control on one machine: its price in throughput, how soon a free place is taken, whether a burst delays others,
//! and how exact a rate is.

use std::num::{NonZeroU16, NonZeroU32};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::flow::{Concurrency, FlowRequest, Rate};
use tickover_core::id::{FlowKey, QueueName, TaskId};
use tickover_core::limits::Limits;
use tickover_embedded::{Local, Ticks};
use tickover_service::Service;
use tickover_service::claim::{ClaimRequest, ClaimedTask};
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_tests::scene::{queue_name, request};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::raw::{finished, rate};
use crate::{AT_ONCE, Disk, float, print, rounded};

/// Keys over which the tasks are spread, and how many of each may run at once.
const KEYS: usize = 1_000;
const LIMIT: u16 = 5;
/// Handovers of a place that are timed.
const HANDOVERS: usize = 300;
/// Tasks of the small tenant.
const FEW: usize = 10;
/// Starts of the rate, a second and in all.
const STARTS_PER_S: u32 = 500;
const STARTS: usize = 2_000;

/// A running system with its ticks.
pub(crate) struct System {
    pub(crate) service: Service,
    stop: oneshot::Sender<()>,
}

impl System {
    async fn start() -> Result<Self> {
        Self::on(&Disk::memory()).await
    }

    pub(crate) async fn on(disk: &Disk) -> Result<Self> {
        let local = Local::open(&disk.storage(), Limits::default()).await?;
        let service = local.service().clone();
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = local.serve(listener, Ticks::default(), async { drop(stopped.await) });
        tokio::spawn(async move { drop(serve.await) });
        Ok(Self { service, stop })
    }

    pub(crate) async fn schedule(
        &self,
        queue: &str,
        count: usize,
        flow: impl Fn(usize) -> FlowRequest,
    ) -> Result<Vec<TaskId>> {
        let mut ids = Vec::with_capacity(count);
        let ask = |number| ScheduleRequest { flow: flow(number), ..request(queue, None, Some("1")) };
        for from in (0..count).step_by(100) {
            let page = (from..count.min(from + 100)).map(ask).collect();
            for scheduled in self.service.schedule_batch(page).await? {
                ids.push(scheduled?.task.id);
            }
        }
        Ok(ids)
    }

    /// The next task of a queue.
    pub(crate) async fn next(&self, queue: &QueueName) -> Result<ClaimedTask> {
        loop {
            if let Some(claimed) = self.service.claim(queue, &claim(1)).await?.pop() {
                return Ok(claimed);
            }
        }
    }

    /// Does so many tasks of a queue.
    async fn drain(&self, queue: &str, count: usize) -> Result<()> {
        let left = Arc::new(AtomicUsize::new(count));
        let mut workers = JoinSet::new();
        for _ in 0..AT_ONCE {
            let (service, queue, left) = (self.service.clone(), queue_name(queue), Arc::clone(&left));
            workers.spawn(async move {
                while left.load(Ordering::SeqCst) > 0 {
                    for claimed in service.claim(&queue, &claim(10)).await? {
                        service.complete(&claimed.task.id, &claimed.token, None).await?;
                        left.fetch_sub(1, Ordering::SeqCst);
                    }
                }
                anyhow::Ok(())
            });
        }
        finished(workers).await
    }
}

pub(crate) fn claim(max: usize) -> ClaimRequest {
    ClaimRequest {
        worker: None,
        max,
        lease: Millis::from_secs(60),
        wait: Millis::from_secs(1),
        provides: vec![],
    }
}

pub(crate) fn key(text: &str) -> Result<FlowKey> {
    FlowKey::parse(text).context("a key")
}

pub(crate) fn limited(key: FlowKey, limit: u16) -> FlowRequest {
    let limit = NonZeroU16::new(limit).unwrap_or(NonZeroU16::MIN);
    FlowRequest { concurrency: vec![Concurrency { key, limit }], ..FlowRequest::default() }
}

/// All four.
pub(crate) async fn run(name: &str, count: usize) -> Result<()> {
    throughput(name, count).await?;
    handovers(name).await?;
    fairness(name, count).await?;
    rates(name).await
}

/// Tasks a second over many keys, beside the same without limits.
async fn throughput(name: &str, count: usize) -> Result<()> {
    let keys: Vec<FlowKey> =
        (0..KEYS).map(|number| key(&format!("customer-{number}"))).collect::<Result<_>>()?;
    let system = System::start().await?;
    let mut per_s = Vec::new();
    for (queue, is_limited) in [("plain", false), ("limited", true)] {
        let began = Instant::now();
        let flow = |number: usize| match keys.get(number % KEYS).filter(|_| is_limited) {
            Some(key) => limited(key.clone(), LIMIT),
            None => FlowRequest::default(),
        };
        system.schedule(queue, count, flow).await?;
        system.drain(queue, count).await?;
        per_s.push(rate(count, began));
    }
    drop(system.stop);
    print(&json!({
        "bench": name,
        "what": "whole lives of tasks",
        "tasks": count,
        "keys": KEYS,
        "limit": LIMIT,
        "plain_per_s": per_s[0].round(),
        "limited_per_s": per_s[1].round(),
        "ratio": rounded(per_s[1] / per_s[0], 2),
    }));
    Ok(())
}

/// How long after the end of a task the next one of its key starts, with a limit of one.
async fn handovers(name: &str) -> Result<()> {
    let system = System::start().await?;
    let alone = key("alone")?;
    system.schedule("handed", HANDOVERS, |_| limited(alone.clone(), 1)).await?;
    let (queue, mut took, mut freed) = (queue_name("handed"), Vec::new(), None);
    for _ in 0..HANDOVERS {
        let claimed = loop {
            if let Some(claimed) = system.service.claim(&queue, &claim(1)).await?.pop() {
                break claimed;
            }
        };
        took.extend(freed.map(|freed: Instant| freed.elapsed().as_secs_f64() * 1_000.0));
        system.service.complete(&claimed.task.id, &claimed.token, None).await?;
        freed = Some(Instant::now());
    }
    drop(system.stop);
    took.sort_by(f64::total_cmp);
    let at = |part: usize| took.get(took.len() * part / 100).copied().unwrap_or(f64::NAN);
    print(&json!({
        "bench": name,
        "what": "from a free place to the next start",
        "handovers": took.len(),
        "p50_ms": rounded(at(50), 2),
        "p99_ms": rounded(at(99), 2),
    }));
    Ok(())
}

/// How many tasks of a tenant with very many are done before all of a tenant with few, who comes later.
async fn fairness(name: &str, count: usize) -> Result<()> {
    let system = System::start().await?;
    let of = |tenant: FlowKey| FlowRequest { fairness: Some(tenant), ..FlowRequest::default() };
    let (many, few) = (key("many")?, key("few")?);
    system.schedule("shared", count, |_| of(many.clone())).await?;
    system.schedule("shared", FEW, |_| of(few.clone())).await?;
    let (queue, mut others, mut left) = (queue_name("shared"), 0, FEW);
    let began = Instant::now();
    let few_digest = tickover_service::flow::fairness_digest(&few);
    while left > 0 && began.elapsed() < Duration::from_mins(2) {
        for claimed in system.service.claim(&queue, &claim(1)).await? {
            let is_few = claimed.task.flow.as_ref().and_then(|flow| flow.fairness) == Some(few_digest);
            if is_few {
                left -= 1;
            } else {
                others += 1;
            }
            system.service.complete(&claimed.task.id, &claimed.token, None).await?;
        }
    }
    drop(system.stop);
    print(&json!({
        "bench": name,
        "what": "a tenant with many waiting tasks before one with few",
        "many": count,
        "few": FEW,
        "few_left": left,
        "of_many_done_before": others,
        "share_of_many": rounded(float(others) / float(count), 4),
    }));
    Ok(())
}

/// Starts a second, beside those asked for.
async fn rates(name: &str) -> Result<()> {
    let system = System::start().await?;
    let limit = NonZeroU32::new(STARTS_PER_S).unwrap_or(NonZeroU32::MIN);
    let of = |key: FlowKey| {
        let rate = Rate { key, limit, per: Millis::from_secs(1), burst: NonZeroU32::MIN };
        FlowRequest { rate: Some(rate), ..FlowRequest::default() }
    };
    let smtp = key("smtp")?;
    system.service.open_queue(&queue_name("rated")).await?;
    // Workers come at once: of starts that wait for them for up to 5 s, several would follow at the same moment.
    let claims = async {
        let (queue, mut starts) = (queue_name("rated"), Vec::new());
        while starts.len() < STARTS {
            for claimed in system.service.claim(&queue, &claim(10)).await? {
                starts.extend(claimed.task.running().map(|running| running.claimed_at.as_millis()));
                system.service.complete(&claimed.task.id, &claimed.token, None).await?;
            }
        }
        anyhow::Ok(starts)
    };
    let (mut starts, _) = tokio::try_join!(claims, system.schedule("rated", STARTS, |_| of(smtp.clone())))?;
    drop(system.stop);
    starts.sort_unstable();
    let span_ms = starts.last().zip(starts.first()).map_or(0, |(last, first)| last - first);
    let wanted_ms = float(STARTS - 1) * 1_000.0 / f64::from(STARTS_PER_S);
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let error = (span_ms as f64 - wanted_ms) / wanted_ms;
    print(&json!({
        "bench": name,
        "what": "starts of a rate",
        "asked_per_s": STARTS_PER_S,
        "starts": STARTS,
        "error_percent": rounded(error * 100.0, 2),
    }));
    Ok(())
}
