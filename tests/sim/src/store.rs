//! The table as one process sees it: slow and unreliable.

use std::sync::Arc;

use async_trait::async_trait;
use tickover_core::decision::Write;
use tickover_core::execution::journal::{Segment, SegmentKey};
use tickover_core::execution::{Parent, Slot};
use tickover_core::gate::Waiter;
use tickover_core::id::{BlobId, ExecutionId, GateId, Incarnation, RecordId, TaskId, WorkflowName};
use tickover_core::payload::{BlobRef, Json};
use tickover_core::record::Record;
use tickover_core::time::Timestamp;
use tickover_service::ports::{
    Collection, Consistency, DueEntry, DueRange, Listing, Page, Store, StoreError, StoreTraits,
};

use super::aws::Admission;
use super::bugs::{self, Bug};
use super::gate::{Gate, Refusal, RemoteService};
use super::history::execution::Happening;
use super::history::{Actor, Fault, What};

/// A process's store.
pub struct SimStore(pub Arc<Gate>);

impl SimStore {
    async fn refused(&self) -> Result<(), StoreError> {
        if self.0.wait_if_unreachable(RemoteService::Table).await {
            return Err(unavailable());
        }
        match self.0.refusal() {
            None => Ok(()),
            Some(Refusal::Unavailable) => Err(unavailable()),
            Some(Refusal::Throttled) => Err(StoreError::Throttled),
        }
    }

    /// Fails if an older build reads a record that a newer one has written.
    fn readable(&self, record: &RecordId) -> Result<(), StoreError> {
        let gate = &self.0;
        if gate.is_older()
            && gate.world.bug != Some(Bug::OlderBuildReadsOn)
            && gate.world.aws.is_newer(record)
        {
            gate.world.fault(gate.actor, Fault::TooNew);
            return Err(StoreError::Corrupt { reason: "a format that this build doesn't know".to_owned() });
        }
        Ok(())
    }

    /// Whether the table itself accepts a commit, whatever its conditions.
    fn admitted(&self, writes: &[Write]) -> Result<(), StoreError> {
        let gate = &self.0;
        let (world, bug) = (&gate.world, gate.world.bug);
        if gate.is_older() && bug != Some(Bug::OlderBuildReadsOn) && world.aws.meets_newer(writes) {
            world.fault(gate.actor, Fault::TooNew);
            return Err(StoreError::Corrupt { reason: "a format that this build doesn't know".to_owned() });
        }
        let rate = world.hardship.key_rate;
        let Some(rate) = rate else { return Ok(()) };
        match world.aws.admit(writes, rate, world.now(), bug) {
            Admission::Admitted => Ok(()),
            Admission::Refused { is_news } => {
                if is_news {
                    world.fault(gate.actor, Fault::KeyThrottled);
                }
                Err(StoreError::Throttled)
            }
        }
    }

    async fn read<T>(&self, read: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.0.pass().await;
        self.refused().await?;
        let answer = read.await;
        self.0.pass().await;
        answer
    }

    /// Applies a commit to the table; later, if the faults say so.
    fn apply(&self, writes: &[Write]) -> Result<(), StoreError> {
        let gate = &self.0;
        let lag_ms = gate.world.faults().lag_ms;
        match self.admitted(writes) {
            Err(StoreError::Throttled) if gate.world.bug == Some(Bug::ThrottledTakenForDone) => return Ok(()),
            admitted => admitted?,
        }
        if gate.world.hardship.two_builds {
            gate.world.aws.wrote(writes, gate.is_older());
        }
        if !gate.fault_happens(|faults| faults.late_write) {
            let answer = gate.world.ledger.commit(gate.actor, writes, lag_ms);
            if gate.world.hardship.key_rate.is_some() && matches!(answer, Err(StoreError::Conflict { .. })) {
                gate.world.aws.no_index_written(writes, gate.world.bug);
            }
            return answer;
        }
        let after = gate.dice.millis(1, 8_000);
        gate.world.fault(gate.actor, Fault::LateWrite(after));
        let (late, writes) = (Arc::clone(gate), writes.to_vec());
        gate.world.later(Box::pin(async move {
            late.sleep(after).await;
            // The result of a late write reaches no process.
            let _ = late.world.ledger.commit(late.actor, &writes, lag_ms);
        }));
        Err(unavailable())
    }

    async fn commit_phase(&self, writes: &[Write]) -> Result<(), StoreError> {
        let gate = &self.0;
        gate.pass().await;
        self.refused().await?;
        if gate.fault_happens(|faults| faults.conflict) {
            gate.world.fault(gate.actor, Fault::Conflicted);
            return Err(StoreError::Throttled);
        }
        let answer = bugs::commit(gate.world.bug, &gate.world.ledger, writes, |writes| self.apply(writes));
        if answer.is_ok() {
            gate.wrote(writes);
            gate.dies_after_write().await;
        }
        gate.pass().await;
        if gate.loses_answer() { Err(unavailable()) } else { answer }
    }
}

/// When a write is sent, relative to the others of its commit.
const fn phase_of(write: &Write) -> usize {
    match write {
        Write::PutWaiter { .. } => 0,
        Write::DeleteWaiter { .. } => 2,
        _ => 1,
    }
}

#[async_trait]
impl Store for SimStore {
    async fn record(&self, id: &RecordId, consistency: Consistency) -> Result<Option<Record>, StoreError> {
        if consistency == Consistency::Strong {
            self.readable(id)?;
        }
        let found = self.read(self.0.world.ledger.store.record(id, consistency)).await?;
        Ok(match found {
            // The replica that answers may be behind.
            Some(Record::Execution(_))
                if consistency == Consistency::Eventual && self.0.fault_happens(|faults| faults.conflict) =>
            {
                None
            }
            Some(Record::Execution(execution)) => {
                // Other actors only read it. A tick or a timer that finds an execution closing continues the close.
                if consistency == Consistency::Strong
                    && matches!(self.0.actor, Actor::Ticker(_) | Actor::Timers(_))
                {
                    self.0.saw(&execution);
                }
                Some(Record::Execution(execution))
            }
            Some(Record::Operation(operation)) => Some(bugs::read_operation(&self.0, *operation).into()),
            found => found,
        })
    }

    async fn records(&self, ids: &[RecordId]) -> Result<Vec<Record>, StoreError> {
        ids.iter().try_for_each(|id| self.readable(id))?;
        self.read(self.0.world.ledger.store.records(ids)).await
    }

    async fn collection(
        &self,
        of: Collection,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Record>, StoreError> {
        self.read(self.0.world.ledger.store.collection(of, limit, cursor)).await
    }

    /// Commits as the `DynamoDB` adapter does: items of lines before the rest, and their deletions after it. The process may
    /// die between two of these calls, and other processes see what is there by then.
    async fn commit(&self, writes: &[Write]) -> Result<(), StoreError> {
        let of = |phase: usize| -> Vec<Write> {
            writes.iter().filter(|write| phase_of(write) == phase).cloned().collect()
        };
        for writes in [of(0), of(1), of(2)] {
            if !writes.is_empty() {
                self.commit_phase(&writes).await?;
            }
        }
        Ok(())
    }

    async fn put_blob(&self, at: &BlobRef, body: &Json) -> Result<(), StoreError> {
        let expires_at = bugs::first_expiry(self.0.world.bug, self.0.world.now(), at.expires_at);
        let at = BlobRef { expires_at, ..at.clone() };
        self.read(self.0.world.ledger.put_blob(&at, body)).await?;
        self.0.dies_after_write().await;
        if self.0.loses_answer() { Err(unavailable()) } else { Ok(()) }
    }

    async fn blob(&self, id: &BlobId) -> Result<Option<Json>, StoreError> {
        self.read(self.0.world.ledger.store.blob(id)).await
    }

    async fn due(
        &self,
        range: DueRange,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DueEntry>, StoreError> {
        let bug = self.0.world.bug;
        let is_bug = bug == Some(Bug::SweepsFromTheLast);
        let page = self.read(async { Ok(self.0.world.ledger.due(range, limit, cursor, is_bug)) }).await?;
        // A page of a thousand entries is asked for by the sending of timers, not by a sweep.
        let page = Page { items: bugs::seen_asleep(bug, range, page.items), ..page };
        let forgets = bug == Some(Bug::SweepStopsAtAPage) && limit < 1_000 && page.items.len() == limit;
        Ok(if forgets { Page { next: None, ..page } } else { page })
    }

    async fn list(
        &self,
        listing: Listing,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<TaskId>, StoreError> {
        self.read(self.0.world.ledger.store.list(listing, limit, cursor)).await
    }

    async fn list_executions(
        &self,
        workflow: &WorkflowName,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, StoreError> {
        self.read(self.0.world.ledger.store.list_executions(workflow, limit, cursor)).await
    }

    async fn put_segment(
        &self,
        id: &ExecutionId,
        key: &SegmentKey,
        segment: &Segment,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        let expires_at = bugs::first_expiry(self.0.world.bug, self.0.world.now(), expires_at);
        self.read(self.0.world.ledger.store.put_segment(id, key, segment, expires_at)).await?;
        let sealed = Happening::Sealed { key: *key, segment: segment.clone() };
        self.0.world.note(self.0.actor, What::OfExecution(Box::new(sealed)));
        self.0.dies_after_write().await;
        if self.0.loses_answer() { Err(unavailable()) } else { Ok(()) }
    }

    async fn segments(
        &self,
        id: &ExecutionId,
        incarnation: Incarnation,
        run: u32,
        after: u32,
    ) -> Result<Vec<(SegmentKey, Segment)>, StoreError> {
        let mut segments = self.read(self.0.world.ledger.store.segments(id, incarnation, run, after)).await?;
        bugs::unseen(&self.0, &mut segments);
        Ok(segments)
    }

    async fn join(&self, parent: &Parent, slot: Slot, expires_at: Timestamp) -> Result<u16, StoreError> {
        let marked = self.read(self.0.world.ledger.store.join(parent, slot, expires_at)).await?;
        let marked = bugs::marked(self.0.world.bug, marked);
        let joined = Happening::Joined { execution: parent.execution.clone(), marked, of: slot.of };
        self.0.world.note(self.0.actor, What::OfExecution(Box::new(joined)));
        self.0.dies_after_write().await;
        if self.0.loses_answer() { Err(unavailable()) } else { Ok(marked) }
    }

    async fn waiters(&self, gate: &GateId, after: &str, limit: usize) -> Result<Vec<Waiter>, StoreError> {
        self.read(self.0.world.ledger.store.waiters(gate, after, limit)).await
    }

    async fn next_line(&self, part: u8, after: Option<&GateId>) -> Result<Option<GateId>, StoreError> {
        self.read(self.0.world.ledger.store.next_line(part, after)).await
    }

    fn traits(&self) -> StoreTraits<'_> {
        StoreTraits::default()
    }
}

fn unavailable() -> StoreError {
    StoreError::Unavailable { reason: "no answer".to_owned(), is_logged: false }
}
