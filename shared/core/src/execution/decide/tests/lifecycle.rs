//! Each transition of an execution's lifecycle, once.

use crate::decision::{Condition, Write};
use crate::due::DueKind;
use crate::error::{Reject, TakenBy};
use crate::execution::ExecutionStatus as Status;
use crate::execution::command::StartPolicy;
use crate::execution::decision::{Reply, StartTurnReply, SuspendReply};
use crate::limits::Limits;

use super::fixture::{done, execution, t};

pub(super) const TAKEN: Reply = Reply::StartTurn(StartTurnReply::Started);
pub(super) const SPENT: Reply = Reply::StartTurn(StartTurnReply::Stale);
pub(super) const CLOSED: Reply = Reply::Closed { duplicate: false };
pub(super) const SUSPENDED: Reply = Reply::Suspended(SuspendReply::Suspended);
pub(super) const GO_ON: Reply = Reply::Suspended(SuspendReply::GoOn);
const NEW: Reply = Reply::Started { existed: false };
const EXISTED: Reply = Reply::Started { existed: true };

#[test]
fn a_started_execution_is_pending_and_its_hint_goes_out_at_once() {
    let scene = execution().started().replies(NEW).is(Status::Pending).sends_hint_for("0s");
    let scene = scene.due("10m", DueKind::Backstop);
    assert_eq!((scene.record().run, scene.record().run_started_at), (1, t("0s")));
    assert_eq!(scene.decision().writes.len(), 1);
}

#[test]
fn a_turn_brings_results_and_closes_the_execution() {
    let scene =
        execution().started().at("1s").start_turn("a").replies(TAKEN).is(Status::Running).sends_nothing();
    let scene = scene.at("2s").record_entries("a", vec![done("charge", "1")]).replies(Reply::Recorded);
    let scene =
        scene.at("3s").complete("a").replies(CLOSED).is(Status::Completed).has_ended().sends_nothing();
    let closed = scene.record().closed().unwrap();
    assert_eq!(closed.expires_at, closed.ended_at.plus(Limits::default().retention));
    assert_eq!(scene.journal(), [done("charge", "1")]);
    scene.has_no_due();
}

#[test]
fn the_five_writes_of_a_short_life_leave_the_index_alone_in_between() {
    let mut scene = execution().started().start_turn("a");
    let due = scene.record().due;
    for step in ["one", "two", "three", "four"] {
        scene = scene.record_entries("a", vec![done(step, "1")]);
        assert_eq!(scene.record().due, due);
        assert!(scene.decision().segments().is_empty());
    }
    scene.complete("a").has_ended();
}

#[test]
fn a_failure_without_on_failure_code_ends_the_execution() {
    execution().started().start_turn("a").fail("a").replies(CLOSED).is(Status::Failed).has_ended();
}

// ---- repeated starts

#[test]
fn starting_the_same_id_again_answers_with_what_is_there_and_hints_again_if_nobody_came() {
    let scene = execution().started().at("1m").start_again().replies(EXISTED).changes_nothing();
    let scene = scene.sends_hint_for("0s").start_repeated().replies(NEW).sends_hint_for("0s");
    scene
        .start_turn("a")
        .start_again()
        .replies(EXISTED)
        .sends_nothing()
        .complete("a")
        .start_again()
        .replies(EXISTED);
}

#[test]
fn an_id_of_another_workflow_is_taken_whatever_the_policy_says() {
    let workflow = execution().started().record().workflow.clone();
    let taken = Reject::IdConflict { by: TakenBy::OtherWorkflow(workflow), since: t("0s") };
    let scene = execution().started().start_other().refuses(taken.clone()).changes_nothing();
    scene.start_turn("a").start_other().refuses(taken.clone()).complete("a").start_other().refuses(taken);
}

#[test]
fn a_start_that_insists_on_being_the_first_is_refused_unless_it_was() {
    let scene = execution().policy(StartPolicy::Reject).started().replies(NEW);
    let taken = Reject::IdConflict { by: TakenBy::Execution, since: t("0s") };
    scene.start_repeated().replies(NEW).at("1m").start_again().refuses(taken).changes_nothing();
}

/// The caller of a process that died before it sent the hint repeats its call, and is refused.
#[test]
fn a_refused_start_sends_the_hint_of_an_execution_that_nobody_has_begun() {
    let taken = Reject::IdConflict { by: TakenBy::Execution, since: t("0s") };
    let scene = execution().policy(StartPolicy::Reject).started().start_again().refuses(taken.clone());
    let scene = scene.changes_nothing().sends_hint_for("0s");
    scene.start_turn("a").replies(TAKEN).start_again().refuses(taken).sends_nothing();
}

#[test]
fn an_id_is_free_again_after_the_retention() {
    let scene = execution().started().start_turn("a").complete("a").at("30d").start_again().replies(NEW);
    assert!(matches!(scene.decision().writes[..], [Write::Put { condition: Condition::Free { .. }, .. }]));
}

#[test]
fn nothing_is_known_of_an_execution_that_does_not_exist() {
    let scene = execution().started().start_turn("a").complete("a").at("30d");
    scene.send_event("go").refuses(Reject::NoExecution);
}

// ---- later starts

#[test]
fn a_start_within_fifteen_minutes_is_sent_at_once_with_its_instant() {
    let scene = execution().starting_in("15m").started().sends_hint_for("15m").due("25m", DueKind::Backstop);
    let early = Reply::StartTurn(StartTurnReply::Early { available_at: t("15m") });
    scene.at("14m").start_turn("a").replies(early).changes_nothing().at("15m").start_turn("a").replies(TAKEN);
}

#[test]
fn a_later_start_waits_in_the_index_until_the_tick_sends_it() {
    let scene = execution().starting_in("1h").run_deadline("30m").started().sends_nothing();
    let scene = scene.due("57m", DueKind::Start).next_tick().sends_hint_for("1h");
    // The run starts when its first turn may start.
    assert_eq!(scene.record().run_deadline_at, Some(t("1h 30m")));
    scene.due("1h 10m", DueKind::Backstop).tick().changes_nothing().at("1h").start_turn("a").replies(TAKEN);
}
