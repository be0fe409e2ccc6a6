//! What a tick hands to others: instants to come, to timers; a backlog, to whoever takes the next message.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tickover_core::decision::Write;
use tickover_core::due::DueKind;
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::limits::QUEUE_DELAY_MAX;
use tickover_core::tick::TickRecord;
use tickover_core::timer::{Sweep, Timer, Wake};
use tokio::sync::OnceCell;

use super::Job;
use super::sweep::PAGE;
use crate::error::ServiceError;
use crate::ports::{DueEntry, DueRange, Outgoing, StoreError};
use crate::service::Service;

/// Times the record is written anew because another tick wrote it meanwhile.
const TRIES: u32 = 5;
/// Just after what is due.
const NEXT: Millis = Millis::new(1);

/// What earlier ticks have noted, read when it is first needed, and what this one has to note.
#[derive(Default)]
pub(super) struct Ledger {
    noted: OnceCell<Option<TickRecord>>,
    handed_over: AtomicBool,
    lost: AtomicBool,
    fanned: Mutex<Vec<u16>>,
}

impl Service {
    /// What comes after now and before the end of the slot.
    pub(super) async fn entries_ahead(&self, shard: u16, job: &Job) -> Result<Vec<DueEntry>, ServiceError> {
        let range = DueRange { shard, from: job.until.plus(NEXT), until: job.slot_end };
        let (mut entries, mut cursor) = (Vec::new(), None);
        if range.from > range.until || !self.has_timers() {
            return Ok(entries);
        }
        loop {
            let page = self.patiently(|| self.ports.store.due(range, PAGE, cursor.as_deref())).await?;
            entries.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                return Ok(entries);
            }
        }
    }

    /// Sends the timers of instants that nobody has sent one for. Those that can't be sent are left to the tick
    /// that finds them due.
    pub(super) async fn hand_to_timers(&self, entries: &[DueEntry], job: &Job) -> Result<u64, ServiceError> {
        let unsent = |entry: &&DueEntry| entry.kind == DueKind::Instant && entry.due_at < job.slot_end;
        if !self.has_timers() || !entries.iter().any(|entry| unsent(&entry)) {
            return Ok(0);
        }
        let from = self.noted(job).await?.map(|noted| noted.timers_until);
        let new = entries.iter().filter(unsent).filter(|entry| from.is_none_or(|from| entry.due_at >= from));
        let now = self.now();
        let messages: Vec<Outgoing> = new
            .filter_map(|entry| {
                let timer = Timer { record: entry.record.clone(), at: entry.due_at, due_at: entry.due_at };
                outgoing(&Wake::Timer(timer), entry.due_at.since(now))
            })
            .collect();
        if messages.is_empty() {
            return Ok(0);
        }
        let sent = self.send(&QueueName::timers(), &messages).await;
        if sent < messages.len() {
            job.ledger.lost.store(true, Ordering::Relaxed);
        }
        job.ledger.handed_over.store(true, Ordering::Relaxed);
        Ok(u64::try_from(sent).unwrap_or(u64::MAX))
    }

    /// Hands a shard's backlog to whoever takes the message. Whether that was done: not if there is nobody, or
    /// somebody has it already.
    pub(super) async fn fan_out(&self, shard: u16, job: &Job) -> Result<bool, ServiceError> {
        if !self.has_timers() {
            return Ok(false);
        }
        let is_ticks = job.reach == super::Reach::Share;
        if is_ticks && self.noted(job).await?.is_some_and(|noted| noted.is_fanned(shard, self.now())) {
            return Ok(false);
        }
        let Some(message) = outgoing(&Wake::Sweep(Sweep { shard }), Millis::ZERO) else { return Ok(false) };
        if self.send(&QueueName::timers(), &[message]).await == 0 {
            return Ok(false);
        }
        job.ledger.fanned.lock().unwrap_or_else(PoisonError::into_inner).push(shard);
        Ok(true)
    }

    /// Whether somebody takes messages for later, and for others.
    pub(crate) fn has_timers(&self) -> bool {
        self.ports.queue.knows(&QueueName::timers())
    }

    async fn noted<'a>(&self, job: &'a Job) -> Result<Option<&'a TickRecord>, ServiceError> {
        let read = || self.patiently(|| self.ports.store.tick_record());
        Ok(job.ledger.noted.get_or_try_init(read).await?.as_ref())
    }

    /// Notes what was handed over, so that no other tick does it again. A tick that did nothing of the kind writes
    /// nothing. If it can't be noted, it is done again, which does no harm.
    pub(super) async fn note_tick(&self, job: &Job, all_seen: bool) {
        let complete = all_seen && !job.ledger.lost.load(Ordering::Relaxed);
        let timers_until =
            (complete && job.ledger.handed_over.load(Ordering::Relaxed)).then_some(job.slot_end);
        let fanned = job.ledger.fanned.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if timers_until.is_none() && fanned.is_empty() {
            return;
        }
        for tries in 0..TRIES {
            let written = async {
                let noted = self.patiently(|| self.ports.store.tick_record()).await?;
                let noted = noted.unwrap_or_else(|| TickRecord::new(self.new_nonce()));
                let record = TickRecord {
                    version: noted.version + 1,
                    nonce: self.new_nonce(),
                    ..noted.after(timers_until, &fanned, self.now())
                };
                let writes = [Write::PutTick { record }];
                self.patiently(|| self.ports.store.commit(&writes)).await
            };
            match written.await {
                Ok(()) => return,
                Err(StoreError::Conflict { .. }) => self.back_off(tries, Millis::new(10)).await,
                Err(error) => return tracing::warn!(%error, "what was handed over isn't noted"),
            }
        }
        tracing::warn!("what was handed over isn't noted: other ticks were faster");
    }
}

/// The message, to arrive after this long. Serialising it can't fail; were it to, the tick would do its work.
pub(crate) fn outgoing(wake: &Wake, after: Millis) -> Option<Outgoing> {
    match wake.body() {
        Ok(body) => Some(Outgoing { body, delay: after.min(QUEUE_DELAY_MAX) }),
        Err(error) => {
            tracing::error!(%error, "unsendable timer");
            None
        }
    }
}
