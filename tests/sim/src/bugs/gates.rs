//! Bugs of the rules of gates.

use std::num::NonZeroU16;

use tickover_core::gate::rate::Reservation;
use tickover_core::gate::{self, AskedStart, Candidate, Gate, Take, Taken, Waiter};
use tickover_core::id::{Incarnation, Owner};
use tickover_core::time::Timestamp;

use super::Bug;

/// Does something at a gate as if it had so many places more.
fn with_more<T>(gate: &mut Gate, more: u16, act: impl FnOnce(&mut Gate) -> T) -> T {
    let (limit, pinned) = (gate.limit, gate.pinned);
    gate.pinned = gate.limit().or(NonZeroU16::new(1)).map(|limit| limit.saturating_add(more));
    let done = act(gate);
    gate.limit = gate.limit.or(limit);
    gate.pinned = pinned;
    done
}

/// As the core's, with the bug of this run.
pub fn take_place(bug: Option<Bug>, gate: &mut Gate, take: &Take, now: Timestamp) -> Taken {
    if bug == Some(Bug::TakenUnchecked) {
        return with_more(gate, 1_000, |gate| gate::take(gate, take, now));
    }
    gate::take(gate, take, now)
}

/// As the core's, with the bug of this run.
pub fn free_place(bug: Option<Bug>, gate: &mut Gate, owner: &Owner, incarnation: Incarnation, before: u64) {
    if bug == Some(Bug::PlacesFreedTwice) {
        gate.holders.clear();
    }
    gate::free(gate, owner, incarnation, before);
}

/// As the core's, with the bug of this run.
pub fn withdraw_place(
    bug: Option<Bug>,
    gate: &mut Gate,
    owner: &Owner,
    incarnation: Incarnation,
    before: u64,
) {
    if bug == Some(Bug::HeldWhileWaiting) {
        gate.holders.retain(|one| !one.is_called() || !one.is_of(owner, incarnation));
    } else {
        gate::withdraw(gate, owner, incarnation, before);
    }
}

/// As the core's, with the bug of this run.
pub fn offer_places(
    bug: Option<Bug>,
    gate: &mut Gate,
    candidates: &[Candidate],
    now: Timestamp,
) -> Vec<Waiter> {
    match bug {
        Some(Bug::NobodyCalled) => vec![],
        Some(Bug::TwoCalledForOne) => with_more(gate, 1, |gate| gate::offer(gate, candidates, now)),
        Some(_) | None => gate::offer(gate, candidates, now),
    }
}

/// As the core's, with the bug of this run.
pub fn clear_places(bug: Option<Bug>, gate: &mut Gate, now: Timestamp) {
    if bug != Some(Bug::PlacesNotCleared) {
        gate::clear(gate, now);
    }
}

/// As the core's, with the bug of this run.
pub fn reserve_start(
    bug: Option<Bug>,
    gate: &mut Gate,
    asked: &AskedStart,
    first: bool,
    now: Timestamp,
) -> Reservation {
    if bug == Some(Bug::StartsForgotten) {
        gate.rate = None;
    }
    gate::reserve_start(gate, asked, first, now)
}
