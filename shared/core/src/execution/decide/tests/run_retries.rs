//! Runs that fail and are run again, by the retry policy of the workflow's code.

use crate::due::DueKind;
use crate::error::Reject;
use crate::execution::command::{CodeTerms, Ending};
use crate::execution::decision::{Reply, StartTurnReply};
use crate::execution::journal::{Entry, Happened, RETRIED, RunEnd};
use crate::execution::next::{NextStep, next};
use crate::execution::{DeadlineKind, ExecutionOutcome, ExecutionStatus as Status, RunAttempt};
use crate::payload::Payload;
use crate::retry::{MaxAttempts, RetryPolicy};

use super::fixture::{Plan, Scene, done, execution, failure, json, remote, span, t};
use super::lifecycle::{CLOSED, SPENT, TAKEN};

const POLICY: &str = "fixed(2, 10s)";

fn attempts() -> MaxAttempts {
    RetryPolicy::parse(POLICY).unwrap().max_attempts
}

/// Code that has a run tried three times.
fn terms() -> CodeTerms {
    CodeTerms { attempts: Some(attempts()), ..CodeTerms::default() }
}

fn broken() -> ExecutionOutcome {
    failure("broken", None)
}

const RUN_TIMED_OUT: ExecutionOutcome = ExecutionOutcome::TimedOut { kind: DeadlineKind::Run };

fn attempt(scene: &Scene) -> (u32, Option<u32>) {
    (scene.record().run, scene.record().attempt.map(|attempt| attempt.number))
}

/// Its first run has failed after a step, a second after its start.
fn failed_once(plan: Plan) -> Scene {
    let scene = plan.started().take_with("a", terms()).record_entries("a", vec![done("charge", "1")]);
    scene.at("1s").fail_run("a", broken(), POLICY).replies(CLOSED)
}

fn end_of_run(scene: &Scene) -> RunEnd {
    let segments = scene.decision().segments();
    *segments.iter().find_map(|(_, segment)| segment.end.clone()).unwrap()
}

fn message(scene: &Scene) -> &str {
    match scene.outcome() {
        ExecutionOutcome::Failed { error, .. } => &error.message,
        other => panic!("{other:?}"),
    }
}

// ---- another attempt

#[test]
fn a_failed_run_is_run_again_with_the_same_input_an_empty_journal_and_a_run_deadline_of_its_own() {
    let plan = execution().input("7").deadline("1h").run_deadline("5m");
    let scene = failed_once(plan).is(Status::Pending).sends_hint_for("11s");
    assert_eq!(attempt(&scene), (2, Some(2)));
    assert_eq!(scene.record().input, Some(Payload::Inline(json("7"))));
    assert_eq!(scene.record().deadline_at, Some(t("1h")));
    assert_eq!(scene.record().run_started_at, t("11s"));
    assert_eq!(scene.record().run_deadline_at, Some(t("5m 11s")));
    let note = Happened::Note { kind: RETRIED.to_owned(), name: None, by: None };
    assert_eq!(scene.journal(), [Entry { at: t("1s"), what: note }]);
    let early = Reply::StartTurn(StartTurnReply::Early { available_at: t("11s") });
    scene
        .at("10s")
        .start_turn("b")
        .replies(early)
        .at("11s")
        .start_turn("b")
        .replies(TAKEN)
        .complete("b")
        .has_ended();
}

#[test]
fn the_failed_run_is_kept_with_its_outcome_and_the_start_of_the_next_one() {
    let scene = failed_once(execution());
    let end = end_of_run(&scene);
    assert_eq!((end.continued_at, end.retried_at), (None, Some(t("11s"))));
    assert_eq!(end.record.closed().unwrap().outcome, broken());
    assert_eq!(end.record.closed().unwrap().ended_at, t("1s"));
}

#[test]
fn after_the_last_attempt_the_execution_has_failed() {
    let scene = failed_once(execution()).at("11s").start_turn("b").fail_run("b", broken(), POLICY);
    assert_eq!(attempt(&scene), (3, Some(3)));
    let scene = scene.at("21s").start_turn("c").fail_run("c", broken(), POLICY).has_ended();
    scene.ended_as(&broken()).sends_nothing();
}

#[test]
fn an_error_that_the_policy_excludes_is_not_retried() {
    let never =
        RetryPolicy { non_retryable: vec!["broken".to_owned()], ..RetryPolicy::parse(POLICY).unwrap() };
    let scene = execution().started().take_with("a", terms()).fail_run_with("a", broken(), never, vec![]);
    scene.ended_as(&broken()).has_ended();
}

#[test]
fn a_retry_later_than_a_queue_can_delay_is_sent_by_the_tick() {
    let scene = execution().started().take_with("a", terms()).fail_run("a", broken(), "fixed(1, 1h)");
    scene.sends_nothing().next_tick().due("57m", DueKind::Start).next_tick().sends_hint_for("1h");
}

#[test]
fn next_says_when_a_retried_run_starts() {
    let scene = failed_once(execution());
    let next_of = |scene: &Scene| next(scene.record(), scene.now());
    assert_eq!((next_of(&scene).what, next_of(&scene).at), (NextStep::Retry, Some(t("11s"))));
    let scene = scene.at("11s").start_turn("b").release("b", "30s");
    assert_eq!((next_of(&scene).what, next_of(&scene).at), (NextStep::Available, Some(t("41s"))));
}

// ---- the execution's deadline

#[test]
fn a_retry_that_would_start_at_the_executions_deadline_or_later_is_not_scheduled() {
    let failed = |deadline| failed_once(execution().deadline(deadline));
    failed("11s 1ms").is(Status::Pending);
    let scene = failed("11s").is(Status::Failed).has_ended();
    assert!(message(&scene).starts_with("not retried: attempt 2 would start at "), "{}", message(&scene));
    assert!(message(&scene).ends_with("; last error: the printer is on fire"), "{}", message(&scene));
}

#[test]
fn the_executions_deadline_ends_it_while_it_waits_for_a_retry() {
    let plan = || execution().deadline("11s 500ms");
    let deadline = ExecutionOutcome::TimedOut { kind: DeadlineKind::Execution };
    failed_once(plan()).at("11s 500ms").tick().ended_as(&deadline).has_ended();
    let scene = failed_once(plan()).at("11s").start_turn("b").at("11s 500ms");
    scene.fail_run("b", broken(), POLICY).refuses(Reject::TurnLost).ended_as(&deadline);
}

// ---- the run's deadline

#[test]
fn a_run_whose_deadline_passes_is_run_again_by_its_next_turn() {
    let begun = || execution().run_deadline("1m").started().take_with("a", terms());
    for scene in
        [begun().wait("a").at("1m").tick(), begun().at("1m").timer_for("1m"), begun().at("1m").heartbeat("a")]
    {
        let scene = scene.is(Status::Pending).sends_hint_for("1m").at("1m 1s");
        assert_eq!(scene.record().run, 1);
        assert_eq!(next(scene.record(), scene.now()).what, NextStep::Turn);
        // It comes once.
        let scene = scene.tick().is(Status::Pending).start_turn("b").replies(TAKEN);
        let scene = scene.fail_run("b", RUN_TIMED_OUT, POLICY).replies(CLOSED).sends_hint_for("1m 11s");
        assert_eq!(attempt(&scene), (2, Some(2)));
        assert_eq!(scene.record().run_deadline_at, Some(t("2m 11s")));
        assert_eq!(end_of_run(&scene).record.closed().unwrap().outcome, RUN_TIMED_OUT);
    }
}

#[test]
fn the_last_attempts_deadline_ends_the_execution_without_a_worker() {
    let scene = execution().run_deadline("1m").started().take_with("a", terms());
    let scene = scene.edit(|record| {
        record.attempt = Some(RunAttempt { number: 3, ..RunAttempt::first_of(attempts()) });
    });
    scene.wait("a").at("1m").tick().ended_as(&RUN_TIMED_OUT).has_ended();
}

#[test]
fn the_executions_deadline_still_counts_after_that_of_the_run() {
    let scene = execution().run_deadline("1m").deadline("2m").started().take_with("a", terms());
    let scene = scene.wait("a").at("1m").tick().is(Status::Pending).due("2m", DueKind::Armed);
    scene.at("2m").tick().ended_as(&ExecutionOutcome::TimedOut { kind: DeadlineKind::Execution });
}

// ---- what else may happen to it

#[test]
fn on_failure_code_runs_after_the_last_attempt_only() {
    let scene = failed_once(execution().on_failure("5m"));
    assert_eq!(scene.record().failing, None);
    let scene = scene.at("11s").start_turn("b").fail_run("b", broken(), "fixed(1, 10s)").is(Status::Pending);
    assert_eq!(scene.record().failing.as_ref().unwrap().outcome, broken());
    // A failure of that code is none of a run.
    scene
        .start_turn("c")
        .fail_run("c", failure("worse", None), "fixed(9, 1s)")
        .ended_as(&broken())
        .has_ended();
}

#[test]
fn a_child_notifies_its_parent_of_the_last_end_only() {
    let scene = failed_once(execution().child()).at("11s").start_turn("b");
    scene.fail_run("b", broken(), "fixed(1, 10s)").finish().has_ended().notifies_its_parent();
}

#[test]
fn events_that_no_wait_has_taken_are_pending_in_the_next_attempt() {
    let scene = execution().started().send_event("go").take_with("a", terms());
    let events = scene.journal();
    let lost = scene.close_with(
        "a",
        vec![],
        Ending::FailedRun { outcome: broken(), retry: RetryPolicy::parse(POLICY).unwrap(), carried: vec![] },
    );
    let retry = RetryPolicy::parse(POLICY).unwrap();
    let scene = lost.refuses(Reject::TurnLost).fail_run_with("a", broken(), retry, events.clone());
    assert_eq!((scene.record().pending_events, &scene.journal()[..1]), (1, &events[..]));
}

#[test]
fn an_execution_that_was_asked_to_cancel_is_not_retried() {
    let scene = execution().started().take_with("a", terms()).cancel().fail_run("a", broken(), POLICY);
    scene.is(Status::Cancelled).has_ended();
    let waits = || failed_once(execution());
    waits().cancel().is(Status::Cancelled).has_ended();
    waits().terminate().is(Status::Cancelled).has_ended();
}

#[test]
fn a_retry_waits_for_the_end_of_a_pause() {
    let scene = failed_once(execution()).pause().is(Status::Paused).at("1m").start_turn("b").replies(SPENT);
    scene.resume().sends_hint_for("11s").start_turn("b").replies(TAKEN);
}

#[test]
fn attempts_count_anew_after_an_operators_restart_and_after_continue_as_new() {
    let spent = || failed_once(execution()).at("11s").start_turn("b");
    let scene = spent().fail_run("b", broken(), "fixed(1, 10s)").has_ended().restart(vec![]);
    assert_eq!(attempt(&scene), (3, Some(1)));
    assert_eq!(attempt(&spent().continue_as_new("b", vec![])), (3, Some(1)));
}

#[test]
fn what_a_failed_run_left_open_counts_no_more() {
    let scene = execution().started().take_with("a", terms()).record_entries("a", vec![remote("label")]);
    let scene = scene.fail_run("a", broken(), POLICY).is(Status::Pending);
    assert_eq!(scene.record().open_steps, 0);
    assert_eq!(end_of_run(&scene).record.open_steps, 1);
}

#[test]
fn code_that_got_its_policy_later_counts_from_the_run_that_failed() {
    let scene = execution().started().start_turn("a").record_entries("a", vec![done("charge", "1")]);
    let scene = scene.fail_run("a", broken(), POLICY);
    assert_eq!(scene.record().attempt, Some(RunAttempt { number: 2, ..RunAttempt::first_of(attempts()) }));
    assert_eq!(span("10s"), scene.record().run_started_at.since(scene.now()));
}
