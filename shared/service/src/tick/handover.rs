//! Sends timers for future instants. The tick that owns their slot does this. If a shard has more of them than a tick's
//! share, the tick sends a message, and its consumer does the rest.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tickover_core::due::DueKind;
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::limits::QUEUE_DELAY_MAX;
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;
use tickover_core::timer::{Handover, Timer, Wake};
use tokio::sync::OnceCell;

use super::Job;
use crate::error::ServiceError;
use crate::ports::{DueEntry, DueRange, Outgoing, Page, StoreError};
use crate::service::Service;
use crate::warn_unless_logged;

/// How often the write of the record is tried again because another tick wrote it meanwhile.
const TRIES: u32 = 5;
/// The instant after the last one that is due.
const NEXT: Millis = Millis::new(1);
/// Entries of a page. They are small: one query reads as many of them in hardly more time than a few.
const PAGE: usize = 1_000;
/// Messages sent in one call. More of them could take longer than the timeout of a call.
const SENT_AT_ONCE: usize = 100;
/// The most instants in one message, if they lie within [`WITHIN`].
const TOGETHER: usize = 50;
/// Queues count delays in whole seconds: instants within one second arrive together anyway.
const WITHIN: Millis = Millis::from_secs(1);

/// What earlier ticks have recorded, read on first use, and what this one must record.
#[derive(Default)]
pub(super) struct Ledger {
    noted: OnceCell<Option<TickRecord>>,
    handed_over: AtomicBool,
    behind: Mutex<BTreeMap<u16, Timestamp>>,
}

impl Ledger {
    /// Records that only instants before `at` have been handed over for this shard.
    pub(super) fn fell_behind(&self, shard: u16, at: Timestamp) {
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        behind.entry(shard).and_modify(|noted| *noted = at.min(*noted)).or_insert(at);
    }

    /// Something was handed over, which must be recorded.
    pub(super) fn hand_over(&self) {
        self.handed_over.store(true, Ordering::Relaxed);
    }
}

impl Service {
    /// Hands over to timers the instants of a shard before the end of the tick's slot: those in `ahead`, which are
    /// known already, or if there are more, those of a query. Returns how many.
    pub(super) async fn send_timers(
        &self,
        shard: u16,
        ahead: Vec<DueEntry>,
        is_all: bool,
        job: &Job,
    ) -> Result<u64, ServiceError> {
        let (next, until) = (job.until.plus(NEXT), job.slot_end);
        let is_new = |entry: &DueEntry| is_unsent(entry, until);
        if !self.has_timers() || next > until || (is_all && !ahead.iter().any(is_new)) {
            return Ok(0);
        }
        let noted = self.noted(job).await?.map_or(Timestamp::EPOCH, |noted| noted.timers_sent_until(shard));
        let range = DueRange { shard, from: noted.max(next), until };
        if range.from > range.until {
            return Ok(0);
        }
        let first = Page { items: ahead, next: None };
        let page = if is_all { first } else { self.page_of(range, None).await? };
        let (sent, from) = self.send_page(&page.items, range).await;
        if sent > 0 {
            job.ledger.hand_over();
        }
        if let Some(from) = from {
            job.ledger.fell_behind(shard, from);
            return Ok(sent);
        }
        if let Some(cursor) = page.next {
            let (from, until) = (range.from, range.until);
            let rest = Handover { shard, from, until, cursor: Some(cursor) };
            if self.send_wake(Wake::Handover(rest)).await {
                job.ledger.hand_over();
            } else {
                let from = page.items.last().map_or(range.from, |entry| entry.due_at);
                job.ledger.fell_behind(shard, from);
            }
        }
        Ok(sent)
    }

    /// Hands over the rest of the instants that a tick found in its slot. Returns how many instants, and whether all of
    /// them have been sent or are left to the next message.
    pub(crate) async fn continue_handover(
        &self,
        mut rest: Handover,
        stop_at: Timestamp,
    ) -> Result<(u64, bool), ServiceError> {
        let range = DueRange { shard: rest.shard, from: rest.from, until: rest.until };
        let mut sent = 0;
        loop {
            if self.now() >= stop_at {
                return Ok((sent, self.send_wake(Wake::Handover(rest)).await));
            }
            let page = self.page_of(range, rest.cursor.as_deref()).await?;
            let (count, behind) = self.send_page(&page.items, range).await;
            sent += count;
            if behind.is_some() {
                return Ok((sent, false));
            }
            rest.cursor = page.next;
            if rest.cursor.is_none() {
                return Ok((sent, true));
            }
        }
    }

    pub(super) async fn page_of(
        &self,
        range: DueRange,
        cursor: Option<&str>,
    ) -> Result<Page<DueEntry>, ServiceError> {
        Ok(self.with_retries(|| self.ports.store.due(range, PAGE, cursor)).await?)
    }

    /// Sends the timers of a page's entries that have none yet. Returns how many, and the first instant whose timer
    /// could not be sent: that one and all later ones are left to the next tick, or to the tick that finds them due.
    async fn send_page(&self, entries: &[DueEntry], range: DueRange) -> (u64, Option<Timestamp>) {
        let is_new = |entry: &&DueEntry| is_unsent(entry, range.until) && entry.due_at >= range.from;
        let groups = together(entries.iter().filter(is_new));
        let mut sent = 0;
        for groups in groups.chunks(SENT_AT_ONCE) {
            let now = self.now();
            let messages: Vec<Outgoing> =
                groups.iter().filter_map(|(at, _, wake)| outgoing(wake, at.since(now))).collect();
            let taken = self.send(&QueueName::timers(), &messages).await;
            sent += groups.iter().take(taken).map(|(_, count, _)| count).sum::<u64>();
            if taken < messages.len() {
                return (sent, groups.first().map(|(at, _, _)| *at));
            }
        }
        (sent, None)
    }

    async fn send_wake(&self, wake: Wake) -> bool {
        let messages: Vec<_> = outgoing(&wake, Millis::ZERO).into_iter().collect();
        !messages.is_empty() && self.send(&QueueName::timers(), &messages).await == messages.len()
    }

    /// Whether there is a timers queue.
    pub(crate) fn has_timers(&self) -> bool {
        self.ports.queue.knows(&QueueName::timers())
    }

    pub(super) async fn noted<'a>(&self, job: &'a Job) -> Result<Option<&'a TickRecord>, ServiceError> {
        let read = async || {
            let noted = self.with_retries(|| self.ports.store.tick_record()).await?;
            Ok::<_, ServiceError>(noted.map(|noted| noted.as_of(job.slot_end)))
        };
        Ok(job.ledger.noted.get_or_try_init(read).await?.as_ref())
    }

    /// Records what was handed over, so that no other tick repeats it. A tick that handed over nothing writes nothing.
    /// If the write fails, a later tick repeats the handover, which is harmless.
    pub(super) async fn note_tick(&self, job: &Job) {
        if !job.ledger.handed_over.load(Ordering::Relaxed) {
            return;
        }
        let behind = job.ledger.behind.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for tries in 0..TRIES {
            let written = async {
                let noted = self.with_retries(|| self.ports.store.tick_record()).await?;
                let noted = noted.unwrap_or_else(|| TickRecord::new(self.new_nonce())).as_of(job.slot_end);
                // If a shard has failed and nothing else is known, its earlier state stays.
                let handed_until =
                    |(shard, at): (&u16, &Timestamp)| (*shard, (*at).max(noted.timers_sent_until(*shard)));
                let behind = behind.iter().map(handed_until).collect();
                self.put_tick(noted.after(job.slot_end, behind)).await
            };
            match written.await {
                Ok(()) => return,
                Err(StoreError::Conflict { .. }) => self.back_off(tries, Millis::new(10)).await,
                Err(error) => return warn_unless_logged!(error; %error, "the handover isn't recorded"),
            }
        }
        tracing::warn!("the handover isn't recorded: other ticks were faster");
    }
}

/// Whether an entry before the end of the slot needs a timer.
fn is_unsent(entry: &DueEntry, slot_end: Timestamp) -> bool {
    entry.kind == DueKind::Instant && entry.due_at < slot_end
}

/// Messages for the entries, earliest first: each with its first instant and its number of instants.
fn together<'a>(entries: impl Iterator<Item = &'a DueEntry>) -> Vec<(Timestamp, u64, Wake)> {
    let mut groups: Vec<Vec<Timer>> = Vec::new();
    for entry in entries {
        let timer = Timer { record: entry.record.clone(), at: entry.due_at, due_at: entry.due_at };
        match groups.last_mut() {
            Some(group)
                if group.len() < TOGETHER
                    && group.first().is_some_and(|first| timer.at.since(first.at) < WITHIN) =>
            {
                group.push(timer);
            }
            Some(_) | None => groups.push(vec![timer]),
        }
    }
    let message = |mut group: Vec<Timer>| {
        let (at, count) = (group.first()?.at, u64::try_from(group.len()).unwrap_or(u64::MAX));
        let single = if count == 1 { group.pop() } else { None };
        Some((at, count, single.map_or_else(|| Wake::Timers(group), Wake::Timer)))
    };
    groups.into_iter().filter_map(message).collect()
}

/// The message, to arrive after this long. Serialising can't fail; if it did, the tick would do the work.
pub(crate) fn outgoing(wake: &Wake, after: Millis) -> Option<Outgoing> {
    match wake.body() {
        Ok(body) => Some(Outgoing::plain(body, after.min(QUEUE_DELAY_MAX))),
        Err(error) => {
            tracing::error!(%error, "unsendable timer");
            None
        }
    }
}
