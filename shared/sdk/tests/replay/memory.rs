//! Suspended runs that stay in their worker's memory end as they would if each turn replayed its code.

use super::*;
use crate::tampering::{honest, live_by};
use crate::witness::Witness;

/// Many runs, so that all of them stay in memory.
const MANY: usize = 1_000;

proptest! {
    #![proptest_config(config(KEPT))]

    #[test]
    fn a_run_in_memory_sees_what_a_replay_would_see(plan in plan()) {
        block_on(live_by(&plan, honest, &[MANY]))?;
    }

    // With room for one run, a child pushes its parent out.
    #[test]
    fn memory_that_is_lost_or_old_changes_nothing(plan in plan()) {
        block_on(live_by(&plan, honest, &[MANY, 1, 0, MANY]))?;
    }
}

/// Each worker stops a few seconds after it has begun, and its last turn is broken off when its grace period is over. For
/// one of the durations, the step ends at that very instant.
#[test]
fn what_has_ended_in_a_turn_that_is_broken_off_does_not_run_again() {
    let step = |seconds, fails| {
        let spec = Spec { seconds, fails, bytes: 1, pause: 3, timeout: None, place: Place::Inline };
        Box::new(Node::Leaf(Leaf::Step(spec)))
    };
    for (seconds, fails) in (1..22).flat_map(|seconds| [(seconds, 0), (seconds, 1)]) {
        let tree = Node::Channel(step(seconds, fails), step(0, 0));
        let plan = Plan { tree, offers: vec![], ending: Ending::Result, write_choice: 0 };
        block_on(live_by(&plan, honest, &[MANY])).unwrap();
        // Each attempt that ends makes a value with the next number.
        let (seen, result) = (Witness::current().shown(), format!("\"0.0#{}\"", fails + 1));
        assert!(seen.contains(&result), "{seconds} s, {fails} failures: an attempt is repeated\n{seen}");
    }
}
