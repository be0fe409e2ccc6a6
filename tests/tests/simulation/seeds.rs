//! The product as it is.

use tickover_tests::sim::search::first_failure;

#[test]
fn every_invariant_holds_in_a_thousand_runs() {
    if let Some(failure) = first_failure(1, 1_000, None) {
        panic!("{failure}");
    }
}
