//! Executions that live long: what a turn costs at their start and at their end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tickover::prelude::*;
use tickover_core::execution::ExecutionStatus;
use tickover_core::id::EventName;
use tickover_core::limits::{Limits, WAIT_MAX};
use tickover_dynamodb::{DynamoStore, Table};
use tickover_service::ports::Store;
use tickover_tests::dynamodb::LocalDynamo;
use tokio::sync::Notify;

use crate::flows::double;
use crate::workflows::{System, start};
use crate::{Disk, float, print, rounded};

/// Items of the executions that are compared.
const COUNTS: [usize; 2] = [1_000, 10_000];
/// Items of one in a table, whose units are counted.
const IN_TABLE: usize = 1_000;
/// Which part of an execution counts as its start, and as its end.
const PART: usize = 10;

/// When the code came to each item for the first time.
static REACHED: Mutex<Vec<Instant>> = Mutex::new(vec![]);
static NEXT: Notify = Notify::const_new();

fn reached() -> Vec<Instant> {
    REACHED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The code has come to this item.
fn reach(item: usize) {
    let mut reached = REACHED.lock().unwrap_or_else(PoisonError::into_inner);
    if reached.len() == item {
        reached.push(Instant::now());
        NEXT.notify_one();
    }
}

/// So many inline steps in sequence.
#[tickover::workflow("bench-long-steps")]
pub(crate) async fn long_steps(ctx: Ctx, count: usize) -> tickover::Result<()> {
    for item in 0..count {
        reach(item);
        ctx.step(double(1).named(format!("double[{item}]"))).await?;
    }
    Ok(())
}

/// So many sleeps of a millisecond in sequence.
#[tickover::workflow("bench-long-sleeps")]
pub(crate) async fn long_sleeps(ctx: Ctx, count: usize) -> tickover::Result<()> {
    for item in 0..count {
        reach(item);
        ctx.sleep(format!("nap[{item}]"), "1ms").await?;
    }
    Ok(())
}

/// Waits for so many events in sequence.
#[tickover::workflow("bench-long-events")]
pub(crate) async fn long_events(ctx: Ctx, count: usize) -> tickover::Result<()> {
    for item in 0..count {
        reach(item);
        ctx.wait_for_event::<u32>("ping", forever()).await?;
    }
    Ok(())
}

/// Steps, sleeps and events: in memory, in a file, and, with their units, in a table.
pub(crate) async fn run(name: &str) -> Result<()> {
    for count in COUNTS {
        for (suffix, disk) in [("memory", Disk::memory()), ("file", Disk::file()?)] {
            for workflow in ["bench-long-steps", "bench-long-sleeps", "bench-long-events"] {
                let bench = format!("{name}-{suffix}");
                one(&bench, Arc::new(disk.store()?), workflow, count, || None).await?;
            }
        }
    }
    for workflow in ["bench-long-steps", "bench-long-sleeps", "bench-long-events"] {
        let database = LocalDynamo::memory()?;
        Table::new("tickover").create(&database.client()).await?;
        let store = Arc::new(DynamoStore::new(database.client(), "tickover"));
        let used = store.clone();
        let units = move || Some((used.usage().read_units, used.usage().write_units));
        one(&format!("{name}-table"), store, workflow, IN_TABLE, units).await?;
    }
    Ok(())
}

/// One execution, alone. `units` are those that were read and written so far.
async fn one(
    bench: &str,
    store: Arc<dyn Store>,
    workflow: &str,
    count: usize,
    units: impl Fn() -> Option<(f64, f64)>,
) -> Result<()> {
    // A sleep has two entries.
    let limits = Limits { journal_entries: 3 * count, ..Limits::default() };
    let system = System::over(store, limits)?;
    REACHED.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let (began, mut used) = (Instant::now(), vec![units()]);
    let id = start(&system.service, workflow, &json!(count)).await?;
    for item in 0..count {
        while reached().len() <= item {
            NEXT.notified().await;
        }
        used.push(units());
        if workflow == "bench-long-events" {
            let event = EventName::parse("ping")?;
            let payload = tickover_core::payload::Json::parse("1");
            system.service.send_event(&id, event, None, payload).await?;
        }
    }
    let ended = system.service.wait_for_execution(&id, WAIT_MAX).await?.context("it exists")?;
    let took = began.elapsed();
    ensure!(ended.execution.status() == ExecutionStatus::Completed, "{:?}", ended.execution);
    let reached = reached();
    let part = count / PART;
    let each = |of: &[Instant]| {
        let span = of.last().zip(of.first()).map_or(Duration::ZERO, |(last, first)| *last - *first);
        span.as_secs_f64() * 1_000.0 / float(part)
    };
    let (first, last) = (each(&reached[..=part]), each(&reached[count - part - 1..]));
    let spent = |from: usize, to: usize| {
        let ((reads, writes), (before, written)) = used[to].zip(used[from])?;
        let each = |units: f64| rounded(units / float(to - from), 2);
        Some(json!({ "reads": each(reads - before), "writes": each(writes - written) }))
    };
    print(&json!({
        "bench": bench,
        "workflow": workflow,
        "items": count,
        "seconds": rounded(took.as_secs_f64(), 2),
        "ms_each_at_first": rounded(first, 3),
        "ms_each_at_last": rounded(last, 3),
        "ratio": rounded(last / first, 2),
        "units_each_at_first": spent(1, part),
        "units_each_at_last": spent(count - part, count),
    }));
    system.end().await
}
