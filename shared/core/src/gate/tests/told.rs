//! What a decision says of a line, for the tests of tasks and of executions.

use crate::decision::{Effect, Write};
use crate::gate::Waiter;
use crate::id::GateId;

/// Writes by kind, in their order.
pub(crate) fn writes(writes: &[Write]) -> Vec<&'static str> {
    let name = |write: &Write| match write {
        Write::PutWaiter { .. } => "enters",
        Write::DeleteWaiter { .. } => "leaves",
        Write::CreateTask { .. } | Write::CreateExecution { .. } => "creates",
        Write::UpdateTask { .. } | Write::UpdateExecution { .. } => "updates",
        Write::Rearm { .. } | Write::RearmExecution { .. } => "rearms",
        Write::PutKey { .. } | Write::ExtendKey { .. } => "key",
        Write::ExtendBlob { .. } => "blob",
        other => panic!("{other:?}"),
    };
    writes.iter().map(name).collect()
}

/// The key that is to be looked at, with the item that has come to its line.
pub(crate) fn came_to(effects: &[Effect]) -> Option<(GateId, Waiter)> {
    effects.iter().find_map(|effect| match effect {
        Effect::CameToLine { gate, waiter } => Some((gate.clone(), (**waiter).clone())),
        _ => None,
    })
}
