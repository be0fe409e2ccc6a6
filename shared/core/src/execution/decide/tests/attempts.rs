//! Attempts with a timeout that is enforced even if their worker is lost: the due index has them.

use crate::decision::{Condition, DueReply, Write};
use crate::due::DueKind;
use crate::execution::ExecutionStatus as Status;
use crate::execution::decision::{Reply, StartTurnReply};
use crate::execution::journal::Entry;

use super::fixture::{Scene, begun, done, ends_attempt, execution};
use super::lifecycle::{SPENT, SUSPENDED, TAKEN};

const TIMED_OUT: Reply = Reply::Due(DueReply::TimedOut);
const NOTHING: Reply = Reply::Due(DueReply::Nothing);

/// A turn with a lease of ten minutes that has recorded these entries.
fn at_work(entries: Vec<Entry>) -> Scene {
    execution().started().take_for("a", "10m").record_entries("a", entries).replies(Reply::Recorded)
}

#[test]
fn an_attempt_lowers_the_due_slot_and_its_timer_is_sent_if_no_tick_comes_in_time() {
    let scene = at_work(vec![begun("charge", "30s")]);
    let scene = scene.due("31s", DueKind::Armed).sends_timer_for("31s").sends_no_hint();
    let [Write::Put { condition, .. }] = scene.decision().writes.as_slice() else { panic!() };
    assert_eq!(*condition, Condition::UNCHANGED);
    at_work(vec![begun("charge", "8m")]).due("8m 1s", DueKind::Instant).sends_no_timer();
    // A timeout after the record's due slot doesn't move it.
    at_work(vec![begun("charge", "1h")]).due("10m", DueKind::Backstop).sends_no_timer();
}

#[test]
fn a_worker_that_does_not_record_an_attempts_timeout_has_lost_its_turn_however_long_its_lease() {
    let scene = at_work(vec![begun("charge", "30s")]);
    let scene = scene.at("31s").timer_for("31s").replies(TIMED_OUT).is(Status::Pending);
    let scene = scene.sends_hint_for("31s").due("10m 31s", DueKind::Backstop);
    let scene = scene.record_entries("a", vec![done("charge", "1")]);
    scene.refuses(crate::error::Reject::TurnLost).changes_nothing().start_turn("b").replies(TAKEN);
    // The tick does the same if the timer was lost.
    at_work(vec![begun("charge", "30s")]).at("1m").tick().replies(TIMED_OUT).sends_hint_for("1m");
    // So does a worker that receives a message.
    at_work(vec![begun("charge", "30s")]).at("31s").start_turn("b").replies(TAKEN);
}

#[test]
fn a_live_worker_records_the_timeout_first() {
    let scene = at_work(vec![begun("charge", "30s")]).at("30s").tick().replies(NOTHING).changes_nothing();
    let scene = scene
        .at("30s 999ms")
        .start_turn("b")
        .replies(Reply::StartTurn(StartTurnReply::LeasedByOther))
        .timer_for("31s");
    let scene = scene.replies(Reply::Due(DueReply::Waiting)).sends_timer_for("31s");
    let scene = scene.record_entries("a", vec![ends_attempt("charge")]).replies(Reply::Recorded);
    let scene = scene.at("31s").timer_for("31s").replies(NOTHING).changes_nothing();
    scene.tick().replies(Reply::Due(DueReply::Rearmed)).due("10m", DueKind::Backstop).is(Status::Running);
    // Its report counts later too, if no other worker has taken over.
    let late = at_work(vec![begun("charge", "30s")]).at("40s");
    late.record_entries("a", vec![ends_attempt("charge")]).replies(Reply::Recorded);
}

#[test]
fn of_several_attempts_the_first_counts_and_only_while_it_is_under_way() {
    let scene = at_work(vec![begun("one", "30s"), begun("two", "20s"), begun("three", "40s")]);
    let scene = scene.due("21s", DueKind::Armed).at("10s").record_entries("a", vec![ends_attempt("two")]);
    let scene = scene.at("21s").timer_for("21s").sends_timer_for("31s").changes_nothing();
    let scene = scene.record_entries("a", vec![ends_attempt("one")]).due("41s", DueKind::Armed);
    scene.sends_timer_for("41s").at("31s").timer_for("21s").replies(NOTHING).sends_nothing();
}

#[test]
fn an_attempt_is_watched_though_the_part_of_the_journal_that_has_it_is_sealed() {
    let large = |index: usize| done(&format!("large[{index}]"), &format!("\"{}\"", "x".repeat(200)));
    let scene = at_work(vec![begun("charge", "30s")]);
    let scene = scene.record_entries("a", (0..6).map(large).collect());
    assert!(scene.record().sealed.is_some() && scene.record().journal.is_empty());
    let still_watched = scene.at("31s").timer_for("31s").replies(TIMED_OUT);
    still_watched.is(Status::Pending);
    let scene = at_work(vec![begun("charge", "30s")]).record_entries("a", (0..6).map(large).collect());
    scene.record_entries("a", vec![ends_attempt("charge")]).at("31s").timer_for("31s").replies(NOTHING);
}

#[test]
fn the_lease_and_its_message_are_not_cut_short_by_an_attempt() {
    let scene = at_work(vec![begun("charge", "30s")]).at("5s").heartbeat("a").sends_no_timer();
    assert_eq!(scene.record().turn().unwrap().lease_expires_at, super::fixture::t("10m 5s"));
}

#[test]
fn a_turn_that_ends_or_is_taken_over_leaves_no_attempt_behind() {
    let scene = at_work(vec![begun("charge", "30s")]).sleep_until("a", "5m").replies(SUSPENDED);
    let scene = scene.at("31s").timer_for("31s").changes_nothing().start_turn("b").replies(SPENT);
    scene.is(Status::Waiting);
    let lost = execution().started().take_for("a", "10s").record_entries("a", vec![begun("charge", "30s")]);
    let taken = lost.at("20s").take_for("b", "10m").replies(TAKEN).at("31s").timer_for("31s");
    taken.replies(NOTHING).is(Status::Running);
}

#[test]
fn a_timed_out_attempt_ends_the_turn_of_a_paused_execution_which_continues_when_resumed() {
    let scene = at_work(vec![begun("charge", "30s")]).pause().at("31s").timer_for("31s").replies(TIMED_OUT);
    let scene = scene.sends_no_hint().has_no_due().start_turn("b").replies(SPENT);
    scene.at("1h").resume().sends_hint_for("31s").start_turn("b").replies(TAKEN);
}

#[test]
fn a_deadline_that_comes_before_ends_the_execution_and_the_attempt_with_it() {
    let plan = execution().deadline("20s").started().start_turn("a");
    let scene = plan.record_entries("a", vec![begun("charge", "30s")]).due("20s", DueKind::Armed);
    scene.at("20s").timer_for("20s").is(Status::TimedOut).has_no_due();
}
