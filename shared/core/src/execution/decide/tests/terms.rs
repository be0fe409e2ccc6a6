//! The timeouts of a workflow's code, for executions whose start request set none.

use crate::due::DueKind;
use crate::execution::command::CodeTerms;
use crate::execution::decision::{Reply, StartTurnReply};
use crate::execution::{ExecutionStatus as Status, ExecutionTimeouts};

use super::fixture::{Scene, done, execution, span, t};
use super::lifecycle::{SPENT, TAKEN};

/// 1 hour in all, 10 minutes for each run, 5 minutes for the `on_failure` code.
fn terms() -> CodeTerms {
    let timeouts = ExecutionTimeouts { execution: Some(span("1h")), run: Some(span("10m")) };
    CodeTerms { timeouts, on_failure: Some(span("5m")), attempts: None }
}

fn bounds(scene: &Scene) -> [Option<crate::time::Timestamp>; 2] {
    [scene.record().deadline_at, scene.record().run_deadline_at]
}

#[test]
fn what_the_code_says_counts_from_the_start_where_the_start_said_nothing() {
    let scene = execution().started().at("1m").take_with("a", terms()).replies(TAKEN);
    assert_eq!(bounds(&scene), [Some(t("1h")), Some(t("10m"))]);
    assert_eq!(scene.record().timeouts, terms().timeouts);
    assert_eq!(scene.record().on_failure, Some(span("5m")));
    // Its due slot is at that deadline, so that it is enforced whatever happens to the worker.
    scene.due("10m", DueKind::Instant).at("10m").tick().is(Status::Pending);
}

#[test]
fn timeouts_of_the_start_request_take_precedence() {
    let plan = || execution().deadline("2h").on_failure("7m");
    let scene = plan().started().take_with("a", terms());
    assert_eq!(bounds(&scene), [Some(t("2h")), Some(t("10m"))]);
    assert_eq!(scene.record().on_failure, Some(span("7m")));
}

#[test]
fn a_later_version_of_the_code_binds_nothing_that_has_begun() {
    let begun = || execution().started().start_turn("a").record_entries("a", vec![done("one", "1")]);
    let scene = begun().wait("a").at("3h").wake().take_with("b", terms()).replies(TAKEN);
    assert_eq!(bounds(&scene), [None, None]);
    // An execution whose worker was lost before it recorded anything hasn't started; neither has one that was only sent
    // events.
    let scene = execution().started().start_turn("a").at("1m").take_with("b", terms()).replies(TAKEN);
    assert_eq!(bounds(&scene), [Some(t("1h")), Some(t("10m"))]);
    let scene = execution().started().send_event("go").take_with("a", terms()).replies(TAKEN);
    assert_eq!(bounds(&scene), [Some(t("1h")), Some(t("10m"))]);
}

#[test]
fn a_deadline_of_the_code_that_has_already_passed_ends_the_execution_without_a_turn() {
    let late = || execution().started().at("1h");
    let only_timeouts = CodeTerms { on_failure: None, ..terms() };
    late().take_with("a", only_timeouts).replies(SPENT).is(Status::TimedOut);
    // The `on_failure` code gets a turn, by a message of its own.
    let stale = Reply::StartTurn(StartTurnReply::Stale);
    let scene = late().take_with("a", terms()).replies(stale).is(Status::Pending).sends_hint_for("1h");
    assert!(scene.record().failing.is_some());
    scene.take_with("b", terms()).replies(TAKEN);
}

#[test]
fn what_the_code_says_applies_to_a_run_of_an_operator_if_none_before_it_had_begun() {
    let again = || execution().started().terminate().at("2h").restart(vec![]);
    let scene = again().at("121m").take_with("a", terms()).replies(TAKEN);
    assert_eq!(bounds(&scene), [Some(t("3h")), Some(t("130m"))]);
    assert_eq!(scene.record().on_failure, Some(span("5m")));
    // Also if that one hasn't begun either, but not in a run that follows.
    let scene = again().terminate().restart(vec![]).take_with("a", terms()).replies(TAKEN);
    assert_eq!(bounds(&scene), [Some(t("3h")), Some(t("130m"))]);
    let scene = again().start_turn("a").continue_as_new("a", vec![]).take_with("b", terms()).replies(TAKEN);
    assert_eq!(bounds(&scene), [None, None]);
    let begun = execution().started().start_turn("a").record_entries("a", vec![done("one", "1")]);
    let scene = begun.terminate().restart(vec![]).take_with("b", terms()).replies(TAKEN);
    assert_eq!(bounds(&scene), [None, None]);
}
