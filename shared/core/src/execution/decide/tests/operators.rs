//! The calls of operators: cancel, terminate, pause, resume, restart, rerun, and retry a step.

use crate::error::Reject;
use crate::execution::decision::{Reply, StartTurnReply};
use crate::execution::journal::{Entry, Happened};
use crate::execution::{
    DeadlineKind, ExecutionOutcome, ExecutionStatus as Status, Progress, required_expiry,
};
use crate::limits::Limits;
use crate::payload::{BlobRef, Json, Payload};

use super::super::restart::CLEANED_UP;
use super::fixture::{Scene, blob, cancelled, child, done, done_aside, ended, execution, remote, t};
use super::lifecycle::{SPENT, TAKEN};

const CHANGED: Reply = Reply::Changed { changed: true };
const UNCHANGED: Reply = Reply::Changed { changed: false };

fn kinds(scene: &Scene) -> Vec<String> {
    let kind = |what: &Happened| match what {
        Happened::Note { kind, .. } => Some(kind.clone()),
        _ => None,
    };
    scene.journal().iter().filter_map(|entry| kind(&entry.what)).collect()
}

// ---- cancel and terminate

#[test]
fn where_no_turn_is_under_way_and_nothing_is_undone_a_cancellation_ends_the_execution_at_once() {
    let cancelled = ExecutionOutcome::Cancelled { terminated: false };
    let standing = [
        execution().started(),
        execution().started().start_turn("a").wait("a"),
        execution().started().start_turn("a").release("a", "1m"),
    ];
    for scene in standing {
        let scene = scene.cancel().replies(Reply::Changed { changed: true }).ended_as(&cancelled);
        scene.cancel().replies(Reply::Changed { changed: false }).changes_nothing();
    }
}

#[test]
fn a_cancellation_during_a_turn_is_left_to_its_code() {
    let scene = execution().started().start_turn("a").cancel().replies(Reply::Changed { changed: true });
    assert_eq!(kinds(&scene), ["cancel_requested"]);
    let scene =
        scene.is(Status::Running).cancel().replies(Reply::Changed { changed: false }).changes_nothing();
    let cancelled = ExecutionOutcome::Cancelled { terminated: false };
    scene.close("a", cancelled.clone()).ended_as(&cancelled);
    // Its worker releases the turn: none is left to see the request.
    let requested = || execution().started().start_turn("a").cancel();
    requested().release("a", "0s").ended_as(&cancelled).has_ended();
    // Code that finishes before it sees the request completes the execution. If it fails, it counts as cancelled.
    requested().complete("a").is(Status::Completed);
    requested().fail("a").ended_as(&cancelled).has_ended();
}

#[test]
fn a_termination_ends_an_execution_without_asking_its_code() {
    let scene = execution().started().start_turn("a").terminate().replies(Reply::Changed { changed: true });
    let scene = scene.ended_as(&ExecutionOutcome::Cancelled { terminated: true });
    scene.complete("a").refuses(Reject::TurnLost).changes_nothing();
}

#[test]
fn a_cancellation_that_comes_too_late_records_what_has_passed() {
    let scene = execution().deadline("1m").started().at("1m").cancel();
    scene.replies(Reply::Changed { changed: false }).is(Status::TimedOut).writes_the_record();
}

// ---- pause and resume

#[test]
fn while_an_execution_is_paused_no_turn_begins() {
    let scene =
        execution().started().pause().replies(CHANGED).is(Status::Paused).has_no_due().sends_nothing();
    let scene =
        scene.pause().replies(UNCHANGED).changes_nothing().start_turn("a").replies(SPENT).changes_nothing();
    let scene = scene.at("1h").resume().replies(CHANGED).is(Status::Pending).sends_hint_for("0s");
    assert_eq!(kinds(&scene), ["paused", "resumed"]);
    scene.resume().replies(UNCHANGED).changes_nothing().sends_hint_for("0s").start_turn("a").replies(TAKEN);
}

#[test]
fn a_turn_under_way_is_not_cut_off_by_a_pause() {
    let scene = execution().started().start_turn("a").pause().is(Status::Paused);
    let scene = scene.record_entries("a", vec![done("step", "1")]).replies(Reply::Recorded).wait("a");
    let scene = scene.send_event("go").sends_nothing().has_no_due().start_turn("b").replies(SPENT);
    scene.at("1m").resume().sends_hint_for("1m").start_turn("b").replies(TAKEN);
}

#[test]
fn what_was_slept_through_in_a_pause_happens_at_its_end() {
    let asleep = || execution().started().start_turn("a").sleep_until("a", "5m").pause();
    // The record doesn't know of steps that became ready during the pause, so a turn always checks.
    asleep().at("1m").resume().sends_hint_for("1m").start_turn("b").replies(TAKEN);
    asleep()
        .at("10m")
        .start_turn("b")
        .replies(SPENT)
        .resume()
        .sends_hint_for("5m")
        .start_turn("b")
        .replies(TAKEN);
    let scene = execution().started().start_turn("a").wait_for_others("a").pause().wake().at("20s").resume();
    scene.sends_hint_for("20s").start_turn("b").replies(TAKEN);
    let scene =
        execution().started().start_turn("a").pause().at("2m").start_turn("b").replies(SPENT).resume();
    scene.sends_hint_for("2m").start_turn("b").replies(TAKEN);
}

#[test]
fn a_start_whose_hint_the_tick_would_have_sent_in_a_pause_has_it_from_the_resume() {
    let paused = || execution().starting_in("1h").started().at("10m").pause();
    // By now it has come, or is near enough for a queue to delay.
    for at in ["2h", "59m", "45m"] {
        let scene = paused().at(at).resume().replies(CHANGED).sends_hint_for("1h");
        scene.at("2h").start_turn("a").replies(TAKEN);
    }
    let scene = paused().at("20m").resume().sends_nothing();
    scene.next_tick().sends_hint_for("1h");
}

#[test]
fn deadlines_keep_running_in_a_pause() {
    let scene = execution().deadline("1h").run_deadline("30m").started().pause();
    scene
        .next_tick()
        .next_tick()
        .is(Status::TimedOut)
        .ended_as(&ExecutionOutcome::TimedOut { kind: DeadlineKind::Run });
}

// ---- restart and rerun

#[test]
fn a_restart_begins_a_new_run_with_fresh_deadlines_and_the_same_input() {
    let plan = execution().deadline("1h").run_deadline("10m").input("7");
    let scene = plan.started().start_turn("a").record_entries("a", vec![done("step", "1")]).at("10m").tick();
    let scene = scene.is(Status::TimedOut).at("2h").restart(vec![]).replies(CHANGED).is(Status::Pending);
    let scene = scene.sends_hint_for("2h");
    let record = scene.record();
    assert_eq!(
        (record.run, record.deadline_at, record.run_deadline_at),
        (2, Some(t("3h")), Some(t("2h 10m")))
    );
    assert!(record.input.is_some());
    assert_eq!(kinds(&scene), ["restarted"]);
    // The same call, repeated.
    let scene = scene.restart(vec![]).replies(UNCHANGED).changes_nothing().sends_hint_for("2h");
    scene
        .start_turn("b")
        .replies(TAKEN)
        .restart(vec![])
        .refuses(Reject::ExecutionOpen { status: Status::Running, needs: "has ended" });
}

#[test]
fn a_rerun_begins_with_the_results_that_are_kept() {
    let kept = vec![done("one", "1"), done("two", "2")];
    let scene = execution().started().start_turn("a").fail("a").restart(kept.clone()).is(Status::Pending);
    assert_eq!(scene.journal()[..2], kept);
    scene.start_turn("b").complete("b").has_ended();
}

#[test]
fn an_execution_goes_on_after_its_end_only_if_all_that_it_points_to_is_kept_for_long_enough() {
    let large = format!("\"{}\"", "x".repeat(2_000));
    let result = BlobRef { id: blob("result"), bytes: 1_000, expires_at: t("127d") };
    let kept = vec![done_aside("step", result)];
    let failed = || {
        let scene = execution().input(&large).started().start_turn("a").record_entries("a", kept.clone());
        scene.at("20d").fail_by_step("a", "charge").has_ended()
    };
    assert_eq!(failed().record().kept, Some(t("90d")));
    let in_time = failed().at("29d").restart(kept.clone()).replies(CHANGED);
    assert_eq!(in_time.decision().writes.len(), 1);
    failed().at("29d").retry_step("charge").replies(CHANGED);
    failed().at("31d").restart(kept.clone()).replies(Reply::ExpiresTooSoon).changes_nothing();
    let scene = failed().at("31d").retry_step("charge").replies(Reply::ExpiresTooSoon).changes_nothing();
    let to = required_expiry(scene.record(), t("31d"), &Limits::default()).unwrap();
    assert_eq!(to, t("121d"));

    // The expiry is extended page by page, and only after the last page may the execution continue.
    let progress = |entries| Progress { entries, to: Some(to), ..Progress::default() };
    let all = u32::try_from(scene.journal().len()).unwrap();
    let mut scene = scene.note_progress(progress(all - 1)).has_ended().retry_step("charge").changes_nothing();
    // A caller that is behind another is refused, also with an earlier expiry.
    let earlier = |entries| Progress { entries, to: Some(t("120d")), ..Progress::default() };
    for behind in [progress(all - 1), earlier(all), Progress::default()] {
        let refused = Reply::Changed { changed: false };
        scene = scene.note_progress(behind).replies(refused).changes_nothing();
        assert_eq!(scene.record().progress, Some(progress(all - 1)));
    }
    // A later caller continues with the expiry that another has started to write.
    assert_eq!(required_expiry(scene.record(), t("32d"), &Limits::default()), Some(to));
    let scene = scene.note_progress(progress(all)).has_ended();
    assert_eq!((scene.record().kept, scene.record().progress), (Some(to), None));
    let scene = scene.note_progress(progress(all)).changes_nothing();
    assert!(scene.record().input.as_ref().and_then(Payload::blob).is_some_and(|at| at.expires_at == to));
    scene.at("32d").retry_step("charge").replies(CHANGED).is(Status::Pending);
}

/// Only the code knows whether what is kept has to be undone.
#[test]
fn a_cancellation_before_the_first_turn_of_a_rerun_is_left_to_its_code_if_it_keeps_results() {
    let again = |preserved| execution().started().start_turn("a").fail("a").restart(preserved).cancel();
    let scene = again(vec![done("charge", "1")]).replies(CHANGED).is(Status::Pending);
    assert!(scene.record().cancel_requested);
    again(vec![]).replies(CHANGED).is(Status::Cancelled);
}

#[test]
fn an_execution_that_is_still_closing_is_not_restarted() {
    let scene = execution()
        .started()
        .start_turn("a")
        .record_entries("a", vec![remote("print")])
        .fail("a")
        .closes_later();
    let open = Reject::ExecutionOpen { status: Status::Failed, needs: CLEANED_UP };
    scene.restart(vec![]).refuses(open).finish().restart(vec![]).replies(CHANGED);
}

// ---- retry of one step

#[test]
fn a_retry_of_a_step_that_is_repeated_sends_the_hint_again_and_changes_nothing() {
    let scene = execution().started().start_turn("a").fail_by_step("a", "charge").at("1h");
    let scene = scene.retry_step("charge").replies(CHANGED).sends_hint_for("1h");
    let scene = scene.at("2h").retry_step("charge").changes_nothing().sends_hint_for("1h");
    let open = Reject::ExecutionOpen { status: Status::Running, needs: "has failed" };
    scene.start_turn("b").replies(TAKEN).retry_step("charge").refuses(open);
}

#[test]
fn a_step_by_which_the_execution_failed_runs_again_in_the_same_run() {
    let scene = execution().started().start_turn("a").record_entries("a", vec![done("first", "1")]);
    let scene = scene.fail_by_step("a", "charge").at("1h").retry_step("charge").replies(CHANGED);
    let scene = scene.is(Status::Pending).sends_hint_for("1h");
    assert_eq!((scene.record().run, scene.journal().len()), (1, 2));
    assert!(matches!(&scene.journal()[1].what, Happened::Reopened { name, .. } if name.as_str() == "charge"));
    scene.start_turn("b").replies(TAKEN).complete("b").is(Status::Completed);
}

#[test]
fn what_the_end_of_the_execution_has_ended_runs_again_with_the_step() {
    let entries = vec![remote("charge[0]"), remote("charge[1]"), child("order-8"), ended("charge[1]")];
    let scene = execution().started().start_turn("a").record_entries("a", entries);
    let scene = scene.fail_by_step("a", "charge[1]").finish().has_ended().at("1h");
    let scene = scene.retry_step("charge[1]").replies(CHANGED);
    assert_eq!(scene.record().open_steps, 0);
    let again: Vec<_> = scene.journal().iter().filter_map(reopened).collect();
    assert_eq!(again, ["charge[0]", "order-8", "charge[1]"]);
    scene.retry_step("charge[1]").replies(UNCHANGED).changes_nothing();
}

#[test]
fn what_the_end_of_its_code_has_ended_runs_again_with_a_step_and_not_what_ended_before() {
    let failed = || {
        let remotes = ["lost", "charge[0]", "charge[1]", "on_failure:refund"].map(remote);
        let before = [cancelled("lost"), ended("charge[1]"), cancelled("charge[0]")];
        let after = [child("order-8"), cancelled("on_failure:refund"), done("undo:charge", "1")];
        let entries = remotes.into_iter().chain(before).chain(after).collect();
        let scene = execution().started().start_turn("a").record_entries("a", entries);
        scene.fail_by_step("a", "charge[1]").finish().has_ended().at("1h")
    };
    let again = |scene: &Scene| scene.journal().iter().filter_map(reopened).collect::<Vec<_>>();
    let retried = failed().retry_step("charge[1]").replies(CHANGED);
    assert_eq!(again(&retried), ["order-8", "charge[0]", "charge[1]"]);
    assert_eq!(retried.record().open_steps, 0);
    assert_eq!(again(&failed().retry_step("on_failure:refund")), ["on_failure:refund"]);
    assert_eq!(again(&failed().retry_step("undo:charge")), ["undo:charge"]);
}

fn reopened(entry: &Entry) -> Option<String> {
    let Happened::Reopened { name, .. } = &entry.what else { return None };
    Some(name.to_string())
}

#[test]
fn a_step_runs_again_with_another_input_that_only_the_same_call_repeats() {
    let input = |text: &str| Json::parse(text).map(Payload::Inline);
    let scene = execution().started().start_turn("a").fail_by_step("a", "charge").at("1h");
    let scene = scene.retry_step_with("charge", input("[1]")).replies(CHANGED);
    assert_eq!(scene.journal().last().and_then(Entry::payload), input("[1]").as_ref());
    let scene = scene.retry_step_with("charge", input("[1]")).replies(UNCHANGED).changes_nothing();
    let open = Reject::ExecutionOpen { status: Status::Pending, needs: "has failed" };
    scene.retry_step_with("charge", input("[2]")).refuses(open).changes_nothing();
}

#[test]
fn a_step_is_not_retried_where_that_would_come_to_nothing() {
    let needs = "has failed";
    let failed = || execution().deadline("1h").started().start_turn("a").fail_by_step("a", "charge");
    failed().retry_step("other").refuses(Reject::UnknownStep { name: "other".to_owned() });
    let too_late = Reject::ExecutionDeadline { kind: DeadlineKind::Execution };
    failed().at("1h").retry_step("charge").refuses(too_late.clone());
    execution().deadline("1h").started().at("1h").tick().retry_step("charge").refuses(too_late);
    let running = execution().started().start_turn("a");
    running.retry_step("charge").refuses(Reject::ExecutionOpen { status: Status::Running, needs });
    let completed = execution().started().start_turn("a").complete("a");
    completed.retry_step("charge").refuses(Reject::ExecutionClosed { status: Status::Completed });
}

#[test]
fn a_start_of_a_turn_that_closes_the_execution_replies_so() {
    let limited = execution().child().limited(|limits| limits.idle_turns = 0);
    limited.started().start_turn("a").replies(Reply::StartTurn(StartTurnReply::Closing)).closes_later();
}
