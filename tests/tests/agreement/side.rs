//! A service over one of the stores, with its own time, queue and random numbers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tickover_core::duration::Millis;
use tickover_core::id::{QueueName, TaskId};
use tickover_core::limits::Limits;
use tickover_core::task::Task;
use tickover_core::time::Timestamp;
use tickover_dynamodb::{DynamoStore, Table};
use tickover_embedded::dynamodb::Embedded;
use tickover_service::memory::{MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::{Depth, DueEntry, DueRange, Ids, Listing, Queue as _, Store};
use tickover_service::{Ports, Service};
use tickover_tests::scene::LeapClock;

/// One of the two sides, with what its workers know.
pub(crate) struct Side {
    pub(crate) service: Service,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) queue: Arc<MemoryQueue>,
    pub(crate) clock: Arc<LeapClock>,
    /// Every task that was created, in the order of the answers.
    pub(crate) ids: Vec<TaskId>,
    /// Every lease that was granted, with its task.
    pub(crate) leases: Vec<(TaskId, String)>,
}

/// All stored records and waiting messages, except what no caller can read.
#[derive(Debug, PartialEq)]
pub(crate) struct Everything {
    now: Timestamp,
    tasks: Vec<Task>,
    due: Vec<Vec<DueEntry>>,
    dead: Vec<TaskId>,
    queues: BTreeMap<QueueName, (Depth, String)>,
    tick: String,
}

/// Limits that a few steps reach.
pub(crate) fn limits() -> Limits {
    Limits {
        retention: Millis::from_secs(3 * 3_600),
        idempotency: Millis::from_secs(3_600),
        losses: 1,
        due_shards: 2,
        batch: 5,
        payload_bytes: 8 * 1_024,
        ..Limits::default()
    }
}

impl Side {
    /// Over the store in memory.
    pub(crate) fn in_memory() -> Self {
        Self::over(Arc::new(MemoryStore::new()))
    }

    /// Over `DynamoDB`'s semantics in this process, in memory as well.
    pub(crate) async fn on_dynamodb() -> Self {
        Self::over(dynamodb().await)
    }

    fn over(store: Arc<dyn Store>) -> Self {
        let clock = Arc::new(LeapClock::default());
        let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
        let ids = Arc::new(Counted::default());
        let ports = Ports { store: store.clone(), queue: queue.clone(), clock: clock.clone(), ids };
        let service = Service::new(ports, limits());
        Self { service, store, queue, clock, ids: vec![], leases: vec![] }
    }

    /// Reads everything.
    pub(crate) async fn everything(&self) -> Everything {
        let mut tasks = Vec::new();
        for id in &self.ids {
            tasks.extend(self.store.task(id).await.unwrap());
        }
        let mut due = Vec::new();
        for shard in 0..self.service.limits().due_shards {
            let range = DueRange::until(shard, Timestamp::from_millis(i64::MAX));
            let mut entries = self.store.due(range, 100, None).await.unwrap().items;
            let sorted = entries.is_sorted_by_key(|entry| entry.due_at);
            assert!(sorted, "not in order: {entries:?}");
            // The order of two entries due at the same instant doesn't matter.
            entries.sort_by(|one, other| (one.due_at, &one.record).cmp(&(other.due_at, &other.record)));
            due.push(entries);
        }
        let mut dead = self.store.list(Listing::Dead, 100, None).await.unwrap().items;
        dead.sort();
        let mut queues = BTreeMap::new();
        for name in self.queue.names() {
            let depth = self.queue.depth(&name).await.unwrap();
            let record = self.store.queue(&name).await.unwrap();
            queues.insert(name, (depth, format!("{record:?}")));
        }
        let tick = format!("{:?}", self.store.tick_record().await.unwrap());
        Everything { now: self.service.now(), tasks, due, dead, queues, tick }
    }
}

/// A store over a new table.
pub(crate) async fn dynamodb() -> Arc<dyn Store> {
    let client = Embedded::memory().unwrap().client();
    Table::new("tickover").create(&client).await.unwrap();
    Arc::new(DynamoStore::new(client, "tickover"))
}

/// Random numbers that are the same on both sides.
#[derive(Default)]
struct Counted(AtomicU64);

impl Ids for Counted {
    fn fill(&self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            // A step and a mix as in splitmix64: bits that look random, none of them constant.
            let mut bits = self.0.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            part.copy_from_slice(&(bits ^ (bits >> 31)).to_be_bytes()[..part.len()]);
        }
    }
}
