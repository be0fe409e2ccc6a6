//! extend: a worker is alive, and its lease goes on. Its place must go on before.

use crate::id::{Incarnation, Owner};
use crate::time::Timestamp;

use super::{Gate, Hold, Holder};

/// Extends the place of a running attempt. Returns whether it has one: a place that had ended is taken anew if one is
/// free and nobody waits.
pub fn extend(gate: &mut Gate, owner: &Owner, incarnation: Incarnation, mark: u32, until: Timestamp) -> bool {
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
    if gate.free() == 0 || !gate.waiters.is_empty() || gate.overflow {
        return false;
    }
    let (owner, hold) = (owner.clone(), Hold::Taken { mark });
    gate.holders.push(Holder { owner, incarnation, until, hold });
    true
}
