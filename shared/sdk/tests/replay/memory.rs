//! Suspended runs that stay in their worker's memory end as they would if each turn replayed its code.

use super::*;
use crate::tampering::{honest, live_by};

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
