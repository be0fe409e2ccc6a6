//! Lists of executions of all workflows, with few and with very many executions.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};
use tickover_core::decision::{Condition, Write};
use tickover_core::duration::Millis;
use tickover_core::execution::fixture::{every_state, pending};
use tickover_core::execution::{Execution, ExecutionStatus};
use tickover_core::id::{ExecutionId, Incarnation, Nonce, WorkflowName};
use tickover_core::limits::Limits;
use tickover_core::payload::{Json, Payload};
use tickover_service::memory::{MemoryQueue, Queues};
use tickover_service::ports::{Clock as _, ExecutionFilter, Store as _};
use tickover_service::system::{SystemClock, SystemIds};
use tickover_service::{Ports, Service};
use tickover_sqlite::SqliteStore;

use crate::{Disk, print, rounded};

/// Executions that are compared.
const FEW: u64 = 1_000;
const WORKFLOWS: u64 = 10;
/// One in so many executions has another state than completed, and one in so many a certain label.
const RARE: u64 = 100;
/// Executions of a commit.
const BATCH: u64 = 100;
/// Each list is read so often; the median counts.
const READS: usize = 21;
/// Records on a page.
const PAGE: usize = 50;

pub(crate) async fn run(name: &str, disk: &Disk, count: u64) -> Result<()> {
    let folder = disk.folder().context("a file")?;
    let store = Arc::new(SqliteStore::file(&folder.join("lists.db"))?);
    let clock = Arc::new(SystemClock);
    let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
    let ports = Ports { store: store.clone(), queue, clock, ids: Arc::new(SystemIds) };
    let service = Service::new(ports, Limits::default());
    write(&store, 0..FEW).await?;
    let few = timed(&service).await?;
    write(&store, FEW..count).await?;
    let many = timed(&service).await?;
    let figures = |list: &str, number: u64, ms: &[(&str, f64)]| {
        let ms: Map<String, Value> =
            ms.iter().map(|(list, ms)| ((*list).to_owned(), rounded(*ms, 2).into())).collect();
        print(&json!({"bench": name, "executions": number, list: ms}));
    };
    figures("p50_ms", FEW, &few);
    figures("p50_ms", count, &many);
    Ok(())
}

async fn write(store: &SqliteStore, numbers: std::ops::Range<u64>) -> Result<()> {
    let now = SystemClock.now();
    let states = every_state(now);
    let mut writes = vec![];
    for number in numbers.clone() {
        let rare = usize::try_from(number / RARE)? % states.len();
        // The one after those that are closing and ended has completed, too.
        let state = if number.is_multiple_of(RARE) { rare } else { 5 };
        let label = if number % RARE == 1 { "rare" } else { "usual" };
        let details = Json::parse(format!(r#"{{"labels":{{"customer":"{label}"}}}}"#)).context("JSON")?;
        let execution = Execution {
            id: ExecutionId::parse(format!("e-{number}"))?,
            incarnation: Incarnation::from_bytes(number.to_be_bytes()),
            nonce: Nonce::from_bytes(number.to_be_bytes()),
            workflow: WorkflowName::parse(format!("workflow-{}", number % WORKFLOWS))?,
            created_at: now.plus(Millis::new(number)),
            details: Some(Payload::Inline(details)),
            state: states[state].clone(),
            ..pending(now)
        };
        writes.push(Write::put(execution, Condition::Free { now }));
        if writes.len() as u64 == BATCH || number + 1 == numbers.end {
            store.commit(&std::mem::take(&mut writes)).await?;
        }
    }
    Ok(())
}

/// How long each list takes, in milliseconds.
async fn timed(service: &Service) -> Result<Vec<(&'static str, f64)>> {
    let all = ExecutionFilter::default();
    let of = |statuses: &[ExecutionStatus]| ExecutionFilter { statuses: statuses.to_vec(), ..all.clone() };
    let label = Some(("customer".to_owned(), "rare".to_owned()));
    let error = Some("card_declined".to_owned());
    let mut found = vec![];
    for (name, filter) in [
        ("latest", all.clone()),
        ("completed", of(&[ExecutionStatus::Completed])),
        ("failed", of(&[ExecutionStatus::Failed])),
        ("running", of(&[ExecutionStatus::Running])),
        ("label", ExecutionFilter { label, ..all.clone() }),
        ("error", ExecutionFilter { error, ..all.clone() }),
    ] {
        let mut times = vec![];
        for _ in 0..READS {
            let started = Instant::now();
            service.executions(&filter, PAGE, None).await?;
            times.push(started.elapsed());
        }
        found.push((name, median(times)));
    }
    let mut times = vec![];
    for _ in 0..READS {
        let started = Instant::now();
        service.count_executions().await?;
        times.push(started.elapsed());
    }
    found.push(("counts", median(times)));
    Ok(found)
}

fn median(mut times: Vec<std::time::Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
}
