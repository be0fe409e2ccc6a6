//! Those who come to the gate: clients that schedule, claims, and attempts that end.

use tickover_core::duration::Millis;
use tickover_core::gate::{CLOCKS, Places};

use super::act::{LEASE, whole_seconds};
use super::process::{Act, Claim, Process};
use super::record::{Message, Status, Work, at};
use super::{GateBug, GateProtocol, GateState};

impl GateState {
    fn work(&mut self, task: u8) -> &mut Work {
        &mut self.tasks[usize::from(task)]
    }
}

impl GateProtocol {
    pub(super) fn receive(&self, state: &mut GateState, message: Message) {
        let Message { task, version, in_line } = message;
        let (now, work) = (self.now(state), state.work(task).clone());
        if work.version == version && !work.is_ready(now) {
            return;
        }
        let claim = Claim { task, version, in_line, sure: false, created: false };
        state.begin(Process::acts(Act::Take(claim), Process::Idle), Some(message));
    }

    /// Goes on with a process.
    pub(super) fn go(&self, state: &mut GateState, slot: usize) {
        let does = std::mem::take(&mut state.slots[slot].does);
        let next = match does {
            Process::Idle => Process::Idle,
            Process::Schedules(task) => self.schedule(state, task),
            Process::Acts(acts) => self.act(state, acts),
            Process::Reads { claim, full } => self.reread(state, claim, full),
            Process::PutsItem(claim) => {
                state.work(claim.task).items |= 1 << (claim.version + 1);
                if self.has(GateBug::ItemAfterRecord) { self.look() } else { Process::PutsRecord(claim) }
            }
            Process::PutsRecord(claim) => self.put_record(state, &claim),
            Process::Claims { claim, since, until } => self.claim(state, &claim, since, until),
            Process::Leaves { task, position, next } => {
                state.work(task).items &= !(1 << position);
                *next
            }
        };
        let slot = &mut state.slots[slot];
        if next == Process::Idle {
            slot.message = None;
        }
        slot.does = next;
    }

    /// A task that needs a place where none is free begins in the line.
    fn schedule(&self, state: &mut GateState, task: u8) -> Process {
        let now = self.now(state);
        let gate = self.names.open(&state.gate);
        if state.gate.exists() && gate.is_full(self.plan.limit, at(now)) {
            return self.come_to_line(Claim::scheduling(task));
        }
        state.work(task).change(Status::Pending);
        state.send(Message { task, version: 1, in_line: false });
        Process::Idle
    }

    fn come_to_line(&self, claim: Claim) -> Process {
        if self.has(GateBug::ItemAfterRecord) { Process::PutsRecord(claim) } else { Process::PutsItem(claim) }
    }

    fn look(&self) -> Process {
        if self.has(GateBug::ComesWithoutLook) {
            Process::Idle
        } else {
            Process::acts(Act::Look, Process::Idle)
        }
    }

    fn put_record(&self, state: &mut GateState, claim: &Claim) -> Process {
        let now = self.now(state);
        let work = state.work(claim.task);
        let waits = matches!(work.status, Status::Scheduled | Status::Pending) || work.is_lost(now);
        if work.version != claim.version || !waits {
            return Self::decide_again(work, claim, now);
        }
        let came_from = work.position();
        work.change(Status::InLine(claim.version + 1));
        let next =
            if self.has(GateBug::ItemAfterRecord) { Process::PutsItem(claim.clone()) } else { self.look() };
        leaving(claim.task, came_from, next)
    }

    /// It has found no place, or another attempt that has one, and reads the record.
    fn reread(&self, state: &mut GateState, claim: Claim, full: bool) -> Process {
        let now = self.now(state);
        let work = state.work(claim.task);
        if work.version != claim.version {
            return Self::decide_again(work, &claim, now);
        }
        if !full {
            return Process::acts(Act::Take(Claim { sure: true, ..claim }), Process::Idle);
        }
        match work.status {
            Status::Pending => self.come_to_line(claim),
            Status::Running { position: Some(_), .. } if work.is_lost(now) => self.come_to_line(claim),
            // Whoever places one in the line sends a message; that of a lost attempt comes again.
            Status::InLine(_)
            | Status::Running { .. }
            | Status::Unscheduled
            | Status::Scheduled
            | Status::Ended => Process::Idle,
        }
    }

    /// The record has changed since the claim was decided.
    fn decide_again(work: &Work, claim: &Claim, now: i32) -> Process {
        let Claim { task, .. } = *claim;
        match work.status {
            Status::Running { until, .. } if until > now => Process::Idle,
            Status::Ended => Process::acts(Act::Withdraw { task, before: work.version }, Process::Idle),
            Status::Unscheduled | Status::Scheduled => Process::Idle,
            Status::Pending | Status::InLine(_) | Status::Running { .. } => {
                let (version, in_line) = (work.version, work.position().is_some());
                let claim = Claim { version, in_line, sure: false, ..claim.clone() };
                Process::acts(Act::Take(claim), Process::Idle)
            }
        }
    }

    fn claim(&self, state: &mut GateState, claim: &Claim, since: i32, until: i32) -> Process {
        let now = self.now(state);
        let work = state.work(claim.task);
        let is_it = work.version == claim.version || self.has(GateBug::ClaimOfAnyVersion);
        if !work.is_ready(now) || !is_it {
            return Self::decide_again(work, claim, now);
        }
        let version = u64::from(work.version);
        let places = Places { since: at(since), until: at(until), version };
        let half = whole_seconds(Millis::new(LEASE.as_u64() / 2));
        if !places.count(version, at(now)) || now + half + whole_seconds(CLOCKS) > until {
            return Self::decide_again(work, claim, now);
        }
        let (until, position) = (Self::lease_until(now, until), work.position());
        work.change(Status::Running { until, position, lost: false });
        Process::Idle
    }

    /// An attempt ends, and leaves the line; if it is to be tried again, the task is there again at once. Then it frees its
    /// place.
    pub(super) fn end(&self, state: &mut GateState, task: u8, retries: bool) {
        let work = state.work(task);
        let Status::Running { position, .. } = work.status else { return };
        if let Some(position) =
            position.filter(|at| self.has(GateBug::ItemDeletedFirst) && work.has_item(*at))
        {
            work.items &= !(1 << position);
            return;
        }
        if retries {
            work.retries -= 1;
            work.change(Status::Pending);
            let version = work.version;
            state.send(Message { task, version, in_line: false });
        } else {
            work.change(Status::Ended);
        }
        let before = state.work(task).version;
        let frees = Process::acts(Act::Free { task, before }, Process::Idle);
        state.begin(leaving(task, position, frees), None);
    }

    /// One that waits is cancelled, leaves the line and takes back what it was offered.
    pub(super) fn cancel(state: &mut GateState, task: u8) {
        state.faults.cancelled += 1;
        let work = state.work(task);
        let position = work.position();
        work.change(Status::Ended);
        let before = work.version;
        let withdraws = Process::acts(Act::Withdraw { task, before }, Process::Idle);
        state.begin(leaving(task, position, withdraws), None);
    }
}

/// The record has left the line: its item is deleted, if it had one, before what comes next.
fn leaving(task: u8, position: Option<u8>, next: Process) -> Process {
    match position {
        Some(position) => Process::Leaves { task, position, next: Box::new(next) },
        None => next,
    }
}
