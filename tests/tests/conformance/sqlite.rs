//! The store of one machine, in memory and in a file.

mod bursts;
mod executions;
mod files;
mod gates;
mod growth;
mod lanes;
mod operations;
mod power;
mod tasks;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tickover_core::limits::Limits;
use tickover_core::task::{Failure, Status, Task};
use tickover_service::memory::MemoryQueue;
use tickover_service::ports::{Clock, Store, TaskFilter};
use tickover_service::system::{SystemClock, SystemIds};
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_service::{Ports, Service};
use tickover_sqlite::SqliteStore;
use tickover_tests::faults::AfterEachWrite;
use tickover_tests::scene::{claim_request, queue_name, request, task_id};

use crate::store;

/// After each write, the columns of all rows agree with their bodies.
fn compared(store: SqliteStore) -> Arc<dyn Store> {
    let (store, whole) = (Arc::new(store), [""; 0]);
    let agrees = {
        let store = Arc::clone(&store);
        move |_| {
            assert_eq!(store.deviations().unwrap(), whole);
            true
        }
    };
    Arc::new(AfterEachWrite::new(store, agrees))
}

#[tokio::test]
async fn the_sqlite_store_in_memory_conforms() {
    store::run(|| async { compared(SqliteStore::memory().unwrap()) }).await;
}

#[tokio::test]
async fn the_sqlite_store_in_a_file_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let files = AtomicUsize::new(0);
    store::run(|| {
        let path = folder.path().join(format!("{}.db", files.fetch_add(1, Ordering::Relaxed)));
        async move { compared(SqliteStore::file(&path).unwrap()) }
    })
    .await;
}

fn service(store: SqliteStore) -> Service {
    service_of(Arc::new(store))
}

fn service_of(store: Arc<SqliteStore>) -> Service {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
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

/// Every combination of queue and statuses, a few tasks a page: each task that fits comes once, and no other does.
#[tokio::test]
async fn tasks_are_found_by_queue_and_status_a_page_at_a_time() {
    let service = service(SqliteStore::memory().unwrap());
    let mut tasks = vec![];
    for number in 0..60 {
        let queue = ["a", "b", "b-2"][number % 3];
        let id = task_id(&format!("t-{number:02}"));
        let scheduled = ScheduleRequest { id: Some(id.clone()), ..request(queue, None, None) };
        service.schedule(scheduled).await.unwrap();
        if number % 5 > 0 {
            let claimed = service.claim(&queue_name(queue), &claim_request(1)).await.unwrap().remove(0);
            let (id, token) = (&claimed.task.id, &claimed.token);
            match number % 5 {
                1 => drop(service.complete(id, token, None).await.unwrap()),
                2 => drop(service.fail(id, token, Failure::new("e", "m"), false).await.unwrap()),
                3 => drop(service.cancel(id, true).await.unwrap()),
                _ => {}
            }
        }
        tasks.push(id);
    }
    let mut all = vec![];
    for id in &tasks {
        all.push(service.describe(id).await.unwrap().task);
    }
    let sets = (0..1_usize << Status::ALL.len()).map(|bits| {
        Status::ALL
            .into_iter()
            .enumerate()
            .filter(|(bit, _)| bits >> bit & 1 == 1)
            .map(|(_, status)| status)
            .collect()
    });
    for statuses in sets.collect::<Vec<Vec<Status>>>() {
        for queue in [None, Some("a"), Some("b"), Some("c")] {
            let filter = TaskFilter {
                queue: queue.map(queue_name),
                statuses: statuses.clone(),
                ..TaskFilter::default()
            };
            let fits = |task: &&Task| {
                (statuses.is_empty() || statuses.contains(&task.status()))
                    && filter.queue.as_ref().is_none_or(|queue| *queue == task.queue)
            };
            let mut expected: Vec<_> = all.iter().filter(fits).map(|task| task.id.clone()).collect();
            let (mut found, mut cursor) = (vec![], None);
            loop {
                let page = service.list(&filter, 7, cursor.as_deref()).await.unwrap();
                assert!(page.items.len() == 7 || page.next.is_none(), "a short page that isn't the last one");
                found.extend(page.items.into_iter().map(|task| task.id));
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{filter:?}");
        }
    }
}
