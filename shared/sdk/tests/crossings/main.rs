//! Random programs of users in which features meet: remote steps, undo, children, runs that follow each other, limits,
//! events, callbacks, maps, repairs, and what an operator does meanwhile. One process dies after a write.
//!
//! Whatever dies: the outcome is the one without a death, each effect is made for the same pieces of work, undo is
//! complete and in reverse, nothing stays open or holds a place, and nothing ends later than the lease allows.
//!
//! The random numbers differ from run to run, except in CI. `PROPTEST_CASES=5120` tries twenty times as many.

#![expect(clippy::unwrap_used, reason = "a test fails if it doesn't find what it expects")]

mod code;
mod plan;
mod story;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestError, TestRunner};

use plan::{Deed, Ending, Far, Piece, Plan, Policy, Repair, plan};
use story::Told;

/// The number of programs. Each has about nine lives.
const PROGRAMS: u32 = 16;
/// The most deaths that are tried for one program.
const DEATHS_MAX: u64 = 8;
/// The lease of a worker, and a few seconds.
const LATER_AT_MOST_MS: u64 = 65_000;

/// Tells the story of a program without a death, and then with each of the chosen ones.
async fn live(plan: &Plan) -> Result<(), String> {
    with_deaths(plan, DEATHS_MAX).await
}

/// At most so many deaths.
async fn with_deaths(plan: &Plan, most: u64) -> Result<(), String> {
    let (undisturbed, writes) = story::tell(plan, 0).await;
    undisturbed.is_consistent(plan).map_err(|problem| format!("undisturbed: {problem}\n{undisturbed:#?}"))?;
    let step = writes.div_ceil(most).max(1);
    let mut write = 1 + plan.death % step;
    while write <= writes {
        let (told, _) = story::tell(plan, write).await;
        let problem = told.is_consistent(plan).and_then(|()| told.is_as(&undisturbed, plan));
        problem.map_err(|problem| {
            format!(
                "death after write {write} of {writes}: {problem}\n{told:#?}\nwithout it: {undisturbed:#?}"
            )
        })?;
        write += step;
    }
    Ok(())
}

fn block_on(case: impl Future<Output = Result<(), String>>) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(tokio::task::unconstrained(case)).map_err(TestCaseError::fail)
}

fn config(programs: u32) -> ProptestConfig {
    let usual = ProptestConfig::default();
    let cases = usual.cases * programs / 256;
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 300, ..usual }
}

proptest! {
    #![proptest_config(config(PROGRAMS))]

    #[test]
    fn features_that_meet_give_what_they_give_without_a_death(plan in plan()) {
        block_on(live(&plan))?;
    }
}

/// The problem that is reported if a story is changed before it is judged.
fn reported(change: fn(&mut Told)) -> String {
    let config = ProptestConfig { max_shrink_iters: 0, rng_seed: RngSeed::Fixed(7), ..config(5 * PROGRAMS) };
    let found = TestRunner::new(config).run(&plan(), |plan| {
        block_on(async {
            let (undisturbed, _) = story::tell(&plan, 0).await;
            let mut told = undisturbed.clone();
            change(&mut told);
            told.is_consistent(&plan).and_then(|()| told.is_as(&undisturbed, &plan))
        })
    });
    match found {
        Err(TestError::Fail(reason, _)) => reason.to_string(),
        other => unreachable!("it found nothing: {other:?}"),
    }
}

#[test]
fn an_effect_with_another_key_would_be_noticed() {
    let change = |told: &mut Told| {
        if let Some(keys) = told.outside.keys.values_mut().next() {
            keys.insert("another".to_owned());
        }
    };
    assert!(reported(change).contains("keys"));
}

#[test]
fn undo_in_another_order_and_a_late_end_would_be_noticed() {
    assert!(reported(|told| told.outside.done.reverse()).contains("undone"));
    let late = |told: &mut Told| told.ended_after_ms += 200_000;
    assert!(reported(late).contains("later"));
}

/// The programs that once went wrong.
#[tokio::test]
async fn programs_that_once_went_wrong_go_right() {
    let undone = Piece::Undone { far: true };
    let child = Piece::Child { limited: true, pieces: vec![Piece::Far(Far::Flaky), Piece::Near] };
    let limited = Piece::Child { limited: true, pieces: vec![] };
    let left = |policy| Piece::Left { policy, minutes: 60 };
    let programs = [
        (vec![undone.clone(), Piece::Event, Piece::Far(Far::Alone)], Ending::Fails, None),
        (vec![child.clone(), child, Piece::NextRun, Piece::Event], Ending::Mended(Repair::Rerun), None),
        (vec![Piece::Callback, Piece::Near], Ending::Mended(Repair::RetryStep), Some((2, Deed::Pause))),
        (vec![left(Policy::Cancel), Piece::NextRun, left(Policy::Terminate)], Ending::Returns, None),
        (vec![undone, Piece::Sleep { minutes: 7 }], Ending::Returns, Some((3, Deed::Cancel))),
        (vec![limited], Ending::Mended(Repair::Restart), None),
        (vec![Piece::Undone { far: true }], Ending::Fails, Some((1, Deed::Pause))),
        (vec![left(Policy::Cancel), Piece::Near], Ending::Mended(Repair::BulkRetry), None),
    ];
    for (pieces, ending, deed) in programs {
        for alone in [true, false] {
            let plan = Plan { pieces: pieces.clone(), ending, count: 2, alone, deed, death: 0 };
            with_deaths(&plan, u64::MAX).await.unwrap();
        }
    }
}
