//! Bugs of operations on many records.

use tickover_core::decision::{Condition, Write};
use tickover_core::operation::{Counts, HowEnded, Operation};
use tickover_core::payload::Payload;
use tickover_core::record::Record;
use tickover_service::operations::{Details, Selection};

use super::Bug;
use crate::gate::Gate;
use crate::history::Actor;

/// An operation as a process reads it that carries it out, with the bug or without.
pub fn read_operation(gate: &Gate, operation: Operation) -> Operation {
    let is_carried_out = matches!(gate.actor, Actor::Timers(_));
    match gate.world.bug.filter(|_| is_carried_out) {
        Some(Bug::PageNotedFirst) => {
            note_page(gate, &operation);
            operation
        }
        Some(Bug::EndedLaterRetried) => Operation { created_at: gate.world.now(), ..operation },
        Some(Bug::StopIgnored) if operation.end.as_ref().is_some_and(|end| end.how == HowEnded::Stopped) => {
            Operation { end: None, ..operation }
        }
        Some(_) | None => operation,
    }
}

/// Records the next page of an operation as carried out, although nothing is done yet.
fn note_page(gate: &Gate, operation: &Operation) {
    let ids = match details(gate, operation).map(|details| details.selection) {
        Some(Selection::Executions { ids, .. }) => ids.len(),
        Some(Selection::Tasks { ids, .. }) => ids.len(),
        None => return,
    };
    let pages = usize::try_from(operation.pages).unwrap_or(usize::MAX) + 1;
    let next = (ids > pages * tickover_core::operation::PAGE).then(|| "next".to_owned());
    let noted = operation.note_page(operation.pages, Counts::default(), next, gate.world.now());
    let Some(noted) = noted.filter(|_| !operation.is_over()) else { return };
    let record = Operation { version: operation.version + 1, ..noted };
    // If another write is first, that one is kept.
    let _ = gate.world.ledger.commit(gate.actor, &[Write::put(record, Condition::Follows)], 0);
}

fn details(gate: &Gate, operation: &Operation) -> Option<Details> {
    let json = match &operation.details {
        Payload::Inline(json) => json.clone(),
        Payload::Blob(at) => gate.world.ledger.blob(&at.id)?,
    };
    serde_json::from_str(json.as_str()).ok()
}

/// Takes the due slot away from an operation that is to be written.
pub(super) fn forget_slot(write: &mut Write) {
    if let Write::Put { after: Record::Operation(record), .. } = write {
        record.due = None;
    }
}
