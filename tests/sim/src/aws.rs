//! What AWS counts, for all processes together: writes of a key in a second, messages that lead to messages, running
//! functions, and which records a newer build has written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tickover_core::decision::{Condition, Write};
use tickover_core::id::RecordId;
use tickover_core::record::Record;
use tickover_core::time::Timestamp;
use tickover_dynamodb::indexed::Indexed;
use tickover_service::ports::{Listed, Received};

use super::bugs::{self, Bug};
use super::history::{Actor, Note};

/// How many hops a chain of messages may have before Lambda stops it as a loop.
pub const HOPS_MAX: u32 = 16;

/// The key under which the map holds when a key was last throttled.
const THROTTLED: &str = "throttled";

/// Whether the table accepts the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Admitted,
    Refused {
        /// Whether this is the first refusal in its second.
        is_news: bool,
    },
}

/// The counts of a run.
#[derive(Debug, Default)]
pub struct Aws {
    writes: Mutex<BTreeMap<String, (i64, u32)>>,
    hops: Mutex<BTreeMap<String, u32>>,
    newer: Mutex<BTreeSet<RecordId>>,
    /// The messages that were received, by their receipts.
    received: Mutex<BTreeMap<String, String>>,
    at_work: AtomicU32,
}

/// A running function. Dropping it ends the invocation.
#[derive(Debug)]
pub struct Invocation<'a>(&'a AtomicU32);

impl Drop for Invocation<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Aws {
    /// Notes a message that an actor received.
    pub fn receive(&self, Received { receipt, body, .. }: &Received) {
        lock(&self.received).insert(receipt.clone(), body.clone());
    }

    /// The body of a message that was received and is deleted now.
    pub fn delete(&self, receipt: &str) -> Option<String> {
        lock(&self.received).remove(receipt)
    }

    /// Counts these writes, unless one of their keys has had all the writes that it accepts in this second.
    pub fn admit(&self, writes: &[Write], rate: u32, now: Timestamp, bug: Option<Bug>) -> Admission {
        let second = now.as_millis().div_euclid(1_000);
        let mut counts = lock(&self.writes);
        let keys: Vec<String> = writes.iter().flat_map(keys).map(|key| bugs::list_key(bug, key)).collect();
        let is_full =
            |key: &String| counts.get(key).is_some_and(|(of, count)| *of == second && *count >= rate);
        if keys.iter().any(is_full) {
            let first = counts.insert(THROTTLED.to_owned(), (second, 0));
            return Admission::Refused { is_news: first.is_none_or(|(of, _)| of != second) };
        }
        for key in keys {
            let count = counts.entry(key).or_default();
            *count = if count.0 == second { (second, count.1 + 1) } else { (second, 1) };
        }
        Admission::Admitted
    }

    /// Takes back what these admitted writes counted against indexes: a failed condition costs the table alone.
    pub fn no_index_written(&self, writes: &[Write], bug: Option<Bug>) {
        let mut counts = lock(&self.writes);
        // The first key of each write is the table's.
        for key in writes.iter().flat_map(|write| keys(write).into_iter().skip(1)) {
            if let Some((_, count)) = counts.get_mut(&bugs::list_key(bug, key)) {
                *count = count.saturating_sub(1);
            }
        }
    }

    /// The number of hops of the message that an actor sends. It is one more than that of the last message about the
    /// same work that a function received. An actor that no message invokes starts a new chain.
    pub fn hop(&self, actor: Actor, note: &Note) -> u32 {
        let Some(work) = work(note) else { return 0 };
        let mut hops = lock(&self.hops);
        let count = hops.entry(work).or_default();
        *count = match actor {
            Actor::Worker(_) | Actor::Timers(_) | Actor::Batch(_) => *count + 1,
            Actor::World
            | Actor::Client(_)
            | Actor::Ticker(_)
            | Actor::Operator
            | Actor::Outsider
            | Actor::Filler => 0,
        };
        *count
    }

    /// Starts an invocation, unless as many as the limit allows are running.
    pub fn invoke(&self, most: Option<u32>) -> Option<Invocation<'_>> {
        if most.is_some_and(|most| self.at_work.load(Ordering::Relaxed) >= most) {
            return None;
        }
        self.at_work.fetch_add(1, Ordering::Relaxed);
        Some(Invocation(&self.at_work))
    }

    /// Records which build has written these records.
    pub fn wrote(&self, writes: &[Write], is_older: bool) {
        let mut newer = lock(&self.newer);
        for record in writes.iter().filter_map(record_of) {
            if is_older {
                newer.remove(&record);
            } else {
                newer.insert(record);
            }
        }
    }

    /// Whether only a newer build can read the record.
    pub fn is_newer(&self, record: &RecordId) -> bool {
        lock(&self.newer).contains(record)
    }

    /// Whether one of these writes changes a record that only a newer build can read.
    pub fn meets_newer(&self, writes: &[Write]) -> bool {
        writes.iter().filter_map(record_of).any(|record| self.is_newer(&record))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a message is about.
fn work(note: &Note) -> Option<String> {
    match note {
        Note::Hint { incarnation, .. } | Note::Turn { incarnation, .. } => Some(incarnation.to_string()),
        Note::Timers(timers) => timers.first().map(|timer| timer.record.to_string()),
        Note::Other(_) => None,
    }
}

/// The record of a write, if the write reads or changes its contents.
fn record_of(write: &Write) -> Option<RecordId> {
    match write {
        Write::Put { after: after @ (Record::Task(_) | Record::Execution(_)), .. } => Some(after.id()),
        // These change no more than one attribute, whatever the others are, or are never of a newer build.
        Write::Put { .. }
        | Write::Rearm { .. }
        | Write::Wake { .. }
        | Write::PutWaiter { .. }
        | Write::DeleteWaiter { .. }
        | Write::Extend { .. } => None,
    }
}

/// The keys of the table and of its indexes against which a write counts, as the table's adapter names them.
fn keys(write: &Write) -> Vec<String> {
    let held = |write: &Write| Indexed::default().after(write, Listed::Failed).map(|(_, held)| held).ok();
    let before = record_before(write).as_ref().and_then(held).unwrap_or_default();
    let Ok((key, after)) = before.after(write, Listed::Failed) else { return vec![] };
    let mut keys = vec![key];
    for (index, before, after) in [
        ("due", before.due(), after.due()),
        ("list", before.list(), after.list()),
        ("all", before.all(), after.all()),
    ] {
        if before != after {
            let entries: BTreeSet<String> = before.into_iter().chain(after).map(|entry| entry.key).collect();
            keys.extend(entries.into_iter().map(|key| format!("{index} {key}")));
        }
    }
    keys
}

/// A write that would make the record as it was before this write.
fn record_before(write: &Write) -> Option<Write> {
    let now = Timestamp::EPOCH;
    match write {
        Write::Put {
            before: Some(record @ (Record::Task(_) | Record::Execution(_) | Record::Cron(_))),
            ..
        }
        | Write::Rearm { record, .. } => Some(Write::put(record.clone(), Condition::Free { now })),
        Write::Put { after: after @ (Record::Queue(_) | Record::Operation(_) | Record::Gate(_)), .. } => {
            (after.head().version > 1).then(|| write.clone())
        }
        Write::Put { .. }
        | Write::Wake { .. }
        | Write::PutWaiter { .. }
        | Write::DeleteWaiter { .. }
        | Write::Extend { .. } => None,
    }
}
