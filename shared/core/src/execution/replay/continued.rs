//! Whether a run that a worker has kept in memory since its last turn may go on there.

use crate::execution::Execution;
use crate::execution::journal::{Entry, Happened};

/// Whether nothing has happened to a run since its record was as it is `known`, except that events have arrived. Any other
/// entry says that another worker has run a turn, or that somebody has changed the run: then its code must be replayed. So
/// must code that is to be stopped.
pub fn is_continued(known: &Execution, record: &Execution, since: &[Entry]) -> bool {
    (known.incarnation, known.run) == (record.incarnation, record.run)
        && known.failing == record.failing
        && !record.cancel_requested
        && since.iter().all(|entry| matches!(entry.what, Happened::Event { .. }))
}
