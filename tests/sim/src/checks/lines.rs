//! What must hold of lines: whoever waits in a line by its record has no place anywhere, and nobody who can come waits for
//! long while a place is free. Who came from a line and was lost together with its message can come as well.

use std::collections::{BTreeMap, BTreeSet};

use tickover_core::duration::Millis;
use tickover_core::flow::Paced;
use tickover_core::gate::{Gate, Holder, Waiter, Waiting, first_start};
use tickover_core::id::{GateId, Owner, QueueName};
use tickover_core::time::Timestamp;

use super::limits::taken;
use crate::Run;
use crate::ledger::{LineNote, NotedGate};
use crate::violation::{Invariant, Violation};

/// In fair weather, the next one is called in the write that frees the place, or right after it: so many ways to the store
/// and back, where these take time.
const FAIR: Millis = Millis::from_secs(1);
const CALLS: u64 = 24;
/// With slower ways, writes that come between each other make it longer than any bound that tells something.
pub(super) const SLOW_MS: u64 = 1_500;
/// If one process dies and nothing else fails.
const AFTER_A_DEATH: Millis = Millis::from_secs(90);
/// After the faults: until the tick comes to the line, once more if its process dies, and the time of its clock.
const FOUND_WITHIN: Millis = Millis::from_secs(5 * 60);
/// So long after the end of its lease, a task that came from a line counts as lost with its message.
const LOST_FOR: Millis = Millis::from_secs(30);
/// One that must start by a rate isn't called earlier than this before its start.
const CALLED_AHEAD: Millis = Millis::from_secs(60);

pub(super) fn of_run(run: &Run) -> Vec<Violation> {
    let mut lines = Lines {
        run,
        waiting: BTreeMap::new(),
        gates: BTreeMap::new(),
        paused: BTreeSet::new(),
        since: BTreeMap::new(),
        held: BTreeMap::new(),
        found: vec![],
    };
    let mut gates = run.world.ledger.gates().into_iter().peekable();
    let mut notes = run.world.ledger.lines().into_iter().peekable();
    for (number, event) in run.events.iter().enumerate() {
        loop {
            let note = notes.peek().map_or(usize::MAX, |(at, _)| *at);
            let gate = gates.peek().map_or(usize::MAX, |noted| noted.number);
            if note.min(gate) > number {
                break;
            }
            if gate <= note {
                let Some(NotedGate { at, gate, .. }) = gates.next() else { break };
                lines.gates.insert(gate.id.clone(), gate);
                lines.look(at, true);
                lines.look_at_holders(at);
            } else {
                match notes.next() {
                    Some((_, LineNote::Queue(queue))) if queue.paused => {
                        lines.paused.insert(queue.name);
                    }
                    Some((_, LineNote::Queue(queue))) => drop(lines.paused.remove(&queue.name)),
                    Some((_, LineNote::Entered(..) | LineNote::Left(..))) => {}
                    None => break,
                }
            }
        }
        if let Some(change) = event.what.task_change() {
            let after = &change.after;
            let begun = match (after.running().is_some(), after.waits_in_line()) {
                (true, true) => Begun::Lost,
                (true, false) => Begun::Runs,
                (false, _) => Begun::No,
            };
            // One whose start was put off can't come before that.
            let starts_at = after.reserved().map_or(Timestamp::EPOCH, |start| start.start_at);
            let comes_from = after.ready_at().map(|at| match begun {
                // It stays in the line while it runs. If its worker is lost, mostly its message leads to it.
                Begun::Runs => at.max(starts_at).plus(LOST_FOR),
                Begun::Lost | Begun::No => starts_at,
            });
            lines.record(&after.waiting(), (comes_from, after.paced()), begun, event.at);
        } else if let Some(change) = event.what.execution_change() {
            let comes_from = change.after.ready_at().map(|_| Timestamp::EPOCH);
            let admission = change.after.admission.as_deref();
            let paced = admission.and_then(|admission| admission.paced.as_ref());
            lines.record(&change.after.waiting(), (comes_from, paced), Begun::No, event.at);
        }
        lines.look(event.at, false);
        lines.look_at_holders(event.at);
    }
    lines.end(run.ended_at);
    lines.found
}

/// Whether an attempt of one that is in a line has begun.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Begun {
    No,
    /// It waits for the next attempt while the last one, whose worker was lost, may still have its place.
    Lost,
    /// It came from the line and runs, as far as its record says.
    Runs,
}

/// One that is in a line by its record.
struct Waits {
    gate: GateId,
    waiter: Waiter,
    /// From when on it can come to a free place, if it can.
    comes_from: Option<Timestamp>,
    /// The key by whose rate it must start, if it has no start yet.
    rate: Option<GateId>,
    begun: Begun,
}

struct Lines<'a> {
    run: &'a Run,
    waiting: BTreeMap<Owner, Waits>,
    gates: BTreeMap<GateId, Gate>,
    paused: BTreeSet<QueueName>,
    /// Since when a place of a gate has been free for somebody who waits, and how long that may be.
    since: BTreeMap<GateId, (Timestamp, Millis, Owner)>,
    /// Since when one that waits has had a place, and how long that may be.
    held: BTreeMap<(Owner, GateId), (Timestamp, Millis)>,
    found: Vec<Violation>,
}

impl Lines<'_> {
    fn record(
        &mut self,
        waiting: &Waiting<'_>,
        (comes_from, paced): (Option<Timestamp>, Option<&Paced>),
        begun: Begun,
        at: Timestamp,
    ) {
        let owner = waiting.owner.clone();
        let rate = paced.filter(|paced| paced.start.is_none()).map(|paced| GateId::from(&paced.key));
        match waiting.item(at) {
            Some((gate, waiter)) => {
                drop(self.waiting.insert(owner, Waits { gate, waiter, comes_from, rate, begun }));
            }
            None => drop(self.waiting.remove(&owner)),
        }
    }

    /// Looks at every gate at an instant. `by_gate` says that a gate was written just now.
    fn look(&mut self, at: Timestamp, by_gate: bool) {
        let ids: Vec<GateId> = self.gates.keys().cloned().collect();
        for id in ids {
            let Some(gate) = self.gates.get(&id) else { continue };
            let is_free =
                |gate: &Gate| gate.limit().is_some_and(|limit| taken(gate, at) < usize::from(limit.get()));
            let has_place = |gate: &Gate, waiter: &Waiter| {
                let is_its = |one: &Holder| one.is_of(&waiter.owner, waiter.incarnation);
                gate.holders.iter().any(|one| is_its(one) && one.until > at)
            };
            let can_come = |one: &&Waits| {
                let Waits { gate: home, waiter, comes_from, rate, .. } = one;
                let others = &waiter.branch.others;
                // The tick calls it when its start is near.
                let rate = rate.as_ref().and_then(|rate| self.gates.get(rate));
                let is_later =
                    |gate| first_start(gate, at).is_some_and(|first| first > at.plus(CALLED_AHEAD));
                *home == id
                    && !rate.is_some_and(is_later)
                    && comes_from.is_some_and(|from| from <= at)
                    && !has_place(gate, waiter)
                    && !gate.is_absent(waiter.branch.mark(), at)
                    && !self.paused.contains(&waiter.branch.queue)
                    // Whoever was called at another key has been told.
                    && others.iter().filter_map(|other| self.gates.get(other)).all(|other| {
                        is_free(other) && !has_place(other, waiter)
                    })
            };
            // Those that are called come before those that are found to be lost.
            let come = self.waiting.values().filter(can_come);
            let first = if is_free(gate) { come.min_by_key(|one| one.begun) } else { None };
            let Some(first) = first else {
                self.settle(&id, at);
                continue;
            };
            // What ends by itself is found by the tick, and so is who was lost.
            let ended = |gate: &Gate| gate.holders.iter().any(|one| one.until <= at);
            let branch = first.waiter.branch.mark();
            let by_itself = first.begun == Begun::Runs
                || ended(gate)
                || gate.absent.iter().any(|one| one.branch == branch)
                || first.waiter.branch.others.iter().filter_map(|other| self.gates.get(other)).any(ended);
            let allowed = self.allowed(by_gate && !by_itself);
            let found = (at, allowed, first.waiter.owner.clone());
            // Where calls take seconds, one after the other comes, and others wait for the next place meanwhile.
            let was_used = |since: &(Timestamp, Millis, Owner)| {
                since.1 == FOUND_WITHIN && gate.holders.iter().any(|one| one.since > since.0)
            };
            if self.since.get(&id).is_none_or(was_used) {
                self.since.insert(id, found);
            }
        }
    }

    /// How long something may last that is mended at once in fair weather, or found by the tick.
    fn allowed(&self, at_once: bool) -> Millis {
        let latency_ms = self.run.plan.faults.latency_ms;
        if at_once && self.run.plan.is_fair() && latency_ms < SLOW_MS {
            FAIR.saturating_add(Millis::new(latency_ms).saturating_mul(CALLS))
        } else if self.run.plan.hardship.dies_after.is_some() {
            AFTER_A_DEATH
        } else {
            FOUND_WITHIN
        }
    }

    /// Looks for those who wait with a place at one of their keys and none at another. What they were offered isn't taken yet.
    fn look_at_holders(&mut self, at: Timestamp) {
        let mut held = BTreeMap::new();
        for (owner, Waits { gate: home, waiter, begun, .. }) in &self.waiting {
            if *begun == Begun::Runs {
                continue;
            }
            let has_place = |gate: &Gate| {
                let is_its = |one: &Holder| one.is_of(owner, waiter.incarnation) && !one.is_called();
                gate.holders.iter().any(|one| is_its(one) && one.until > at)
            };
            let of_its = || waiter.branch.others.iter().chain([home]).filter_map(|id| self.gates.get(id));
            // A claim that has all of them is under way. The tick doesn't look at the others of a paused queue.
            if self.paused.contains(&waiter.branch.queue) || of_its().all(has_place) {
                continue;
            }
            // To give it up takes a write of the record and then one of the gate, and each may be refused and repeated.
            let allowed = self.allowed(*begun == Begun::No).saturating_mul(2).min(FOUND_WITHIN);
            for gate in of_its().filter(|gate| has_place(gate)) {
                held.insert((owner.clone(), gate.id.clone()), (at, allowed));
            }
        }
        for (key, (since, allowed)) in std::mem::take(&mut self.held) {
            if let Some(still) = held.get_mut(&key) {
                *still = (since, allowed);
                continue;
            }
            self.settle_held(&key, since, allowed, at);
        }
        self.held = held;
    }

    fn settle_held(
        &mut self,
        (owner, gate): &(Owner, GateId),
        since: Timestamp,
        allowed: Millis,
        at: Timestamp,
    ) {
        if at.since(self.counts_from(since, allowed)) > allowed {
            let what = format!("{owner} has a place at gate {gate} while it waits for one at another");
            self.found.push(Violation::new(Invariant::Keys, since, what));
        }
    }

    /// While calls fail, nobody can be called.
    fn counts_from(&self, since: Timestamp, allowed: Millis) -> Timestamp {
        if allowed < FOUND_WITHIN { since } else { since.max(self.run.plan.faults_until) }
    }

    /// A place isn't free any more, or nobody waits who could come.
    fn settle(&mut self, gate: &GateId, at: Timestamp) {
        let Some((since, allowed, first)) = self.since.remove(gate) else { return };
        if at.since(self.counts_from(since, allowed)) > allowed {
            let what = format!("{first} and perhaps others wait at gate {gate} while a place is free");
            self.found.push(Violation::new(Invariant::Limits, since, what));
        }
    }

    fn end(&mut self, at: Timestamp) {
        let ids: Vec<GateId> = self.since.keys().cloned().collect();
        for id in ids {
            self.settle(&id, at);
        }
        for (key, (since, allowed)) in std::mem::take(&mut self.held) {
            self.settle_held(&key, since, allowed, at);
        }
    }
}
