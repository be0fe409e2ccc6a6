//! Bugs between a process and the table.

use tickover_core::decision::{Condition, Write};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Happened, Segment, SegmentKey};
use tickover_core::id::{Nonce, RecordId};
use tickover_core::record::Record;
use tickover_core::task::Task;
use tickover_core::tick::{TickRecord, slot_end};
use tickover_core::time::Timestamp;
use tickover_service::ports::StoreError;

use super::Bug;
use crate::gate::Gate;
use crate::history::Actor;
use crate::ledger::Ledger;
use crate::world::World;

/// Executes a commit with `apply`, with the bug of this run.
pub fn commit(
    bug: Option<Bug>,
    ledger: &Ledger,
    writes: &[Write],
    apply: impl FnOnce(&[Write]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    match bug {
        Some(Bug::NoVersionCondition) => apply(&changed(writes, |write| forget_version(ledger, write))),
        Some(Bug::RearmWithoutCondition) => apply(&changed(writes, |write| forget_due_slot(ledger, write))),
        Some(Bug::NoNonce) => match writes.iter().find_map(|write| applied(ledger, write)) {
            Some(current) => Err(StoreError::Conflict { current: Some(current.into()) }),
            None => apply(writes),
        },
        Some(Bug::SlotsRecordedTooFar) => apply(&changed(writes, record_timers_too_far)),
        Some(Bug::StartWithoutCondition) => apply(&changed(writes, |write| forget_starts(ledger, write))),
        Some(Bug::OperationNotDue) => apply(&changed(writes, super::operation::forget_slot)),
        Some(Bug::KeyTakenUnchecked) => {
            apply(&changed(writes, |write| super::single::take_key(ledger, write)))
        }
        Some(Bug::SlotsNotRecorded) if matches!(writes, [Write::Put { after: Record::Tick(_), .. }]) => {
            Ok(())
        }
        Some(Bug::ConflictTakenForSuccess) => match apply(writes) {
            Err(StoreError::Conflict { .. }) => Ok(()),
            answer => answer,
        },
        Some(Bug::ItemNotWritten) => {
            apply(&without(writes, |write| matches!(write, Write::PutWaiter { .. })))
        }
        Some(Bug::StandInNotWritten) => {
            let is_stand_in =
                |write: &Write| matches!(write, Write::PutWaiter { waiter, .. } if waiter.home.is_some());
            apply(&without(writes, is_stand_in))
        }
        Some(_) | None => apply(writes),
    }
}

fn without(writes: &[Write], is_lost: impl Fn(&Write) -> bool) -> Vec<Write> {
    writes.iter().filter(|write| !is_lost(write)).cloned().collect()
}

fn changed(writes: &[Write], change: impl Fn(&mut Write)) -> Vec<Write> {
    let mut writes = writes.to_vec();
    writes.iter_mut().for_each(change);
    writes
}

/// Replaces the version in the condition by the stored one, so that it always holds.
fn forget_version(ledger: &Ledger, write: &mut Write) {
    if let Write::Put {
        before: Some(Record::Task(before)),
        condition: Condition::Unchanged { due_no_later_than, .. },
        ..
    } = write
        && let Some(current) = ledger.task(&before.id).filter(|task| task.incarnation == before.incarnation)
    {
        before.version = current.version;
        before.nonce = current.nonce;
        *due_no_later_than = None;
    }
}

fn forget_due_slot(ledger: &Ledger, write: &mut Write) {
    if let Write::Rearm { record: Record::Task(task), .. } = write
        && let Some(current) = ledger.task(&task.id).filter(|current| current.due.is_some())
    {
        **task = current;
    }
}

/// Replaces the condition of a gate's write by one that holds, if the write reserves a start.
fn forget_starts(ledger: &Ledger, write: &mut Write) {
    if let Write::Put { before, after: Record::Gate(record), .. } = write
        && let Some(current) = ledger.gate(&record.id).filter(|current| current.rate != record.rate)
    {
        *before = Some(current.into());
    }
}

fn record_timers_too_far(write: &mut Write) {
    if let Write::Put { after: Record::Tick(record), .. } = write {
        record.timers_until = record.timers_until.plus(Millis::from_secs(3_600));
    }
}

/// Records the slot of a tick that is about to send its first timers, with the bug.
pub fn record_timers_first(world: &World, actor: Actor) {
    if world.bug != Some(Bug::SlotsRecordedFirst) {
        return;
    }
    let now = world.now();
    let minute = Timestamp::from_millis(now.as_millis().div_euclid(60_000) * 60_000);
    let noted: Option<TickRecord> = world.ledger.read(RecordId::Tick);
    let noted = noted.unwrap_or_else(|| TickRecord::new(Nonce::from_bytes([0; Nonce::LEN])));
    let after = noted.after(slot_end(minute, now), noted.behind.clone());
    let record = TickRecord { version: after.version + 1, ..after };
    // If another write is first, that one is kept.
    let _ = world.ledger.commit(actor, &[Write::put(record, Condition::Follows)], 0);
}

/// The first expiry of a payload or segment, with the bug or without.
pub fn first_expiry(bug: Option<Bug>, now: Timestamp, expires_at: Timestamp) -> Timestamp {
    match bug {
        Some(Bug::NeverKeptLonger) => now.plus(Millis::from_secs(60)),
        Some(Bug::ItemsKeptForEver) => Timestamp::from_millis(253_402_300_799_000),
        Some(_) | None => expires_at,
    }
}

/// The record, if it is as this very write left it.
fn applied(ledger: &Ledger, write: &Write) -> Option<Task> {
    let Write::Put { after: Record::Task(after), .. } = write else { return None };
    ledger.task(&after.id).filter(|stored| stored.nonce == after.nonce)
}

/// Removes the last result from the sealed segments that a worker of workflows reads, with the bug.
pub fn unseen(gate: &Gate, segments: &mut [(SegmentKey, Segment)]) {
    let is_engine = gate.world.runs_flows() && matches!(gate.actor, Actor::Worker(_));
    let Some((_, last)) = segments.last_mut().filter(|_| is_engine) else { return };
    if gate.world.bug == Some(Bug::SealedResultUnseen) {
        let result = last
            .entries
            .iter()
            .rposition(|entry| matches!(entry.what, Happened::Step { attempts: Some(_), .. }));
        result.map(|place| last.entries.remove(place));
    }
}

/// How many places of a join are marked, with the bug or without.
pub fn marked(bug: Option<Bug>, marked: u16) -> u16 {
    if bug == Some(Bug::JoinNeverFull) { marked.saturating_sub(1) } else { marked }
}

/// The key of an index against which a write counts, with the bug or without.
pub fn list_key(bug: Option<Bug>, key: String) -> String {
    match key.rsplit_once('#') {
        Some((list, _)) if bug == Some(Bug::ListOnOneKey) && key.starts_with("list ") => list.to_owned(),
        Some(_) | None => key,
    }
}
