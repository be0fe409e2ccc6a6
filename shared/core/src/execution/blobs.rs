//! The blobs that a record points to, and their expiry.

use crate::decision::Write;
use crate::execution::Execution;
use crate::execution::journal::Entry;
use crate::payload::{BlobRef, Payload};
use crate::time::Timestamp;

/// Every blob that the record points to: in its input, details, values, result and journal entries.
pub(super) fn blobs(execution: &Execution) -> impl Iterator<Item = &BlobRef> {
    let own = [&execution.input, &execution.details, &execution.values].into_iter().map(Option::as_ref);
    let own = own.chain([execution.output()]);
    let entries = execution.journal.iter().filter_map(Entry::payload);
    own.flatten().chain(entries).filter_map(Payload::blob)
}

/// Extends the expiry of all blobs in the record to at least this instant. Returns the writes that extend the items.
pub(super) fn keep_until(execution: &mut Execution, expires_at: Timestamp) -> Vec<Write> {
    let mut writes = vec![];
    let mut extend = |payload: &mut Payload| match payload {
        Payload::Blob(at) if at.expires_at < expires_at => {
            at.expires_at = expires_at;
            writes.push(Write::extend_blob(at));
        }
        Payload::Inline(_) | Payload::Blob(_) => {}
    };
    let own = execution.input.iter_mut().chain(&mut execution.details).chain(&mut execution.values);
    own.for_each(&mut extend);
    execution.output_mut().into_iter().for_each(&mut extend);
    execution.journal.iter_mut().filter_map(Entry::payload_mut).for_each(extend);
    writes
}
