//! Bugs of the rules of gates.

use std::num::NonZeroU16;

use tickover_core::gate::rate::Reservation;
use tickover_core::gate::{self, AskedStart, Behind, Gate, Plan, Standing, Take, Taken};
use tickover_core::id::{Incarnation, Owner};
use tickover_core::time::Timestamp;

use super::Bug;

/// Does something at a gate as if it had so many places more.
fn with_more<T>(plan: &mut Plan, more: u16, act: impl FnOnce(&mut Plan) -> T) -> T {
    let (limit, pinned) = (plan.gate.limit, plan.gate.pinned);
    plan.gate.pinned = plan.gate.limit().or(NonZeroU16::new(1)).map(|limit| limit.saturating_add(more));
    let done = act(plan);
    plan.gate.limit = plan.gate.limit.or(limit);
    plan.gate.pinned = pinned;
    done
}

/// As the core's, with the bug of this run.
pub fn take_place(bug: Option<Bug>, plan: &mut Plan, take: &Take, now: Timestamp) -> Taken {
    if bug == Some(Bug::TakenUnchecked) {
        return with_more(plan, 1_000, |plan| gate::take(plan, take, now));
    }
    gate::take(plan, take, now)
}

/// As the core's, with the bug of this run.
pub fn free_place(bug: Option<Bug>, gate: &mut Gate, owner: &Owner, incarnation: Incarnation, mark: u32) {
    if bug == Some(Bug::PlacesFreedTwice) {
        gate.holders.clear();
    }
    gate::free(gate, owner, incarnation, mark);
}

/// As the core's, with the bug of this run.
pub fn call_waiting(
    bug: Option<Bug>,
    plan: &mut Plan,
    behind: &Behind,
    standings: &[Standing],
    now: Timestamp,
) {
    match bug {
        Some(Bug::NobodyCalled) => {}
        Some(Bug::TwoCalledForOne) => {
            with_more(plan, 1, |plan| gate::call(plan, behind, standings, now));
        }
        Some(_) | None => gate::call(plan, behind, standings, now),
    }
}

/// As the core's, with the bug of this run.
pub fn clear_places(bug: Option<Bug>, plan: &mut Plan, now: Timestamp) {
    if bug != Some(Bug::PlacesNotCleared) {
        gate::clear(plan, now);
    }
}

/// As the core's, with the bug of this run.
pub fn reserve_start(bug: Option<Bug>, gate: &mut Gate, asked: &AskedStart, from: Timestamp) -> Reservation {
    if bug == Some(Bug::StartsForgotten) {
        gate.rate = None;
    }
    gate::reserve_start(gate, asked, from)
}
