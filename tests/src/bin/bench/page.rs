//! The dashboard over a large file: how long the requests of each view take, from the first to the last answer.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use reqwest::Client;
use serde_json::{Map, json};
use tickover_core::decision::{Condition, Write};
use tickover_core::duration::Millis;
use tickover_core::execution::Execution;
use tickover_core::execution::fixture::{every_state, pending};
use tickover_core::failure::Failure;
use tickover_core::id::{ExecutionId, Incarnation, Nonce, TaskKind, WorkflowName};
use tickover_core::limits::Limits;
use tickover_core::payload::{Json, Payload};
use tickover_core::task::{Outcome, State, Task};
use tickover_service::claim::ClaimRequest;
use tickover_service::memory::{MemoryQueue, Queues};
use tickover_service::ports::{Clock as _, Store as _};
use tickover_service::system::{SystemClock, SystemIds};
use tickover_service::{Ports, Service};
use tickover_sqlite::SqliteStore;
use tickover_tests::scene::{claim_request, queue_name, request, task_id};

use crate::local::Server;
use crate::{Disk, print, rounded};

const QUEUES: usize = 11;
const KINDS: usize = 25;
const CUSTOMERS: usize = 500;
const CODES: usize = 19;
const WORKFLOWS: usize = 10;
/// Of so many tasks one waits, one runs, one has failed, and the others have completed.
const STATES: usize = 10;
/// Records of a commit.
const BATCH: usize = 100;
/// Each view is asked for so often; the slowest counts.
const READS: usize = 5;

/// What each view asks for at once, as the modules in `shared/dashboard/pages/views` do.
const VIEWS: [(&str, &[&str]); 17] = [
    ("overview", &["overview", "history"]),
    ("executions", &["workflows", "executions?limit=50"]),
    ("executions_failed", &["workflows", "executions?limit=50&status=failed"]),
    ("executions_stuck", &["workflows", "executions?limit=50&stuck=true"]),
    ("execution", &["executions/e-7", "executions/e-7/timeline"]),
    ("tasks", &["queues", "tasks?limit=50&status=pending,running,failed,timed_out"]),
    ("tasks_all", &["queues", "tasks?limit=50"]),
    ("tasks_label", &["queues", "tasks?limit=50&label=customer%3D7"]),
    ("tasks_error", &["queues", "tasks?limit=50&error=code-7"]),
    ("tasks_kind", &["queues", "tasks?limit=50&kind=kind-7"]),
    ("tasks_stuck", &["queues", "tasks?limit=50&stuck=true"]),
    ("tasks_of_an_hour", &["queues", "tasks?limit=50&ended_from=2020-01-01T00:00:00Z"]),
    ("task", &["tasks/t-7"]),
    ("failures", &["failures"]),
    ("failures_group", &["failures", "tasks?limit=100&kind=kind-7&error=code-7&status=failed,timed_out"]),
    ("search_label", &["executions?limit=50&label=customer%3D7", "tasks?limit=50&label=customer%3D7"]),
    ("search_id", &["executions?limit=50&id_prefix=e-19", "tasks?limit=50&id_prefix=t-99"]),
];

/// A file with so many tasks and executions, and the times of each view.
pub(crate) async fn run(name: &str, disk: &Disk, tasks: usize, executions: usize) -> Result<()> {
    let folder = disk.folder().context("a file")?;
    let store = SqliteStore::file(&folder.join("local.db"))?;
    write_tasks(&store, tasks).await?;
    write_executions(&store, executions).await?;
    drop(store);

    let started = Instant::now();
    let server = Server::start(disk).await?;
    let client = Client::new();
    timed(&client, &server, VIEWS[0].1).await?;
    let first = started.elapsed();
    let (mut times, mut sizes) = (Map::new(), Map::new());
    for (view, paths) in VIEWS {
        let (mut slowest, mut bytes) = (0.0_f64, 0);
        for _ in 0..READS {
            let (ms, all) = timed(&client, &server, paths).await?;
            (slowest, bytes) = (slowest.max(ms), all);
        }
        times.insert(view.to_owned(), rounded(slowest, 1).into());
        sizes.insert(view.to_owned(), bytes.into());
    }
    print(&json!({
        "bench": name,
        "tasks": tasks,
        "executions": executions,
        "first_ms": rounded(first.as_secs_f64() * 1_000.0, 1),
        "slowest_ms": times,
        "bytes": sizes,
    }));
    server.end().await
}

fn service(store: Arc<SqliteStore>) -> Service {
    let clock = Arc::new(SystemClock);
    let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
    Service::new(Ports { store, queue, clock, ids: Arc::new(SystemIds) }, Limits::default())
}

/// How long these requests take at once, in milliseconds, and how many bytes the answers have.
async fn timed(client: &Client, server: &Server, paths: &[&str]) -> Result<(f64, usize)> {
    let started = Instant::now();
    let read = paths.iter().map(async |path| {
        let answer = client.get(format!("{}/v1/{path}", server.base)).send().await?;
        anyhow::Ok(answer.error_for_status()?.bytes().await?.len())
    });
    let bytes = try_join_all(read).await?;
    Ok((started.elapsed().as_secs_f64() * 1_000.0, bytes.iter().sum()))
}

/// The records of one task in each state, by the calls of users and workers.
async fn templates() -> Result<Vec<Task>> {
    let service = service(Arc::new(SqliteStore::memory()?));
    let mut tasks = vec![];
    for state in 0..STATES {
        let id = task_id(&format!("state-{state}"));
        service.schedule(request("queue-0", Some(id.as_str()), Some(r#"{"to":"ada@example.com"}"#))).await?;
        if state > 0 {
            let claim = ClaimRequest { lease: Millis::from_secs(3_600), ..claim_request(1) };
            let token = service.claim_by_id(&id, &claim).await?.context("a task to claim")?.token;
            match state {
                1 => {}
                2 => drop(service.fail(&id, &token, Failure::new("code", "refused"), false).await?),
                _ => drop(service.complete(&id, &token, Json::parse("{\"ok\":true}")).await?),
            }
        }
        tasks.push(service.describe(&id).await?.task);
    }
    Ok(tasks)
}

async fn write_tasks(store: &SqliteStore, count: usize) -> Result<()> {
    let (now, templates) = (SystemClock.now(), templates().await?);
    let mut writes = vec![];
    for number in 0..count {
        let mark = u64::try_from(number)?.to_be_bytes();
        let labels = Json::parse(format!(r#"{{"customer":"{}"}}"#, number % CUSTOMERS)).context("JSON")?;
        let mut task = Task {
            id: task_id(&format!("t-{number}")),
            incarnation: Incarnation::from_bytes(mark),
            nonce: Nonce::from_bytes(mark),
            queue: queue_name(&format!("queue-{}", number % QUEUES)),
            kind: TaskKind::parse(format!("kind-{}", number % KINDS))?,
            created_at: now.minus(Millis::new(u64::try_from(count - number)?)),
            labels: Some(Payload::Inline(labels)),
            ..templates[number % STATES].clone()
        };
        if let State::Ended(ended) = &mut task.state
            && let Outcome::Failed { error, .. } = &mut ended.outcome
        {
            *error = Failure::new(format!("code-{}", number / STATES % CODES), "the other side refused it");
        }
        writes.push(Write::put(task, Condition::Free { now }));
        if writes.len() == BATCH || number + 1 == count {
            store.commit(&std::mem::take(&mut writes)).await?;
        }
    }
    Ok(())
}

/// By the store, in all states there are.
async fn write_executions(store: &SqliteStore, count: usize) -> Result<()> {
    let now = SystemClock.now();
    let states = every_state(now);
    let mut writes = vec![];
    for number in 0..count {
        let mark = u64::try_from(number)?.to_be_bytes();
        let customer = number % CUSTOMERS;
        let details = Json::parse(format!(r#"{{"labels":{{"customer":"{customer}"}}}}"#)).context("JSON")?;
        let execution = Execution {
            id: ExecutionId::parse(format!("e-{number}"))?,
            incarnation: Incarnation::from_bytes(mark),
            nonce: Nonce::from_bytes(mark),
            workflow: WorkflowName::parse(format!("workflow-{}", number % WORKFLOWS))?,
            created_at: now.minus(Millis::new(u64::try_from(count - number)?)),
            details: Some(Payload::Inline(details)),
            state: states[number % states.len()].clone(),
            ..pending(now)
        };
        writes.push(Write::put(execution, Condition::Free { now }));
        if writes.len() == BATCH || number + 1 == count {
            store.commit(&std::mem::take(&mut writes)).await?;
        }
    }
    Ok(())
}
