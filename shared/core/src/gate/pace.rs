//! Starts by a key's rate: reserved, given back, and looked at.

use crate::duration::Millis;
use crate::flow::{Pace, Paced};
use crate::time::Timestamp;

use super::rate::{self, Reservation};
use super::{Gate, RateState};

/// For how long after its instant a reserved start counts for a claim that begins. A claim that comes later reserves
/// another one: otherwise all tasks that waited for a worker would start at once when it comes.
pub const LATE_MAX: Millis = Millis::from_secs(5);
/// For how long after its instant an attempt may begin with it. A claim takes milliseconds, but its calls may be slow.
pub const BEGINS_WITHIN: Millis = Millis::from_secs(30);

/// What a task asks of a gate before it starts.
#[derive(Clone, Copy, Debug)]
pub struct AskedStart {
    pub pace: Pace,
    /// When the task was scheduled: of two rates for one key, the later one counts.
    pub asked_at: Timestamp,
}

/// Reserves the next start that isn't before `from`.
pub fn reserve_start(gate: &mut Gate, asked: &AskedStart, from: Timestamp) -> Reservation {
    if gate.paced_at.is_none_or(|at| at <= asked.asked_at) && gate.pace != Some(asked.pace) {
        (gate.pace, gate.paced_at) = (Some(asked.pace), Some(asked.asked_at));
    }
    let reservation = rate::reserve(gate.rate, &gate.pace.unwrap_or(asked.pace), from);
    gate.rate = Some(reservation.after);
    reservation
}

/// Gives a reserved start back, and returns whether that was possible: another one may have been reserved since.
pub fn give_start_back(gate: &mut Gate, reservation: RateState) -> bool {
    let before = gate.pace.and_then(|pace| rate::give_back(gate.rate, reservation, &pace));
    gate.rate = before.or(gate.rate);
    before.is_some()
}

/// When the next start would be that was reserved now; `None` without a rate.
pub fn next_start(gate: &Gate, now: Timestamp) -> Option<Timestamp> {
    gate.pace.map(|pace| rate::reserve(gate.rate, &pace, now).start_at)
}

/// Whether a task or an execution may start by the rate of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// Yes: it has no rate, or a reserved start that counts.
    Ready,
    /// A start must be reserved first.
    NeedsStart,
    /// Its reserved start comes later, and is in the record.
    Later(Timestamp),
    /// The start that was reserved for this request comes later, and isn't in the record yet.
    PutOff(Reservation),
}

/// Whether it may start now. `own` is the start that was reserved for this request, which began at `began_at`.
pub fn pacing(
    paced: Option<&Paced>,
    own: Option<Reservation>,
    began_at: Timestamp,
    now: Timestamp,
) -> Pacing {
    let Some(paced) = paced else { return Pacing::Ready };
    let is_later = |start: &Reservation| start.start_at > now;
    let has_own = own.is_some_and(|start| start.counts(start.start_at, now));
    if has_own || paced.start.is_some_and(|start| start.counts(began_at, now)) {
        Pacing::Ready
    } else if let Some(start) = paced.start.filter(is_later) {
        Pacing::Later(start.start_at)
    } else {
        own.filter(is_later).map_or(Pacing::NeedsStart, Pacing::PutOff)
    }
}

impl Reservation {
    /// Whether an attempt may begin with it, by a claim that began at that instant.
    pub fn counts(&self, began_at: Timestamp, now: Timestamp) -> bool {
        let is_late = began_at > self.start_at.plus(LATE_MAX) || now > self.start_at.plus(BEGINS_WITHIN);
        self.start_at <= now && !is_late
    }

    /// Whether it makes others wait. What is given back of a time that has passed changes nothing.
    pub fn makes_wait(&self, now: Timestamp) -> bool {
        self.after.next_at > now
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
        let mut reserve = |asked| reserve_start(&mut gate, &asked, START).start_at;
        assert_eq!(reserve(asked(10, 1)), START);
        assert_eq!(reserve(asked(2, 2)), after(100), "by the earlier rate until then");
        assert_eq!(reserve(asked(10, 1)), after(600), "the earlier task comes again, and counts no more");
        assert_eq!(reserve(asked(2, 2)), after(1_100));
    }

    #[test]
    fn a_start_that_was_reserved_last_is_given_back_and_the_next_one_gets_it() {
        let mut gate = gate();
        let [first, second] = [(), ()].map(|()| reserve_start(&mut gate, &asked(10, 0), START));
        assert!(!give_start_back(&mut gate, first.after));
        assert!(give_start_back(&mut gate, second.after));
        assert!(!give_start_back(&mut gate, second.after), "only once");
        assert_eq!(next_start(&gate, START), Some(second.start_at));
        assert_eq!(reserve_start(&mut gate, &asked(10, 0), START), second);
    }

    #[test]
    fn the_record_of_a_key_is_kept_until_its_last_start_has_passed() {
        let mut gate = gate();
        for _ in 0..100_000 {
            reserve_start(&mut gate, &asked(1, 0), START);
        }
        let written = gate.finish(None, Nonce::from_bytes([1; 8]), START).unwrap();
        assert!(written.expires_at > after(100_000_000).plus(KEPT_FOR));
    }

    #[test]
    fn a_reserved_start_counts_for_claims_that_begin_within_five_seconds_and_take_no_more_than_thirty() {
        let reservation = reserve_start(&mut gate(), &asked(1, 0), after(100));
        let counts = |ms| reservation.counts(after(ms), after(ms));
        assert_eq!([99, 100, 5_100, 5_101].map(counts), [false, true, true, false]);
        let counts = |ms| reservation.counts(after(0), after(ms));
        assert_eq!([99, 100, 30_100, 30_101].map(counts), [false, true, true, false]);
    }
}
