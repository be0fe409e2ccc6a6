//! Starts by a key's rate: reserved, given back, and looked at.

use crate::duration::Millis;
use crate::flow::{Pace, Paced};
use crate::time::Timestamp;

use super::Gate;
use super::rate::{self, Reservation};

/// For how long after its instant a reserved start counts at least for a claim that begins, and at most: in between, for as
/// long as two starts take. A claim that comes later reserves another one: otherwise all tasks that waited for a worker
/// would start at once when it comes. With a slow rate, that one is far away, and where a backlog makes each claim late by
/// seconds, nothing would ever start.
const LATE_LEAST: Millis = Millis::from_secs(5);
const LATE_MOST: Millis = Millis::from_secs(20);
/// For how long after its instant an attempt may begin with it. A claim takes milliseconds, but its calls may be slow.
pub const BEGINS_WITHIN: Millis = Millis::from_secs(30);

/// What a task asks of a key before it starts.
#[derive(Clone, Copy, Debug)]
pub struct AskedStart {
    pub pace: Pace,
    /// When the task was scheduled: of two rates for one key, the later one counts.
    pub asked_at: Timestamp,
}

/// Reserves a start: before all that are reserved for later if `first` is set, or else the next one that nobody has.
pub fn reserve_start(gate: &mut Gate, asked: &AskedStart, first: bool, now: Timestamp) -> Reservation {
    if gate.paced_at.is_none_or(|at| at <= asked.asked_at) && gate.pace != Some(asked.pace) {
        let known = gate.pace.zip(gate.rate.as_ref());
        gate.rate = known.map(|(pace, state)| rate::change(state, &pace, &asked.pace, now));
        (gate.pace, gate.paced_at) = (Some(asked.pace), Some(asked.asked_at));
    }
    let (pace, state) = (gate.pace.unwrap_or(asked.pace), gate.rate.as_ref());
    let reserve = if first { rate::reserve_first } else { rate::reserve };
    let (reservation, after) = reserve(state, &pace, now);
    gate.rate = Some(after);
    reservation
}

/// Gives a reserved start back, and returns whether anybody can use it.
pub fn give_start_back(gate: &mut Gate, start: &Reservation, now: Timestamp) -> bool {
    let known = gate.pace.zip(gate.rate.as_ref());
    let after = known.and_then(|(pace, state)| rate::give_back(state, start, &pace, now));
    let is_given = after.is_some();
    gate.rate = after.or(gate.rate.take());
    is_given
}

/// When a reserved start is by now; `None` if it is void.
pub fn confirm_start(gate: &Gate, start: &Reservation) -> Option<Timestamp> {
    rate::confirm(gate.rate.as_ref()?, start, &gate.pace?)
}

/// Forgets all starts of the key. Those that are reserved are void.
pub fn reset_rate(gate: &mut Gate, now: Timestamp) {
    let known = gate.pace.zip(gate.rate.as_ref());
    gate.rate = known.map(|(pace, state)| rate::reset(state, &pace, now));
}

/// When the next start would be that was reserved now; `None` without a rate.
pub fn next_start(gate: &Gate, now: Timestamp) -> Option<Timestamp> {
    gate.pace.map(|pace| rate::reserve(gate.rate.as_ref(), &pace, now).0.start_at)
}

/// The same for one that comes from a line: it goes before those that are reserved for later.
pub fn first_start(gate: &Gate, now: Timestamp) -> Option<Timestamp> {
    gate.pace.map(|pace| rate::reserve_first(gate.rate.as_ref(), &pace, now).0.start_at)
}

/// Whether a task or an execution may start by the rate of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// Yes: it has no rate, or a start that counts.
    Ready,
    /// A start must be reserved, or that of its record be confirmed.
    NeedsStart,
    /// Its reserved start comes later, and is in the record.
    Later(Timestamp),
    /// The start that was reserved for this request, or moved, comes later, and isn't in the record yet.
    PutOff(Reservation),
}

/// Whether it may start now. `own` is the start that was reserved or confirmed for this request.
pub fn pacing(paced: Option<&Paced>, own: Option<Reservation>, now: Timestamp) -> Pacing {
    let Some(paced) = paced else { return Pacing::Ready };
    let is_later = |start: &Reservation| start.start_at > now;
    if own.is_some_and(|start| start.counts(now)) {
        Pacing::Ready
    } else if let Some(start) = paced.start.filter(is_later) {
        Pacing::Later(start.start_at)
    } else {
        own.filter(is_later).map_or(Pacing::NeedsStart, Pacing::PutOff)
    }
}

impl Reservation {
    /// Whether an attempt may begin with it, once it is confirmed.
    pub fn counts(&self, now: Timestamp) -> bool {
        self.start_at <= now && now <= self.start_at.plus(BEGINS_WITHIN)
    }

    /// Whether a claim that began at that instant comes too late for it.
    pub fn is_late(&self, began_at: Timestamp, pace: &Pace) -> bool {
        let two_starts = Millis::new(2 * pace.per.as_u64() / u64::from(pace.limit.get()));
        began_at > self.start_at.plus(two_starts.clamp(LATE_LEAST, LATE_MOST))
    }

    /// Whether it may make others wait. What is given back of a time that has passed changes nothing. That of a ticket may
    /// have been moved.
    pub fn makes_wait(&self, now: Timestamp) -> bool {
        self.ticket.is_some() || self.planned_at > now
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::gate::KEPT_FOR;
    use crate::id::{Fingerprint, GateId, Nonce};

    const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);

    fn after(ms: u64) -> Timestamp {
        START.plus(Millis::new(ms))
    }

    fn gate() -> Gate {
        let id = GateId::from(&Fingerprint::from_bytes([0; 16]));
        Gate::new(id, "smtp".into(), Nonce::from_bytes([0; 8]), START)
    }

    fn asked(limit: u32, asked_at: u64) -> AskedStart {
        let (limit, burst) = (NonZeroU32::new(limit).unwrap(), NonZeroU32::MIN);
        AskedStart { pace: Pace { limit, per: Millis::from_secs(1), burst }, asked_at: after(asked_at) }
    }

    #[test]
    fn of_two_rates_for_one_key_that_of_the_task_that_was_scheduled_later_counts() {
        let mut gate = gate();
        let mut reserve = |asked| reserve_start(&mut gate, &asked, false, START).start_at;
        assert_eq!(reserve(asked(10, 1)), START);
        assert_eq!(reserve(asked(2, 2)), after(100), "by the earlier rate until then");
        assert_eq!(reserve(asked(10, 1)), after(600), "the earlier task comes again, and counts no more");
        assert_eq!(reserve(asked(2, 2)), after(1_100));
    }

    #[test]
    fn a_start_is_given_back_once_and_the_next_one_gets_it() {
        let mut gate = gate();
        let [first, second] = [(), ()].map(|()| reserve_start(&mut gate, &asked(10, 0), false, START));
        assert!(!give_start_back(&mut gate, &first, START), "it makes nobody wait");
        assert!(give_start_back(&mut gate, &second, START));
        assert_eq!(next_start(&gate, START), Some(second.start_at));
        assert_eq!(reserve_start(&mut gate, &asked(10, 0), false, START), second);
    }

    #[test]
    fn a_reset_makes_the_next_start_come_at_once() {
        let mut gate = gate();
        let last = [(); 5].map(|()| reserve_start(&mut gate, &asked(1, 0), false, START))[4];
        assert_eq!(confirm_start(&gate, &last), Some(after(4_000)));
        reset_rate(&mut gate, after(10));
        assert_eq!(confirm_start(&gate, &last), None);
        assert_eq!(next_start(&gate, after(10)), Some(after(10)));
    }

    #[test]
    fn the_record_of_a_key_is_kept_until_its_last_start_has_passed() {
        let mut gate = gate();
        for _ in 0..100_000 {
            reserve_start(&mut gate, &asked(1, 0), false, START);
        }
        let written = gate.finish(None, Nonce::from_bytes([1; 8]), START).unwrap();
        assert!(written.expires_at > after(100_000_000).plus(KEPT_FOR));
    }

    #[test]
    fn a_reserved_start_counts_for_claims_that_begin_within_two_starts_or_some_seconds_and_take_no_more_than_thirty()
     {
        for (per_s, late_ms) in [(1, 5_000), (2, 5_000), (7, 14_000), (10, 20_000), (3_600, 20_000)] {
            let pace = Pace { per: Millis::from_secs(per_s), ..asked(1, 0).pace };
            let reservation = reserve_start(&mut gate(), &AskedStart { pace, asked_at: START }, false, START);
            let is_late = [late_ms, late_ms + 1].map(|ms| reservation.is_late(after(ms), &pace));
            assert_eq!(is_late, [false, true], "one in {per_s} s");
        }
        let reservation = reserve_start(&mut gate(), &asked(1, 0), false, after(100));
        assert_eq!(
            [99, 100, 30_100, 30_101].map(|ms| reservation.counts(after(ms))),
            [false, true, true, false]
        );
    }
}
