//! Bugs between a process and the table.

use tickover_core::decision::Write;
use tickover_core::duration::Millis;
use tickover_core::payload::BlobRef;
use tickover_core::task::Task;
use tickover_service::memory::store::Item;
use tickover_service::ports::{Current, StoreError};

use super::Bug;
use crate::sim::ledger::Ledger;

/// Carries a commit out with `apply`, as the bug would have it.
pub fn commit(
    bug: Option<Bug>,
    ledger: &Ledger,
    writes: &[Write],
    apply: impl FnOnce(&[Write]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    match bug {
        Some(Bug::NoVersionCondition) => apply(&changed(writes, |write| forget_version(ledger, write))),
        Some(Bug::RearmWithoutCondition) => apply(&changed(writes, |write| forget_place(ledger, write))),
        Some(Bug::NoNonce) => match writes.iter().find_map(|write| applied(ledger, write)) {
            Some(current) => Err(StoreError::Conflict { current: Some(Current::Task(Box::new(current))) }),
            None => apply(writes),
        },
        Some(Bug::SlotsNotedTooFar) => apply(&changed(writes, note_too_far)),
        Some(Bug::SlotsNotNoted) if matches!(writes, [Write::PutTick { .. }]) => Ok(()),
        Some(Bug::ConflictTakenForSuccess) => match apply(writes) {
            Err(StoreError::Conflict { .. }) => Ok(()),
            answer => answer,
        },
        Some(_) | None => apply(writes),
    }
}

fn changed(writes: &[Write], change: impl Fn(&mut Write)) -> Vec<Write> {
    let mut writes = writes.to_vec();
    writes.iter_mut().for_each(change);
    writes
}

/// The condition is then on the version that is there, so that it always holds.
fn forget_version(ledger: &Ledger, write: &mut Write) {
    if let Write::UpdateTask { before, due_no_later_than, .. } = write
        && let Some(current) = ledger.task(&before.id).filter(|task| task.incarnation == before.incarnation)
    {
        before.version = current.version;
        *due_no_later_than = None;
    }
}

fn forget_place(ledger: &Ledger, write: &mut Write) {
    if let Write::Rearm { task, .. } = write
        && let Some(current) = ledger.task(&task.id).filter(|current| current.due.is_some())
    {
        **task = current;
    }
}

fn note_too_far(write: &mut Write) {
    if let Write::PutTick { record } = write {
        record.timers_until = record.timers_until.plus(Millis::from_secs(3_600));
    }
}

/// A commit's writes without those that say how long a payload is kept, where the bug forgets them.
pub fn extended(bug: Option<Bug>, ledger: &Ledger, writes: &[Write]) -> Option<Vec<Write>> {
    let forgets = |at: &BlobRef| {
        let kept_until = ledger.store.expiries().into_iter().find(|(item, _)| *item == Item::Blob(at.id));
        let is_longer = kept_until.and_then(|(_, until)| until).is_some_and(|until| at.expires_at > until);
        match bug {
            Some(Bug::NeverKeptLonger) => is_longer,
            Some(Bug::PartsKeptForGood) => !is_longer,
            Some(_) | None => false,
        }
    };
    let is_kept = |write: &&Write| !matches!(write, Write::ExtendBlob { at } if forgets(at));
    matches!(bug, Some(Bug::NeverKeptLonger | Bug::PartsKeptForGood))
        .then(|| writes.iter().filter(is_kept).cloned().collect())
}

/// The record, if it is as this very write left it.
fn applied(ledger: &Ledger, write: &Write) -> Option<Task> {
    let after = match write {
        Write::CreateTask { task, .. } => task,
        Write::UpdateTask { after, .. } => after,
        Write::Rearm { .. }
        | Write::CreateExecution { .. }
        | Write::UpdateExecution { .. }
        | Write::RearmExecution { .. }
        | Write::Wake { .. }
        | Write::PutKey { .. }
        | Write::PutQueue { .. }
        | Write::PutTick { .. }
        | Write::PutRecurrence { .. }
        | Write::ExtendBlob { .. }
        | Write::ExtendKey { .. } => return None,
    };
    ledger.task(&after.id).filter(|stored| stored.nonce == after.nonce)
}

/// How many places of a join are marked, as the bug would have it.
pub fn marked(bug: Option<Bug>, marked: u16) -> u16 {
    if bug == Some(Bug::JoinNeverFull) { marked.saturating_sub(1) } else { marked }
}
