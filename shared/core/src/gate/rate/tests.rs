use std::collections::BTreeMap;
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

/// The state of one key.
struct Key {
    rate: Pace,
    state: Option<RateState>,
}

impl Key {
    fn new(limit: u32, per_ms: u64, burst: u32) -> Self {
        Self { rate: rate(limit, per_ms, burst), state: None }
    }

    fn reserves(&mut self, now: i64) -> Reservation {
        let (start, state) = reserve(self.state.as_ref(), &self.rate, at(now));
        self.state = Some(state);
        start
    }

    fn reserves_first(&mut self, now: i64) -> Reservation {
        let (start, state) = reserve_first(self.state.as_ref(), &self.rate, at(now));
        self.state = Some(state);
        start
    }

    fn gives_back(&mut self, start: &Reservation, now: i64) -> bool {
        let given = give_back(self.state.as_ref().unwrap(), start, &self.rate, at(now));
        let is_given = given.is_some();
        self.state = given.or(self.state.take());
        is_given
    }

    fn confirms(&self, start: &Reservation) -> Option<i64> {
        confirm(self.state.as_ref()?, start, &self.rate).map(|at| at.as_millis() - START_MS)
    }

    /// Reserves so many starts at once, and returns after how many milliseconds each is.
    fn starts(&mut self, count: usize) -> Vec<i64> {
        (0..count).map(|_| ms(&self.reserves(0))).collect()
    }
}

fn ms(start: &Reservation) -> i64 {
    start.start_at.as_millis() - START_MS
}

#[test]
fn a_burst_starts_at_once_and_the_rest_evenly_spread() {
    assert_eq!(Key::new(100, 60_000, 3).starts(6), [0, 0, 0, 600, 1_200, 1_800]);
    assert_eq!(Key::new(1, 1_000, 1).starts(3), [0, 1_000, 2_000]);
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
        let last = Key::new(limit, per_ms, 1).starts(100_001)[100_000];
        let ideal = (100_000 * i128::from(per_ms)).div_euclid(i128::from(limit));
        let late = i128::from(last) - ideal;
        assert!((0..=1).contains(&late), "{limit} in {per_ms} ms: {late} ms late");
    }
}

#[test]
fn after_a_quiet_time_a_whole_burst_is_free_again_and_never_more() {
    let mut key = Key::new(10, 1_000, 4);
    for round in 0..3 {
        let now = round * 60_000;
        let got: Vec<_> = (0..6).map(|_| ms(&key.reserves(now)) - now).collect();
        assert_eq!(got, [0, 0, 0, 0, 100, 200]);
    }
}

#[test]
fn a_start_before_others_moves_each_of_them_by_one_and_the_next_such_start_comes_after_it() {
    let mut key = Key::new(1, 60_000, 1);
    let tickets: Vec<_> = (0..1_000).map(|_| key.reserves(0)).collect();
    // The first one has started, and is tried again.
    let again = [(); 2].map(|()| ms(&key.reserves_first(1_000)));
    assert_eq!(again, [120_000, 180_000]);
    // The first that isn't due may be about to start.
    assert_eq!(key.confirms(&tickets[1]), Some(60_000));
    assert_eq!(key.confirms(&tickets[2]), Some(240_000));
    assert_eq!(key.confirms(&tickets[999]), Some(1_001 * 60_000));
    assert_eq!(ms(&key.reserves(1_000)), 1_002 * 60_000);
    // Where a start was given back, those behind it don't move.
    assert!(key.gives_back(&tickets[500], 1_000));
    assert_eq!(ms(&key.reserves_first(1_000)), 240_000);
    assert_eq!(key.confirms(&tickets[499]), Some((499 + 3) * 60_000));
    assert_eq!(key.confirms(&tickets[501]), Some((501 + 2) * 60_000));
}

#[test]
fn what_is_given_back_in_whatever_order_is_free_for_the_next() {
    let mut random = 7_u64;
    for keeps in [0, 1] {
        let mut key = Key::new(1, 60_000, 1);
        let mut tickets: Vec<_> = (0..1_000).map(|_| key.reserves(0)).collect();
        let kept: Vec<_> = tickets.drain(..=keeps).collect();
        while !tickets.is_empty() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let nth = usize::try_from(random >> 33).unwrap() % tickets.len();
            assert!(key.gives_back(&tickets.swap_remove(nth), 0));
            assert!(key.state.as_ref().unwrap().free.len() <= RUNS_MAX);
        }
        if keeps == 0 {
            assert_eq!(ms(&key.reserves(1)), 60_000, "nobody has a start");
            assert_eq!(ms(&key.reserves(1)), 120_000);
        } else {
            assert_eq!(key.confirms(&kept[1]), Some(60_000));
            assert_eq!(ms(&key.reserves(1)), 120_000, "the one after that of the only task that is left");
        }
    }
}

#[test]
fn a_start_of_a_burst_and_one_before_others_are_given_back_as_well() {
    let mut key = Key::new(1, 60_000, 3);
    let burst = [(); 3].map(|()| key.reserves(0));
    assert_eq!(ms(&key.reserves(0)), 60_000);
    assert!(key.gives_back(&burst[1], 1_000));
    assert_eq!(ms(&key.reserves(1_000)), 1_000);
    assert!(!key.gives_back(&burst[0], 60_000), "its time has passed");
    let first = key.reserves_first(2_000);
    assert_eq!((ms(&first), first.ticket), (120_000, None));
    assert!(key.gives_back(&first, 2_000));
    assert_eq!(ms(&key.reserves_first(2_000)), 120_000);
}

#[test]
fn a_changed_rate_counts_from_the_next_start_on_and_earlier_reservations_are_void() {
    let mut key = Key::new(1, 60_000, 1);
    let early = [(); 2].map(|()| key.reserves(0));
    let fast = rate(997, 1_000, 1);
    key.state = Some(change(key.state.as_ref().unwrap(), &key.rate, &fast, at(0)));
    key.rate = fast;
    assert_eq!(early.map(|one| key.confirms(&one)), [None, None]);
    assert!(!key.gives_back(&early[1], 0));
    assert_eq!([(); 2].map(|()| ms(&key.reserves(0))), [60_000, 60_002]);
}

#[test]
fn after_a_reset_the_next_start_is_at_once_and_earlier_reservations_are_void() {
    let mut key = Key::new(1, 60_000, 2);
    let early: Vec<_> = (0..100).map(|_| key.reserves(0)).collect();
    key.state = Some(reset(key.state.as_ref().unwrap(), &key.rate, at(5)));
    assert_eq!([(); 3].map(|()| ms(&key.reserves(5))), [5, 5, 60_005]);
    assert_eq!(key.confirms(&early[99]), None);
}

#[test]
fn a_reservation_is_stored_in_sixty_bytes() {
    let at = Timestamp::from_millis(9_999_999_999_999);
    let reservation = Reservation { start_at: at, planned_at: at, epoch: at, ticket: Some(99_999_998) };
    let text = serde_json::to_string(&reservation).unwrap();
    assert_eq!(serde_json::from_str::<Reservation>(&text).unwrap(), reservation);
    assert!(format!(r#","r":{text}"#).len() <= 60, "{text}");
}

#[test]
fn a_reservation_of_an_earlier_version_is_void() {
    let mut key = Key::new(1, 60_000, 1);
    key.reserves(0);
    let stored: Reservation = serde_json::from_str("[1700000000000,1700000060000,0,1]").unwrap();
    assert_eq!(key.confirms(&stored), None);
}

/// In no span of time are there more starts than the burst and those of the rate.
#[test]
fn random_requests_never_exceed_the_burst_and_the_rate_in_any_span() {
    let mut random = 5_u64;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    let mut moved = 0;
    for _ in 0..1_000 {
        let limit = u32::try_from(1 + below(2_000)).unwrap();
        let burst = u32::try_from(1 + below(u64::from(limit.min(20)))).unwrap();
        let mut key = Key::new(limit, 1 + below(100_000), burst);
        let (mut now, mut starts) = (0_i64, vec![]);
        // Who waits, by the instant at which it comes.
        let mut waits: BTreeMap<(i64, u64), Reservation> = BTreeMap::new();
        for nth in 0..150 {
            now += i64::try_from(below(key.rate.per.as_u64() / u64::from(limit) + 2)).unwrap();
            while let Some(first) = waits.first_entry().filter(|first| first.key().0 <= now) {
                let ((came_at, id), start) = first.remove_entry();
                let planned_at = key.confirms(&start).unwrap();
                if planned_at > came_at {
                    moved += 1;
                    waits.insert((planned_at, id), start);
                } else {
                    starts.push(came_at);
                }
            }
            let tickets = waits.values().filter(|one| one.ticket.is_some());
            let later: Vec<i64> =
                tickets.map(|one| key.confirms(one).unwrap()).filter(|at| *at > now).collect();
            let start = if below(3) == 0 {
                let first = key.reserves_first(now);
                let before = later.iter().filter(|other| **other < ms(&first)).count();
                assert!(before <= 1, "{first:?} is behind {before} of {later:?}");
                first
            } else {
                key.reserves(now)
            };
            assert!(ms(&start) >= now);
            waits.insert((ms(&start), nth), start);
            if below(3) == 0 {
                let any = usize::try_from(below(waits.len() as u64)).unwrap();
                let (at, id) = *waits.keys().nth(any).unwrap();
                let start = waits.remove(&(at, id)).unwrap();
                key.gives_back(&start, now);
            }
        }
        for (first, from) in starts.iter().enumerate() {
            for (last, until) in starts.iter().enumerate().skip(first) {
                // A start is rounded up to a whole millisecond, so one may be that much nearer to the next.
                let span = u128::from((until - from).unsigned_abs()) + 1;
                let allowed =
                    span * u128::from(limit) / u128::from(key.rate.per.as_u64()) + u128::from(burst);
                assert!((last - first + 1) as u128 <= allowed, "{:?}: {from} to {until}", key.rate);
            }
        }
    }
    assert!(moved > 1_000, "{moved}");
}
