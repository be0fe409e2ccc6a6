//! The machine's clock is set back, by an hour or by a day: nothing waits for the time that it showed.

use std::sync::Arc;

use tickover_core::cron::plan::{Interval, Missed, Overlap, Plan, When};
use tickover_core::duration::Millis;
use tickover_core::id::{CronId, TaskId, WorkflowName};
use tickover_core::limits::Limits;
use tickover_core::payload::Json;
use tickover_core::task::command::Start;
use tickover_service::crons::{CronRequest, CronWork};
use tickover_service::executions::{StartRequest, Work};
use tickover_service::memory::MemoryQueue;
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemIds;
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_service::{Ports, Service};
use tickover_sqlite::SqliteStore;
use tickover_tests::scene::{LeapClock, Scene, claim_request, queue_name, request};

/// Tasks that wait, more than the queue keeps hints of.
const TASKS: usize = 12;
const HINTS_KEPT: u64 = 4;

fn spans() -> [Millis; 3] {
    [300, 3_600, 86_400].map(Millis::from_secs)
}

/// A process of one machine over this store.
fn process(store: &Arc<SqliteStore>, clock: &Arc<LeapClock>) -> Scene {
    let queue = Arc::new(MemoryQueue::over(store.clone(), HINTS_KEPT, clock.clone()).unwrap());
    let ports =
        Ports { store: store.clone(), queue: queue.clone(), clock: clock.clone(), ids: Arc::new(SystemIds) };
    let limits = Limits { alone_since: Some(clock.now()), ..Limits::default() };
    Scene { service: Service::new(ports, limits), clock: clock.clone(), queue }
}

fn machine() -> (Arc<SqliteStore>, Scene) {
    let store = Arc::new(SqliteStore::memory().unwrap());
    let scene = process(&store, &Arc::new(LeapClock::default()));
    (store, scene)
}

async fn schedule(scene: &Scene, number: usize) {
    scene.service.schedule(request("work", Some(&format!("t-{number:02}")), None)).await.unwrap();
}

/// The tasks that are ready, in any order.
async fn claim_all(scene: &Scene) -> Vec<TaskId> {
    let mut ids = vec![];
    loop {
        let claimed = scene.service.claim(&queue_name("work"), &claim_request(10)).await.unwrap();
        if claimed.is_empty() {
            ids.sort();
            return ids;
        }
        ids.extend(claimed.into_iter().map(|claimed| claimed.task.id));
    }
}

#[tokio::test]
async fn what_was_ready_stays_ready() {
    for by in spans() {
        let (_, scene) = machine();
        for number in 0..TASKS {
            schedule(&scene, number).await;
        }
        scene.clock.set_back(by);
        schedule(&scene, TASKS).await;
        let before = scene.clock.now();
        assert_eq!((claim_all(&scene).await.len(), scene.clock.now()), (TASKS + 1, before), "{by}");
    }
}

#[tokio::test]
async fn what_was_ready_is_ready_for_a_process_that_starts_with_the_new_time() {
    for by in [3_600, 86_400].map(Millis::from_secs) {
        let (store, scene) = machine();
        for number in 0..TASKS {
            schedule(&scene, number).await;
        }
        scene.clock.set_back(by);
        let scene = process(&store, &scene.clock);
        scene.service.hint_all().await.unwrap();
        let before = scene.clock.now();
        assert_eq!((claim_all(&scene).await.len(), scene.clock.now()), (TASKS, before), "{by}");
    }
}

#[tokio::test]
async fn a_delayed_start_keeps_its_instant_and_is_not_made_earlier() {
    let (_, scene) = machine();
    scene.clock.set_back(Millis::from_secs(3_600));
    let start = Start::After(Millis::from_secs(120));
    scene.service.schedule(ScheduleRequest { start, ..request("work", Some("late"), None) }).await.unwrap();
    assert!(claim_all(&scene).await.is_empty());
    scene.clock.advance(Millis::from_secs(120));
    assert_eq!(claim_all(&scene).await.len(), 1);
}

#[tokio::test]
async fn a_lost_workers_task_goes_on_when_its_lease_is_over_by_what_has_passed() {
    let (_, scene) = machine();
    schedule(&scene, 0).await;
    assert_eq!(claim_all(&scene).await.len(), 1);
    scene.clock.set_back(Millis::from_secs(3_600));
    assert!(claim_all(&scene).await.is_empty());
    scene.clock.advance(Millis::from_secs(60));
    assert_eq!(claim_all(&scene).await.len(), 1);
}

#[tokio::test]
async fn a_workflow_that_was_ready_starts() {
    let (_, scene) = machine();
    let start = StartRequest::new(WorkflowName::parse("flow").unwrap(), queue_name("flows"));
    scene.service.start(start).await.unwrap();
    scene.clock.set_back(Millis::from_secs(3_600));
    let work = scene.service.next_work(&queue_name("flows"), &claim_request(1)).await.unwrap();
    assert!(matches!(work[..], [Work::Turn(_)]));
}

#[tokio::test]
async fn a_cron_follows_the_new_time() {
    for by in spans() {
        let (_, scene) = machine();
        let asked = CronRequest {
            id: Some(CronId::parse("report").unwrap()),
            work: CronWork::Task(
                Box::new(request("work", None, None)),
                Json::parse(r#"{"queue": "work", "kind": "work"}"#).unwrap(),
            ),
            template: None,
            plan: Plan {
                when: When::Every(Interval::new(Millis::from_secs(60)).unwrap()),
                overlap: Overlap::AllowAll,
                missed: Missed::Skip,
                jitter: Millis::ZERO,
                max_runs: None,
            },
            paused: None,
        };
        scene.service.create_cron(asked).await.unwrap();
        scene.clock.advance(Millis::from_secs(60));
        scene.tick().await.unwrap();
        let before = claim_all(&scene).await;
        scene.clock.set_back(by);
        scene.service.plan_crons_anew().await.unwrap();
        scene.clock.advance(Millis::from_secs(60));
        scene.tick().await.unwrap();
        let since = claim_all(&scene).await;
        assert_eq!((before.len(), since.iter().filter(|id| !before.contains(id)).count()), (1, 1), "{by}");
    }
}
