//! What a decision says of a line, for the tests of tasks and of executions.

use crate::decision::{Effect, Expiring, Write};
use crate::gate::Waiter;
use crate::id::GateId;
use crate::record::Record;

/// Writes by kind, in their order.
pub(crate) fn writes(writes: &[Write]) -> Vec<&'static str> {
    let name = |write: &Write| match write {
        Write::PutWaiter { .. } => "enters",
        Write::DeleteWaiter { .. } => "leaves",
        Write::Put { after: Record::Key(_), .. } | Write::Extend { item: Expiring::Key(_), .. } => "key",
        Write::Put { before: None, .. } => "creates",
        Write::Put { .. } => "updates",
        Write::Rearm { .. } => "rearms",
        Write::Extend { item: Expiring::Blob(_), .. } => "blob",
        other => panic!("{other:?}"),
    };
    writes.iter().map(name).collect()
}

/// The key that is to be looked at, with the item that has come to its line.
pub(crate) fn came_to(effects: &[Effect]) -> Option<(GateId, Waiter)> {
    effects.iter().find_map(|effect| match effect {
        Effect::CameToLine { gate, waiter, .. } => Some((gate.clone(), (**waiter).clone())),
        _ => None,
    })
}
