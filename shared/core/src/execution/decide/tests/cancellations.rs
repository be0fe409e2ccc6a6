//! Cancellations of executions whose code undoes what it has done, or has something to do after a cancellation.

use crate::error::Reject;
use crate::execution::command::{Cleanup, Ending, ReleaseReason};
use crate::execution::decision::Reply;
use crate::execution::{DeadlineKind, ExecutionOutcome, ExecutionStatus as Status};
use crate::limits::Limits;

use super::fixture::{Plan, Scene, done, execution, span};
use super::lifecycle::TAKEN;

const CHANGED: Reply = Reply::Changed { changed: true };
const UNCHANGED: Reply = Reply::Changed { changed: false };
const CANCELLED: ExecutionOutcome = ExecutionOutcome::Cancelled { terminated: false };

/// It waits, after its code has reported this.
fn waits(plan: Plan, cleanup: Cleanup) -> Scene {
    let entries = vec![done("book", "1")];
    let scene = plan.started().start_turn("a");
    scene.suspend("a", |suspend| (suspend.cleanup, suspend.entries) = (cleanup, entries))
}

fn undoes() -> Cleanup {
    Cleanup { undoes: true, ..Cleanup::default() }
}

fn handles() -> Cleanup {
    Cleanup { on_cancel: Some(span("5m")), ..Cleanup::default() }
}

#[test]
fn what_has_to_be_undone_is_undone_in_a_turn_before_the_execution_is_cancelled() {
    let scene = waits(execution(), undoes()).at("1m").cancel().replies(CHANGED);
    let scene = scene.is(Status::Pending).sends_hint_for("1m");
    assert!(scene.record().cancel_requested);
    // The call, repeated: its hint may have been lost.
    let scene = scene.cancel().replies(UNCHANGED).changes_nothing().sends_hint_for("1m");
    let scene = scene.start_turn("b").replies(TAKEN).close("b", CANCELLED);
    scene.ended_as(&CANCELLED).has_ended();
}

#[test]
fn a_cancellation_ends_a_pause_so_that_the_code_can_undo() {
    let scene = waits(execution(), undoes()).pause().cancel().is(Status::Pending).sends_hint_for("0s");
    scene.start_turn("b").replies(TAKEN);
    waits(execution(), handles()).pause().cancel().start_turn("b").replies(TAKEN);
    execution().started().start_turn("a").pause().cancel().is(Status::Running);
    waits(execution(), Cleanup::default()).pause().cancel().ended_as(&CANCELLED).has_ended();
}

#[test]
fn an_undo_step_that_waits_is_continued_by_later_turns() {
    let scene = waits(execution(), undoes()).cancel().start_turn("b");
    let scene = scene.suspend("b", |suspend| suspend.cleanup = undoes()).is(Status::Waiting);
    let scene = scene.cancel().replies(UNCHANGED).changes_nothing();
    let scene = scene.send_event("undone").start_turn("c").release("c", "0s").is(Status::Pending);
    scene.start_turn("d").replies(TAKEN).close("d", CANCELLED).has_ended();
    // A turn that doesn't know of the request goes on.
    let scene = waits(execution(), undoes()).send_event("go").start_turn("b").cancel();
    scene.suspend("b", |suspend| suspend.seen_version -= 1).is(Status::Running);
}

#[test]
fn a_lost_turn_may_have_something_to_undo_that_it_never_reported() {
    for lost in [
        execution().started().take_for("a", "1m").at("1m").cancel(),
        execution().started().take_for("a", "1m").cancel().at("1m"),
    ] {
        let scene = lost.start_turn("b").replies(TAKEN);
        assert!(scene.record().cancel_requested);
        // It has reported by now that there is nothing.
        scene.record_entries("b", vec![done("book", "1")]).release("b", "0s").ended_as(&CANCELLED);
    }
    // A heartbeat says nothing about it.
    let quiet = execution().started().start_turn("a").record_entries("a", vec![done("book", "1")]);
    let scene = quiet.heartbeat("a").release("a", "0s").cancel().ended_as(&CANCELLED);
    scene.has_ended();
}

#[test]
fn a_turn_that_is_given_back_says_what_its_code_has_registered() {
    let (by_worker, by_code) = (|| ReleaseReason::ByWorker, || ReleaseReason::ByCode);
    let begun = || execution().started().start_turn("a");
    // Its worker doesn't know.
    let unknown = || begun().release_with("a", "0s", by_worker(), None);
    unknown().cancel().is(Status::Pending).start_turn("b").replies(TAKEN).close("b", CANCELLED).has_ended();
    let asked = begun().cancel().release_with("a", "0s", by_worker(), None).is(Status::Pending);
    asked.start_turn("b").replies(TAKEN);
    let said = |cleanup| begun().release_with("a", "0s", by_code(), Some(cleanup)).cancel();
    said(undoes()).is(Status::Pending).start_turn("b").replies(TAKEN);
    said(Cleanup::default()).ended_as(&CANCELLED).has_ended();
    let handled = said(handles()).is(Status::Pending);
    assert!(handled.record().failing.is_some());
    let asked = begun().cancel().release_with("a", "0s", by_code(), Some(handles())).is(Status::Pending);
    assert!(asked.record().failing.is_some());
}

#[test]
fn what_a_lost_turn_may_undo_is_not_forgotten_by_a_next_one_that_runs_no_code() {
    let scene = execution().started().take_for("a", "1m").at("1m").start_turn("b").release("b", "0s");
    let scene = scene.cancel().is(Status::Pending);
    assert!(scene.record().cancel_requested);
    scene.start_turn("c").replies(TAKEN).close("c", CANCELLED).has_ended();
}

#[test]
fn undo_steps_that_take_too_long_are_cut_off_by_the_deadline_and_the_execution_is_cancelled() {
    let scene = waits(execution().deadline("1h"), undoes()).at("59m").cancel().start_turn("b");
    scene.at("1h").tick().ended_as(&CANCELLED).has_ended();
    let not_asked = waits(execution().deadline("1h"), undoes()).at("1h").tick();
    not_asked.ended_as(&ExecutionOutcome::TimedOut { kind: DeadlineKind::Execution });
}

#[test]
fn turns_that_come_to_nothing_end_the_undoing_too() {
    let mut scene = waits(execution(), undoes()).cancel();
    for turn in 0..Limits::default().idle_turns {
        let name = format!("{turn}");
        let at = format!("{}m", turn + 1);
        scene = scene.take_for(&name, "1m").replies(TAKEN).at(&at);
    }
    scene.start_turn("last").ended_as(&CANCELLED).has_ended();
}

#[test]
fn the_code_for_cancellations_has_time_of_its_own() {
    let plan = || execution().deadline("1h").on_failure("1m");
    let scene = waits(plan(), handles()).at("59m").cancel().replies(CHANGED).is(Status::Pending);
    assert!(!scene.record().cancel_requested);
    let failing = scene.record().failing.clone().unwrap();
    assert_eq!((failing.outcome, failing.deadline_at), (CANCELLED, super::fixture::t("1h 4m")));
    let handled = || waits(plan(), handles()).at("59m").cancel().start_turn("b").replies(TAKEN);
    handled().cancel().replies(UNCHANGED).changes_nothing();
    handled().at("1h 3m").close("b", CANCELLED).ended_as(&CANCELLED).has_ended();
    // Whatever becomes of it, the execution is cancelled.
    handled().fail("b").ended_as(&CANCELLED).has_ended();
    handled().at("1h 4m").tick().ended_as(&CANCELLED).has_ended();
    handled().terminate().ended_as(&ExecutionOutcome::Cancelled { terminated: true });
}

#[test]
fn it_begins_after_the_undo_steps_or_when_they_are_cut_off() {
    let both = Cleanup { undoes: true, ..handles() };
    let stopping = || waits(execution().deadline("1h"), both).cancel().start_turn("b");
    let close = |scene: Scene| scene.close_with("b", vec![], Ending::Outcome(CANCELLED));
    let scene = stopping();
    let after = close(scene.edit(|record| record.on_cancel = Some(span("5m"))));
    // The last write says that the code has no handler any more.
    after.ended_as(&CANCELLED).has_ended();
    let cut_off = stopping().at("1h").tick().is(Status::Pending);
    assert_eq!(cut_off.record().failing.as_ref().map(|failing| &failing.outcome), Some(&CANCELLED));
}

#[test]
fn an_undo_step_of_a_cancelled_execution_can_be_tried_again_and_nothing_else() {
    let cancelled = || {
        let scene = waits(execution(), undoes()).cancel().start_turn("b");
        scene.record_entries("b", vec![done("undo:book", "1")]).close("b", CANCELLED).has_ended()
    };
    let scene = cancelled().retry_step("undo:book").replies(CHANGED).is(Status::Pending);
    // Its code is stopped again.
    assert!(scene.record().cancel_requested);
    scene.start_turn("c").replies(TAKEN).close("c", CANCELLED).has_ended();
    let closed = Reject::ExecutionClosed { status: Status::Cancelled };
    cancelled().retry_step("book").refuses(closed.clone());
    cancelled().retry_step("undo:other").refuses(Reject::UnknownStep { name: "undo:other".to_owned() });
    let terminated = waits(execution(), undoes()).terminate();
    terminated.retry_step("undo:book").refuses(closed);
}
