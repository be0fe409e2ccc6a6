//! extend: a worker is alive, and its lease goes on. Its place must go on before.

use crate::id::{Incarnation, Owner};
use crate::time::Timestamp;

use super::{Gate, Hold, Holder};

/// Extends the place of a running attempt. Returns whether it has one: a place that had ended is taken anew if one is
/// free.
pub fn extend(
    gate: &mut Gate,
    owner: &Owner,
    incarnation: Incarnation,
    mark: u32,
    until: Timestamp,
    now: Timestamp,
) -> bool {
    if let Some(holder) = gate.holders.iter_mut().find(|one| one.is_of(owner, incarnation)) {
        holder.until = holder.until.max(until);
        return match holder.hold {
            // The mark stays: another try of the same task may have set it, and frees no more than its own.
            Hold::Taken { .. } => true,
            Hold::Called { .. } => {
                holder.hold = Hold::Taken { mark };
                true
            }
        };
    }
    if gate.free() == 0 {
        return false;
    }
    let (owner, hold) = (owner.clone(), Hold::Taken { mark });
    gate.holders.push(Holder { owner, incarnation, since: now, until, hold });
    true
}

/// Gives up the place that was taken with this mark. That of a later attempt of the same task, or of a later version of
/// the same execution, stays.
pub fn free(gate: &mut Gate, owner: &Owner, incarnation: Incarnation, mark: u32) {
    gate.holders.retain(|one| !one.is_of(owner, incarnation) || one.hold != Hold::Taken { mark });
}

/// Takes back what was offered to one that has ended before it began. A place that was taken stays: if it isn't another
/// task's attempt of the same id, it ends by itself.
pub fn withdraw(gate: &mut Gate, owner: &Owner, incarnation: Incarnation) {
    gate.holders.retain(|one| match one.hold {
        Hold::Called { .. } => !one.is_of(owner, incarnation),
        Hold::Taken { .. } => true,
    });
}
