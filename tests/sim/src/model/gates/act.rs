//! A change of the gate, as the service does it: it reads the gate, looks at the line if places were made free, writes the
//! gate, tells those who were called, and looks again if places are still free.

use tickover_core::duration::Millis;
use tickover_core::gate::{self, CLOCKS, GRACE, Gate, Hold, Holder, LEFT_BEHIND_AFTER, Taken};

use super::process::{Act, Acts, Claim, Found, Plan, Process, Seen, Slot, Stage};
use super::record::{Message, Status, at};
use super::stored::Names;
use super::{GateBug, GateProtocol, GateState};

pub(super) const LEASE: Millis = Millis::from_secs(60);

/// So long after the end of its lease, one that runs waits in the line again.
const LOST_FOR: i32 = 30;

pub(super) fn whole_seconds(span: Millis) -> i32 {
    i32::try_from(span.as_u64() / 1_000).unwrap_or(i32::MAX)
}

impl GateProtocol {
    /// Goes on with a change of the gate. Returns what the process does next.
    pub(super) fn act(&self, state: &mut GateState, acts: Acts) -> Process {
        match acts.stage.clone() {
            Stage::Reads => self.read(state, acts),
            Stage::Behind(seen) => self.free_left_behind(state, acts, seen),
            Stage::Items(seen) => {
                let of = |(task, work): (u8, &super::Work)| {
                    work.items().map(move |position| (task, position)).collect::<Vec<_>>()
                };
                let items: Vec<_> = (0..).zip(&state.tasks).flat_map(of).collect();
                if items.is_empty() {
                    return self.conclude(acts, seen, Found::default());
                }
                Self::at(acts, Stage::Records(seen, items))
            }
            Stage::Records(seen, items) => self.call(state, acts, &seen, &items),
            Stage::Writes(plan) => {
                state.gate.clone_from(&plan.after);
                if !self.has(GateBug::WritesOver) {
                    state.slots.iter_mut().for_each(|slot: &mut Slot| slot.does.note_write());
                }
                Self::after_write(acts, plan)
            }
            Stage::Sends(plan) => {
                for (task, version) in &plan.found.called {
                    state.send(Message { task: *task, version: *version, in_line: true });
                }
                Self::after_write(acts, Plan { found: Found { called: vec![], ..plan.found }, ..plan })
            }
            Stage::Deletes(plan) => {
                for (task, position) in &plan.found.left_over {
                    state.tasks[usize::from(*task)].items &= !(1 << position);
                }
                Self::after_write(acts, Plan { found: Found { left_over: vec![], ..plan.found }, ..plan })
            }
        }
    }

    fn at(acts: Acts, stage: Stage) -> Process {
        Process::Acts(Acts { stage, ..acts })
    }

    fn read(&self, state: &GateState, mut acts: Acts) -> Process {
        let (seconds, before) = (self.now(state), &state.gate);
        let now = at(seconds);
        let mut gate = self.names.open(before);
        let was_full = before.exists() && gate.free() == 0;
        if !before.exists() && matches!(acts.act, Act::Free { .. } | Act::Withdraw { .. }) {
            return *acts.next;
        }
        gate::clear(&mut gate, now);
        match &acts.act {
            Act::Take(claim) => {
                let until = seconds + whole_seconds(LEASE) + whole_seconds(GRACE);
                let take = self.names.take(claim, until);
                if self.has(GateBug::TakenUnchecked) {
                    gate.pinned = std::num::NonZeroU16::new(9);
                }
                let taken = gate::take(&mut gate, &take, now);
                gate.pinned = None;
                let mut claim = claim.clone();
                *acts.next = match taken {
                    Taken::Place { created } => {
                        claim.created |= created;
                        Process::Claims { claim, since: seconds, until }
                    }
                    Taken::Shared => Process::Reads { claim, full: false },
                    Taken::Full => Process::Reads { claim, full: true },
                };
            }
            Act::Free { task, before } => {
                let owner = self.names.owner(*task);
                gate::free(&mut gate, owner, Names::incarnation(), (*before).into());
                if self.has(GateBug::MarkIgnored) {
                    gate.holders.retain(|one| one.owner != *owner);
                }
            }
            Act::Withdraw { task, before } => {
                let owner = self.names.owner(*task);
                gate::withdraw(&mut gate, owner, Names::incarnation(), (*before).into());
            }
            Act::Patrol if !self.has(GateBug::OffersKept) => gate.withdraw_late_calls(now),
            Act::Look | Act::Patrol => {}
        }
        let after = self.names.store(&gate);
        let offers = match acts.act {
            Act::Take(_) => false,
            // Where places were free before, whoever can come has been called.
            Act::Free { .. } => was_full,
            Act::Withdraw { .. } | Act::Look | Act::Patrol => true,
        };
        let seen = Seen { changed: after != *before, after, offers, stale: false };
        if acts.act == Act::Patrol {
            return Self::at(acts, Stage::Behind(seen));
        }
        self.look_at_line(acts, seen, &gate)
    }

    /// A tick frees the places that were left behind.
    fn free_left_behind(&self, state: &GateState, acts: Acts, mut seen: Seen) -> Process {
        let now = at(self.now(state));
        let mut gate = self.names.open(&seen.after);
        let is_left_behind = |one: &Holder| {
            let Hold::Taken { mark } = one.hold else { return false };
            let task = (0..).zip(&state.tasks).find(|(task, _)| *self.names.owner(*task) == one.owner);
            let is_late = now >= one.since.plus(LEFT_BEHIND_AFTER);
            task.is_none_or(|(_, work)| match work.status {
                Status::Unscheduled | Status::Scheduled | Status::Ended => true,
                Status::Running { .. } => false,
                Status::Pending | Status::InLine(_) => is_late || mark < work.version.into(),
            })
        };
        if !self.has(GateBug::LeftBehindKept) {
            gate.holders.retain(|one| !is_left_behind(one));
        }
        let after = self.names.store(&gate);
        seen.changed |= after != seen.after;
        seen.after = after;
        self.look_at_line(acts, seen, &gate)
    }

    fn look_at_line(&self, acts: Acts, seen: Seen, gate: &Gate) -> Process {
        if seen.offers && (gate.free() > 0 || gate.limit().is_none()) {
            return Self::at(acts, Stage::Items(seen));
        }
        self.conclude(acts, seen, Found::default())
    }

    /// Offers the free places to those of these who wait, by their records.
    fn call(&self, state: &GateState, acts: Acts, seen: &Seen, items: &[(u8, u8)]) -> Process {
        let now = self.now(state);
        let mut gate = self.names.open(&seen.after);
        let (mut candidates, mut left_over, mut lost) = (vec![], vec![], vec![]);
        // Nobody of a branch that was called in vain is looked at.
        for (task, position) in items.iter().filter(|_| !self.names.is_absent(&gate, now)) {
            let (work, candidate) =
                (&state.tasks[usize::from(*task)], self.names.candidate(*task, *position));
            if gate.has(&candidate.waiter) {
                continue;
            }
            if work.position() == Some(*position) {
                let runs = matches!(work.status, Status::Running { .. });
                candidates.extend((!runs).then_some(candidate));
                if work.is_lost(now - LOST_FOR) && !self.has(GateBug::LostNotCalled) {
                    lost.push((*task, work.version));
                }
            } else if work.version >= *position || self.has(GateBug::DeletesEarly) {
                left_over.push((*task, *position));
            }
        }
        let called = gate::offer(&mut gate, &candidates, at(now));
        let called = called.iter().map(|one| self.names.called(one)).collect::<Vec<_>>();
        let after = self.names.store(&gate);
        let seen = Seen { changed: seen.changed || !called.is_empty(), after, ..seen.clone() };
        self.conclude(acts, seen, Found { called, left_over, lost })
    }

    /// What was decided is written, unless nothing has changed.
    fn conclude(&self, acts: Acts, seen: Seen, found: Found) -> Process {
        let Seen { after, changed, offers, stale } = seen;
        if changed && stale && !self.has(GateBug::WritesOver) {
            return Self::at(acts, Stage::Reads);
        }
        let has_rest = offers && self.names.open(&after).free() > 0;
        let looks = match acts.act {
            Act::Take(_) => false,
            Act::Look => !found.called.is_empty(),
            Act::Free { .. } | Act::Withdraw { .. } | Act::Patrol => !self.has(GateBug::FreesWithoutLook),
        };
        let plan = Plan { after, found, looks_again: changed && looks && has_rest };
        if changed { Self::at(acts, Stage::Writes(plan)) } else { Self::after_write(acts, plan) }
    }

    /// The next of what comes after the write that there is to do.
    fn after_write(acts: Acts, plan: Plan) -> Process {
        let plan = Plan { after: super::Stored::default(), ..plan };
        if !plan.found.called.is_empty() {
            return Self::at(acts, Stage::Sends(plan));
        }
        if !plan.found.left_over.is_empty() {
            return Self::at(acts, Stage::Deletes(plan));
        }
        // Its look takes the place of another one. If there are more of them, the next one finds them.
        if let Some((task, version)) = plan.found.lost.first() {
            return Process::PutsItem(Claim::coming_again(*task, *version));
        }
        if plan.looks_again { Process::acts(Act::Look, *acts.next) } else { *acts.next }
    }

    /// How long a lease is that is granted now and ends with its place.
    pub(super) fn lease_until(now: i32, until: i32) -> i32 {
        (now + whole_seconds(LEASE)).min(until - whole_seconds(CLOCKS))
    }
}
