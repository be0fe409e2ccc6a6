//! The blobs that a record points to, and their expiry.

use crate::decision::Write;
use crate::execution::journal::{Entry, Happened, StepOutcome};
use crate::execution::{Execution, ExecutionOutcome, ExecutionState};
use crate::payload::{BlobRef, Payload};
use crate::time::Timestamp;

/// Every blob that the record points to: in its input, details, result and journal entries.
pub(super) fn blobs(execution: &Execution) -> impl Iterator<Item = &BlobRef> {
    let own = [execution.input.as_ref(), execution.details.as_ref(), execution.output()];
    let entries = execution.journal.iter().filter_map(Entry::payload);
    own.into_iter().flatten().chain(entries).filter_map(Payload::blob)
}

/// Extends the expiry of all blobs in the record to at least this instant. Returns the writes that extend the items.
pub(super) fn keep_until(execution: &mut Execution, expires_at: Timestamp) -> Vec<Write> {
    let output = match &mut execution.state {
        ExecutionState::Closing(closed) | ExecutionState::Ended(closed) => match &mut closed.outcome {
            ExecutionOutcome::Completed { output } => output.as_mut(),
            ExecutionOutcome::Failed { .. }
            | ExecutionOutcome::TimedOut { .. }
            | ExecutionOutcome::Cancelled { .. } => None,
        },
        ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_) => None,
    };
    let own = [execution.input.as_mut(), execution.details.as_mut(), output];
    let entries = execution.journal.iter_mut().filter_map(payload_mut);
    own.into_iter()
        .flatten()
        .chain(entries)
        .filter_map(|payload| match payload {
            Payload::Blob(at) if at.expires_at < expires_at => {
                at.expires_at = expires_at;
                Some(Write::ExtendBlob { at: at.clone() })
            }
            Payload::Inline(_) | Payload::Blob(_) => None,
        })
        .collect()
}

/// The payload of an entry, as [`Entry::payload`].
pub(super) const fn payload_mut(entry: &mut Entry) -> Option<&mut Payload> {
    match &mut entry.what {
        Happened::Step { outcome, .. } => match outcome {
            StepOutcome::Completed { output } => output.as_mut(),
            StepOutcome::Failed { error } | StepOutcome::Exhausted { error } => Some(error),
            StepOutcome::TimedOut
            | StepOutcome::DeadlineExceeded
            | StepOutcome::Cancelled
            | StepOutcome::ResultExpired => None,
        },
        Happened::Captured { value, .. } => Some(value),
        Happened::Event { payload, .. } => payload.as_mut(),
        Happened::Attempt { .. }
        | Happened::Remote { .. }
        | Happened::Child { .. }
        | Happened::Reopened { .. }
        | Happened::Until { .. }
        | Happened::Fired { .. }
        | Happened::Waited { .. }
        | Happened::EventsCleared { .. }
        | Happened::Patches { .. }
        | Happened::Note { .. } => None,
    }
}
