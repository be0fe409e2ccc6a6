//! take: a task or an execution is to start and needs a place. It gets one, or it waits in the line.

use std::num::NonZeroU16;

use crate::duration::Millis;
use crate::flow::Shards;
use crate::id::{Incarnation, Owner};
use crate::limits::CONTROL_RECORD_BYTES;
use crate::size;
use crate::time::Timestamp;

use super::{Gate, Hold, Holder, LINE_MAX, Order, Plan, Waiter};

/// A task that was called keeps its place at least this long, also when others come to a worker before it. Its message
/// may be behind many others: whoever comes later takes the place, instead of leaving it empty.
pub const CALL_KEPT: Millis = Millis::from_secs(5);

/// What a task or an execution asks of a gate before it starts.
#[derive(Clone, Debug)]
pub struct Take {
    pub owner: Owner,
    pub incarnation: Incarnation,
    pub order: Order,
    /// The mark of what is to start, see [`Hold::Taken`].
    pub mark: u32,
    /// Until when it needs the place, if nothing extends it.
    pub until: Timestamp,
    /// The limit that the task was scheduled with, among how many shards its key is divided, and when it was scheduled.
    pub limit: NonZeroU16,
    pub shards: Shards,
    pub asked_at: Timestamp,
    /// Whether the task is known to have no other attempt, or the execution to have this version: then a place of an
    /// earlier one is its own.
    pub sure: bool,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It has a place.
    Place {
        /// Whether it had none before, so that it may free it again if nothing starts.
        created: bool,
    },
    /// Another attempt of the same task, or another version of the same execution, has a place: the caller must see
    /// whether that one counts.
    Shared,
    /// There is no place. The task waits, and is called when there is one.
    Waits,
}

/// Takes a place, or a position in the line. Places that have ended must be cleared.
pub fn take(plan: &mut Plan, take: &Take, now: Timestamp) -> Taken {
    note_limit(&mut plan.gate, take);
    let gate = &mut plan.gate;
    if let Some(holder) = gate.holders.iter_mut().find(|one| one.is_of(&take.owner, take.incarnation)) {
        let (created, least) = match holder.hold {
            Hold::Called { .. } => (true, take.until),
            Hold::Taken { mark } if mark == take.mark => (true, holder.until),
            Hold::Taken { mark } if !take.sure || take.is_behind(mark) => return Taken::Shared,
            // Who only joins a place never frees it: the other attempt may still start.
            Hold::Taken { .. } => (false, holder.until),
        };
        holder.hold = Hold::Taken { mark: take.mark };
        holder.until = least.max(take.until);
        return Taken::Place { created };
    }
    if gate.free() > 0 && is_first(gate, take) {
        leave_line(gate, take);
        gate.holders.push(holder(take));
        return Taken::Place { created: true };
    }
    if gate.free() == 0 && replace_called(plan, take, now) {
        return Taken::Place { created: true };
    }
    join(plan, Waiter { owner: take.owner.clone(), incarnation: take.incarnation, order: take.order });
    Taken::Waits
}

impl Take {
    /// Whether a place with this mark was taken in a later version of the execution's record.
    const fn is_behind(&self, mark: u32) -> bool {
        self.owner.execution().is_some() && mark > self.mark
    }
}

/// The limit of the task that was scheduled last counts.
fn note_limit(gate: &mut Gate, take: &Take) {
    let is_same = (gate.limit, gate.shards) == (Some(take.limit), take.shards);
    if gate.asked_at.is_none_or(|at| at <= take.asked_at) && !is_same {
        (gate.limit, gate.shards, gate.asked_at) = (Some(take.limit), take.shards, Some(take.asked_at));
    }
}

fn holder(take: &Take) -> Holder {
    let (owner, incarnation) = (take.owner.clone(), take.incarnation);
    Holder { owner, incarnation, until: take.until, hold: Hold::Taken { mark: take.mark } }
}

/// Whether nobody waits who should have a place before it. Those with an item of their own come after all in the record.
fn is_first(gate: &Gate, take: &Take) -> bool {
    match gate.waiters.first() {
        Some(first) => first.is_of(&take.owner, take.incarnation) || take.order < first.order,
        None => !gate.overflow,
    }
}

fn leave_line(gate: &mut Gate, take: &Take) {
    gate.waiters.retain(|one| !one.is_of(&take.owner, take.incarnation));
}

/// Takes the place of a task that was called long ago, and puts that task back into the line.
fn replace_called(plan: &mut Plan, take: &Take, now: Timestamp) -> bool {
    let called_long_ago = |one: &Holder| match one.hold {
        Hold::Called { order } if one.called_at().plus(CALL_KEPT) <= now => Some(order),
        Hold::Called { .. } | Hold::Taken { .. } => None,
    };
    let found = plan.gate.holders.iter().enumerate().find_map(|(at, one)| Some((at, called_long_ago(one)?)));
    let Some((at, order)) = found else { return false };
    let Holder { owner, incarnation, .. } = plan.gate.holders.remove(at);
    leave_line(&mut plan.gate, take);
    plan.gate.holders.push(holder(take));
    join(plan, Waiter { owner, incarnation, order });
    true
}

/// Adds a task to the line: in the record while there is room, else in an item of its own.
pub(super) fn join(plan: &mut Plan, waiter: Waiter) {
    let gate = &mut plan.gate;
    if gate.waiters.iter().any(|one| one.is_of(&waiter.owner, waiter.incarnation)) {
        return;
    }
    let at = gate.waiters.partition_point(|one| one.order <= waiter.order);
    // Behind the last in the record wait those with an item of their own.
    if gate.overflow && at == gate.waiters.len() {
        plan.enters.push(waiter);
        plan.touched = true;
        return;
    }
    gate.waiters.insert(at, waiter);
    while gate.waiters.len() > 1
        && (gate.waiters.len() > LINE_MAX || size::of(gate) + super::GROWTH_BYTES > CONTROL_RECORD_BYTES)
    {
        plan.enters.extend(gate.waiters.pop());
        gate.overflow = true;
    }
}
