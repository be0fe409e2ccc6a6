//! The journal: in the record while it has space, in segments after that, and never beyond its limits.

use crate::error::Reject;
use crate::execution::command::Ending;
use crate::execution::decision::Reply;
use crate::execution::journal::{Entry, SEGMENT_BYTES};
use crate::execution::{ExecutionOutcome, ExecutionStatus as Status};

use super::fixture::{Scene, done, ended, execution, remote};
use super::lifecycle::CLOSED;

fn text(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

fn steps(count: usize, bytes: usize) -> Vec<Entry> {
    (0..count).map(|n| done(&format!("step-{n}"), &text(bytes))).collect()
}

#[test]
fn what_the_record_has_no_room_for_is_sealed_with_all_before_it() {
    let mut scene = execution().started().start_turn("a");
    let (mut recorded, mut seals) = (Vec::new(), 0);
    for entry in steps(60, 40) {
        recorded.push(entry.clone());
        scene = scene.record_entries("a", vec![entry]);
        seals += scene.decision().segments().len();
        let is_sealed = !scene.decision().segments().is_empty();
        assert_eq!(scene.record().journal.is_empty(), is_sealed);
        assert_eq!(scene.journal(), recorded);
        assert_eq!(scene.record().completed_steps(), u32::try_from(recorded.len()).ok());
    }
    assert!((5..20).contains(&seals), "{seals} segments");
    scene.complete("a").has_ended();
}

#[test]
fn five_small_steps_need_no_segment() {
    let scene = execution().input(&text(60)).started().start_turn("a").record_entries("a", steps(5, 20));
    assert!(scene.decision().segments().is_empty(), "{} bytes", crate::size::of(scene.record()));
    scene.complete("a").has_ended();
}

#[test]
fn a_lot_of_entries_at_once_goes_into_segments_that_an_item_can_hold() {
    let entries = steps(9_000, 150);
    let scene =
        execution().started().start_turn("a").record_entries("a", entries.clone()).replies(Reply::Recorded);
    let segments = scene.decision().segments();
    assert!(segments.len() > 2, "{} segments", segments.len());
    for (index, (key, segment)) in segments.iter().enumerate() {
        assert_eq!(key.number as usize, index + 1);
        assert!(serde_json::to_vec(&segment.entries).unwrap().len() <= SEGMENT_BYTES + 2);
    }
    assert_eq!(scene.journal(), entries);
    let scene = scene.record_entries("a", steps(10, 150));
    assert_eq!(scene.journal().len(), 9_010);
}

#[test]
fn a_journal_has_no_more_entries_than_the_limit_but_its_run_can_always_end() {
    let full = || -> Scene {
        let plan = execution().limited(|limits| limits.journal_entries = 10);
        plan.started().start_turn("a").record_entries("a", steps(10, 10))
    };
    let too_many = Reject::LimitExceeded { limit: "journal_entries", value: 11, maximum: 10 };
    full().record_entries("a", steps(1, 10)).refuses(too_many.clone()).changes_nothing();
    full().suspend("a", |suspend| suspend.entries = steps(1, 10)).refuses(too_many.clone()).changes_nothing();
    full().send_event("go").refuses(too_many).is(Status::Running);
    full().wait("a").is(Status::Waiting);
    let ending = Ending::Outcome(ExecutionOutcome::Completed { output: None });
    full().close_with("a", steps(1, 10), ending).replies(CLOSED).is(Status::Completed);
    full().cancel().replies(Reply::Changed { changed: true });
}

#[test]
fn nothing_runs_again_in_a_journal_that_has_no_space_for_it() {
    let ended = |entries: usize| {
        let plan = execution().limited(|limits| limits.journal_entries = 10);
        let scene = plan.started().start_turn("a").record_entries("a", steps(entries, 10));
        scene.fail_by_step("a", "charge").at("1h")
    };
    let too_many = || Reject::LimitExceeded { limit: "journal_entries", value: 11, maximum: 10 };
    ended(10).retry_step("charge").refuses(too_many()).changes_nothing().is(Status::Failed);
    ended(10).restart(steps(10, 10)).refuses(too_many()).changes_nothing().is(Status::Failed);
    ended(9).retry_step("charge").replies(Reply::Changed { changed: true });
    ended(9).restart(steps(9, 10)).replies(Reply::Changed { changed: true });
}

#[test]
fn no_more_steps_are_open_at_once_than_the_limit_allows() {
    let plan = execution().limited(|limits| limits.open_steps = 2);
    let scene = plan.started().start_turn("a").record_entries("a", vec![remote("one"), remote("two")]);
    let too_many = Reject::LimitExceeded { limit: "open_steps", value: 3, maximum: 2 };
    let scene = scene.record_entries("a", vec![remote("three")]).refuses(too_many).changes_nothing();
    let scene = scene.record_entries("a", vec![ended("one"), remote("three")]).replies(Reply::Recorded);
    assert_eq!(scene.record().open_steps, 2);
}
