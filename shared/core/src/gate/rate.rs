//! How starts are spread by a rate: a token bucket (GCRA, the generic cell rate algorithm) whose starts have tickets.
//!
//! Starts are planned at even distances; a start may come before its plan by the time that `burst - 1` starts take. Who
//! reserves one in advance gets the next ticket, and the key knows when each ticket's turn is. So who comes later and can't
//! wait that long (a retry, a claim after its instant) starts behind the first ticket that isn't due, which may be about to
//! start, and before all others: each of these is one start later. They learn that when they come. A ticket that is given
//! back goes to the next who asks.
//!
//! Milliseconds are too coarse for it: at a million starts a second each takes a thousandth of one. So plans are in units
//! of one `limit`th of a millisecond: each start adds exactly `per` such units, and no rounding adds up.

use serde::{Deserialize, Serialize};

use crate::duration::Millis;
use crate::flow::Pace;
use crate::time::Timestamp;

/// Most runs of tickets that were given back and are remembered. The record would grow with more of them.
const RUNS_MAX: usize = 100;
/// Most starts that were given back otherwise.
const SPARE_MAX: usize = 50;

/// A start that was reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Fields", into = "Fields")]
pub struct Reservation {
    /// From when on the task may start, as far as it knows.
    pub start_at: Timestamp,
    /// When it is planned. After that it makes nobody wait.
    pub planned_at: Timestamp,
    /// Since when the key counts these tickets. When it begins anew, earlier reservations are void.
    pub epoch: Timestamp,
    /// Its ticket; absent if no start is put before it any more.
    pub ticket: Option<u64>,
}

/// A reservation as a task's record has it: an array, because its record is small. The ticket is counted from 1.
type Fields = (Timestamp, Timestamp, Timestamp, u64);

impl From<Fields> for Reservation {
    fn from((start_at, planned_at, epoch, ticket): Fields) -> Self {
        Self { start_at, planned_at, epoch, ticket: ticket.checked_sub(1) }
    }
}

impl From<Reservation> for Fields {
    fn from(Reservation { start_at, planned_at, epoch, ticket }: Reservation) -> Self {
        (start_at, planned_at, epoch, ticket.map_or(0, |ticket| ticket + 1))
    }
}

/// How far a key's rate is used up, and by whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateState {
    /// Since when these tickets are counted.
    #[serde(rename = "e")]
    pub epoch: Timestamp,
    /// The first ticket that wasn't due when this was written.
    #[serde(rename = "b", default)]
    pub base: u64,
    /// When its start is planned.
    #[serde(rename = "a")]
    pub base_at: Timestamp,
    /// The part of a millisecond by which that is later, in units of one `limit`th.
    #[serde(rename = "p", default)]
    pub part: u32,
    /// How many starts without tickets are planned between that ticket and the next.
    #[serde(rename = "g", default)]
    pub between: u64,
    /// The ticket that is given next.
    #[serde(rename = "n", default)]
    pub next: u64,
    /// Tickets that were given back, as runs: the first, and the one after the last.
    #[serde(rename = "f", default, skip_serializing_if = "Vec::is_empty")]
    pub free: Vec<(u64, u64)>,
    /// The first of those that were given back and are not remembered, and their number.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub forgotten: Option<(u64, u64)>,
    /// Tickets that were given back and whose start was given to one who came before others.
    #[serde(rename = "s", default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<(u64, u64)>,
    /// The plans of other starts that were given back.
    #[serde(rename = "x", default, skip_serializing_if = "Vec::is_empty")]
    pub spare: Vec<Timestamp>,
}

impl RateState {
    fn new(epoch: Timestamp) -> Self {
        Self {
            epoch,
            base: 0,
            base_at: epoch,
            part: 0,
            between: 0,
            next: 0,
            free: vec![],
            forgotten: None,
            skipped: vec![],
            spare: vec![],
        }
    }
}

/// The state with its rate, and everything in its units.
struct Plan {
    state: RateState,
    /// When the start of the first ticket that isn't due is planned.
    base: u128,
    now: u128,
    limit: u128,
    step: u128,
    slack: u128,
}

/// Reserves the next start that nobody has, by a ticket.
pub fn reserve(state: Option<&RateState>, rate: &Pace, now: Timestamp) -> (Reservation, RateState) {
    let mut plan = Plan::of(state, rate, now);
    let reservation = plan.next_start();
    (reservation, plan.written())
}

/// Reserves a start behind the first ticket that isn't due and before all others: each of these is one start later.
pub fn reserve_first(state: Option<&RateState>, rate: &Pace, now: Timestamp) -> (Reservation, RateState) {
    let mut plan = Plan::of(state, rate, now);
    let reservation = plan.first_start();
    (reservation, plan.written())
}

/// Gives a start back, unless its time has passed. Who asks next gets it.
pub fn give_back(state: &RateState, start: &Reservation, rate: &Pace, now: Timestamp) -> Option<RateState> {
    let mut plan = Plan::of(Some(state), rate, now);
    let is_to_come = plan.has(start.ticket) || start.planned_at > now;
    (state.epoch == start.epoch && is_to_come).then(|| {
        plan.give_back(start);
        plan.written()
    })
}

/// When a reserved start is by now; `None` if it is void.
pub fn confirm(state: &RateState, start: &Reservation, rate: &Pace) -> Option<Timestamp> {
    if state.epoch != start.epoch {
        return None;
    }
    let plan = Plan::read(state.clone(), rate, Timestamp::EPOCH);
    let moved = start.ticket.filter(|ticket| *ticket >= state.base).map(|ticket| plan.start_of(ticket));
    Some(moved.map_or(start.start_at, |moved| moved.max(start.start_at)))
}

/// The state for another rate. All reservations are void: who has one reserves another when it comes.
pub fn change(state: &RateState, from: &Pace, to: &Pace, now: Timestamp) -> RateState {
    let plan = Plan::of(Some(state), from, now);
    let limit = u128::from(to.limit.get());
    Plan { base: (plan.base * limit).div_ceil(plan.limit), limit, ..plan }.anew(now)
}

/// The state of a rate of which nothing is used. All reservations are void.
pub fn reset(state: &RateState, rate: &Pace, now: Timestamp) -> RateState {
    let plan = Plan::of(Some(state), rate, now);
    Plan { base: plan.now, ..plan }.anew(now)
}

/// How long the state matters: from then on, a key without it allows the same starts.
pub fn expires_at(state: &RateState, rate: &Pace) -> Timestamp {
    let plan = Plan::read(state.clone(), rate, Timestamp::EPOCH);
    instant(plan.planned(state.next) / plan.limit).plus(Millis::new(1))
}

impl Plan {
    fn read(state: RateState, rate: &Pace, now: Timestamp) -> Self {
        let (limit, step) = (u128::from(rate.limit.get()), u128::from(rate.per.as_u64()));
        let base = units(state.base_at, limit) + u128::from(state.part);
        let slack = step * u128::from(rate.burst.get() - 1);
        Self { base, now: units(now, limit), limit, step, slack, state }
    }

    /// The state as it is now: without what has passed.
    fn of(state: Option<&RateState>, rate: &Pace, now: Timestamp) -> Self {
        let mut plan = Self::read(state.cloned().unwrap_or_else(|| RateState::new(now)), rate, now);
        plan.pass();
        plan
    }

    /// Moves the base behind all tickets that are due.
    fn pass(&mut self) {
        let until = self.now + self.slack;
        let mut due = if until < self.base { 0 } else { (until - self.base) / self.step + 1 };
        let (mut base, mut planned) = (self.state.base, self.base);
        let mut spare = vec![];
        if due > 0 && self.state.between > 0 {
            let first = 1 + u128::from(std::mem::take(&mut self.state.between));
            if contains(&self.state.free, base) {
                spare.push(planned);
            }
            base = self.state.next.min(base + 1);
            planned += first * self.step;
            due = due.saturating_sub(first);
        }
        while due > 0 && base < self.state.next {
            let run = self.state.skipped.iter().find(|(from, end)| (*from..*end).contains(&base));
            if let Some((_, end)) = run {
                base = *end;
                continue;
            }
            let is_free = contains(&self.state.free, base);
            let bound = |runs: &[(u64, u64)]| {
                runs.iter().flat_map(|(from, end)| [*from, *end]).filter(|at| *at > base).min()
            };
            let bounds = [bound(&self.state.skipped), bound(&self.state.free), Some(self.state.next)];
            let end = bounds.into_iter().flatten().min().unwrap_or(self.state.next);
            let count = due.min(u128::from(end - base));
            if is_free {
                // Only those matter that are planned for later.
                spare.extend((0..count).rev().take(SPARE_MAX).map(|nth| planned + nth * self.step));
            }
            due -= count;
            planned += count * self.step;
            base += u64::try_from(count).unwrap_or(u64::MAX);
        }
        while let Some((_, end)) = self.state.skipped.iter().find(|(from, end)| (*from..*end).contains(&base))
        {
            base = *end;
        }
        if base == self.state.next {
            planned = planned.max(self.now);
        }
        (self.state.base, self.base) = (base, planned);
        for runs in [&mut self.state.free, &mut self.state.skipped] {
            runs.retain(|(_, end)| *end > base);
            runs.first_mut().into_iter().for_each(|first| first.0 = first.0.max(base));
        }
        self.state.forgotten = self.state.forgotten.filter(|(from, _)| *from >= base);
        let spare: Vec<_> = spare.into_iter().map(|planned| self.instant(planned)).collect();
        self.state.spare.extend(spare);
        self.keep_spare();
    }

    fn keep_spare(&mut self) {
        let (now, limit) = (self.now, self.limit);
        self.state.spare.retain(|planned| units(*planned, limit) > now);
        self.state.spare.sort_unstable();
        self.state.spare.truncate(SPARE_MAX);
    }

    /// When the start of a ticket is planned that isn't due.
    fn planned(&self, ticket: u64) -> u128 {
        let skipped: u64 =
            self.state.skipped.iter().map(|(from, end)| ticket.clamp(*from, *end) - from).sum();
        let between = if ticket > self.state.base { self.state.between } else { 0 };
        self.base + u128::from(ticket - self.state.base - skipped + between) * self.step
    }

    fn start_of(&self, ticket: u64) -> Timestamp {
        self.start(self.planned(ticket))
    }

    /// From when on a start with this plan may be: in whole milliseconds, rounded up, so never early.
    fn start(&self, planned: u128) -> Timestamp {
        self.instant(planned.saturating_sub(self.slack).max(self.now))
    }

    fn instant(&self, units: u128) -> Timestamp {
        instant(units.div_ceil(self.limit))
    }

    fn reservation(&self, planned: u128, ticket: Option<u64>) -> Reservation {
        let (start_at, planned_at) = (self.start(planned), self.instant(planned));
        Reservation { start_at, planned_at, epoch: self.state.epoch, ticket }
    }

    fn next_start(&mut self) -> Reservation {
        let free = self.state.free.first().map(|(ticket, _)| *ticket);
        let before = free.unwrap_or(self.state.next);
        if let Some(spare) = self.take_spare(self.planned(before)) {
            return spare;
        }
        let reservation = self.reservation(self.planned(before), Some(before));
        match free {
            Some(ticket) => remove(&mut self.state.free, ticket),
            None => self.state.next += 1,
        }
        reservation
    }

    fn first_start(&mut self) -> Reservation {
        let planned = self.base + u128::from(self.state.between + 1) * self.step;
        if let Some(spare) = self.take_spare(planned) {
            return spare;
        }
        let base = self.state.base;
        if base == self.state.next || contains(&self.state.free, base) {
            return self.next_start();
        }
        let reservation = self.reservation(planned, None);
        self.state.between += 1;
        if let Some((ticket, _)) = self.state.free.first().copied() {
            remove(&mut self.state.free, ticket);
            add(&mut self.state.skipped, ticket);
        }
        reservation
    }

    /// The first of the spare starts, if it is planned no later than that.
    fn take_spare(&mut self, no_later_than: u128) -> Option<Reservation> {
        let planned = units(*self.state.spare.first()?, self.limit);
        (planned <= no_later_than).then(|| {
            self.state.spare.remove(0);
            self.reservation(planned, None)
        })
    }

    /// Whether this is a ticket that isn't due.
    fn has(&self, ticket: Option<u64>) -> bool {
        ticket.is_some_and(|ticket| (self.state.base..self.state.next).contains(&ticket))
    }

    fn give_back(&mut self, start: &Reservation) {
        if let Some(ticket) = start.ticket.filter(|_| self.has(start.ticket)) {
            add(&mut self.state.free, ticket);
            self.forget();
            self.shrink();
        } else {
            self.state.spare.push(start.planned_at);
            self.keep_spare();
        }
    }

    /// Forgets the last run if there are too many: it is the one that would be used last.
    fn forget(&mut self) {
        if self.state.free.len() > RUNS_MAX
            && let Some((from, end)) = self.state.free.pop()
        {
            let (first, count) = self.state.forgotten.unwrap_or((from, 0));
            self.state.forgotten = Some((first.min(from), count + end - from));
        }
    }

    /// Takes back the last tickets if nobody has them any more, or all.
    fn shrink(&mut self) {
        let count = |runs: &[(u64, u64)]| runs.iter().map(|(from, end)| end - from).sum::<u64>();
        let RateState { base, next, free, skipped, forgotten, .. } = &self.state;
        let gone = count(free) + count(skipped) + forgotten.map_or(0, |(_, count)| count);
        if gone >= next - base {
            (self.state.next, self.state.forgotten) = (*base, None);
            self.state.free.clear();
            self.state.skipped.clear();
        } else if let Some((from, _)) = free.last().copied().filter(|(_, end)| end == next) {
            self.state.next = from;
            self.state.free.pop();
        }
    }

    fn written(self) -> RateState {
        let part = u32::try_from(self.base % self.limit).unwrap_or(0);
        RateState { base_at: instant(self.base / self.limit), part, ..self.state }
    }

    /// The same plan, with new tickets.
    fn anew(self, now: Timestamp) -> RateState {
        let epoch = now.max(self.state.epoch.plus(Millis::new(1)));
        Self { state: RateState::new(epoch), ..self }.written()
    }
}

fn contains(runs: &[(u64, u64)], ticket: u64) -> bool {
    runs.iter().any(|(from, end)| (*from..*end).contains(&ticket))
}

fn add(runs: &mut Vec<(u64, u64)>, ticket: u64) {
    if contains(runs, ticket) {
        return;
    }
    let at = runs.partition_point(|(from, _)| *from < ticket);
    runs.insert(at, (ticket, ticket + 1));
    runs.dedup_by(|after, before| {
        let joins = before.1 == after.0;
        if joins {
            before.1 = after.1;
        }
        joins
    });
}

fn remove(runs: &mut Vec<(u64, u64)>, ticket: u64) {
    let Some(at) = runs.iter().position(|(from, end)| (*from..*end).contains(&ticket)) else { return };
    let (from, end) = runs.remove(at);
    let parts = [(from, ticket), (ticket + 1, end)];
    runs.splice(at..at, parts.into_iter().filter(|(from, end)| from < end));
}

/// An instant in units of one `limit`th of a millisecond.
fn units(at: Timestamp, limit: u128) -> u128 {
    u128::from(at.as_millis().max(0).unsigned_abs()) * limit
}

fn instant(millis: u128) -> Timestamp {
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
