//! A file under a steady load: what is deleted makes room for what comes after it.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tickover_core::duration::Millis;
use tickover_core::limits::Limits;
use tickover_core::timeout::{LifeTimeout, Timeouts};
use tickover_service::memory::{ManualClock, MemoryQueue};
use tickover_service::ports::Clock;
use tickover_service::system::SystemIds;
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_service::{Ports, Service};
use tickover_sqlite::SqliteStore;
use tickover_tests::scene::{START, claim_request, queue_name, request};

/// Tasks of a round. A half of them is completed; the others time out.
const TASKS: usize = 120;
/// Longer than anything of a round is kept: a key is kept until 61 days after the deadline of its task.
const ROUND: Millis = Millis::from_secs(90 * 86_400);

struct Scene {
    service: Service,
    store: Arc<SqliteStore>,
    clock: Arc<ManualClock>,
}

impl Scene {
    fn new(path: &Path) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let store = Arc::new(SqliteStore::file(path).unwrap());
        let of_ports: Arc<dyn Clock> = clock.clone();
        let queue = Arc::new(MemoryQueue::over(store.clone(), 10, of_ports.clone()).unwrap());
        let ports = Ports { store: store.clone(), queue, clock: of_ports, ids: Arc::new(SystemIds) };
        let limits = Limits { retention: Millis::from_secs(3_600), ..Limits::default() };
        Self { service: Service::new(ports, limits), store, clock }
    }

    /// Tasks come, end and expire, and what has expired is deleted: how many rows.
    async fn round(&self, round: usize) -> usize {
        for number in 0..TASKS {
            let name = format!("t-{round}-{number}");
            let input = format!("{:?}", "x".repeat(2_000 + 10 * number));
            let life = LifeTimeout { after: Millis::from_secs(60), is_error: true };
            let timeouts = Timeouts { schedule_to_close: Some(life), ..Timeouts::default() };
            let plain = request("work", Some(&name), Some(&input));
            let task = ScheduleRequest { idempotency_key: Some(name), timeouts, ..plain };
            self.service.schedule(task).await.unwrap();
        }
        for _ in 0..TASKS / 2 {
            let claimed = self.service.claim(&queue_name("work"), &claim_request(1)).await.unwrap();
            self.service.complete(&claimed[0].task.id, &claimed[0].token, None).await.unwrap();
        }
        self.clock.advance(Millis::from_secs(120));
        let now = self.service.now();
        let report = self.service.tick(now, now.plus(Millis::from_secs(50))).await.unwrap();
        assert_eq!(report.timed_out, TASKS as u64 / 2);
        self.clock.advance(ROUND);
        self.store.delete_expired(self.service.now()).await.unwrap()
    }
}

fn pages(path: &Path) -> i64 {
    let database = Connection::open(path).unwrap();
    database.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_file_does_not_grow_under_a_steady_load_whose_records_expire() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let scene = Scene::new(&path);
    let mut sizes = vec![];
    for round in 0..6 {
        let deleted = scene.round(round).await;
        // Each task has a record, a key and a payload.
        assert_eq!(deleted, 3 * TASKS, "round {round}");
        sizes.push(pages(&path));
    }
    let (early, late) = (sizes[1], sizes[5]);
    assert!((late - early).abs() * 5 <= early, "pages after each round: {sizes:?}");
}
