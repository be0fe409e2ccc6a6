//! How starts are spread by a rate: a token bucket, kept as one instant (GCRA, the generic cell rate algorithm).
//!
//! `next_at` is the instant of the next start if all starts were evenly spread. A start may come before it by the time
//! that `burst - 1` starts take. Milliseconds are too coarse for it: at a million starts a second each takes a
//! thousandth of one. So it has a part of a millisecond besides, in units of one `limit`th: each start adds exactly
//! `per` such units, and no rounding adds up.

use serde::{Deserialize, Serialize};

use crate::duration::Millis;
use crate::flow::Pace;
use crate::gate::RateState;
use crate::time::Timestamp;

/// What a start has taken of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Fields", into = "Fields")]
pub struct Reservation {
    /// From when on the task may start.
    pub start_at: Timestamp,
    /// How far the rate is used up with it. As long as the gate has this, the reservation is the last one.
    pub after: RateState,
}

/// A reservation as a task's record has it: an array, because its record is small.
type Fields = (Timestamp, Timestamp, u32, u32);

impl From<Fields> for Reservation {
    fn from((start_at, next_at, part, of): Fields) -> Self {
        Self { start_at, after: RateState { next_at, part, of } }
    }
}

impl From<Reservation> for Fields {
    fn from(Reservation { start_at, after: RateState { next_at, part, of } }: Reservation) -> Self {
        (start_at, next_at, part, of)
    }
}

/// Takes the next start that isn't before `from`.
///
/// A reservation for a later `from` moves all later ones behind it: the rule keeps one instant, and no gaps.
pub fn reserve(state: Option<RateState>, rate: &Pace, from: Timestamp) -> Reservation {
    let limit = u128::from(rate.limit.get());
    let step = u128::from(rate.per.as_u64());
    let slack = step * u128::from(rate.burst.get() - 1);
    let earliest = units(from, 0, limit);
    let planned = state.map_or(earliest, |state| read(state, limit)).max(earliest);
    let start = planned.saturating_sub(slack).max(earliest);
    // Whole milliseconds, rounded up: never early.
    let start_at = instant(start.div_ceil(limit));
    Reservation { start_at, after: written(planned + step, rate.limit.get()) }
}

/// Gives a start back, if no other one has been taken since. `None` if it isn't the last one: later starts keep theirs.
pub fn give_back(state: Option<RateState>, reservation: RateState, rate: &Pace) -> Option<RateState> {
    let limit = u128::from(rate.limit.get());
    let is_last = state == Some(reservation) && reservation.of == rate.limit.get();
    is_last.then(|| {
        let before = read(reservation, limit).saturating_sub(u128::from(rate.per.as_u64()));
        written(before, rate.limit.get())
    })
}

/// How long the state matters: from then on, a gate without it allows the same starts.
pub fn expires_at(state: RateState) -> Timestamp {
    state.next_at.plus(Millis::new(1))
}

/// An instant in units of one `limit`th of a millisecond.
fn units(at: Timestamp, part: u32, limit: u128) -> u128 {
    u128::from(at.as_millis().max(0).unsigned_abs()) * limit + u128::from(part)
}

/// The state's instant in the units of this limit. If it was written with another limit it is rounded up, once.
fn read(state: RateState, limit: u128) -> u128 {
    let of = u128::from(state.of.max(1));
    let part = (u128::from(state.part) * limit).div_ceil(of);
    units(state.next_at, 0, limit) + part
}

fn written(units: u128, limit: u32) -> RateState {
    let part = u32::try_from(units % u128::from(limit)).unwrap_or(0);
    RateState { next_at: instant(units / u128::from(limit)), part, of: limit }
}

fn instant(millis: u128) -> Timestamp {
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    const START_MS: i64 = 1_700_000_000_000;

    fn rate(limit: u32, per_ms: u64, burst: u32) -> Pace {
        let whole = |number| NonZeroU32::new(number).unwrap();
        Pace { limit: whole(limit), per: Millis::new(per_ms), burst: whole(burst) }
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(START_MS + ms)
    }

    /// Reserves so many starts at once, and returns after how many milliseconds each is.
    fn starts(rate: &Pace, count: usize) -> Vec<i64> {
        let mut state = None;
        let mut next = || {
            let Reservation { start_at, after } = reserve(state, rate, at(0));
            state = Some(after);
            start_at.as_millis() - START_MS
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn a_burst_starts_at_once_and_the_rest_evenly_spread() {
        assert_eq!(starts(&rate(100, 60_000, 3), 6), [0, 0, 0, 600, 1_200, 1_800]);
        assert_eq!(starts(&rate(1, 1_000, 1), 3), [0, 1_000, 2_000]);
    }

    #[test]
    fn every_rate_from_one_a_day_to_a_million_a_second_is_exact_over_a_long_time() {
        for (limit, per_ms) in [
            (1, 86_400_000),
            (7, 86_400_000),
            (999_983, 86_400_000),
            (3, 1_000),
            (997, 1_000),
            (999_983, 1_000),
            (1_000_000, 1_000),
        ] {
            let rate = rate(limit, per_ms, 1);
            let last = starts(&rate, 100_001)[100_000];
            let ideal = (100_000 * i128::from(per_ms)).div_euclid(i128::from(limit));
            let late = i128::from(last) - ideal;
            assert!((0..=1).contains(&late), "{limit} in {per_ms} ms: {late} ms late");
        }
    }

    #[test]
    fn after_a_quiet_time_a_whole_burst_is_free_again_and_never_more() {
        let rate = rate(10, 1_000, 4);
        let mut state = None;
        for round in 0..3 {
            let now = at(round * 60_000);
            let got: Vec<_> = (0..6)
                .map(|_| {
                    let reservation = reserve(state, &rate, now);
                    state = Some(reservation.after);
                    reservation.start_at.since(now).as_u64()
                })
                .collect();
            assert_eq!(got, [0, 0, 0, 0, 100, 200]);
        }
    }

    #[test]
    fn the_last_start_is_given_back_and_an_earlier_one_is_not() {
        let rate = rate(997, 1_000, 1);
        let first = reserve(None, &rate, at(0)).after;
        let second = reserve(Some(first), &rate, at(0)).after;
        assert_eq!(give_back(Some(second), first, &rate), None);
        let back = give_back(Some(second), second, &rate).unwrap();
        assert_eq!(back, first);
        assert_eq!(reserve(Some(back), &rate, at(0)).after, second);
        assert_eq!(give_back(None, second, &rate), None);
    }

    #[test]
    fn a_changed_limit_counts_from_the_next_start_on() {
        let slow = rate(1, 60_000, 1);
        let state = reserve(None, &slow, at(0)).after;
        let fast = rate(997, 1_000, 1);
        let Reservation { start_at, after } = reserve(Some(state), &fast, at(0));
        assert_eq!(start_at, at(60_000));
        let next = reserve(Some(after), &fast, at(0));
        assert_eq!(next.start_at, at(60_002));
    }

    #[test]
    fn a_reservation_is_stored_in_sixty_bytes() {
        let at = Timestamp::from_millis(9_999_999_999_999);
        let after = RateState { next_at: at, part: 999_999, of: 1_000_000 };
        let reservation = Reservation { start_at: at, after };
        let text = serde_json::to_string(&reservation).unwrap();
        assert_eq!(serde_json::from_str::<Reservation>(&text).unwrap(), reservation);
        assert!(format!(r#","r":{text}"#).len() <= 60, "{text}");
    }

    /// In no span of time are there more starts than the burst and those of the rate.
    #[test]
    fn random_requests_never_exceed_the_burst_and_the_rate_in_any_span() {
        let mut random = 5_u64;
        let mut below = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % bound
        };
        for _ in 0..200 {
            let limit = u32::try_from(1 + below(2_000)).unwrap();
            let burst = u32::try_from(1 + below(u64::from(limit.min(20)))).unwrap();
            let rate = rate(limit, 1 + below(100_000), burst);
            let (mut now, mut state, mut starts) = (0_i64, None, vec![]);
            for _ in 0..150 {
                now += i64::try_from(below(2 * rate.per.as_u64() / u64::from(limit) + 2)).unwrap();
                let reservation = reserve(state, &rate, at(now));
                assert!(reservation.start_at >= at(now));
                if below(4) == 0 {
                    state = give_back(Some(reservation.after), reservation.after, &rate).or(state);
                    continue;
                }
                state = Some(reservation.after);
                starts.push(reservation.start_at.as_millis());
            }
            assert!(starts.is_sorted());
            for (first, from) in starts.iter().enumerate() {
                for (last, until) in starts.iter().enumerate().skip(first) {
                    // A start is rounded up to a whole millisecond, so one may be that much nearer to the next.
                    let span = u128::from((until - from).unsigned_abs()) + 1;
                    let allowed =
                        span * u128::from(limit) / u128::from(rate.per.as_u64()) + u128::from(burst);
                    assert!((last - first + 1) as u128 <= allowed, "{rate:?}: {from} to {until}");
                }
            }
        }
    }
}
