//! Limits: which one counts, and what a change of it does.

use std::num::NonZeroU16;

use super::{CREATED, START, Scene, Taken, asked, at, id};
use crate::flow::Priority;
use crate::gate::{Candidate, Gate, Take, offer, take};
use crate::id::Nonce;

#[test]
fn the_limit_of_the_task_that_was_scheduled_last_counts_unless_an_operator_has_set_one() {
    let mut scene = Scene::with_limit(5);
    let asks = |scene: &mut Scene, name: &str, limit, seconds: u64| {
        let take = Take { limit: asked(limit, seconds), ..scene.asks_as(name, at(9)) };
        scene.asks(&take, 9)
    };
    asks(&mut scene, "a", 1, 1);
    assert_eq!(asks(&mut scene, "b", 2, 2), CREATED);
    assert_eq!(asks(&mut scene, "c", 5, 0), Taken::Full, "an older task's limit");
    scene.goes_in_line("c", Priority::Normal, 9);
    assert!(scene.called.is_empty());
    scene.is_pinned(Some(3), 10);
    assert_eq!(scene.called, ["c"]);
    scene.comes("c", 10);
    assert_eq!(asks(&mut scene, "d", 5, 5), Taken::Full);
    scene.goes_in_line("d", Priority::Normal, 10);
    scene.is_pinned(None, 11);
    assert_eq!(scene.called, ["c", "d"]);
}

#[test]
fn whoever_waits_with_a_higher_limit_raises_it() {
    let mut gate = Gate::new(id(0), "k".into(), Nonce::from_bytes([0; 8]), START);
    let first = Take { limit: asked(1, 1), ..Scene::with_limit(1).asks_as("a", START) };
    assert_eq!(take(&mut gate, &first, START), CREATED);
    let mut line = Scene::with_limit(1);
    line.goes_in_line("b", Priority::Normal, 2);
    let candidate = |limit| {
        line.items.values().map(|one| Candidate { waiter: one.clone(), limit, served: true }).collect()
    };
    let candidates: [Vec<Candidate>; 2] = [asked(2, 0), asked(2, 2)].map(candidate);
    assert!(offer(&mut gate, &candidates[0], at(3)).is_empty(), "it was asked for earlier");
    assert_eq!(offer(&mut gate, &candidates[1], at(3)).len(), 1);
}

#[test]
fn a_lower_limit_takes_no_place_away_and_lets_nobody_in_until_enough_have_ended() {
    let mut scene = Scene::with_limit(3);
    for name in ["a", "b", "c", "d"] {
        scene.comes(name, 0);
    }
    scene.is_pinned(Some(1), 1);
    assert_eq!(scene.holders(), ["a", "b", "c"]);
    for name in ["a", "b"] {
        scene.ends(name, 2);
    }
    assert_eq!(scene.holders(), ["c"]);
    scene.ends("c", 3);
    assert_eq!(scene.holders(), ["d"]);
    // An offer that is late is no place for another while more have places than may.
    let mut scene = Scene::with_limit(2);
    for (name, seconds) in [("a", 0), ("b", 0), ("c", 1)] {
        scene.comes(name, seconds);
    }
    scene.ends("a", 2);
    scene.is_pinned(Some(1), 3);
    assert_eq!((scene.comes("d", 9), scene.holders()), (Taken::Full, vec!["b".into(), "c".to_owned()]));
}

#[test]
fn a_gate_is_full_for_a_limit_while_so_many_places_are_taken_and_have_not_ended() {
    let mut scene = Scene::with_limit(2);
    let is_full =
        |scene: &Scene, limit, seconds| scene.gate().is_full(NonZeroU16::new(limit).unwrap(), at(seconds));
    scene.comes("a", 0);
    assert!(is_full(&scene, 1, 39) && !is_full(&scene, 2, 39));
    assert!(!is_full(&scene, 1, 40), "its only place has ended");
    scene.comes("b", 20);
    assert!(is_full(&scene, 2, 39) && !is_full(&scene, 2, 40) && !is_full(&scene, 3, 39));
    scene.is_pinned(Some(3), 21);
    assert!(!is_full(&scene, 1, 39), "an operator's limit counts");
}
