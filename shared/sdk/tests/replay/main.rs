//! A replay goes the same way as the run before it: its code sees outcomes in the order in which it first saw them.
//! Tests random bodies in a system that dies, and workflows of users for which this once failed.
//!
//! The random numbers differ from run to run, except in CI. `PROPTEST_CASES=5120` tries twenty times as many.

#![expect(clippy::unwrap_used, reason = "a test fails if it doesn't find what it expects")]

mod body;
mod life;
mod memory;
mod random_poll;
mod steps;
mod tampering;
mod tree;
mod users;
mod witness;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestError, TestRunner};

use tampering::{Tampering, live_with};
use tree::{EVENTS, Ending, Goal, Leaf, Node, Place, Plan, Question, SentEvent, Spec, plan};

/// The number of bodies that are run with deaths: about ten lives each.
const WITH_DEATHS: u32 = 80;
/// The number of bodies that are run with runs kept in memory.
const KEPT: u32 = 200;
/// The number of bodies that are run once.
const UNDISTURBED: u32 = 200;

/// Runs a case with its own virtual time on a thread of its own.
fn block_on(case: impl Future<Output = Result<(), String>>) -> Result<(), TestCaseError> {
    let case = tokio::task::unconstrained(case);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(case).map_err(TestCaseError::fail)
}

/// This many cases; proptest's default is 256.
fn config(cases: u32) -> ProptestConfig {
    let usual = ProptestConfig::default();
    let cases = usual.cases * cases / 256;
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 500, ..usual }
}

proptest! {
    #![proptest_config(config(WITH_DEATHS))]

    #[test]
    fn a_replay_sees_what_was_seen_before_in_the_same_order_whenever_the_system_dies(plan in plan()) {
        block_on(life::live(&plan))?;
    }
}

proptest! {
    #![proptest_config(config(UNDISTURBED))]

    #[test]
    fn a_replay_without_deaths_sees_what_was_seen_before_in_the_same_order(plan in plan()) {
        block_on(live_with(&plan, tampering::honest))?;
    }
}

/// Several futures end while the body handles one of them. Afterwards the body polls the ended ones in random order.
#[test]
fn a_race_that_was_decided_in_another_turn_has_the_same_winner_whatever_is_polled_first() {
    let event = |within| Node::Leaf(Leaf::Event { event: EVENTS[0], within });
    let spec =
        |seconds, bytes| Spec { seconds, fails: 0, bytes, pause: 3, timeout: None, place: Place::Inline };
    let race = Leaf::Steps(Goal::First { cancelling: false }, vec![spec(7, 1), spec(0, 300)]);
    let channel = Node::Channel(Box::new(event(None)), Box::new(Node::Leaf(Leaf::Child(0))));
    let handled = vec![channel, event(Some(1)), Node::Leaf(race)];
    let offer = |event| SentEvent { after: 1, event, bytes: 1 };
    let offers = vec![offer(EVENTS[1]), offer(EVENTS[0])];
    for write_choice in 0..60 {
        let sleep = Node::Shared(Box::new(Node::Leaf(Leaf::Sleep(30))));
        let tree = Node::Handled(handled.clone(), Box::new(sleep));
        let plan = Plan { tree, offers: offers.clone(), ending: Ending::Result, write_choice };
        block_on(life::live(&plan)).unwrap();
    }
}

/// Three look at one large event. When one of them has taken it, another one that may take it now still can.
#[test]
fn a_large_event_is_there_for_each_future_that_looks_at_it() {
    let peek = Node::Leaf(Leaf::Ask(Question::Peek, EVENTS[0]));
    let event = Node::Leaf(Leaf::Event { event: EVENTS[0], within: None });
    for looks in 1..4 {
        let tree = Node::Handled(vec![peek.clone(); looks], Box::new(event.clone()));
        let offers = (0..looks).map(|_| SentEvent { after: 0, event: EVENTS[0], bytes: 300 }).collect();
        let plan = Plan { tree, offers, ending: Ending::Result, write_choice: 0 };
        block_on(live_with(&plan, tampering::honest)).unwrap();
        block_on(life::live(&plan)).unwrap();
    }
}

/// The error that the property reports for a store that lies. It tries the usual number of bodies, the same ones each
/// time.
fn reported_problem(lie: Tampering) -> String {
    let config = ProptestConfig { max_shrink_iters: 0, rng_seed: RngSeed::Fixed(7), ..config(UNDISTURBED) };
    let found = TestRunner::new(config).run(&plan(), |plan| block_on(live_with(&plan, lie)));
    match found {
        Err(TestError::Fail(reason, _)) => reason.to_string(),
        other => unreachable!("it found nothing: {other:?}"),
    }
}

#[test]
fn a_journal_with_two_outcomes_swapped_would_be_noticed() {
    let reason = reported_problem(tampering::swapped);
    assert!(reason.contains(" sees "), "{reason}");
}

#[test]
fn a_journal_in_the_order_of_names_would_be_noticed() {
    let reason = reported_problem(tampering::by_name);
    assert!(reason.contains(" sees "), "{reason}");
}

#[test]
fn a_journal_without_its_last_outcome_would_be_noticed() {
    let reason = reported_problem(tampering::forgotten);
    assert!(reason.contains(" runs ") || reason.contains(" lost "), "{reason}");
}
