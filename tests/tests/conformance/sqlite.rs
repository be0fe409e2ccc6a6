//! The store of one machine, in memory and in a file.

mod files;
mod growth;
mod power;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tickover_core::limits::Limits;
use tickover_service::memory::MemoryQueue;
use tickover_service::ports::{Clock, Store};
use tickover_service::system::{SystemClock, SystemIds};
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_service::{Ports, Service};
use tickover_sqlite::SqliteStore;
use tickover_tests::scene::{claim_request, queue_name, request, task_id};

use crate::store;

#[tokio::test]
async fn the_sqlite_store_in_memory_conforms() {
    store::run(|| async { Arc::new(SqliteStore::memory().unwrap()) as Arc<dyn Store> }).await;
}

#[tokio::test]
async fn the_sqlite_store_in_a_file_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let files = AtomicUsize::new(0);
    store::run(|| {
        let path = folder.path().join(format!("{}.db", files.fetch_add(1, Ordering::Relaxed)));
        async move { Arc::new(SqliteStore::file(&path).unwrap()) as Arc<dyn Store> }
    })
    .await;
}

fn service(store: SqliteStore) -> Service {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store = Arc::new(store);
    let queue = Arc::new(MemoryQueue::over(store.clone(), 10, clock.clone()).unwrap());
    Service::new(Ports { store, queue, clock, ids: Arc::new(SystemIds) }, Limits::default())
}

/// Far more tasks than hints are kept: each is claimed once, in the order in which they were scheduled, and the depth
/// counts all of them. So it is after a restart.
#[tokio::test]
async fn a_backlog_is_read_from_the_store_in_order_also_by_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let (queue, count) = (queue_name("work"), 95);
    let first = service(SqliteStore::file(&path).unwrap());
    for number in 0..count {
        let id = task_id(&format!("t-{number:03}"));
        first.schedule(ScheduleRequest { id: Some(id), ..request("work", None, None) }).await.unwrap();
    }
    assert_eq!(first.describe_queue(&queue).await.unwrap().depth.visible, count);
    let mut claimed = claim_all(&first, 40).await;
    drop(first);
    let second = service(SqliteStore::file(&path).unwrap());
    claimed.extend(claim_all(&second, usize::MAX).await);
    let expected: Vec<String> = (0..count).map(|number| format!("t-{number:03}")).collect();
    assert_eq!(claimed, expected);
}

/// Claims up to so many tasks, one after the other, and completes them.
async fn claim_all(service: &Service, max: usize) -> Vec<String> {
    let mut ids = vec![];
    while ids.len() < max {
        let claimed = service.claim(&queue_name("work"), &claim_request(1)).await.unwrap();
        let Some(claimed) = claimed.first() else { break };
        service.complete(&claimed.task.id, &claimed.token, None).await.unwrap();
        ids.push(claimed.task.id.to_string());
    }
    ids
}
