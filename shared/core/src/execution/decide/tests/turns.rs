//! Turns: which worker may start one, who has the lease, and what follows turns that record nothing.

use crate::command::Isolation;
use crate::due::DueKind;
use crate::error::Reject;
use crate::execution::ExecutionStatus as Status;
use crate::execution::command::{CodeTerms, Command, ReleaseReason, StartTurn};
use crate::execution::decision::{Reply, StartTurnReply};
use crate::execution::{ExecutionOutcome, Stuck};
use crate::failure::Failure;
use crate::id::Incarnation;

use super::fixture::{EMPTY, Scene, done, execution, lease, span, t};
use super::lifecycle::{SPENT, TAKEN};

const HELD: Reply = Reply::StartTurn(StartTurnReply::LeasedByOther);

#[test]
fn while_a_live_worker_has_the_lease_other_requests_are_refused() {
    let scene =
        execution().started().take_for("a", "1m").at("49s").start_turn("b").replies(HELD).changes_nothing();
    scene.start_turn("a").replies(TAKEN).changes_nothing();
    // Shortly before the lease ends, the message is sent again: the lease may not be extended any more.
    let early = Reply::StartTurn(StartTurnReply::Early { available_at: t("1m") });
    for at in ["50s", "59s 999ms"] {
        let scene = execution().started().take_for("a", "1m").at(at);
        scene.start_turn("b").replies(early.clone()).changes_nothing();
    }
}

#[test]
fn a_hint_of_an_earlier_execution_of_the_same_id_is_spent() {
    let incarnation = Some(Incarnation::from_bytes([7; 8]));
    let take = StartTurn {
        lease: lease("a"),
        worker: None,
        length: span("1m"),
        incarnation,
        again: false,
        isolation: Isolation::Alone,
        outside: false,
        paused: false,
        terms: CodeTerms::default(),
        asks: None,
        places: None,
        start: None,
    };
    execution().started().apply(&Command::StartTurn(take)).replies(SPENT).changes_nothing();
}

#[test]
fn a_turn_whose_worker_went_silent_is_taken_over_and_the_old_one_is_fenced() {
    let scene = execution().started().take_for("a", "1m").at("1m").start_turn("b").replies(TAKEN);
    let fenced = [
        scene.record_entries("a", vec![done("late", "1")]),
        execution().started().start_turn("a").at("1m").start_turn("b").complete("a"),
        execution().started().start_turn("a").at("1m").start_turn("b").wait("a"),
        execution().started().start_turn("a").at("1m").start_turn("b").heartbeat("a"),
        execution().started().start_turn("a").at("1m").start_turn("b").release("a", "0s"),
    ];
    for scene in fenced {
        scene.refuses(Reject::TurnLost).changes_nothing().is(Status::Running);
    }
}

#[test]
fn an_expired_lease_still_counts_while_no_worker_has_taken_over() {
    let scene = execution().started().take_for("a", "1m").at("5m");
    scene.record_entries("a", vec![done("slow", "1")]).replies(Reply::Recorded).complete("a").has_ended();
}

#[test]
fn a_heartbeat_extends_the_lease_but_never_past_a_deadline() {
    let end = |scene: &Scene| scene.record().turn().unwrap().lease_expires_at;
    let scene = execution().deadline("90s").started().take_for("a", "1m").at("20s").heartbeat("a");
    let scene = scene.replies(Reply::Renewed).sends_nothing();
    assert_eq!(end(&scene), t("1m 20s"));
    assert_eq!(end(&scene.at("50s").heartbeat("a")), t("1m 30s"));
    assert_eq!(end(&execution().run_deadline("30s").started().take_for("a", "1m")), t("30s"));
}

#[test]
fn a_released_turn_is_continued_by_another_worker() {
    let scene = execution().started().start_turn("a").at("5s").release("a", "0s").replies(Reply::Released);
    scene.is(Status::Pending).sends_hint_for("5s").start_turn("b").replies(TAKEN);
    let scene = execution().started().start_turn("a").release("a", "30s").sends_hint_for("30s");
    let early = Reply::StartTurn(StartTurnReply::Early { available_at: t("30s") });
    scene.start_turn("b").replies(early).at("30s").start_turn("b").replies(TAKEN);
    execution().started().start_turn("a").release("a", "1h").sends_no_hint();
}

// ---- poison

/// Starts a turn and loses its worker, this many times.
fn lose(mut scene: Scene, times: u32) -> Scene {
    for n in 0..times {
        let end = scene.record().turn().map_or(t("0s"), |turn| turn.lease_expires_at);
        scene = scene.at_instant(end).start_turn(&format!("lost-{n}")).replies(TAKEN);
    }
    scene
}

#[test]
fn turns_in_a_row_that_come_to_nothing_end_the_execution() {
    let limited = || execution().limited(|limits| limits.idle_turns = 3);
    let scene = lose(limited().started(), 3).is(Status::Running);
    let end = scene.record().turn().unwrap().lease_expires_at;
    let scene = scene.at_instant(end).start_turn("b").replies(SPENT).is(Status::Failed).has_ended();
    let ExecutionOutcome::Failed { error, .. } = scene.outcome() else { panic!() };
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("poisoned", "3 turns in a row came to nothing")
    );
}

#[test]
fn a_result_resets_the_count() {
    let scene = lose(execution().limited(|limits| limits.idle_turns = 3).started(), 3);
    let scene = scene.record_entries("lost-2", vec![done("step", "1")]);
    assert_eq!(scene.record().idle_turns, 0);
    lose(scene, 3);
}

#[test]
fn a_worker_that_always_gives_up_is_poison_as_well() {
    let mut scene = execution().limited(|limits| limits.idle_turns = 3).started();
    for _ in 0..3 {
        scene = scene.start_turn("a").replies(TAKEN).release("a", "0s");
    }
    scene.start_turn("a").replies(SPENT).is(Status::Failed);
}

#[test]
fn what_its_worker_or_a_service_cannot_do_is_no_poison() {
    let mut scene = execution().limited(|limits| limits.idle_turns = 3).started();
    for _ in 0..10 {
        scene = scene.start_turn("a").replies(TAKEN).release_because("a", "0s", ReleaseReason::ByWorker);
    }
    assert_eq!(scene.record().idle_turns, 0);
    // It neither adds to the count nor resets it.
    let mut scene = scene.start_turn("a").release("a", "0s").start_turn("a").release("a", "0s");
    scene = scene
        .start_turn("a")
        .release_because("a", "0s", ReleaseReason::ByWorker)
        .start_turn("a")
        .release("a", "0s");
    scene.start_turn("a").replies(SPENT).is(Status::Failed);
}

#[test]
fn runs_in_a_row_that_bring_nothing_and_begin_alike_end_the_execution() {
    let limited = || execution().limited(|limits| limits.idle_turns = 3).started();
    // The first run has another input than those that follow it.
    let mut scene = limited();
    for _ in 0..4 {
        scene = scene.start_turn("a").replies(TAKEN).continue_as_new("a", vec![]).is(Status::Pending);
    }
    let scene = scene.start_turn("a").replies(SPENT).is(Status::Failed);
    let ExecutionOutcome::Failed { error, .. } = scene.outcome() else { panic!() };
    assert_eq!(error.code, "poisoned");

    let mut scene = limited();
    for _ in 0..20 {
        scene = scene.start_turn("a").replies(TAKEN).record_entries("a", vec![done("step", "1")]);
        scene = scene.continue_as_new("a", vec![]).is(Status::Pending);
    }
}

#[test]
fn a_workflow_that_no_worker_knows_waits_for_one_that_does() {
    let mut scene = execution().limited(|limits| limits.idle_turns = 3).started();
    for tries in 1..20 {
        let stuck = ReleaseReason::Stuck(Stuck::UnknownWorkflow { tries });
        scene = scene.start_turn("a").replies(TAKEN).release_because("a", "0s", stuck).is(Status::Pending);
        assert_eq!(scene.record().stuck, Some(Stuck::UnknownWorkflow { tries }));
    }
    let scene = scene.start_turn("b").record_entries("b", vec![done("step", "1")]);
    assert_eq!(scene.record().stuck, None);
}

#[test]
fn an_execution_whose_journal_cannot_be_read_waits_for_an_operator() {
    let unreadable =
        || ReleaseReason::Stuck(Stuck::Unreadable(Failure::new("unreadable", "step charge: missing field")));
    let stuck = || execution().started().start_turn("a").release_because("a", "0s", unreadable());
    let scene = stuck().is(Status::Pending).sends_nothing().has_no_due().start_turn("b").replies(SPENT);
    let scene = scene.changes_nothing().at("1h").resume().sends_hint_for("1h");
    assert_eq!(scene.record().stuck, None);
    scene.start_turn("b").replies(TAKEN);
    let failing =
        execution().on_failure("1h").deadline("1m").started().start_turn("a").at("1m").tick().start_turn("b");
    let scene = failing.release_because("b", "0s", unreadable()).at("10m").retry_step("charge");
    assert!(scene.replies(Reply::Changed { changed: true }).record().failing.is_some());
    let scene = stuck().at("1h").retry_step("charge").replies(Reply::Changed { changed: true });
    scene.sends_hint_for("1h").start_turn("b").replies(TAKEN);
}

#[test]
fn a_turn_moves_a_due_slot_that_is_far_ahead() {
    // It waits for an event, and a child that its code doesn't wait for has ended.
    let parked = || execution().deadline("300d").started().start_turn("a").wait("a").next_tick();
    let scene = parked().due("300d", DueKind::Instant).at("1d").wake().start_turn("b").replies(TAKEN);
    let scene = scene.due("1d 10m", DueKind::Backstop);
    // If its worker and its message are lost, the tick finds it.
    let scene = scene.next_tick_seeing(EMPTY).next_tick_seeing(EMPTY).next_tick_seeing(EMPTY);
    let scene = scene.sends_hint_for("1d 12m");
    scene.start_turn("c").replies(TAKEN);
    // A record whose due slot is early enough keeps it.
    let near = execution().deadline("300d").started().start_turn("a").due("10m", DueKind::Backstop);
    near.record_entries("a", vec![done("step", "1")]).due("10m", DueKind::Backstop);
}
