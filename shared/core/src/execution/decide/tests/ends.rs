//! How executions end: by their code, by a deadline, by their `on_failure` code, and through the closing phase.

use crate::decision::{DueReply, Effect, Write};
use crate::due::DueKind;
use crate::error::Reject;
use crate::execution::command::{Cleanup, Close, Command, End, Ending};
use crate::execution::decision::{Reply, StartTurnReply};
use crate::execution::journal::Happened;
use crate::execution::{DeadlineKind, ExecutionOutcome, ExecutionStatus as Status, Progress};
use crate::limits::Limits;
use crate::payload::{BlobRef, Payload};

use super::fixture::{Scene, blob, child, done, done_aside, ended, execution, lease, remote, t, waited};
use super::lifecycle::{CLOSED, SPENT, TAKEN};

const TIMED_OUT: Reply = Reply::Due(DueReply::TimedOut);

fn timed_out(kind: DeadlineKind) -> ExecutionOutcome {
    ExecutionOutcome::TimedOut { kind }
}

// ---- deadlines

#[test]
fn the_failure_handler_relies_on_no_hint_that_should_have_come_before() {
    let plan = || execution().deadline("1h").on_failure("5m").started();
    let asleep = plan().start_turn("a").sleep_until("a", "10m").at("1h");
    asleep.timer_for("1h").replies(TIMED_OUT).is(Status::Pending).sends_hint_for("1h");
    let stirred = plan().start_turn("a").wait("a").at("30m").send_event("go").at("1h");
    stirred.tick().replies(TIMED_OUT).sends_hint_for("1h");
    // The hint of its start.
    plan().at("1h").tick().replies(TIMED_OUT).sends_hint_for("1h");
}

#[test]
fn a_deadline_that_passes_ends_an_execution_in_any_state() {
    let plan = || execution().deadline("1m");
    let standing = [
        plan().started(),
        plan().started().start_turn("a"),
        plan().started().start_turn("a").wait("a"),
        plan().started().start_turn("a").sleep_until("a", "30s"),
        plan().started().pause(),
    ];
    for scene in standing {
        let scene =
            scene.at("59s 999ms").tick().changes_nothing().at("1m").timer_for("1m").replies(TIMED_OUT);
        scene.ended_as(&timed_out(DeadlineKind::Execution)).has_ended().has_no_due().tick().changes_nothing();
    }
}

#[test]
fn any_command_on_an_execution_whose_deadline_has_passed_ends_it() {
    let running = || execution().run_deadline("1m").started().start_turn("a").at("1m");
    for scene in [
        running().record_entries("a", vec![done("late", "1")]),
        running().wait("a"),
        running().complete("a"),
        running().heartbeat("a"),
        running().release("a", "0s"),
    ] {
        let scene = scene.refuses(Reject::TurnLost).is(Status::TimedOut).has_ended();
        assert!(scene.journal().is_empty(), "what came too late isn't remembered");
    }
    running().start_turn("b").replies(SPENT).ended_as(&timed_out(DeadlineKind::Run));
    running().send_event("go").refuses(Reject::ExecutionClosed { status: Status::TimedOut }).has_ended();
}

#[test]
fn of_two_deadlines_that_have_passed_the_executions_counts() {
    let scene = execution().deadline("2m").run_deadline("1m").started().at("3m").tick();
    scene.ended_as(&timed_out(DeadlineKind::Execution));
    let scene = execution().deadline("2m").run_deadline("1m").started().at("1m").tick();
    scene.ended_as(&timed_out(DeadlineKind::Run));
}

#[test]
fn a_deadline_has_a_timer_on_its_way_to_it() {
    execution().deadline("1m").started().due("1m", DueKind::Armed).sends_timer_for("1m");
    let scene = execution().deadline("1h").started().due("10m", DueKind::Backstop).sends_no_timer();
    scene.start_turn("a").wait("a").next_tick().due("1h", DueKind::Instant);
    let scene = execution().run_deadline("3m").started().sends_timer_for("3m").at("1m").start_turn("a");
    scene
        .continue_as_new("a", vec![])
        .due("3m", DueKind::Armed)
        .sends_no_timer()
        .at("3m")
        .timer_for("3m")
        .replies(Reply::Due(DueReply::Waiting));
}

// ---- on_failure

#[test]
fn a_failure_is_dealt_with_before_the_execution_ends() {
    let failing =
        || execution().on_failure("5m").started().start_turn("a").at("10s").fail("a").replies(CLOSED);
    let scene = failing().is(Status::Pending).sends_hint_for("10s");
    assert_eq!(scene.record().failing.as_ref().unwrap().deadline_at, t("5m 10s"));
    let scene = scene.start_turn("b").replies(TAKEN).record_entries("b", vec![done("refund", "1")]);
    // The `on_failure` code recovers, or it doesn't.
    scene.complete("b").is(Status::Completed);
    let scene = failing().start_turn("b").close("b", ExecutionOutcome::TimedOut { kind: DeadlineKind::Run });
    assert!(matches!(scene.outcome(), ExecutionOutcome::Failed { error, .. } if error.code == "broken"));
    assert_eq!(scene.record().failing, None);
    failing().start_turn("b").continue_as_new("b", vec![]).is(Status::Failed).has_ended();
}

#[test]
fn a_missed_deadline_is_dealt_with_as_well_and_the_old_deadlines_no_longer_count() {
    let scene = execution().deadline("1m").on_failure("5m").started().start_turn("a").at("2m").tick();
    let scene = scene.replies(TIMED_OUT).is(Status::Pending).sends_hint_for("2m");
    let scene = scene
        .at("3m")
        .start_turn("b")
        .replies(TAKEN)
        .at("6m 59s")
        .record_entries("b", vec![done("refund", "1")]);
    scene.replies(Reply::Recorded).at("7m").tick().ended_as(&timed_out(DeadlineKind::Execution)).has_ended();
}

#[test]
fn a_deadline_that_passes_in_a_pause_ends_the_pause_if_code_deals_with_it() {
    let paused = || execution().deadline("1m").started().start_turn("a").at("30s").pause();
    let scene = execution().deadline("1m").on_failure("5m").started().start_turn("a").at("30s").pause();
    let scene = scene.at("2m").tick().is(Status::Pending).sends_hint_for("2m");
    assert!(!scene.record().paused);
    scene.at("3m").start_turn("b").replies(TAKEN).complete("b").is(Status::Completed);
    paused().at("2m").tick().ended_as(&timed_out(DeadlineKind::Execution));
}

#[test]
fn the_code_for_failures_may_be_known_only_once_a_turn_has_begun() {
    let scene = execution().started().start_turn("a").suspend("a", |suspend| {
        suspend.cleanup.on_failure = Some(super::fixture::span("1m"));
    });
    scene.send_event("go").start_turn("b").fail("b").is(Status::Pending);
}

#[test]
fn a_cancelled_execution_has_no_failure_to_deal_with() {
    execution().on_failure("5m").started().cancel().is(Status::Cancelled).has_ended();
    let scene = execution().on_failure("5m").started().start_turn("a").cancel();
    scene.close("a", ExecutionOutcome::Cancelled { terminated: false }).is(Status::Cancelled).has_ended();
}

#[test]
fn code_that_deals_with_a_failure_goes_on_after_a_cancellation() {
    let failing = || execution().on_failure("5m").started().start_turn("a").fail("a").is(Status::Pending);
    failing().cancel().replies(Reply::Changed { changed: false }).changes_nothing();
    let scene = failing().start_turn("b").cancel().changes_nothing();
    scene.complete("b").is(Status::Completed);
    failing().terminate().ended_as(&ExecutionOutcome::Cancelled { terminated: true });
}

// ---- closing

#[test]
fn a_child_that_the_next_run_takes_over_is_open_once() {
    let with = |left: bool, was_left: bool| {
        let mut entry = child("watch");
        if let Happened::Child { left: of, was_left: was, .. } = &mut entry.what {
            (*of, *was) = (left, was_left);
        }
        entry
    };
    let scene = execution().started().start_turn("a").record_entries("a", vec![child("watch")]);
    let scene = scene.continue_as_new("a", vec![with(true, false)]).start_turn("b");
    assert_eq!(scene.record().open_steps, 1);
    let scene = scene.record_entries("b", vec![with(false, true)]);
    assert_eq!(scene.record().open_steps, 1);
    assert_eq!(scene.record_entries("b", vec![ended("watch")]).record().open_steps, 0);
}

#[test]
fn what_is_left_open_is_ended_before_the_execution_is_closed_for_good() {
    let scene =
        execution().started().start_turn("a").record_entries("a", vec![remote("print"), child("order-8")]);
    assert_eq!(scene.record().open_steps, 2);
    let scene = scene.complete("a").is(Status::Completed).closes_later().due("10m", DueKind::Backstop);
    let outcome = scene.outcome().clone();
    let closing = Reply::StartTurn(StartTurnReply::Closing);
    let scene = scene.start_turn("b").replies(closing).changes_nothing();
    let scene = scene.cancel().changes_nothing().at("1m").send_event("go").changes_nothing();
    let scene = scene.finish().replies(Reply::Changed { changed: true }).has_ended().has_no_due();
    scene.ended_as(&outcome).finish().replies(Reply::Changed { changed: false }).changes_nothing();
}

#[test]
fn steps_that_have_ended_leave_nothing_open() {
    let scene = execution().started().start_turn("a").record_entries("a", vec![remote("print")]);
    scene.record_entries("a", vec![ended("print")]).complete("a").has_ended();
}

#[test]
fn an_execution_that_is_not_seen_to_its_end_is_found_by_the_tick() {
    let scene = execution().child().started().start_turn("a").complete("a").closes_later().sends_nothing();
    let scene = scene.next_tick().sends_hint_for("10m").closes_later().due("20m", DueKind::Backstop);
    scene.next_tick().sends_hint_for("20m").finish().has_ended();
}

#[test]
fn a_close_that_goes_on_is_left_alone_by_the_tick() {
    let scene =
        execution().started().start_turn("a").record_entries("a", vec![remote("print")]).complete("a");
    let scene =
        scene.at("8m").note_progress(progress_of_steps(50)).closes_later().due("10m", DueKind::Backstop);
    let scene = scene.next_tick().sends_nothing().due("18m", DueKind::Backstop);
    scene.next_tick().sends_hint_for("18m").due("28m", DueKind::Backstop);
}

#[test]
fn of_two_callers_of_the_same_close_the_one_behind_is_refused() {
    let changed = |changed| Reply::Changed { changed };
    let scene =
        execution().started().start_turn("a").record_entries("a", vec![remote("print")]).complete("a");
    let mut scene = scene.note_progress(progress_of_steps(2_000)).replies(changed(true));
    for steps in [0, 1_050, 2_000] {
        scene = scene.note_progress(progress_of_steps(steps)).replies(changed(false)).changes_nothing();
        assert_eq!(scene.record().progress, Some(progress_of_steps(2_000)));
    }
    scene.note_progress(progress_of_steps(2_050)).replies(changed(true));
}

/// The progress after this many open steps have been ended.
fn progress_of_steps(steps: u32) -> Progress {
    Progress { steps, ..Progress::default() }
}

#[test]
fn a_parent_is_notified_when_its_child_is_closed_for_good() {
    let scene = execution().child().started().start_turn("a").complete("a").closes_later();
    let scene = scene.finish().has_ended().notifies_its_parent();
    scene.finish().notifies_its_parent().changes_nothing();
}

#[test]
fn what_was_ended_for_an_earlier_end_does_not_finish_a_later_one() {
    let scene = execution().started().start_turn("a").record_entries("a", vec![remote("print")]).fail("a");
    let earlier = End::of(scene.record()).unwrap();
    let scene =
        scene.finish().restart(vec![]).at("1m").start_turn("b").record_entries("b", vec![remote("print")]);
    let scene = scene.complete("b").closes_later();
    let scene = scene.finish_of(earlier).replies(Reply::Changed { changed: false }).changes_nothing();
    scene.closes_later().finish().has_ended();
}

#[test]
fn only_an_execution_that_has_ended_is_finished() {
    let needs = "has ended";
    execution().started().finish().refuses(Reject::ExecutionOpen { status: Status::Pending, needs });
}

fn aside(name: &str) -> BlobRef {
    BlobRef { id: blob(name), bytes: 1_000, expires_at: t("97d").plus(Limits::default().retention) }
}

#[test]
fn a_close_writes_nothing_for_payloads_that_are_kept_as_long_as_the_record() {
    let large = format!("\"{}\"", "x".repeat(2_000));
    let scene = execution().input(&large).started().start_turn("a");
    let scene = scene.record_entries("a", vec![done_aside("step", aside("result"))]);
    let output = Some(Payload::Blob(aside("output")));
    let scene = scene.close("a", ExecutionOutcome::Completed { output }).has_ended();
    assert_eq!(scene.decision().writes.len(), 1);
    let (record, expires_at) = (scene.record(), scene.record().closed().unwrap().expires_at);
    assert!(record.kept.is_some_and(|kept| kept >= expires_at));
    let blobs: Vec<_> = crate::execution::blobs::blobs(record).collect();
    assert_eq!(blobs.len(), 3);
    assert!(blobs.iter().all(|at| Some(at.expires_at) >= record.kept));
}

// ---- the next run

#[test]
fn an_execution_that_continues_as_new_begins_another_run_under_the_same_deadline() {
    let plan = execution().deadline("1h").run_deadline("10m");
    let scene = plan.started().start_turn("a").record_entries("a", vec![done("step", "1"), remote("print")]);
    let scene =
        scene.send_event("go").send_event("stop").at("5m").record_entries("a", vec![waited("wait", "go")]);
    let left = scene.journal().into_iter().filter(|entry| format!("{entry:?}").contains("stop")).collect();
    let scene = scene.continue_as_new("a", left).replies(CLOSED).is(Status::Pending).sends_hint_for("5m");
    let record = scene.record();
    assert_eq!(
        (record.run, record.run_started_at, record.open_steps, record.pending_events),
        (2, t("5m"), 0, 1)
    );
    assert_eq!((record.deadline_at, record.run_deadline_at), (Some(t("1h")), Some(t("15m"))));
    assert_eq!(scene.journal().len(), 1);
    // The store deletes the items of an earlier run when they expire.
    scene.start_turn("b").replies(TAKEN).complete("b").has_ended();
}

#[test]
fn an_execution_that_was_to_be_cancelled_does_not_continue() {
    let scene = execution().started().start_turn("a").cancel().continue_as_new("a", vec![]);
    scene.is(Status::Cancelled).has_ended();
}

#[test]
fn an_execution_that_was_to_be_cancelled_is_undone_instead_of_continuing() {
    let undoes = Cleanup { undoes: true, ..Cleanup::default() };
    let ending = Ending::ContinueAsNew { input: None, carried: vec![] };
    let close = Close { lease: lease("a"), entries: vec![], ending, cleanup: undoes, values: None };
    let scene = execution().started().start_turn("a").cancel().apply(&Command::Close(close));
    let scene = scene.is(Status::Pending).sends_hint_for("0s").start_turn("b").replies(TAKEN);
    assert_eq!((scene.record().run, scene.record().cancel_requested), (1, true));
    scene.close("b", ExecutionOutcome::Cancelled { terminated: false }).is(Status::Cancelled).has_ended();
}

#[test]
fn blobs_of_the_last_run_only_expire_without_a_write() {
    let large = format!("\"{}\"", "x".repeat(2_000));
    let scene: Scene = execution().input(&large).started().start_turn("a");
    let scene =
        scene.record_entries("a", vec![done_aside("step", aside("result"))]).continue_as_new("a", vec![]);
    let extends = |write: &Write| matches!(write, Write::Extend { .. });
    assert!(!scene.decision().writes.iter().any(extends));
    assert_eq!((scene.record().kept, crate::execution::blobs::blobs(scene.record()).count()), (None, 0));
}

#[test]
fn an_execution_that_a_deadline_ends_sends_no_hint() {
    let scene = execution().child().deadline("1m").started().at("1m").tick().closes_later();
    assert!(!scene.decision().effects.iter().any(|effect| matches!(effect, Effect::Turn { .. })));
}

#[test]
fn a_child_that_is_started_again_after_its_end_notifies_its_parent_again() {
    let ended = || execution().child().started().start_turn("a").complete("a").finish().notifies_its_parent();
    ended().start_again().changes_nothing().notifies_its_parent();
    ended().start_repeated().changes_nothing().notifies_its_parent();
    // Another caller that uses the id isn't its parent.
    let unrelated = ended().started_by(None).changes_nothing();
    unrelated.sends_nothing();
    // Before its end no notification is sent.
    let closing = execution().child().started().start_turn("a").complete("a").closes_later();
    closing.start_again().sends_nothing();
    execution().child().started().start_turn("a").start_again().sends_nothing();
    execution().started().start_turn("a").complete("a").start_again().sends_nothing();
}
