//! Very many deadlines passed while no function ran: how fast the first ticks enforce them.
//!
//! The raw rate is measured on the same store, with the same records, in the same run.

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
use tickover_dynamodb::{DynamoStore, Table};
use tickover_embedded::dynamodb::Embedded;
use tickover_service::memory::{MemoryQueue, Queues};
use tickover_service::ports::{Clock as _, DueRange, Queue as _, Received, Store as _};
use tickover_service::schedule::ScheduleRequest;
use tickover_service::system::SystemIds;
use tickover_service::tick::TickReport;
use tickover_service::timers::Fired;
use tickover_service::{Ports, Service};
use tickover_tests::scene::{request, task_id};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::clock::ShiftedClock;
use crate::raw::{self, Change, Raw, TABLE, finished, processor_s_each, rate};
use crate::{AT_ONCE, float, print, rounded, used};

/// The raw rate is measured with each fifth record, before and after the sweep.
const RAW_STEP: usize = 5;
/// So far ahead that no write sends a timer for it. So the benchmark loses no timer.
const DEADLINE: Millis = Millis::from_secs(300);
/// Lambda reads a queue with five pollers until it sees that more are needed.
const CONSUMERS: usize = 5;
const BATCH: usize = 10;
/// The time limit of a tick and of a function.
const BUDGET: Millis = Millis::from_secs(50);
const VISIBILITY: Millis = Millis::from_secs(60);
const INPUT: &str = r#"{"to":"ada@example.com","template":"welcome"}"#;
/// The sweep should take seconds. If it hasn't ended by then, the benchmark prints that.
const TIMEOUT: Duration = Duration::from_mins(10);
/// If a message's time limit ends, its report is lost. So the benchmark also reads the index.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The system, shared by the tick and the consumers.
#[derive(Clone)]
struct Scene {
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

/// Schedules `count` tasks, lets their deadlines pass, and sweeps.
pub(crate) async fn run(name: &str, database: &Embedded, count: usize) -> Result<()> {
    Table::new(TABLE).create(&database.client()).await?;
    let scene = scene(database, count);
    schedule(&scene).await?;
    // Another adapter, so that its reads and writes don't count as the sweep's.
    let beside = DynamoStore::new(database.client(), TABLE);
    let raw_before = raw_updates(database, &beside, count).await?;
    scene.clock.skip(DEADLINE);

    let (before, memory_before, processor) = (scene.store.usage(), used::memory_mib(), used::processor_s());
    used::forget_peak();
    let started = Instant::now();
    let total = sweep(&scene, &beside).await?;
    let (seconds, swept_per_s) = (started.elapsed().as_secs_f64(), rate(count, started));
    let processor_s_each = processor_s_each(count, processor);
    let (memory_peak, memory_after) = (used::peak_mib(), used::memory_mib());
    let bill = scene.store.usage().since(before);

    let raw = raw_before.between(raw_updates(database, &beside, count).await?);
    // The one write of a timeout removes an entry from one index and adds one to another. This measures the store's
    // rate for that alone.
    let some = read(&beside, count, RAW_STEP).await?;
    let moves = raw::updates(&database.client(), &some, 1, Change::Place).await?;
    let ended = read(&beside, count, 1).await?.iter().filter(|task| task.ended().is_some()).count();
    let writes = bill.write_units + bill.failed_condition_units;
    print(&json!({
        "bench": name,
        "expired": count,
        "timed_out": ended,
        "by_ticks": total.by_ticks,
        "failed": total.failed,
        "messages": total.messages,
        "seconds": rounded(seconds, 1),
        "swept_per_s": swept_per_s.round(),
        "raw_updates_per_s": raw.per_s.round(),
        "ratio": rounded(swept_per_s / raw.per_s, 2),
        "raw_moves_per_s": moves.per_s.round(),
        "ratio_to_moves": rounded(swept_per_s / moves.per_s, 2),
        "processor_us_each": processor_s_each.map(micros),
        "raw_processor_us_each": raw.processor_s_each.map(micros),
        "write_units_each": rounded(writes / float(count), 3),
        "read_units_each": rounded(bill.read_units / float(count), 3),
        "requests": bill.requests,
        "failed_conditions": bill.failed_conditions,
        "memory_mib": { "before": memory_before, "peak": memory_peak, "after": memory_after },
    }));
    Ok(())
}

fn micros(seconds: f64) -> f64 {
    (seconds * 1e6).round()
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
        timeouts: Timeouts { schedule_to_close, ..Timeouts::default() },
        ..request("work", None, Some(INPUT))
    }
}

/// Ticks as a schedule does, and receives messages as Lambda does, until no task is left.
async fn sweep(scene: &Scene, beside: &DynamoStore) -> Result<Total> {
    let mut workers = JoinSet::new();
    workers.spawn(tick_forever(scene.clone()));
    for _ in 0..CONSUMERS {
        workers.spawn(consume_forever(scene.clone()));
    }
    let started = Instant::now();
    while started.elapsed() < TIMEOUT {
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
        let mut fires = JoinSet::new();
        for message in messages {
            fires.spawn(fire(scene.clone(), message));
        }
        finished(fires).await?;
    }
}

async fn fire(scene: Scene, message: Received) -> Result<()> {
    let stop_at = scene.clock.now().plus(BUDGET);
    // A message whose time limit ended is received again.
    let Ok(fired) = scene.service.fire(&message.body, stop_at).await else { return Ok(()) };
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

async fn raw_updates(database: &Embedded, store: &DynamoStore, count: usize) -> Result<Raw> {
    let tasks = read(store, count, RAW_STEP).await?;
    raw::updates(&database.client(), &tasks, 1, Change::VersionOnly).await
}

/// Reads each `step`th of the tasks.
async fn read(store: &DynamoStore, count: usize, step: usize) -> Result<Vec<Task>> {
    let ids: Vec<TaskId> = (0..count).step_by(step).map(id).collect();
    let lots = ids.chunks(100).map(|lot| store.tasks(lot)).collect::<Vec<_>>();
    let tasks: Vec<Task> = stream::iter(lots).buffer_unordered(AT_ONCE).try_concat().await?;
    if tasks.len() != ids.len() {
        bail!("{} of {} tasks are there", tasks.len(), ids.len());
    }
    Ok(tasks)
}
