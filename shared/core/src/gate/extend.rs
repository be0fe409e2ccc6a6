//! extend: a worker is alive, and its lease goes on. Its place must go on before.

use crate::id::{Incarnation, Owner};
use crate::time::Timestamp;

use super::{Gate, Hold, Holder, version_mark};

/// Extends the place of a running attempt, whose record has the version with this mark. Returns whether it has one: a place
/// that had ended is taken anew if one is free.
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
        let taken = match holder.hold {
            Hold::Taken { mark } => mark,
            Hold::Called { .. } => 0,
        };
        // Whoever gives up what was taken for an earlier version leaves it.
        holder.hold = Hold::Taken { mark: taken.max(mark) };
        return true;
    }
    if gate.free() == 0 {
        return false;
    }
    let (owner, hold) = (owner.clone(), Hold::Taken { mark });
    gate.holders.push(Holder { owner, incarnation, since: now, until, hold });
    true
}

/// Gives up the place that was taken for any version of the record before this one: nobody begins with it any more. That of
/// a later attempt or turn stays.
pub fn free(gate: &mut Gate, owner: &Owner, incarnation: Incarnation, before: u64) {
    let is_over = |mark| mark < version_mark(before);
    gate.holders.retain(|one| match one.hold {
        Hold::Taken { mark } => !one.is_of(owner, incarnation) || !is_over(mark),
        Hold::Called { .. } => true,
    });
}

/// The same, and takes back what was offered to it.
pub fn withdraw(gate: &mut Gate, owner: &Owner, incarnation: Incarnation, before: u64) {
    free(gate, owner, incarnation, before);
    gate.holders.retain(|one| !one.is_called() || !one.is_of(owner, incarnation));
}
