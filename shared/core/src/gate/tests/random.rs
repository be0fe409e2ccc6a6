//! Random scenes: whatever happens, the limit isn't exceeded, and no place is lost.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::{JOINED, Scene, Taken, at, inc, mark_of, task};
use crate::flow::Priority;
use crate::gate::{CALL, GRACE, Hold, extend, withdraw};
use crate::id::Owner;

/// The names: three queues, with three tasks each.
const NAMES: [&str; 9] = ["a.1", "b.2", "c.3", "d.1", "e.2", "f.3", "g.1", "h.2", "i.3"];

#[derive(Clone, Copy, Debug)]
enum Step {
    /// It comes to a worker.
    Comes(usize, Priority),
    Ends(usize),
    /// Its worker is alive.
    Beats(usize),
    /// It ends before it began.
    Withdraws(usize),
    Look,
    Patrol,
    Pin(Option<u16>),
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let who = || 0..NAMES.len();
    let priority = prop_oneof![Just(Priority::High), Just(Priority::Normal), Just(Priority::Low)];
    let step = prop_oneof![
        10 => (who(), priority).prop_map(|(who, priority)| Step::Comes(who, priority)),
        6 => who().prop_map(Step::Ends),
        3 => who().prop_map(Step::Beats),
        1 => who().prop_map(Step::Withdraws),
        1 => Just(Step::Look),
        1 => Just(Step::Patrol),
        1 => proptest::option::of(1_u16..4).prop_map(Step::Pin),
    ];
    let pause = prop_oneof![5 => Just(0), 5 => 1_u64..4, 2 => 4_u64..50, 1 => 50_u64..5_000];
    prop::collection::vec((pause, step), 1..120)
}

proptest! {
    #![proptest_config(Config { cases: 1_000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn no_limit_is_exceeded_and_whoever_was_let_in_has_a_place_until_it_ends(
        limit in 1_u16..4,
        steps in steps(),
    ) {
        let mut scene = Scene::with_limit(limit);
        // Those that were let in, and until when their places last.
        let mut running: BTreeMap<&str, u64> = BTreeMap::new();
        let mut now = 0;
        for (pause, step) in steps {
            now += pause;
            running.retain(|_, until| *until > now);
            match step {
                Step::Comes(who, priority) => {
                    let name = NAMES[who];
                    let was_running = running.contains_key(name);
                    let taken = scene.comes_with(name, priority, now);
                    prop_assert!(taken != Taken::Shared && was_running == (taken == JOINED));
                    if taken != Taken::Full {
                        running.insert(name, now + 30 + GRACE.as_u64() / 1_000);
                    }
                }
                Step::Ends(who) => {
                    running.remove(NAMES[who]);
                    scene.ends(NAMES[who], now);
                }
                Step::Beats(who) if running.contains_key(NAMES[who]) => {
                    let (name, until) = (NAMES[who], now + 40);
                    let beats = |gate: &mut _| extend(gate, &task(name), inc(name), mark_of(name), at(until), at(now));
                    prop_assert!(scene.change(at(now), false, beats), "a place was lost");
                    running.insert(name, until);
                }
                Step::Withdraws(who) => {
                    let name = NAMES[who];
                    scene.items.retain(|_, one| one.owner != task(name));
                    scene.change(at(now), true, |gate| withdraw(gate, &task(name), inc(name), 1));
                }
                Step::Beats(_) | Step::Look => scene.is_looked_at(now),
                Step::Patrol => scene.is_patrolled(now),
                Step::Pin(limit) => scene.is_pinned(limit, now),
            }
            check(&scene, &running, now)?;
        }
        // All that wait get their turn at last, if those that run end and all come.
        scene.is_pinned(None, now);
        for _ in 0..100 {
            now += 70;
            scene.is_patrolled(now);
            for name in scene.waiting() {
                let _ = scene.comes(&name, now);
            }
            for name in scene.holders() {
                scene.ends(&name, now);
            }
        }
        prop_assert_eq!((scene.waiting(), scene.holders()), (vec![], vec![]));
    }
}

/// Whoever was let in has a place; nobody has two; nobody was called who doesn't wait; and places aren't kept empty.
fn check(scene: &Scene, running: &BTreeMap<&str, u64>, now: u64) -> Result<(), TestCaseError> {
    let Some(gate) = &scene.gate else { return Ok(()) };
    let holders: Vec<&Owner> = gate.holders.iter().map(|one| &one.owner).collect();
    for (name, until) in running {
        let found = gate.holders.iter().find(|one| one.owner == task(name));
        let is_held = found.is_some_and(|one| one.until == at(*until) && !one.is_called());
        prop_assert!(is_held, "{} has lost its place: {:?}", name, gate);
    }
    for (nth, holder) in gate.holders.iter().enumerate() {
        prop_assert!(!holders[..nth].contains(&&holder.owner), "two places: {:?}", gate);
        if let Hold::Called { branch } = holder.hold {
            let waits = scene.items.values().find(|one| one.owner == holder.owner);
            prop_assert_eq!(waits.map(|one| one.branch.mark()), Some(branch));
            prop_assert_eq!(holder.until, holder.since.plus(CALL));
        }
    }
    // After the next look, no place is free for one that could come.
    let mut looked_at = scene.clone();
    looked_at.is_looked_at(now);
    let gate = looked_at.gate();
    for waiter in looked_at.items.values() {
        let is_settled =
            gate.has(waiter) || gate.is_absent(waiter.branch.mark(), at(now)) || gate.free() == 0;
        prop_assert!(is_settled, "{:?} isn't called: {:?}", waiter, gate);
    }
    Ok(())
}
