//! Scenes at one key, told as they happen.

mod absent;
mod limit;
mod line;
mod random;
pub(crate) mod told;

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use super::offer::LONGEST_FIRST_EACH;
use super::*;
use crate::id::{ExecutionId, Fingerprint, QueueName, TaskId};

const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);
const CREATED: Taken = Taken::Place { created: true };
const JOINED: Taken = Taken::Place { created: false };

fn at(seconds: u64) -> Timestamp {
    START.plus(Millis::from_secs(seconds))
}

fn task(name: &str) -> Owner {
    TaskId::parse(name).unwrap().into()
}

/// The incarnation of the task with that name.
fn inc(name: &str) -> Incarnation {
    let mut bytes = [1; 8];
    bytes.iter_mut().zip(name.bytes()).for_each(|(byte, of_name)| *byte = of_name);
    Incarnation::from_bytes(bytes)
}

fn id(number: u8) -> GateId {
    GateId::from(&Fingerprint::from_bytes([number; 16]))
}

fn asked(limit: u16, seconds: u64) -> AskedLimit {
    AskedLimit { limit: NonZeroU16::new(limit).unwrap(), asked_at: at(seconds) }
}

/// The version of the record of the task with that name, for which it takes its place.
fn mark_of(name: &str) -> u32 {
    u32::from(name.as_bytes()[0])
}

/// A later version of that.
fn after(name: &str) -> u64 {
    u64::from(mark_of(name)) + 1
}

/// A task named `deaf.1` is of the queue `deaf`, and one without a point of the queue `jobs`.
fn branch_of(name: &str) -> Branch {
    let queue = name.split_once('.').map_or("jobs", |(queue, _)| queue);
    Branch { queue: QueueName::parse(queue).unwrap(), others: vec![], required: 0 }
}

/// A key, the items of its line, and what was told to whom.
#[derive(Clone)]
struct Scene {
    gate: Option<Gate>,
    items: BTreeMap<String, Waiter>,
    called: Vec<String>,
    writes: u64,
    limit: u16,
}

impl Scene {
    fn with_limit(limit: u16) -> Self {
        Self { gate: None, items: BTreeMap::new(), called: vec![], writes: 0, limit }
    }

    /// One write of the key. Those that make places free, or come to the line, offer what is free.
    fn change<T>(&mut self, now: Timestamp, offers: bool, act: impl FnOnce(&mut Gate) -> T) -> T {
        let new = || Gate::new(id(0), "k".into(), Nonce::from_bytes([0; 8]), now);
        let mut gate = self.gate.clone().unwrap_or_else(new);
        clear(&mut gate, now);
        let done = act(&mut gate);
        let had = gate.holders.len();
        if offers {
            let can_come = |one: &&Waiter| !gate.is_absent(one.branch.mark(), now);
            let candidate =
                |one: &Waiter| Candidate { waiter: one.clone(), limit: asked(self.limit, 0), served: true };
            let candidates: Vec<Candidate> = self.items.values().filter(can_come).map(candidate).collect();
            let called = offer(&mut gate, &candidates, now);
            assert_eq!(gate.holders.len(), had + called.len());
            self.called.extend(called.iter().map(|one| one.owner.to_string()));
        }
        let nonce = Nonce::from_bytes(self.writes.to_be_bytes());
        if let Some(after) = gate.finish(self.gate.as_ref(), nonce, now) {
            let limit = after.pinned.map_or(usize::from(self.limit), |limit| usize::from(limit.get()));
            let is_fuller = after.holders.len() > self.gate.as_ref().map_or(0, |gate| gate.holders.len());
            assert!(!is_fuller || after.holders.len() <= limit, "{} have a place", after.holders.len());
            self.writes += 1;
            assert_eq!((after.version, after.nonce), (self.writes, nonce));
            self.gate = Some(after);
        }
        done
    }

    fn asks_as(&self, name: &str, now: Timestamp) -> Take {
        let waits = self.items.values().find(|one| one.owner == task(name));
        Take {
            owner: task(name),
            incarnation: inc(name),
            mark: mark_of(name),
            branch: waits.map_or(0, |one| one.branch.mark()),
            in_line: waits.is_some(),
            until: now.plus(Millis::from_secs(30)).plus(GRACE),
            limit: asked(self.limit, 0),
            sure: true,
        }
    }

    fn comes(&mut self, name: &str, seconds: u64) -> Taken {
        self.comes_with(name, Priority::Normal, seconds)
    }

    fn comes_with(&mut self, name: &str, priority: Priority, seconds: u64) -> Taken {
        let take = self.asks_as(name, at(seconds));
        let taken = self.asks(&take, seconds);
        match taken {
            Taken::Place { .. } => self.items.retain(|_, one| one.owner != task(name)),
            Taken::Full if !take.in_line => self.goes_in_line(name, priority, seconds),
            Taken::Full | Taken::Shared => {}
        }
        taken
    }

    fn asks(&mut self, asked: &Take, seconds: u64) -> Taken {
        self.change(at(seconds), false, |gate| take(gate, asked, at(seconds)))
    }

    /// Its item is written, and after that somebody looks at the key.
    fn goes_in_line(&mut self, name: &str, priority: Priority, seconds: u64) {
        let waiter = Waiter {
            owner: task(name),
            incarnation: inc(name),
            branch: branch_of(name),
            priority,
            position: Position { since: at(seconds), version: 2 },
            written_at: at(seconds),
            home: None,
        };
        self.items.insert(waiter.sort_key(), waiter);
        self.is_looked_at(seconds);
    }

    fn ends(&mut self, name: &str, seconds: u64) {
        self.change(at(seconds), true, |gate| free(gate, &task(name), inc(name), after(name)));
    }

    fn is_looked_at(&mut self, seconds: u64) {
        self.change(at(seconds), true, |_| ());
    }

    /// A tick looks at it.
    fn is_patrolled(&mut self, seconds: u64) {
        self.change(at(seconds), true, |gate| gate.withdraw_late_calls(at(seconds)));
    }

    fn is_pinned(&mut self, limit: Option<u16>, seconds: u64) {
        self.change(at(seconds), true, |gate| gate.pinned = limit.and_then(NonZeroU16::new));
    }

    fn gate(&self) -> &Gate {
        self.gate.as_ref().unwrap()
    }

    fn holders(&self) -> Vec<String> {
        self.gate.iter().flat_map(|gate| &gate.holders).map(|one| one.owner.to_string()).collect()
    }

    fn waiting(&self) -> Vec<String> {
        self.items.values().map(|one| one.owner.to_string()).collect()
    }
}

#[test]
fn who_finds_a_free_place_has_it_until_it_ends() {
    let mut scene = Scene::with_limit(2);
    assert_eq!((scene.comes("a", 0), scene.comes("b", 1)), (CREATED, CREATED));
    assert_eq!(scene.comes("c", 2), Taken::Full);
    assert_eq!(scene.writes, 2, "who waits writes nothing at the gate");
    assert_eq!((scene.holders(), scene.waiting()), (vec!["a".into(), "b".into()], vec!["c".to_owned()]));
    scene.ends("a", 3);
    assert_eq!((scene.holders(), &scene.called), (vec!["b".into(), "c".into()], &vec!["c".to_owned()]));
    assert_eq!(scene.waiting(), ["c"], "it waits until it comes");
    assert_eq!((scene.comes("c", 4), scene.waiting()), (CREATED, vec![]));
    assert_eq!(scene.writes, 4);
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
        assert_eq!(scene.comes_with(name, priority, seconds), Taken::Full);
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
fn of_two_branches_the_one_that_waits_longer_comes_first() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    for (name, seconds) in [("z.1", 1), ("b.1", 2), ("z.2", 3)] {
        scene.comes(name, seconds);
    }
    assert_eq!(scene.waiting(), ["b.1", "z.1", "z.2"], "by the names of the queues");
    let mut ends = "a".to_owned();
    for seconds in 4..7 {
        scene.ends(&ends, seconds);
        ends = scene.called.last().cloned().unwrap();
        scene.comes(&ends, seconds);
    }
    assert_eq!(scene.called, ["z.1", "b.1", "z.2"]);
}

#[test]
fn one_version_in_eleven_calls_the_one_that_has_waited_the_longest_whatever_its_priority() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    scene.comes_with("low", Priority::Low, 1);
    let (mut ends, mut calls) = ("a".to_owned(), vec![]);
    for nth in 0..25_u64 {
        scene.comes_with(&format!("h{nth}"), Priority::High, 2 + nth);
        calls.push(scene.gate().puts_longest_first());
        scene.ends(&ends, 2 + nth);
        ends = scene.called.last().cloned().unwrap();
        scene.comes(&ends, 2 + nth);
    }
    let first = calls.iter().position(|is_first| *is_first).unwrap();
    assert_eq!(scene.called.iter().position(|name| name == "low"), Some(first), "{calls:?}");
}

/// How often a gate is written between two offers depends on heartbeats, rates and other keys.
#[test]
fn one_offer_in_eleven_is_for_the_one_that_has_waited_the_longest_however_many_writes_are_between_them() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    let mut gate = scene.gate().clone();
    for between in 1..LONGEST_FIRST_EACH {
        for from in 0..between {
            let first = (0..LONGEST_FIRST_EACH).filter(|nth| {
                gate.version = from + nth * between;
                gate.puts_longest_first()
            });
            assert_eq!(first.count(), 1, "each {between} versions from {from}");
        }
    }
}

#[test]
fn a_place_that_a_crash_left_behind_ends_by_itself_and_whoever_comes_next_clears_it() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    assert_eq!(scene.comes("b", 39), Taken::Full);
    scene.is_looked_at(40);
    assert_eq!((scene.holders(), &scene.called), (vec!["b".to_owned()], &vec!["b".to_owned()]));
    assert_eq!(scene.comes("b", 41), CREATED);
    assert_eq!(scene.comes("c", 90), CREATED, "also without anybody who looks");
    assert_eq!((scene.holders(), &scene.gate().absent), (vec!["c".to_owned()], &vec![]));
}

#[test]
fn who_comes_to_a_worker_takes_the_place_of_one_that_was_called_long_ago() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    scene.comes("b", 1);
    scene.ends("a", 2);
    assert_eq!(scene.comes("c", 6), Taken::Full, "b has just been called");
    assert_eq!(scene.comes("c", 7), CREATED);
    assert_eq!((scene.holders(), scene.waiting()), (vec!["c".to_owned()], vec!["b".to_owned()]));
    assert_eq!(scene.comes("b", 8), Taken::Full);
    scene.ends("c", 9);
    assert_eq!(scene.holders(), ["b"]);
}

#[test]
fn an_offer_that_nobody_comes_to_passes_on_when_a_tick_looks() {
    let mut scene = Scene::with_limit(1);
    for (name, seconds) in [("a", 0), ("deaf.1", 1), ("b", 2)] {
        scene.comes(name, seconds);
    }
    scene.ends("a", 3);
    scene.is_patrolled(7);
    assert_eq!(scene.holders(), ["deaf.1"], "it has five seconds");
    scene.is_patrolled(8);
    assert_eq!((scene.holders(), scene.waiting()), (vec!["b".into()], vec!["deaf.1".into(), "b".into()]));
    // Without a tick, an offer ends after a minute.
    let mut scene = Scene::with_limit(1);
    for (name, seconds) in [("a", 0), ("deaf.1", 1), ("b", 2)] {
        scene.comes(name, seconds);
    }
    scene.ends("a", 3);
    scene.is_looked_at(62);
    assert_eq!(scene.holders(), ["deaf.1"]);
    scene.is_looked_at(63);
    assert_eq!(scene.holders(), ["b"]);
}

#[test]
fn a_task_has_one_place_however_often_it_takes_it() {
    let mut scene = Scene::with_limit(2);
    scene.comes("a", 0);
    let writes = scene.writes;
    let other = Take { sure: false, ..scene.asks_as("a", at(0)) };
    assert_eq!((scene.asks(&other, 0), scene.writes), (Taken::Shared, writes), "its record is read first");
    let sure = Take { sure: true, ..other };
    assert_eq!(
        (scene.asks(&sure, 0), scene.writes),
        (JOINED, writes),
        "the same version again writes nothing"
    );
    assert_eq!(scene.asks(&sure, 1), JOINED);
    assert_eq!((scene.holders(), scene.gate().holders[0].since), (vec!["a".to_owned()], at(1)));
}

#[test]
fn one_that_was_called_is_not_called_again_and_has_one_place() {
    let mut scene = Scene::with_limit(2);
    for (name, seconds) in [("a", 0), ("b", 0), ("c", 1)] {
        scene.comes(name, seconds);
    }
    scene.ends("a", 2);
    scene.ends("b", 3);
    assert_eq!((scene.holders(), &scene.called), (vec!["c".to_owned()], &vec!["c".to_owned()]));
    assert_eq!((scene.comes("c", 4), scene.holders()), (CREATED, vec!["c".to_owned()]));
    assert_eq!(scene.gate().holders[0].hold, Hold::Taken { mark: mark_of("c") });
}

#[test]
fn a_later_version_of_a_record_takes_over_its_place_and_an_earlier_one_does_not() {
    let owner = || Owner::from(ExecutionId::parse("order-7").unwrap());
    let mut scene = Scene::with_limit(1);
    let of_version = |version, scene: &Scene| Take {
        owner: owner(),
        mark: version_mark(version),
        sure: true,
        ..scene.asks_as("x", at(version))
    };
    let [first, second] = [1, 2].map(|version| of_version(version, &scene));
    assert_eq!((scene.asks(&first, 1), scene.asks(&second, 2)), (CREATED, JOINED));
    assert_eq!(scene.asks(&first, 3), Taken::Shared);
    scene.change(at(4), true, |gate| free(gate, &owner(), inc("x"), 2));
    assert_eq!(scene.holders(), ["@order-7"]);
    scene.change(at(5), true, |gate| free(gate, &owner(), inc("x"), 3));
    assert!(scene.holders().is_empty());
}

#[test]
fn the_end_of_an_earlier_attempt_does_not_free_the_place_of_the_next() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    // The record is pending again in the version that the end wrote.
    let next = Take { mark: mark_of("a") + 1, ..scene.asks_as("a", at(1)) };
    scene.asks(&next, 1);
    scene.ends("a", 2);
    assert_eq!(scene.holders(), ["a"]);
    scene.change(at(3), true, |gate| free(gate, &task("a"), inc("a"), after("a") + 1));
    assert!(scene.holders().is_empty());
    let earlier = Incarnation::from_bytes([2; 8]);
    scene.comes("a", 4);
    scene.change(at(5), true, |gate| free(gate, &task("a"), earlier, after("a")));
    assert_eq!(scene.holders(), ["a"]);
}

#[test]
fn a_heartbeat_extends_the_place_and_takes_one_that_had_ended_only_if_it_is_free() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    let beats = |scene: &mut Scene, name: &str, seconds: u64| {
        let (until, now) = (at(seconds + 40), at(seconds));
        scene.change(now, false, |gate| extend(gate, &task(name), inc(name), 1, until, now))
    };
    assert!(beats(&mut scene, "a", 20));
    let holder = &scene.gate().holders[0];
    assert_eq!(
        (holder.until, holder.since, holder.hold),
        (at(60), at(0), Hold::Taken { mark: mark_of("a") })
    );
    assert!(beats(&mut scene, "a", 70), "nobody took it");
    assert_eq!(scene.gate().holders[0].since, at(70));
    assert_eq!(scene.comes("b", 115), CREATED);
    assert!(!beats(&mut scene, "a", 116));
    assert_eq!(scene.holders(), ["b"]);
    // Its worker lives although its record said that it waits: the place that it was offered is its own.
    assert_eq!(scene.comes("c", 117), Taken::Full);
    scene.ends("b", 118);
    assert!(beats(&mut scene, "c", 119));
    assert_eq!(scene.gate().holders[0].hold, Hold::Taken { mark: 1 });
}

#[test]
fn one_that_ends_after_it_was_called_gives_its_place_on_and_one_that_runs_keeps_it() {
    let mut scene = Scene::with_limit(1);
    for (name, seconds) in [("a", 0), ("b", 1), ("c", 2)] {
        scene.comes(name, seconds);
    }
    let withdraws = |scene: &mut Scene, name: &str, seconds: u64| {
        scene.items.retain(|_, one| one.owner != task(name));
        scene.change(at(seconds), true, |gate| withdraw(gate, &task(name), inc(name), 1));
    };
    scene.ends("a", 5);
    assert_eq!(scene.holders(), ["b"]);
    withdraws(&mut scene, "b", 6);
    assert_eq!((scene.holders(), &scene.called), (vec!["c".into()], &vec!["b".to_owned(), "c".to_owned()]));
    // What was taken for a later version is kept: another claim may begin with it.
    scene.comes("c", 7);
    withdraws(&mut scene, "c", 8);
    assert_eq!(scene.holders(), ["c"]);
    scene.change(at(9), true, |gate| withdraw(gate, &task("c"), inc("c"), after("c")));
    assert!(scene.holders().is_empty());
}

#[test]
fn forty_wait_in_order_and_all_get_their_turn() {
    let mut scene = Scene::with_limit(2);
    let names: Vec<String> = ('A'..='Z').chain('a'..='n').map(String::from).collect();
    for (name, seconds) in names.iter().zip(0..) {
        assert_eq!(scene.comes(name, seconds), if seconds < 2 { CREATED } else { Taken::Full });
    }
    assert_eq!(scene.waiting(), names[2..]);
    // They may come again, and stay where they are.
    assert_eq!(scene.comes(&names[39], 39), Taken::Full);
    assert_eq!((scene.waiting(), scene.writes), (names[2..].to_vec(), 2));
    for (name, seconds) in names.iter().zip(39..) {
        // The two that run have been alive all the time.
        for running in scene.holders() {
            scene.comes(&running, seconds);
        }
        scene.ends(name, seconds);
    }
    assert_eq!(scene.called, names[2..]);
    assert_eq!((scene.holders(), scene.waiting()), (vec![], vec![]));
}

#[test]
fn a_gate_has_a_place_unless_all_are_taken_or_offered() {
    let mut scene = Scene::with_limit(1);
    assert!(
        Gate::new(id(0), "k".into(), Nonce::from_bytes([0; 8]), START).has_place(),
        "nobody has said how many"
    );
    scene.comes("a", 0);
    assert!(!scene.gate().has_place());
    scene.ends("a", 2);
    assert!(scene.gate().has_place());
}

#[test]
fn a_gate_is_written_only_if_something_has_changed_and_kept_for_an_hour_after_its_last_place() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    assert_eq!(scene.gate().expires_at(), Some(at(40).plus(KEPT_FOR)));
    scene.is_looked_at(5);
    assert_eq!(scene.writes, 1, "to look writes nothing");
    scene.ends("a", 10);
    assert_eq!(scene.gate().expires_at(), Some(at(10).plus(KEPT_FOR)));
    scene.is_pinned(Some(1), 11);
    assert_eq!(scene.gate().expires_at(), None);
    assert_eq!(scene.writes, 3);
}

#[test]
fn a_keys_text_is_cut_between_characters() {
    let key = FlowKey::parse("ä".repeat(40)).unwrap();
    assert_eq!(shown(&key), "ä".repeat(24));
}

#[test]
fn places_count_for_the_version_that_they_were_taken_for_and_for_a_quarter_of_a_minute() {
    let places = Places { since: at(0), until: at(60), version: 3 };
    assert!(places.count(3, at(14)) && !places.count(3, at(15)) && !places.count(4, at(1)));
}
