//! Sends the hints of long sleeps, from the due index alone. The tick that owns an instant's slot sends them as it sends
//! timers. The record isn't read or written: its due slot is the first probe of a hint that is lost.
//!
//! If the process dies in between, the ticks' record says nothing of this tick, so the next one sends them all.

use std::collections::BTreeMap;

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
/// Messages sent in one call. More of them could take longer than the timeout of a call.
const SENT_AT_ONCE: usize = 100;

impl Service {
    /// Sends the hints of the sleeps of a shard that end in the tick's slot, or in one that earlier ticks have missed.
    /// Returns how many.
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
            let is_new = |entry: &DueEntry| entry.kind == DueKind::Asleep && entry.due_at < until;
            let sleepers: Vec<DueEntry> = page.items.into_iter().filter(is_new).collect();
            if is_much || !sleepers.is_empty() {
                job.ledger.hand_over();
            }
            sent += self.send_hints(sleepers).await?;
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

    /// Sends the hints of these entries. One that can't be sent counts as lost: the tick finds its record.
    async fn send_hints(&self, entries: Vec<DueEntry>) -> Result<u64, ServiceError> {
        let mut by_queue: BTreeMap<QueueName, Vec<(Timestamp, TurnHint)>> = BTreeMap::new();
        for entry in entries {
            let at = entry.due_at.minus(SLEEP_PROBE);
            if let Some(Sleeper { queue, hint }) = self.sleeper(entry).await? {
                by_queue.entry(queue).or_default().push((at, hint));
            }
        }
        let sent =
            join_all(by_queue.into_iter().map(|(queue, hints)| self.send_hints_to(queue, hints))).await;
        Ok(sent.into_iter().map(|sent| u64::try_from(sent).unwrap_or(u64::MAX)).sum())
    }

    /// What an entry's hint needs. If the index lacks it, the record has it.
    async fn sleeper(&self, entry: DueEntry) -> Result<Option<Sleeper>, ServiceError> {
        match (entry.sleeper, &entry.record) {
            (Some(sleeper), _) => Ok(Some(*sleeper)),
            (None, RecordId::Execution(id)) => {
                Ok(self.load_execution(id).await?.map(|execution| Sleeper::of(&execution)))
            }
            (
                None,
                RecordId::Task(_)
                | RecordId::Cron(_)
                | RecordId::Queue(_)
                | RecordId::Operation(_)
                | RecordId::Gate(_),
            ) => Ok(None),
        }
    }

    async fn send_hints_to(&self, queue: QueueName, hints: Vec<(Timestamp, TurnHint)>) -> usize {
        let mut sent = 0;
        for hints in hints.chunks(SENT_AT_ONCE) {
            let now = self.now();
            let messages: Vec<Outgoing> =
                hints.iter().filter_map(|(at, hint)| turning(hint.clone(), *at, now)).collect();
            sent += self.send(&queue, &messages).await;
        }
        metric::hints_sent(&queue, sent);
        sent
    }
}
