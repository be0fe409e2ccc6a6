//! clear: places that have ended are free, whatever became of their tasks.

use crate::time::Timestamp;

use super::Gate;

/// Removes the places that have ended. Nobody keeps others from a place that it was offered and doesn't come to.
pub fn clear(gate: &mut Gate, now: Timestamp) {
    gate.remove_holders(|one| one.until <= now, now);
}
