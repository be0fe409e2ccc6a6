//! Branches of a line that nobody comes from: perhaps no worker reads their queue.

use super::{CREATED, Scene, Taken, at, branch_of, inc, task};
use crate::flow::Priority;
use crate::gate::{Absent, withdraw};

/// A key with one place that is taken, and one of the queue `deaf` who waits.
fn with_a_deaf_one() -> Scene {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    scene.comes_with("deaf.1", Priority::High, 1);
    scene
}

/// What the key knows of the queue `deaf`.
fn absence(scene: &Scene) -> Option<Absent> {
    scene.gate().absent.iter().find(|one| one.branch == branch_of("deaf.1").mark()).copied()
}

fn is_absent(scene: &Scene, seconds: u64) -> bool {
    scene.gate().is_absent(branch_of("deaf.1").mark(), at(seconds))
}

#[test]
fn a_branch_that_was_called_in_vain_comes_after_the_others_whatever_its_priority() {
    let mut scene = with_a_deaf_one();
    scene.comes_with("b", Priority::Low, 2);
    scene.comes_with("c", Priority::Low, 3);
    scene.ends("a", 4);
    assert_eq!(scene.holders(), ["deaf.1"]);
    scene.is_patrolled(9);
    assert_eq!((scene.holders(), absence(&scene).map(|one| one.times)), (vec!["b".to_owned()], Some(1)));
    assert!(!is_absent(&scene, 9), "once may be by chance");
    scene.comes("b", 9);
    scene.ends("b", 10);
    assert_eq!(scene.holders(), ["c"]);
    scene.comes("c", 10);
    scene.ends("c", 11);
    assert_eq!(scene.holders(), ["deaf.1"], "it is called again where nobody else waits");
}

#[test]
fn a_branch_is_called_ever_less_often_and_once_an_hour_in_the_end() {
    let mut scene = with_a_deaf_one();
    scene.ends("a", 2);
    let (mut now, mut pauses) = (2, vec![]);
    for times in 1..=10 {
        assert_eq!(scene.holders(), ["deaf.1"]);
        now += 5;
        scene.change(at(now), false, |gate| gate.withdraw_late_calls(at(now)));
        let absent = absence(&scene).unwrap();
        assert_eq!((absent.times, &scene.holders()), (times, &vec![]));
        let pause = absent.until.since(at(now)).as_u64() / 1_000;
        if pause > 0 {
            assert!(is_absent(&scene, now + pause - 1));
            scene.is_looked_at(now + pause - 1);
            assert!(scene.holders().is_empty(), "it is called too early");
        }
        now += pause;
        pauses.push(pause);
        scene.is_looked_at(now);
    }
    assert_eq!(pauses, [0, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600, 3_600]);
}

#[test]
fn the_count_of_calls_in_vain_has_an_end() {
    let mut scene = with_a_deaf_one();
    scene.ends("a", 2);
    let mut now = 2;
    for _ in 0..600 {
        now += 3_700;
        scene.is_patrolled(now);
    }
    let absent = absence(&scene).unwrap();
    assert_eq!((absent.times, absent.until.since(at(now)).as_u64() <= 3_600_000), (u8::MAX - 1, true));
}

#[test]
fn whoever_comes_of_a_branch_clears_its_absence_whether_or_not_there_is_a_place() {
    let mut scene = with_a_deaf_one();
    scene.ends("a", 2);
    scene.is_patrolled(7);
    scene.is_patrolled(12);
    assert!(is_absent(&scene, 13));
    assert_eq!(scene.comes("b", 13), CREATED, "its place isn't kept empty");
    assert_eq!(scene.comes("deaf.1", 14), Taken::Full);
    assert_eq!(absence(&scene), None, "there is a worker");
    scene.comes_with("c", Priority::Normal, 15);
    scene.ends("b", 16);
    assert_eq!(scene.holders(), ["deaf.1"], "it has its own order again");
    // One that waits in no line, or in that of another key, says nothing of this one's branches.
    scene.is_patrolled(21);
    let before = absence(&scene);
    scene.comes("d", 22);
    assert_eq!((before.map(|one| one.times), absence(&scene)), (Some(1), before));
}

#[test]
fn who_takes_the_place_of_a_late_one_says_that_its_branch_is_absent() {
    let mut scene = with_a_deaf_one();
    scene.ends("a", 2);
    scene.comes("b", 7);
    assert_eq!((scene.holders(), absence(&scene).map(|one| one.times)), (vec!["b".to_owned()], Some(1)));
}

#[test]
fn an_offer_that_is_taken_back_because_its_task_has_ended_is_no_absence() {
    let mut scene = with_a_deaf_one();
    scene.ends("a", 2);
    scene.items.clear();
    scene.change(at(3), true, |gate| withdraw(gate, &task("deaf.1"), inc("deaf.1"), 1));
    assert_eq!((scene.holders(), absence(&scene)), (vec![], None));
}

#[test]
fn a_place_that_was_taken_and_ended_is_no_absence_of_its_branch() {
    let mut scene = with_a_deaf_one();
    scene.ends("a", 2);
    scene.comes("deaf.1", 3);
    scene.is_looked_at(43);
    assert_eq!((scene.holders(), absence(&scene)), (vec![], None));
}

#[test]
fn an_absence_is_forgotten_a_day_after_its_pause() {
    let mut scene = with_a_deaf_one();
    scene.comes("other.1", 2);
    scene.ends("a", 3);
    scene.is_patrolled(8);
    assert_eq!(
        (scene.holders(), absence(&scene).map(|one| one.until)),
        (vec!["other.1".into()], Some(at(8)))
    );
    scene.items.clear();
    // The next call in vain clears what is old.
    let mut early = scene.clone();
    early.is_patrolled(86_407);
    assert_eq!(absence(&early).map(|one| one.times), Some(1));
    scene.is_patrolled(86_408);
    let known: Vec<u32> = scene.gate().absent.iter().map(|one| one.branch).collect();
    assert_eq!(known, [branch_of("other.1").mark()]);
}

#[test]
fn a_gate_knows_thirty_two_queues_that_were_called_in_vain() {
    let mut scene = Scene::with_limit(1);
    scene.comes("a", 0);
    for nth in 0..40 {
        scene.goes_in_line(&format!("q{nth:02}.1"), Priority::Normal, 1 + nth);
    }
    scene.ends("a", 50);
    for nth in 1..=33 {
        assert_eq!(scene.holders(), [format!("q{:02}.1", nth - 1)]);
        scene.is_patrolled(50 + 5 * nth);
    }
    let known: Vec<u32> = scene.gate().absent.iter().map(|one| one.branch).collect();
    let expected: Vec<u32> = (1..=32).map(|nth| branch_of(&format!("q{nth:02}.1")).mark()).collect();
    assert_eq!(known, expected);
}

#[test]
fn places_that_were_offered_to_a_queue_at_once_are_one_call_in_vain() {
    let mut scene = Scene::with_limit(2);
    scene.comes("a", 0);
    scene.comes("b", 0);
    scene.comes_with("deaf.1", Priority::High, 1);
    scene.comes_with("deaf.2", Priority::High, 1);
    scene.ends("a", 2);
    scene.ends("b", 2);
    assert_eq!(scene.holders(), ["deaf.1", "deaf.2"]);
    scene.change(at(8), false, |gate| gate.withdraw_late_calls(at(8)));
    assert_eq!((scene.holders(), absence(&scene).map(|one| one.times)), (vec![], Some(1)));
    assert!(!is_absent(&scene, 8));
}
