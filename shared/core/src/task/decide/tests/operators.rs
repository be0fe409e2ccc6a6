//! The operators' calls: cancel, with and without force, and retry.

use crate::decision::Write;
use crate::error::Reject;
use crate::id::BlobId;
use crate::limits::Limits;
use crate::payload::{Json, Payload};
use crate::task::command::{Command, NewInput};
use crate::task::decision::Reply;
use crate::task::{Ending, Outcome, Status};
use crate::timeout::{OnTimeout, TimeoutKind};

use super::fixture::{Scene, t, task};
use super::life::{ACCEPTED, CLAIMED, DUPLICATE, SPENT};

const CANCELLED: Reply = Reply::Cancel { changed: true };
const NOTHING_NEW: Reply = Reply::Cancel { changed: false };
const ON_REQUEST: Outcome = Outcome::Cancelled { timeout: None };

// ---- cancel

#[test]
fn cancelling_a_running_task_asks_its_worker() {
    let scene = task().scheduled().claim("a").cancel().replies(CANCELLED).is(Status::Running).sends_nothing();
    assert!(scene.running().cancel_requested);
    let scene = scene.heartbeat("a").replies(Reply::Extended);
    assert!(scene.running().cancel_requested);
    scene.cancel().replies(NOTHING_NEW).changes_nothing();
}

#[test]
fn a_forced_cancel_ends_a_running_task_at_once_and_fences_its_worker() {
    let scene = task().scheduled().claim("a").cancel_by_force().replies(CANCELLED).ended_as(&ON_REQUEST);
    assert_eq!(scene.record().history[0].ending, Ending::Cancelled);
    scene.complete("a").refuses(Reject::AlreadyTerminal { status: Status::Cancelled }).changes_nothing();
    task().scheduled().claim("a").cancel().cancel_by_force().replies(CANCELLED).ended_as(&ON_REQUEST);
    task().scheduled().cancel_by_force().replies(CANCELLED).ended_as(&ON_REQUEST);
}

#[test]
fn a_task_whose_worker_is_silent_is_cancelled_at_once() {
    let scene = task().scheduled().claim_for("a", "10s").at("10s").cancel().replies(CANCELLED);
    scene.ended_as(&ON_REQUEST).complete("a").refuses(Reject::AlreadyTerminal { status: Status::Cancelled });
}

#[test]
fn cancelling_what_has_ended_changes_nothing() {
    let running = || task().scheduled().claim("a");
    for (scene, status) in [
        (running().complete("a"), Status::Completed),
        (running().fail("a"), Status::Failed),
        (task().deadline("1s").scheduled().at("1s").tick(), Status::TimedOut),
        (task().scheduled().cancel(), Status::Cancelled),
        (task().attempts(0).scheduled(), Status::Skipped),
    ] {
        scene
            .cancel()
            .replies(NOTHING_NEW)
            .changes_nothing()
            .cancel_by_force()
            .replies(NOTHING_NEW)
            .is(status);
    }
}

#[test]
fn a_worker_that_was_asked_to_stop_may_still_complete() {
    task().scheduled().claim("a").cancel().complete("a").replies(ACCEPTED).is(Status::Completed);
}

#[test]
fn once_cancelling_was_asked_for_every_end_but_a_result_cancels_the_task() {
    let asked = || task().attempts(5).scheduled().claim_for("a", "10s").cancel();
    asked().fail("a").replies(ACCEPTED).ended_as(&ON_REQUEST).fail("a").replies(DUPLICATE);
    asked().fail_for_good("a").ended_as(&ON_REQUEST);
    asked().release("a").replies(ACCEPTED).ended_as(&ON_REQUEST);
    asked().at("10s").claim("b").replies(SPENT).ended_as(&ON_REQUEST);
    asked().fail_with("a", "broken", &"x".repeat(1_000)).ended_as(&ON_REQUEST).sends_nothing();
}

#[test]
fn once_cancelling_was_asked_for_a_timeout_cancels_the_task_and_still_fences_its_worker() {
    for on_timeout in [OnTimeout::Retry, OnTimeout::Terminal] {
        let asked = task().attempts(5).heartbeats("10s", on_timeout).scheduled().claim("a").cancel();
        let scene = asked.at("10s").tick().ended_as(&ON_REQUEST);
        scene.complete("a").refuses(Reject::DeadlineExceeded { kind: TimeoutKind::Heartbeat });
    }
    let asked = task().attempts(5).deadline("10s").scheduled().claim("a").cancel();
    let scene = asked.at("10s").complete("a").ended_as(&ON_REQUEST);
    scene.refuses(Reject::DeadlineExceeded { kind: TimeoutKind::ScheduleToClose });
}

#[test]
fn a_retry_waiting_for_its_backoff_is_cancelled_at_once() {
    let scene = task().attempts(2).delay("1h").scheduled().claim("a").fail("a").cancel().replies(CANCELLED);
    scene.ended_as(&ON_REQUEST).sends_nothing().retry().is(Status::Pending);
}

// ---- retry

#[test]
fn an_operator_revives_what_ended_without_a_result() {
    let running = || task().scheduled().claim("a");
    for scene in [
        running().fail("a"),
        running().cancel_by_force(),
        task().deadline("1s").scheduled().at("1s").tick(),
        task().scheduled().cancel(),
    ] {
        let scene = scene.at("1h").retry().replies(Reply::Revived).is(Status::Pending).on_attempt(0);
        let scene = scene.available_at("1h").sends_hint_for("1h");
        assert_eq!(scene.record().revived_at, Some(t("1h")));
        scene.claim("z").replies(CLAIMED).complete("z").replies(ACCEPTED).is(Status::Completed);
    }
}

#[test]
fn an_operator_revives_a_task_with_another_input() {
    let failed = || task().labels(r#"{"a":"b"}"#).scheduled().claim("a").fail("a").at("1h");
    let with = |input: Json| {
        let given = NewInput { input, blob_id: BlobId::from_bytes([9; 16]) };
        failed().run(&Command::Retry(Some(Box::new(given))))
    };
    let small = Json::parse("[1]").unwrap();
    let scene = with(small.clone()).replies(Reply::Revived).is(Status::Pending);
    assert_eq!(scene.record().input, Some(Payload::Inline(small)));
    assert_eq!(scene.record().labels, failed().record().labels);
    // One that doesn't fit is written before the record that points to it.
    let large = Json::parse(format!("\"{}\"", "x".repeat(2_000))).unwrap();
    let scene = with(large.clone()).replies(Reply::Revived);
    let Some(Payload::Blob(at)) = &scene.record().input else { panic!("{:?}", scene.record().input) };
    assert_eq!(usize::try_from(at.bytes).unwrap(), large.len());
    assert_eq!(scene.record().labels, failed().record().labels);
    scene.claim("z").replies(CLAIMED).complete("z").replies(ACCEPTED).is(Status::Completed);
}

#[test]
fn what_completed_or_was_skipped_is_not_revived_and_what_is_open_need_not_be() {
    let completed = task().scheduled().claim("a").complete("a").retry();
    completed.refuses(Reject::AlreadyTerminal { status: Status::Completed }).changes_nothing();
    let skipped = task().attempts(0).scheduled().retry();
    skipped.refuses(Reject::AlreadyTerminal { status: Status::Skipped }).changes_nothing();
    let pending = task().scheduled().retry();
    pending.refuses(Reject::NotTerminal { status: Status::Pending }).changes_nothing();
    let running = task().scheduled().claim("a").retry();
    running.refuses(Reject::NotTerminal { status: Status::Running }).changes_nothing();
}

#[test]
fn a_revived_task_has_no_deadline_and_a_timeout_of_each_attempt_instead() {
    let scene = task().attempts(2).deadline("1m").scheduled().at("1m").tick().at("2h").retry();
    assert_eq!(scene.record().deadline_at, None);
    let scene = scene.at("3h").claim("b");
    assert_eq!(scene.running().start_to_close_at, Some(t("3h 1m")));
    let scene = scene.at("3h 10s").fail("b").at("4h").claim("c");
    assert_eq!(scene.running().start_to_close_at, Some(t("4h 1m")));
    let scene = scene.at("4h 1m").tick().is(Status::TimedOut);
    assert!(matches!(scene.outcome(), Outcome::TimedOut { kind: TimeoutKind::StartToClose, .. }));
}

#[test]
fn a_revived_task_keeps_the_shorter_of_its_timeouts_and_how_each_counts() {
    let revived = |whole: &str, own: &str, is_error: bool| {
        let plan = task().attempts(9).with_total_timeout(whole, is_error).close_within(own, OnTimeout::Retry);
        plan.scheduled().cancel().retry().claim("a")
    };
    let scene = revived("1m", "10s", true).at("10s").tick().is(Status::Pending);
    assert_eq!(scene.record().history[0].ending, Ending::TimedOut(TimeoutKind::StartToClose));
    revived("10s", "1m", true).at("10s").tick().is(Status::TimedOut);
    revived("10s", "1m", false).at("10s").tick().is(Status::Cancelled);
}

#[test]
fn a_revived_task_has_all_its_attempts_and_losses_again() {
    let failed = task().attempts(2).scheduled().claim("a").fail("a").claim("b").fail("b").is(Status::Failed);
    let scene = failed.retry().claim("c").on_attempt(1).fail("c").is(Status::Pending);
    scene.claim("d").on_attempt(2).fail("d").is(Status::Failed);
    let poisoned =
        task().max_losses(0).scheduled().claim_for("a", "1s").at("1s").claim("b").is(Status::Failed);
    assert_eq!(poisoned.retry().record().losses, 0);
}

#[test]
fn a_task_can_be_revived_before_its_timeout_is_recorded() {
    let scene = task().deadline("1m").scheduled().claim("a").at("2m").retry().replies(Reply::Revived);
    assert_eq!(scene.decision().writes.len(), 1);
    assert_eq!(scene.record().history[0].ending, Ending::TimedOut(TimeoutKind::ScheduleToClose));
    scene
        .is(Status::Pending)
        .complete("a")
        .refuses(Reject::DeadlineExceeded { kind: TimeoutKind::ScheduleToClose });
}

#[test]
fn a_lease_from_before_a_revival_is_refused_after_it() {
    let scene = task().scheduled().claim("a").cancel_by_force().retry().claim("b");
    scene.complete("a").refuses(Reject::LeaseLost).is(Status::Running);
}

#[test]
fn a_revived_task_keeps_its_payloads_for_as_long_as_a_new_one() {
    let large = format!("\"{}\"", "x".repeat(2_000));
    let scene =
        task().deadline("1m").input(&large).labels(&large).scheduled().at("1m").tick().at("20d").retry();
    let kept_until = t("20d").plus(Limits::default().retention);
    let writes = &scene.decision().writes;
    assert_eq!(writes.iter().filter(|write| matches!(write, Write::Extend { .. })).count(), 2);
    for payload in [&scene.record().input, &scene.record().labels] {
        let Some(Payload::Blob(at)) = payload else { panic!("{payload:?}") };
        assert!(at.expires_at > kept_until && writes.contains(&Write::extend_blob(at)), "{at:?}");
    }
    let small = task().input("1").scheduled().cancel().retry();
    assert_eq!(small.decision().writes.len(), 1);
}

#[test]
fn a_task_can_be_revived_repeatedly() {
    let mut scene: Scene = task().deadline("1m").scheduled();
    for _ in 0..3 {
        scene = scene.cancel().retry().is(Status::Pending);
    }
    scene.claim("a").complete("a").is(Status::Completed);
}
