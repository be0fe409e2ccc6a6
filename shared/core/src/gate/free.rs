//! free: an attempt has ended, or a task that waited has. What it had at the gate is given up.

use crate::id::{Incarnation, TaskId};

use super::{Gate, Hold};

/// Gives up the place that was taken for an attempt. The place of a later attempt of the same task stays, because it has
/// another mark.
pub fn free(gate: &mut Gate, task: &TaskId, incarnation: Incarnation, mark: u32) {
    gate.holders.retain(|one| !one.is_of(task, incarnation) || one.hold != Hold::Taken { mark });
}

/// Takes a task out of the line that has ended without an attempt; also if it was called. A place that was taken stays:
/// if it isn't another task's attempt of the same id, it ends by itself.
pub fn withdraw(gate: &mut Gate, task: &TaskId, incarnation: Incarnation) {
    gate.waiters.retain(|one| !one.is_of(task, incarnation));
    gate.holders.retain(|one| match one.hold {
        Hold::Called { .. } => !one.is_of(task, incarnation),
        Hold::Taken { .. } => true,
    });
}
