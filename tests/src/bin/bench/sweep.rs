//! Very many deadlines that passed while nothing ran, and how fast they are enforced once something does.
//!
//! The raw rate is that of the same engine in the same run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::id::{QueueName, TaskId};
use tickover_core::limits::Limits;
use tickover_core::task::Task;
use tickover_core::time::Timestamp;
use tickover_core::timeout::{LifeTimeout, Timeouts};
use tickover_service::memory::{MemoryQueue, Queues};
use tickover_service::ports::{Clock as _, DueRange, Queue as _, Received, Store};
use tickover_service::system::SystemIds;
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_service::tick::TickReport;
use tickover_service::timers::Fired;
use tickover_service::{Ports, Service};
use tickover_sqlite::SqliteStore;
use tickover_tests::scene::{request, task_id};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::clock::ShiftedClock;
use crate::raw::{self, finished, processor_s_each, rate};
use crate::{AT_ONCE, Disk, print, rounded, used};

/// Further ahead than anybody sends a timer for, so that none is lost: there never was one.
const DEADLINE: Millis = Millis::from_secs(300);
/// Lambda reads a queue with five pollers until it sees that more are needed.
const CONSUMERS: usize = 5;
const BATCH: usize = 10;
/// A tick's budget, and a function's.
const BUDGET: Millis = Millis::from_secs(50);
const VISIBILITY: Millis = Millis::from_secs(60);
const INPUT: &str = r#"{"to":"ada@example.com","template":"welcome"}"#;
/// It should take seconds. If it hasn't ended by then, that is printed.
const TIMEOUT: Duration = Duration::from_mins(10);
/// What a message did whose time was up isn't told, so the index is looked at as well.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Everything there is, shared by the tick and the consumers.
#[derive(Clone)]
struct Scene {
    count: usize,
    service: Service,
    clock: Arc<ShiftedClock>,
    queue: Arc<MemoryQueue>,
    store: Arc<SqliteStore>,
    progress: Arc<Progress>,
}

#[derive(Default)]
struct Progress {
    total: Mutex<Total>,
    all_done: Notify,
}

#[derive(Clone, Copy, Default)]
struct Total {
    timed_out: u64,
    by_ticks: u64,
    failed: u64,
    messages: u64,
}

/// Schedules so many tasks, lets their deadlines pass, and sweeps.
pub(crate) async fn run(name: &str, disk: &Disk, count: usize) -> Result<()> {
    let scene = scene(disk, count)?;
    schedule(&scene).await?;
    let raw_before = raw::updates(disk.folder(), count).await?;
    scene.clock.skip(DEADLINE);

    let (memory_before, processor) = (used::memory_mib(), used::processor_s());
    used::forget_peak();
    let started = Instant::now();
    let total = sweep(&scene).await?;
    let (seconds, swept_per_s) = (started.elapsed().as_secs_f64(), rate(count, started));
    let processor_s_each = processor_s_each(count, processor);
    let (memory_peak, memory_after) = (used::peak_mib(), used::memory_mib());

    let raw = raw_before.between(raw::updates(disk.folder(), count).await?);
    let ended = read(&scene).await?.iter().filter(|task| task.ended().is_some()).count();
    print(&json!({
        "bench": name,
        "expired": count,
        "timed_out": ended,
        "by_ticks": total.by_ticks,
        "failed": total.failed,
        "messages": total.messages,
        "seconds": rounded(seconds, 2),
        "swept_per_s": swept_per_s.round(),
        "engine": raw.figures(swept_per_s),
        "processor_us_each": processor_s_each.map(micros),
        "memory_mib": { "before": memory_before, "peak": memory_peak, "after": memory_after },
    }));
    Ok(())
}

fn micros(seconds: f64) -> f64 {
    (seconds * 1e6).round()
}

fn scene(disk: &Disk, count: usize) -> Result<Scene> {
    let clock = Arc::new(ShiftedClock::default());
    let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
    let store = Arc::new(disk.store()?);
    let ids = Arc::new(SystemIds);
    let ports = Ports { store: store.clone(), queue: queue.clone(), clock: clock.clone(), ids };
    let service = Service::new(ports, Limits::default());
    Ok(Scene { count, service, clock, queue, store, progress: Arc::default() })
}

fn id(number: usize) -> TaskId {
    task_id(&format!("task-{number:06}"))
}

async fn schedule(scene: &Scene) -> Result<()> {
    let numbers: Vec<usize> = (0..scene.count).collect();
    let mut callers = JoinSet::new();
    for share in numbers.chunks(scene.count.div_ceil(AT_ONCE)) {
        let (service, share) = (scene.service.clone(), share.to_vec());
        callers.spawn(async move {
            for lot in share.chunks(service.limits().batch) {
                let requests = lot.iter().map(|number| expiring(id(*number))).collect();
                for scheduled in service.schedule_batch(requests).await? {
                    scheduled?;
                }
            }
            anyhow::Ok(())
        });
    }
    finished(callers).await
}

fn expiring(id: TaskId) -> ScheduleRequest {
    let schedule_to_close = Some(LifeTimeout { after: DEADLINE, is_error: true });
    ScheduleRequest {
        id: Some(id),
        flow: tickover_core::flow::FlowRequest::default(),
        timeouts: Timeouts { schedule_to_close, ..Timeouts::default() },
        ..request("work", None, Some(INPUT))
    }
}

/// Ticks as a schedule would, and takes messages as Lambda would, until nothing is left.
async fn sweep(scene: &Scene) -> Result<Total> {
    let mut workers = JoinSet::new();
    workers.spawn(tick_forever(scene.clone()));
    for _ in 0..CONSUMERS {
        workers.spawn(consume_forever(scene.clone()));
    }
    let started = Instant::now();
    while started.elapsed() < TIMEOUT {
        let all_done = tokio::time::timeout(CHECK_EVERY, scene.progress.all_done.notified()).await;
        if all_done.is_ok() || nothing_is_due(&scene.store).await? {
            break;
        }
    }
    Ok(*scene.progress.total.lock().unwrap_or_else(PoisonError::into_inner))
}

async fn nothing_is_due(store: &SqliteStore) -> Result<bool> {
    for shard in 0..Limits::default().due_shards {
        let everything = DueRange::until(shard, Timestamp::from_millis(i64::MAX));
        if !store.due(everything, 1, None).await?.items.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn tick_forever(scene: Scene) -> Result<()> {
    loop {
        let now = scene.clock.now();
        let report = scene.service.tick(now, now.plus(BUDGET)).await?;
        scene.progress.add(report, true, scene.count);
        scene.clock.sleep_until(now.plus(Millis::from_secs(60))).await;
    }
}

async fn consume_forever(scene: Scene) -> Result<()> {
    let timers = QueueName::timers();
    loop {
        let messages = scene.queue.receive(&timers, BATCH, VISIBILITY, Millis::from_secs(20)).await?;
        let mut fires = JoinSet::new();
        for message in messages {
            fires.spawn(fire(scene.clone(), message));
        }
        finished(fires).await?;
    }
}

async fn fire(scene: Scene, message: Received) -> Result<()> {
    let stop_at = scene.clock.now().plus(BUDGET);
    // One whose time is up comes again.
    let Ok(fired) = scene.service.fire(&message, stop_at).await else { return Ok(()) };
    if let Fired::Swept(report) = fired {
        scene.progress.add(report, false, scene.count);
    }
    Ok(scene.queue.delete(&QueueName::timers(), &message.receipt).await?)
}

impl Progress {
    fn add(&self, report: TickReport, is_ticks: bool, wanted: usize) {
        let mut total = self.total.lock().unwrap_or_else(PoisonError::into_inner);
        total.timed_out += report.timed_out;
        total.failed += report.failed;
        if is_ticks {
            total.by_ticks += report.timed_out;
        } else {
            total.messages += 1;
        }
        if usize::try_from(total.timed_out).is_ok_and(|timed_out| timed_out >= wanted) {
            self.all_done.notify_one();
        }
    }
}

/// All of the tasks.
async fn read(scene: &Scene) -> Result<Vec<Task>> {
    let ids: Vec<TaskId> = (0..scene.count).map(id).collect();
    let store: &dyn Store = &*scene.store;
    let pages = ids.chunks(100).map(|page| store.tasks(page)).collect::<Vec<_>>();
    let tasks: Vec<Task> = stream::iter(pages).buffer_unordered(AT_ONCE).try_concat().await?;
    if tasks.len() != ids.len() {
        bail!("{} of {} tasks are there", tasks.len(), ids.len());
    }
    Ok(tasks)
}
