//! Priorities and tenants of a queue that keeps few hints over its store.

use tickover_core::flow::{FlowRequest, Priority};
use tickover_core::id::FlowKey;

use super::*;

/// Schedules so many tasks with an order, whose ids begin with the name.
async fn burst(service: &Service, name: &str, count: usize, flow: FlowRequest) {
    for number in 0..count {
        let id = Some(task_id(&format!("{name}-{number:03}")));
        let request = ScheduleRequest { id, flow: flow.clone(), ..request("work", None, None) };
        service.schedule(request).await.unwrap();
    }
}

fn tenant(key: &str) -> FlowRequest {
    FlowRequest { fairness: Some(FlowKey::parse(key).unwrap()), ..FlowRequest::default() }
}

fn of(priority: Priority) -> FlowRequest {
    FlowRequest { priority, ..FlowRequest::default() }
}

/// How many ids begin with a name.
fn count(ids: &[String], name: &str) -> usize {
    ids.iter().filter(|id| id.starts_with(name)).count()
}

/// The burst fills what is kept many times over. So it is in the process that gets it, and in the next one.
#[tokio::test]
async fn a_tenants_backlog_in_the_store_delays_no_other_tenant_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let first = service(SqliteStore::file(&path).unwrap());
    burst(&first, "big", 120, tenant("big")).await;
    burst(&first, "small", 5, tenant("small")).await;
    burst(&first, "plain", 5, FlowRequest::default()).await;
    let claimed = claim_all(&first, 18).await;
    assert_eq!((count(&claimed, "small"), count(&claimed, "plain")), (5, 5), "{claimed:?}");

    burst(&first, "next", 5, tenant("next")).await;
    drop(first);
    let second = service(SqliteStore::file(&path).unwrap());
    assert_eq!(count(&claim_all(&second, 12).await, "next"), 5);
    assert_eq!(claim_all(&second, usize::MAX).await.len(), 120 + 15 - 18 - 12);
}

#[tokio::test]
async fn high_tasks_go_first_and_one_of_ten_is_low_however_many_wait() {
    let service = service(SqliteStore::memory().unwrap());
    burst(&service, "low", 60, of(Priority::Low)).await;
    burst(&service, "high", 60, of(Priority::High)).await;
    let claimed = claim_all(&service, 40).await;
    assert_eq!((count(&claimed, "high"), count(&claimed, "low")), (36, 4), "{claimed:?}");
    assert_eq!(claim_all(&service, usize::MAX).await.len(), 80);
}
