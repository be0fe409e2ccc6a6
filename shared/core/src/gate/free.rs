//! free: an attempt or an execution has ended, or something that waited has. What it had at the gate is given up.

use crate::id::{Incarnation, Owner};

use super::{Gate, Hold};

/// Gives up the place that was taken with this mark. That of a later attempt of the same task, or of a later version of
/// the same execution, stays.
pub fn free(gate: &mut Gate, owner: &Owner, incarnation: Incarnation, mark: u32) {
    gate.holders.retain(|one| !one.is_of(owner, incarnation) || one.hold != Hold::Taken { mark });
}

/// Takes out of the line what has ended before it began; also if it was called. A place that was taken stays:
/// if it isn't another task's attempt of the same id, it ends by itself.
pub fn withdraw(gate: &mut Gate, owner: &Owner, incarnation: Incarnation) {
    gate.waiters.retain(|one| !one.is_of(owner, incarnation));
    gate.holders.retain(|one| match one.hold {
        Hold::Called { .. } => !one.is_of(owner, incarnation),
        Hold::Taken { .. } => true,
    });
}
