//! A store that lies: it returns the journal with changed outcomes. The product code is unchanged; only its input isn't
//! what was stored.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::{Either, join3, select};
use tickover::{Millis, Registry, Worker, WorkerSettings};
use tickover_core::decision::Write;
use tickover_core::execution::journal::{Entry, Segment, SegmentKey};
use tickover_core::execution::{Execution, Parent, Slot};
use tickover_core::gate::Waiter;
use tickover_core::id::{
    BlobId, ExecutionId, GateId, Incarnation, QueueName, RecordId, TaskId, WorkflowName,
};
use tickover_core::limits::Limits;
use tickover_core::payload::{BlobRef, Json};
use tickover_core::record::Record;
use tickover_core::time::Timestamp;
use tickover_service::memory::{ManualClock, MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::{
    Clock as _, Collection, Consistency, DueEntry, DueRange, Listing, Page, Queue as _, Store, StoreError,
    StoreTraits,
};
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};

use crate::body::random;
use crate::life::tell;
use crate::steps::{little, work};
use crate::tree::Plan;
use crate::witness::Witness;

/// How the store changes the order of neighbouring outcomes in a journal, or removes some.
pub(crate) type Tampering = fn(Vec<Entry>) -> Vec<Entry>;

/// For how many seconds a worker works before another one may.
const SHIFTS: [u64; 6] = [1, 3, 10, 60, 3_600, 100_000];

/// Changes nothing.
pub(crate) const fn honest(journal: Vec<Entry>) -> Vec<Entry> {
    journal
}

/// Sorts outcomes that follow each other by their names.
pub(crate) fn by_name(mut journal: Vec<Entry>) -> Vec<Entry> {
    for outcomes in journal.chunk_by_mut(|one, next| is_outcome(one) && is_outcome(next)) {
        outcomes.sort_by(|one, other| one.what.outcome_of().cmp(&other.what.outcome_of()));
    }
    journal
}

/// Swaps the first two of several outcomes that follow each other.
pub(crate) fn swapped(mut journal: Vec<Entry>) -> Vec<Entry> {
    for outcomes in journal.chunk_by_mut(|one, next| is_outcome(one) && is_outcome(next)) {
        if outcomes.len() > 1 {
            outcomes.swap(0, 1);
        }
    }
    journal
}

/// Removes the last outcome.
pub(crate) fn forgotten(mut journal: Vec<Entry>) -> Vec<Entry> {
    if journal.last().is_some_and(is_outcome) {
        journal.pop();
    }
    journal
}

fn is_outcome(entry: &Entry) -> bool {
    entry.what.outcome_of().is_some()
}

/// Runs a body without a death on a store that lies, by a worker that replays each turn. Returns the first error.
pub(crate) async fn live_with(plan: &Plan, lie: Tampering) -> Result<(), String> {
    live_by(plan, lie, &[0]).await
}

/// Runs a body without a death, by workers each of which keeps so many suspended runs in memory. One of them works at a time,
/// for a random time, so what it remembers is often old. Returns the first error.
pub(crate) async fn live_by(plan: &Plan, lie: Tampering, kept_runs: &[usize]) -> Result<(), String> {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_767_225_600_000)));
    let store = Arc::new(MemoryStore::default());
    let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
    let service = |store: Arc<dyn Store>| {
        let ports = Ports { store, queue: queue.clone(), clock: clock.clone(), ids: Arc::new(SystemIds) };
        Service::new(ports, Limits::default())
    };
    let lied_to = service(Arc::new(Lying { inner: store.clone(), lie }));
    let witness = Witness::new(plan, service(store));
    let worker = |kept_runs: &usize| {
        let registry = Registry::new().with((random, little)).with_step::<work>();
        let settings = WorkerSettings { kept_runs: *kept_runs, ..WorkerSettings::default() };
        Worker::new(lied_to.clone(), registry, settings).unwrap()
    };
    let workers: Vec<_> = kept_runs.iter().map(worker).collect();
    let working = async {
        loop {
            let seconds = SHIFTS[witness.chance(SHIFTS.len())];
            let until = clock.now().plus(Millis::from_secs(seconds));
            workers[witness.chance(workers.len())].run(clock.sleep_until(until)).await;
        }
    };
    let system = join3(working, tick(&lied_to), fire(&lied_to, &queue));
    let told = tell(&witness);
    match Box::pin(clock.drive(select(Box::pin(system), Box::pin(told)))).await {
        Either::Left(_) => unreachable!("a system runs for ever"),
        Either::Right(_) => witness.problem().map_or(Ok(()), Err),
    }
}

async fn tick(service: &Service) {
    loop {
        let now = service.now();
        drop(service.tick(now, now.plus(Millis::from_secs(50))).await);
        service.clock().sleep_until(now.plus(Millis::from_secs(600))).await;
    }
}

async fn fire(service: &Service, queue: &MemoryQueue) {
    let timers = QueueName::timers();
    loop {
        let (hidden, wait) = (Millis::from_secs(60), Millis::from_secs(600));
        for message in queue.receive(&timers, 10, hidden, wait).await.unwrap() {
            drop(service.fire(&message, service.now().plus(Millis::from_secs(50))).await);
            queue.delete(&timers, &message.receipt).await.unwrap();
        }
    }
}

struct Lying {
    inner: Arc<MemoryStore>,
    lie: Tampering,
}

impl Lying {
    fn told(&self, record: Record) -> Record {
        match Execution::try_from(record) {
            Ok(execution) => Execution { journal: (self.lie)(execution.journal), ..execution }.into(),
            Err(other) => other,
        }
    }
}

#[async_trait]
impl Store for Lying {
    async fn record(&self, id: &RecordId, consistency: Consistency) -> Result<Option<Record>, StoreError> {
        Ok(self.inner.record(id, consistency).await?.map(|record| self.told(record)))
    }

    async fn records(&self, ids: &[RecordId]) -> Result<Vec<Record>, StoreError> {
        Ok(self.inner.records(ids).await?.into_iter().map(|record| self.told(record)).collect())
    }

    async fn collection(
        &self,
        of: Collection,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Record>, StoreError> {
        self.inner.collection(of, limit, cursor).await
    }

    async fn segments(
        &self,
        id: &ExecutionId,
        incarnation: Incarnation,
        run: u32,
        after: u32,
    ) -> Result<Vec<(SegmentKey, Segment)>, StoreError> {
        let segments = self.inner.segments(id, incarnation, run, after).await?;
        let told = |segment: Segment| Segment { entries: (self.lie)(segment.entries), ..segment };
        Ok(segments.into_iter().map(|(key, segment)| (key, told(segment))).collect())
    }

    async fn commit(&self, writes: &[Write]) -> Result<(), StoreError> {
        self.inner.commit(writes).await
    }

    async fn put_blob(&self, at: &BlobRef, body: &Json) -> Result<(), StoreError> {
        self.inner.put_blob(at, body).await
    }

    async fn blob(&self, id: &BlobId) -> Result<Option<Json>, StoreError> {
        self.inner.blob(id).await
    }

    async fn due(
        &self,
        range: DueRange,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DueEntry>, StoreError> {
        self.inner.due(range, limit, cursor).await
    }

    async fn list(
        &self,
        listing: Listing,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError> {
        self.inner.list(listing, limit, cursor).await
    }

    async fn list_executions(
        &self,
        workflow: &WorkflowName,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        self.inner.list_executions(workflow, limit, cursor).await
    }

    async fn put_segment(
        &self,
        id: &ExecutionId,
        key: &SegmentKey,
        segment: &Segment,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        self.inner.put_segment(id, key, segment, expires_at).await
    }

    async fn join(&self, parent: &Parent, slot: Slot, expires_at: Timestamp) -> Result<u16, StoreError> {
        self.inner.join(parent, slot, expires_at).await
    }

    async fn waiters(&self, gate: &GateId, after: &str, limit: usize) -> Result<Vec<Waiter>, StoreError> {
        self.inner.waiters(gate, after, limit).await
    }

    async fn next_line(&self, part: u8, after: Option<&GateId>) -> Result<Option<GateId>, StoreError> {
        self.inner.next_line(part, after).await
    }

    fn traits(&self) -> StoreTraits<'_> {
        self.inner.traits()
    }
}
