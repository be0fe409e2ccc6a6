//! Sends the hints of long sleeps, from the due index alone. The tick that owns an instant's slot sends them as it sends
//! timers. The record isn't read or written: its due slot is the first probe of a hint that is lost.
//!
//! A queue that counts whole seconds rounds down, and the function of the message would wait out the rest. So a message to
//! such a queue is held for up to a second, until a whole number of seconds remains: those of all shards together, so that a
//! tick is at most about a second longer.
//!
//! If the process dies in between, the ticks' record says nothing of this tick, so the next one sends them all.

use std::collections::BTreeMap;
use std::mem;
use std::sync::PoisonError;

use futures::future::join_all;
use tickover_core::due::{DueKind, SLEEP_PROBE};
use tickover_core::duration::Millis;
use tickover_core::execution::message::TurnHint;
use tickover_core::id::{QueueName, RecordId};
use tickover_core::time::Timestamp;

use super::Job;
use crate::drive::turning;
use crate::error::ServiceError;
use crate::metric;
use crate::ports::{DueEntry, DueRange, Outgoing, Sleeper};
use crate::service::Service;

/// Ticks that were missed for longer leave the sleeps that ended before to their probes.
const MISSED_MAX: Millis = Millis::from_secs(3_600);
/// Other entries are read again by the next tick, unless there are more of them: about as many as the smallest read has.
const UNNOTED_MAX: usize = 30;
/// The most hints of a shard that are held until all shards are read. More of them are sent page by page.
const HELD_MAX: usize = 100;
const SECOND_MS: u64 = 1_000;
/// Messages whose fractions of a second differ by less than this are sent together. So long at most the function of one
/// waits for the exact instant, and so late it may be.
const NEAR_MS: u64 = 50;
/// Messages sent in one call. More of them could take longer than the timeout of a call.
const SENT_AT_ONCE: usize = 100;

/// A hint to send, and when it is to arrive.
pub(super) struct Waking {
    at: Timestamp,
    sleeper: Sleeper,
}

impl Service {
    /// Sends the hints of the sleeps of a shard that end in the tick's slot, or in one that earlier ticks have missed. A
    /// few are left to [`Self::wake_held`]. Returns how many were sent.
    pub(super) async fn wake_sleepers(&self, shard: u16, job: &Job) -> Result<u64, ServiceError> {
        if job.slot_end <= job.until {
            return Ok(0);
        }
        let noted = self.noted(job).await?.map_or(Timestamp::EPOCH, |noted| noted.timers_sent_until(shard));
        let from = noted.max(job.until.minus(MISSED_MAX));
        let (from, until) = (from.plus(SLEEP_PROBE), job.slot_end.plus(SLEEP_PROBE));
        if from >= until {
            return Ok(0);
        }
        let (range, mut cursor, mut sent) = (DueRange { shard, from, until }, None, 0);
        loop {
            let page = self.page_of(range, cursor.as_deref()).await?;
            let Some(last) = page.items.last().map(|entry| entry.due_at) else { return Ok(sent) };
            let is_much = page.items.len() > UNNOTED_MAX;
            let mut waking = Vec::new();
            for entry in page.items {
                if entry.kind == DueKind::Asleep && entry.due_at < until {
                    waking.extend(self.waking(entry).await?);
                }
            }
            if is_much || !waking.is_empty() {
                job.ledger.hand_over();
            }
            if waking.len() > HELD_MAX || page.next.is_some() {
                sent += self.wake_all(waking, job.stop_at).await;
            } else {
                job.held.lock().unwrap_or_else(PoisonError::into_inner).extend(waking);
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(sent);
            }
            if self.now() >= job.stop_at {
                job.ledger.fell_behind(shard, last.minus(SLEEP_PROBE));
                return Ok(sent);
            }
        }
    }

    /// Sends the hints that were left, of all shards. Returns how many.
    pub(super) async fn wake_held(&self, job: &Job) -> u64 {
        let held = mem::take(&mut *job.held.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake_all(held, job.stop_at).await
    }

    /// What an entry's hint needs. If the index lacks it, the record has it.
    async fn waking(&self, entry: DueEntry) -> Result<Option<Waking>, ServiceError> {
        let sleeper = if let Some(sleeper) = entry.sleeper {
            Some(*sleeper)
        } else if let RecordId::Execution(id) = &entry.record {
            self.load_execution(id).await?.map(|execution| Sleeper::of(&execution))
        } else {
            None
        };
        Ok(sleeper.map(|sleeper| Waking { at: entry.due_at.minus(SLEEP_PROBE), sleeper }))
    }

    /// Sends these hints. One that can't be sent counts as lost: the tick finds its record.
    async fn wake_all(&self, waking: Vec<Waking>, stop_at: Timestamp) -> u64 {
        let mut by_queue: BTreeMap<QueueName, Vec<(Timestamp, TurnHint)>> = BTreeMap::new();
        for Waking { at, sleeper: Sleeper { queue, hint } } in waking {
            by_queue.entry(queue).or_default().push((at, hint));
        }
        let sent = by_queue.into_iter().map(|(queue, hints)| self.wake_in(queue, hints, stop_at));
        join_all(sent).await.into_iter().map(|sent| u64::try_from(sent).unwrap_or(u64::MAX)).sum()
    }

    async fn wake_in(
        &self,
        queue: QueueName,
        mut hints: Vec<(Timestamp, TurnHint)>,
        stop_at: Timestamp,
    ) -> usize {
        let is_held = self.ports.queue.traits().counts_seconds;
        let (began_at, mut sent) = (self.now(), 0);
        let held_for = |at: Timestamp| if is_held { fraction(at, began_at) } else { 0 };
        hints.sort_by_key(|(at, _)| held_for(*at));
        let is_near = |one: &(Timestamp, TurnHint), next: &(Timestamp, TurnHint)| {
            held_for(one.0) / NEAR_MS == held_for(next.0) / NEAR_MS
        };
        for group in hints.chunk_by(is_near).flat_map(|near| near.chunks(SENT_AT_ONCE)) {
            if let Some((at, _)) = group.first().filter(|_| is_held) {
                let send_at = began_at.plus(Millis::new(held_for(*at)));
                self.ports.clock.sleep_until(send_at.min(stop_at)).await;
            }
            let now = self.now();
            let message = |(at, hint): &(Timestamp, TurnHint)| {
                let message = turning(hint.clone(), *at, now)?;
                Some(if is_held { Outgoing { delay: rounded(message.delay), ..message } } else { message })
            };
            let messages: Vec<Outgoing> = group.iter().filter_map(message).collect();
            sent += self.send(&queue, &messages).await;
        }
        metric::hints_sent(&queue, sent);
        sent
    }
}

/// How many milliseconds to hold a message so that a whole number of seconds remains. What is late isn't held.
fn fraction(at: Timestamp, now: Timestamp) -> u64 {
    at.since(now).as_u64() % SECOND_MS
}

/// A delay in whole seconds, of a message that was held until they remain. Sending takes a moment, so it may be a little
/// less.
fn rounded(delay: Millis) -> Millis {
    Millis::from_secs(delay.saturating_add(Millis::new(NEAR_MS)).as_secs_floor())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tickover_core::id::{ExecutionId, WorkflowName};
    use tickover_core::limits::Limits;

    use super::*;
    use crate::executions::StartRequest;
    use crate::memory::{ManualClock, MemoryQueue, MemoryStore, Queues};
    use crate::service::Ports;
    use crate::system::SystemIds;

    #[tokio::test]
    async fn what_an_index_of_an_older_table_lacks_is_read_from_the_record() {
        let now = Timestamp::from_millis(1_767_225_600_000);
        let clock = Arc::new(ManualClock::new(now));
        let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
        let (store, ids) = (Arc::new(MemoryStore::default()), Arc::new(SystemIds));
        let service = Service::new(Ports { store, queue, clock, ids }, Limits::default());
        let (workflow, flows) = (WorkflowName::parse("nap").unwrap(), QueueName::parse("flows").unwrap());
        let id = ExecutionId::parse("e-1").unwrap();
        service
            .start(StartRequest { id: Some(id.clone()), ..StartRequest::new(workflow, flows) })
            .await
            .unwrap();
        let execution = service.load_execution(&id).await.unwrap().unwrap();
        let entry = |id: &ExecutionId| DueEntry {
            record: RecordId::Execution(id.clone()),
            due_at: now.plus(SLEEP_PROBE),
            kind: DueKind::Asleep,
            sleeper: None,
        };
        let waking = service.waking(entry(&id)).await.unwrap().unwrap();
        assert_eq!((waking.at, waking.sleeper), (now, Sleeper::of(&execution)));
        let gone = ExecutionId::parse("e-2").unwrap();
        assert!(service.waking(entry(&gone)).await.unwrap().is_none());
    }
}
