//! take: a task or an execution is to start and needs a place.

use std::num::NonZeroU16;

use crate::duration::Millis;
use crate::id::{Incarnation, Owner};
use crate::time::Timestamp;

use super::{Gate, Hold, Holder};

/// A place that is offered is kept at least this long, also when others come to a worker before the one that was called.
/// Its message may be behind many others: whoever comes later takes the place, instead of leaving it empty.
pub const CALL_KEPT: Millis = Millis::from_secs(5);

/// What a task or an execution asks of a key before it starts.
#[derive(Clone, Debug)]
pub struct Take {
    pub owner: Owner,
    pub incarnation: Incarnation,
    /// The mark of what is to start, see [`Hold::Taken`].
    pub mark: u32,
    /// The mark of its branch: its queue has workers.
    pub branch: u32,
    /// Whether it waits in a line.
    pub in_line: bool,
    /// Until when it needs the place, if nothing extends it.
    pub until: Timestamp,
    pub limit: AskedLimit,
    /// Whether its record has been read, and has this version: then a place of an earlier one is its own.
    pub sure: bool,
}

/// The limit that a task was scheduled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedLimit {
    pub limit: NonZeroU16,
    /// When it was scheduled.
    pub asked_at: Timestamp,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It has a place.
    Place {
        /// Whether it had none before.
        created: bool,
    },
    /// A place was taken for this version of its record already, or for another one: the caller must see which it has.
    Shared,
    /// There is no place: it must wait.
    Full,
}

/// Takes a place. Places that have ended must be cleared. A free place may be taken by whoever comes: it was offered to
/// those that wait, and none of them could come.
pub fn take(gate: &mut Gate, take: &Take, now: Timestamp) -> Taken {
    gate.note_limit(take.limit);
    // An older request for another limit doesn't count any more.
    gate.asked_at = gate.asked_at.max(Some(take.limit.asked_at));
    gate.absent.retain(|one| one.branch != take.branch);
    if let Some(holder) = gate.holders.iter_mut().find(|one| one.is_of(&take.owner, take.incarnation)) {
        let (created, least) = match holder.hold {
            Hold::Called { .. } => (true, take.until),
            Hold::Taken { mark } if !take.sure || mark > take.mark => return Taken::Shared,
            Hold::Taken { .. } => (false, holder.until),
        };
        holder.hold = Hold::Taken { mark: take.mark };
        holder.since = now;
        holder.until = least.max(take.until);
        return Taken::Place { created };
    }
    if gate.free() == 0 && !withdraw_late_call(gate, now) {
        return Taken::Full;
    }
    gate.holders.push(Holder {
        owner: take.owner.clone(),
        incarnation: take.incarnation,
        since: now,
        until: take.until,
        hold: Hold::Taken { mark: take.mark },
    });
    Taken::Place { created: true }
}

/// Takes a place back that was offered long ago. Whoever it was offered to still waits in the line.
fn withdraw_late_call(gate: &mut Gate, now: Timestamp) -> bool {
    let late = gate.holders.iter().position(|one| one.is_late(now));
    let is_within_limit = gate.limit().is_some_and(|limit| gate.holders.len() <= usize::from(limit.get()));
    let late = late.filter(|_| is_within_limit).map(|at| gate.holders[at].owner.clone());
    if let Some(late) = &late {
        gate.remove_holders(|one| one.is_late(now) && one.owner == *late, now);
    }
    late.is_some()
}
