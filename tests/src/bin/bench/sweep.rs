//! Very many deadlines that passed while nothing ran, and how fast they are enforced once something does.
//!
//! The raw rate is that of the same store with the same records in the same run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::future::join_all;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::id::{QueueName, TaskId};
use tickover_core::limits::Limits;
use tickover_core::task::Task;
use tickover_core::time::Timestamp;
use tickover_core::timeout::{LifeTimeout, Timeouts};
use tickover_dynamodb::{DynamoStore, Table};
use tickover_embedded::dynamodb::Embedded;
use tickover_service::memory::{MemoryQueue, Queues};
use tickover_service::ports::{Clock as _, DueRange, Queue as _, Store as _};
use tickover_service::schedule::ScheduleRequest;
use tickover_service::system::SystemIds;
use tickover_service::tick::TickReport;
use tickover_service::timers::Fired;
use tickover_service::{Ports, Service};
use tickover_tests::scene::{request, task_id};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::clock::ShiftedClock;
use crate::raw::{self, TABLE, rate};
use crate::rss::{self, mib};
use crate::{AT_ONCE, float, print, rounded};

/// The raw rate is taken of each fifth record, before and after.
const RAW_STEP: usize = 5;
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
const PATIENCE: Duration = Duration::from_mins(10);
/// What a message did whose time was up isn't told, so the index is looked at as well.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Everything there is, shared by the tick and the consumers.
#[derive(Clone)]
struct Scene {
    /// How many tasks.
    count: usize,
    service: Service,
    clock: Arc<ShiftedClock>,
    queue: Arc<MemoryQueue>,
    store: Arc<DynamoStore>,
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
pub(crate) async fn run(name: &str, database: &Embedded, count: usize) -> Result<()> {
    Table::new(TABLE).create(&database.client()).await?;
    let scene = scene(database, count);
    schedule(&scene).await?;
    // Its own account: what it reads and writes is none of the sweep's.
    let beside = DynamoStore::new(database.client(), TABLE);
    let raw_before = raw_updates(database, &beside, count).await?;
    scene.clock.skip(DEADLINE);

    let (before, rss_before) = (scene.store.usage(), rss::now_kib());
    rss::forget_peak();
    let started = Instant::now();
    let total = sweep(&scene, &beside).await?;
    let (seconds, swept_per_s) = (started.elapsed().as_secs_f64(), rate(count, started));
    let (rss_peak, rss_after) = (rss::peak_kib(), rss::now_kib());
    let used = scene.store.usage().since(before);

    let raw_per_s = f64::midpoint(raw_before, raw_updates(database, &beside, count).await?);
    let ended = read(&beside, count, 1).await?.iter().filter(|task| task.ended().is_some()).count();
    let writes = used.write_units + used.failed_condition_units;
    print(&json!({
        "bench": name,
        "expired": count,
        "timed_out": ended,
        "by_ticks": total.by_ticks,
        "failed": total.failed,
        "messages": total.messages,
        "seconds": rounded(seconds, 1),
        "swept_per_s": swept_per_s.round(),
        "raw_updates_per_s": raw_per_s.round(),
        "ratio": rounded(swept_per_s / raw_per_s, 2),
        "write_units_each": rounded(writes / float(count), 3),
        "read_units_each": rounded(used.read_units / float(count), 3),
        "requests": used.requests,
        "failed_conditions": used.failed_conditions,
        "rss_mib": { "before": mib(rss_before), "peak": mib(rss_peak), "after": mib(rss_after) },
    }));
    Ok(())
}

fn scene(database: &Embedded, count: usize) -> Scene {
    let clock = Arc::new(ShiftedClock::default());
    let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
    let store = Arc::new(DynamoStore::new(database.client(), TABLE));
    let ids = Arc::new(SystemIds);
    let ports = Ports { store: store.clone(), queue: queue.clone(), clock: clock.clone(), ids };
    let service = Service::new(ports, Limits::default());
    Scene { count, service, clock, queue, store, progress: Arc::default() }
}

fn id(number: usize) -> TaskId {
    task_id(&format!("task-{number:06}"))
}

async fn schedule(scene: &Scene) -> Result<()> {
    let schedule_to_close = Some(LifeTimeout { after: DEADLINE, is_error: true });
    let numbers: Vec<usize> = (0..scene.count).collect();
    for lot in numbers.chunks(scene.service.limits().batch) {
        let requests = lot.iter().map(|number| ScheduleRequest {
            id: Some(id(*number)),
            timeouts: Timeouts { schedule_to_close, ..Timeouts::default() },
            ..request("work", None, Some(INPUT))
        });
        for scheduled in scene.service.schedule_batch(requests.collect()).await? {
            scheduled?;
        }
    }
    Ok(())
}

/// Ticks as a schedule would, and takes messages as Lambda would, until nothing is left.
async fn sweep(scene: &Scene, beside: &DynamoStore) -> Result<Total> {
    let mut workers = JoinSet::new();
    workers.spawn(tick_forever(scene.clone()));
    for _ in 0..CONSUMERS {
        workers.spawn(consume_forever(scene.clone()));
    }
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        let all_done = tokio::time::timeout(LOOK_EVERY, scene.progress.all_done.notified()).await;
        if all_done.is_ok() || nothing_is_due(beside).await? {
            break;
        }
    }
    Ok(*scene.progress.total.lock().unwrap_or_else(PoisonError::into_inner))
}

async fn nothing_is_due(store: &DynamoStore) -> Result<bool> {
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
        let fires = messages.iter().map(|message| async {
            let stop_at = scene.clock.now().plus(BUDGET);
            // One whose time is up comes again.
            let Ok(fired) = scene.service.fire(&message.body, stop_at).await else { return Ok(()) };
            if let Fired::Swept(report) = fired {
                scene.progress.add(report, false, scene.count);
            }
            scene.queue.delete(&timers, &message.receipt).await
        });
        for deleted in join_all(fires).await {
            deleted?;
        }
    }
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

async fn raw_updates(database: &Embedded, store: &DynamoStore, count: usize) -> Result<f64> {
    let tasks = read(store, count, RAW_STEP).await?;
    raw::updates_per_s(&database.client(), &tasks, 1).await
}

/// Every so many of the tasks.
async fn read(store: &DynamoStore, count: usize, step: usize) -> Result<Vec<Task>> {
    let ids: Vec<TaskId> = (0..count).step_by(step).map(id).collect();
    let lots = ids.chunks(100).map(|lot| store.tasks(lot)).collect::<Vec<_>>();
    let tasks: Vec<Task> = stream::iter(lots).buffer_unordered(AT_ONCE).try_concat().await?;
    if tasks.len() != ids.len() {
        bail!("{} of {} tasks are there", tasks.len(), ids.len());
    }
    Ok(tasks)
}
