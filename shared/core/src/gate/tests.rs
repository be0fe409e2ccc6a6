//! Scenes at one gate, told as they happen.

use std::num::NonZeroU16;

use super::*;
use crate::id::{Fingerprint, TaskId};

const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);

fn at(seconds: u64) -> Timestamp {
    START.plus(Millis::from_secs(seconds))
}

fn task(name: &str) -> Owner {
    TaskId::parse(name).unwrap().into()
}

fn text(owner: &Owner) -> &str {
    match owner {
        Owner::Task(id) => id.as_str(),
        Owner::Execution(id) => id.as_str(),
    }
}

fn inc() -> Incarnation {
    Incarnation::from_bytes([1; 8])
}

/// A gate, the items behind it, and what was told to whom.
struct Scene {
    gate: Option<Gate>,
    items: Vec<Waiter>,
    called: Vec<String>,
    writes: u64,
    limit: u16,
}

impl Scene {
    fn with_limit(limit: u16) -> Self {
        Self { gate: None, items: vec![], called: vec![], writes: 0, limit }
    }

    fn change<T>(&mut self, now: Timestamp, act: impl FnOnce(&mut Plan) -> T) -> T {
        let new = || {
            Gate::new(
                GateId::from(&Fingerprint::from_bytes([0; 16])),
                "k".into(),
                Nonce::from_bytes([0; 8]),
                now,
            )
        };
        let mut plan = Plan::of(self.gate.clone().unwrap_or_else(new));
        clear(&mut plan, now);
        let done = act(&mut plan);
        if plan.gate.should_call() {
            let wanted = plan.gate.free() + LINE_MAX;
            let first: Vec<Waiter> = self.items.iter().take(wanted).cloned().collect();
            let behind = Behind { more: first.len() == wanted, first };
            let standings =
                line(&plan, &behind, plan.gate.free() + 2)
                    .iter()
                    .map(|one| {
                        if one.owner.to_string().starts_with("gone") {
                            Standing::Gone
                        } else {
                            Standing::Ready
                        }
                    })
                    .collect::<Vec<_>>();
            call(&mut plan, &behind, &standings, now);
        }
        let nonce = Nonce::from_bytes(self.writes.to_be_bytes());
        if let Some(after) = plan.finish(self.gate.as_ref(), nonce, now, 1) {
            self.items.extend(plan.enters.clone());
            self.items.sort_by_key(Waiter::sort_key);
            self.items.dedup();
            self.items.retain(|one| !plan.leaves.contains(one));
            self.writes += 1;
            self.called.extend(plan.called.iter().map(|one| one.owner.to_string()));
            let limit = usize::from(self.limit);
            assert!(after.holders.len() <= limit, "{} have a place", after.holders.len());
            assert!(size::of(&after) <= CONTROL_RECORD_BYTES || after.waiters.len() <= 1, "too large");
            self.gate = Some(after);
        }
        done
    }

    fn asked(&self, name: &str, priority: Priority, now: Timestamp) -> Take {
        Take {
            owner: task(name),
            incarnation: inc(),
            order: Order { priority, since: now },
            mark: u32::from(name.as_bytes()[0]),
            until: now.plus(Millis::from_secs(30)).plus(GRACE),
            limit: NonZeroU16::new(self.limit).unwrap(),
            shards: Shards::ONE,
            asked_at: START,
            sure: false,
        }
    }

    fn comes(&mut self, name: &str, seconds: u64) -> Taken {
        self.comes_with(name, Priority::Normal, seconds)
    }

    fn comes_with(&mut self, name: &str, priority: Priority, seconds: u64) -> Taken {
        let asked = self.asked(name, priority, at(seconds));
        self.asks(&asked, seconds)
    }

    fn asks(&mut self, asked: &Take, seconds: u64) -> Taken {
        self.change(at(seconds), |plan| take(plan, asked, at(seconds)))
    }

    fn ends(&mut self, name: &str, seconds: u64) {
        let mark = u32::from(name.as_bytes()[0]);
        self.change(at(seconds), |plan| free(&mut plan.gate, &task(name), inc(), mark));
    }

    fn is_looked_at(&mut self, seconds: u64) {
        self.change(at(seconds), |_| ());
    }

    fn holders(&self) -> Vec<&str> {
        self.gate.as_ref().map_or(vec![], |gate| gate.holders.iter().map(|one| text(&one.owner)).collect())
    }

    fn waiting(&self) -> Vec<&str> {
        let gate = self.gate.as_ref();
        gate.map_or(vec![], |gate| {
            gate.waiters.iter().chain(&self.items).map(|one| text(&one.owner)).collect()
        })
    }
}

const CREATED: Taken = Taken::Place { created: true };

#[test]
fn who_finds_a_free_place_has_it_until_it_ends() {
    let mut scene = Scene::with_limit(2);
    assert_eq!((scene.comes("a", 0), scene.comes("b", 1)), (CREATED, CREATED));
    assert_eq!(scene.comes("c", 2), Taken::Waits);
    assert_eq!((scene.holders(), scene.waiting()), (vec!["a", "b"], vec!["c"]));
    scene.ends("a", 3);
    assert_eq!(
        (scene.holders(), scene.waiting(), &scene.called),
        (vec!["b", "c"], vec![], &vec!["c".to_owned()])
    );
    assert_eq!(scene.comes("c", 4), CREATED);
    assert_eq!(scene.writes, 5);
}

#[test]
fn who_ends_calls_the_first_by_priority_and_then_by_time() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    for (name, priority, seconds) in [
        ("l", Priority::Low, 1),
        ("n", Priority::Normal, 2),
        ("m", Priority::Normal, 3),
        ("h", Priority::High, 4),
    ] {
        assert_eq!(scene.comes_with(name, priority, seconds), Taken::Waits);
    }
    assert_eq!(scene.waiting(), ["h", "n", "m", "l"]);
    for (ends, seconds) in [("a", 5), ("h", 6), ("n", 7), ("m", 8)] {
        scene.ends(ends, seconds);
        let called = scene.called.last().cloned().unwrap();
        assert_eq!(scene.comes(&called, seconds), CREATED);
    }
    assert_eq!(scene.called, ["h", "n", "m", "l"]);
}

#[test]
fn one_in_ten_calls_is_for_the_one_that_has_waited_the_longest() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    scene.comes_with("low", Priority::Low, 1);
    let mut ends = "a".to_owned();
    for nth in 0..10_u64 {
        scene.comes_with(&format!("h{nth}"), Priority::High, 2 + nth);
        scene.ends(&ends, 2 + nth);
        ends = scene.called.last().cloned().unwrap();
        scene.comes(&ends, 2 + nth);
    }
    assert!(scene.called.contains(&"low".to_owned()), "{:?}", scene.called);
}

#[test]
fn a_place_that_a_crash_left_behind_ends_by_itself_and_whoever_comes_next_clears_it() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    assert_eq!(scene.comes("b", 39), Taken::Waits);
    scene.is_looked_at(40);
    assert_eq!((scene.holders(), &scene.called), (vec!["b"], &vec!["b".to_owned()]));
    // Without anybody who waits, nothing is due.
    assert_eq!(scene.comes("b", 41), CREATED);
    assert_eq!(scene.gate.as_ref().unwrap().due, None);
    assert_eq!(scene.comes("c", 90), CREATED);
    assert_eq!(scene.holders(), ["c"]);
}

#[test]
fn the_tick_looks_at_a_gate_within_a_minute_while_somebody_waits_or_was_called() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    assert_eq!(scene.gate.as_ref().unwrap().due, None);
    scene.comes("b", 1);
    let due = |scene: &Scene| scene.gate.as_ref().unwrap().due.map(|due| due.at);
    assert_eq!(due(&scene), Some(at(40)), "when the first place ends");
    scene.comes("c", 20);
    assert_eq!(due(&scene), Some(at(40)), "a slot that is early enough isn't moved");
    scene.ends("a", 30);
    assert!(scene.gate.as_ref().unwrap().expires_at().is_none());
    assert_eq!(due(&scene), Some(at(40)));
    let long = Take { until: at(9_000), ..scene.asked("b", Priority::Normal, at(41)) };
    scene.asks(&long, 41);
    assert_eq!(due(&scene), Some(at(101)), "a minute at the latest");
}

#[test]
fn a_task_that_was_called_and_does_not_come_lets_the_others_go_first() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    scene.comes_with("deaf", Priority::High, 1);
    scene.comes("b", 2);
    scene.ends("a", 3);
    assert_eq!(scene.holders(), ["deaf"]);
    scene.is_looked_at(63);
    assert_eq!((scene.holders(), scene.waiting()), (vec!["b"], vec!["deaf"]));
}

#[test]
fn who_comes_to_a_worker_takes_the_place_of_one_that_was_called_long_ago() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    scene.comes("b", 1);
    scene.ends("a", 2);
    assert_eq!(scene.comes("c", 6), Taken::Waits, "b has just been called");
    assert_eq!(scene.comes("c", 7), CREATED);
    assert_eq!((scene.holders(), scene.waiting()), (vec!["c"], vec!["b"]));
    assert_eq!(scene.comes("b", 8), Taken::Waits);
    scene.ends("c", 9);
    assert_eq!(scene.holders(), ["b"]);
}

#[test]
fn a_task_has_one_place_however_often_it_takes_it() {
    let mut scene = Scene::with_limit(2);
    scene.comes("a", 0);
    let writes = scene.writes;
    assert_eq!((scene.comes("a", 0), scene.writes), (CREATED, writes), "the same try again writes nothing");
    let other = Take { mark: 7, ..scene.asked("a", Priority::Normal, at(1)) };
    assert_eq!(scene.asks(&other, 1), Taken::Shared);
    let sure = Take { sure: true, ..other };
    assert_eq!(scene.asks(&sure, 1), Taken::Place { created: false });
    assert_eq!(scene.holders(), ["a"]);
}

#[test]
fn the_end_of_an_earlier_attempt_does_not_free_the_place_of_the_next() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    let next = Take { mark: 7, sure: true, ..scene.asked("a", Priority::Normal, at(1)) };
    scene.asks(&next, 1);
    scene.ends("a", 2);
    assert_eq!(scene.holders(), ["a"]);
    scene.change(at(3), |plan| free(&mut plan.gate, &task("a"), inc(), 7));
    assert_eq!(scene.holders(), Vec::<&str>::new());
    let earlier = Incarnation::from_bytes([2; 8]);
    scene.comes("a", 4);
    scene.change(at(5), |plan| free(&mut plan.gate, &task("a"), earlier, u32::from(b'a')));
    assert_eq!(scene.holders(), ["a"]);
}

#[test]
fn a_heartbeat_extends_the_place_and_takes_one_that_had_ended_only_if_it_is_free() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    let beats = |scene: &mut Scene, name: &str, seconds: u64| {
        let until = at(seconds + 40);
        scene.change(at(seconds), |plan| extend(&mut plan.gate, &task(name), inc(), 1, until))
    };
    assert!(beats(&mut scene, "a", 20));
    assert_eq!(scene.gate.as_ref().unwrap().holders[0].until, at(60));
    assert!(beats(&mut scene, "a", 70), "nobody took it");
    assert_eq!(scene.comes("b", 115), CREATED);
    assert!(!beats(&mut scene, "a", 116));
    assert_eq!(scene.holders(), ["b"]);
}

#[test]
fn a_task_that_ends_while_it_waits_leaves_the_line_and_one_that_was_called_gives_its_place_on() {
    let mut scene = Scene::with_limit(1);
    for (name, seconds) in [("a", 0), ("b", 1), ("c", 2), ("d", 3)] {
        scene.comes(name, seconds);
    }
    let withdraws = |scene: &mut Scene, name: &str, seconds: u64| {
        scene.change(at(seconds), |plan| withdraw(&mut plan.gate, &task(name), inc()));
    };
    withdraws(&mut scene, "b", 4);
    assert_eq!(scene.waiting(), ["c", "d"]);
    scene.ends("a", 5);
    assert_eq!(scene.holders(), ["c"]);
    withdraws(&mut scene, "c", 6);
    assert_eq!((scene.holders(), &scene.called), (vec!["d"], &vec!["c".to_owned(), "d".to_owned()]));
    // An attempt keeps its place: its own end gives it up.
    scene.comes("d", 7);
    withdraws(&mut scene, "d", 8);
    assert_eq!(scene.holders(), ["d"]);
}

#[test]
fn one_that_ended_or_has_an_attempt_is_passed_over() {
    let mut scene = Scene::with_limit(1);
    for (name, seconds) in [("a", 0), ("gone-1", 1), ("gone-2", 2), ("b", 3)] {
        scene.comes(name, seconds);
    }
    scene.ends("a", 4);
    assert_eq!((scene.holders(), scene.waiting()), (vec!["b"], vec![]));
}

#[test]
fn more_than_the_record_has_room_for_wait_in_items_of_their_own_and_all_get_their_turn_in_order() {
    let mut scene = Scene::with_limit(2);
    let names: Vec<String> = ('A'..='Z').chain('a'..='n').map(|first| format!("{first}{:040}", 0)).collect();
    for (name, seconds) in names.iter().zip(0..) {
        let taken = scene.comes(name, seconds);
        assert_eq!(taken, if seconds < 2 { CREATED } else { Taken::Waits });
        let gate = scene.gate.as_ref().unwrap();
        assert_eq!(gate.overflow, !scene.items.is_empty());
    }
    assert_eq!(scene.waiting(), names[2..]);
    // They may come again, and stay where they are.
    scene.comes(&names[39], 39);
    assert_eq!(scene.waiting(), names[2..]);
    for (name, seconds) in names.iter().zip(40..) {
        scene.ends(name, seconds);
        for called in scene.called.clone() {
            if scene.gate.as_ref().unwrap().holders.iter().any(|one| one.owner.to_string() == called) {
                scene.comes(&called, seconds);
            }
        }
    }
    assert_eq!(scene.called, names[2..]);
    assert_eq!((scene.holders(), scene.waiting()), (vec![], vec![]));
    assert!(!scene.gate.as_ref().unwrap().overflow);
}

#[test]
fn an_urgent_task_comes_before_those_in_the_record_and_one_of_them_gets_an_item() {
    let mut scene = Scene::with_limit(1);
    for nth in 0..12 {
        scene.comes(&format!("{}{nth:040}", char::from(b'a' + nth)), u64::from(nth));
    }
    let behind = scene.items.len();
    scene.comes_with("urgent", Priority::High, 20);
    assert_eq!(scene.waiting()[0], "urgent");
    assert!(scene.items.len() >= behind);
    scene.ends(&format!("a{:040}", 0), 21);
    assert_eq!(scene.called, ["urgent"]);
}

#[test]
fn the_limit_of_the_task_that_was_scheduled_last_counts_unless_an_operator_has_set_one() {
    let mut scene = Scene::with_limit(5);
    let asks = |scene: &mut Scene, name: &str, limit, asked: u64| {
        let take = Take {
            limit: NonZeroU16::new(limit).unwrap(),
            shards: Shards::ONE,
            asked_at: at(asked),
            ..scene.asked(name, Priority::Normal, at(9))
        };
        scene.asks(&take, 9)
    };
    asks(&mut scene, "a", 1, 1);
    assert_eq!(asks(&mut scene, "b", 2, 2), CREATED);
    assert_eq!(asks(&mut scene, "c", 5, 0), Taken::Waits, "an older task's limit");
    scene.change(at(10), |plan| plan.gate.pinned = NonZeroU16::new(3));
    assert_eq!(scene.called, ["c"]);
    scene.comes("c", 10);
    assert_eq!(asks(&mut scene, "d", 5, 5), Taken::Waits);
    scene.change(at(11), |plan| plan.gate.pinned = None);
    assert_eq!(scene.called, ["c", "d"]);
}

#[test]
fn a_lower_limit_takes_no_place_away_and_lets_nobody_in_until_enough_have_ended() {
    let mut scene = Scene::with_limit(3);
    for name in ["a", "b", "c", "d"] {
        scene.comes(name, 0);
    }
    scene.change(at(1), |plan| plan.gate.pinned = NonZeroU16::new(1));
    assert_eq!(scene.holders(), ["a", "b", "c"]);
    for name in ["a", "b"] {
        scene.ends(name, 2);
    }
    assert_eq!(scene.holders(), ["c"]);
    scene.ends("c", 3);
    assert_eq!(scene.holders(), ["d"]);
}

#[test]
fn a_gate_is_kept_for_an_hour_after_its_last_place() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    assert_eq!(scene.gate.as_ref().unwrap().expires_at(), Some(at(40).plus(KEPT_FOR)));
    scene.ends("a", 10);
    assert_eq!(scene.gate.as_ref().unwrap().expires_at(), Some(at(10).plus(KEPT_FOR)));
    scene.change(at(11), |plan| plan.gate.pinned = NonZeroU16::new(1));
    assert_eq!(scene.gate.as_ref().unwrap().expires_at(), None);
}

#[test]
fn marks_tell_attempts_apart_and_a_keys_text_is_cut_between_characters() {
    let lease = |byte| LeaseId::from_bytes([byte; 16]);
    assert_eq!(mark(&lease(1)), mark(&lease(1)));
    assert_ne!(mark(&lease(1)), mark(&lease(2)));
    let key = FlowKey::parse("ä".repeat(40)).unwrap();
    assert_eq!(shown(&key), "ä".repeat(24));
}
