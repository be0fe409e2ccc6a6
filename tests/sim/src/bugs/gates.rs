//! Bugs of the rules of gates, and of those who wait there.

use std::num::NonZeroU16;

use tickover_core::command::Context;
use tickover_core::decision::Effect;
use tickover_core::duration::Millis;
use tickover_core::gate::rate::Reservation;
use tickover_core::gate::{self, AskedStart, Candidate, Gate, Take, Taken, Waiter};
use tickover_core::id::{Incarnation, Owner};
use tickover_core::task::command::Command;
use tickover_core::task::decision::{ClaimReply, Decision, Reply};
use tickover_core::task::hint::Hint;
use tickover_core::task::{self, Task};
use tickover_core::time::Timestamp;
use tickover_service::ports::Received;

use super::Bug;
use super::rules::edited;
use crate::ledger::NotedGate;
use crate::world::World;

/// Before that, mostly a message leads to a lost task.
const LOST_FOR: Millis = Millis::from_secs(30);

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
pub fn offer_places(world: &World, gate: &mut Gate, candidates: &[Candidate], now: Timestamp) -> Vec<Waiter> {
    match world.bug {
        Some(Bug::NobodyCalled) => vec![],
        Some(Bug::EndedPlaceNotOffered) if has_ended_by_itself(&world.ledger.gates(), gate, now) => vec![],
        Some(Bug::TwoCalledForOne) => with_more(gate, 1, |gate| gate::offer(gate, candidates, now)),
        Some(_) | None => gate::offer(gate, candidates, now),
    }
}

/// Whether a place of the gate has ended by itself since its record was written, or when it was written last.
fn has_ended_by_itself(noted: &[NotedGate], gate: &Gate, now: Timestamp) -> bool {
    let mut records = noted.iter().rev().filter(|one| one.gate.id == gate.id);
    let Some(last) = records.next() else { return false };
    let has_ended = |gate: &Gate, at| gate.holders.iter().any(|one| one.until <= at);
    // A refused write notes the record again.
    let before = records.find(|one| one.gate.version < last.gate.version);
    has_ended(&last.gate, now) || before.is_some_and(|before| has_ended(&before.gate, last.at))
}

/// The decision on a task that needs places or a start, if one of these bugs changes it.
pub(super) fn on_a_task(bug: Bug, task: &Task, command: &Command, context: &Context<'_>) -> Option<Decision> {
    match (bug, command) {
        (Bug::LostNotCalled, Command::WaitInLine { .. }) => {
            let running = task.running()?;
            let is_lost = running.lease_expires_at.plus(LOST_FOR) <= context.now;
            is_lost.then(|| Decision::unchanged(task, Ok(Reply::Claim(ClaimReply::NeedsPlaces))))
        }
        (Bug::PutOffInNormalLane, Command::Claim(_)) => {
            let mut decision = edited(task::decide(Some(task), command, context), keep_lane);
            for effect in &mut decision.effects {
                if let Effect::Dispatch { hint, .. } = effect {
                    keep_lane(&mut hint.task);
                }
            }
            Some(decision)
        }
        _ => None,
    }
}

/// Whether this message is lost together with the worker that received it, with the bug: that of a task which is called from
/// a line.
pub fn is_lost_with_its_worker(world: &World, message: &Received) -> bool {
    if world.bug != Some(Bug::LostNotCalled) {
        return false;
    }
    let Ok(hint) = Hint::parse(&message.body) else { return false };
    world.ledger.task(&hint.task.id).is_some_and(|task| task.parked.in_line().is_some())
}

fn keep_lane(task: &mut Task) {
    if let Some(paced) = task.flow.as_mut().and_then(|flow| flow.paced.as_mut()) {
        paced.put_off = false;
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
