//! The four timeouts: the effect of each, their precedence, and the exact millisecond.

use crate::decision::DueReply;
use crate::error::Reject;
use crate::task::decision::{ClaimReply, Reply};
use crate::task::{Ending, Outcome, Status};
use crate::timeout::OnTimeout::{self, Cancel, Retry, Terminal};
use crate::timeout::TimeoutKind::{self, Heartbeat, ScheduleToClose, ScheduleToStart, StartToClose};

use super::fixture::{Plan, Scene, t, task};
use super::life::{ACCEPTED, CLAIMED, SPENT};

const TIMED_OUT: Reply = Reply::Due(DueReply::TimedOut);

/// A task before a timeout of ten seconds: pending for `ScheduleToStart`, running for the others.
fn heading_for(plan: Plan, kind: TimeoutKind, on_timeout: OnTimeout) -> Scene {
    match kind {
        ScheduleToStart => plan.start_within("10s", on_timeout).scheduled(),
        Heartbeat => plan.heartbeats("10s", on_timeout).scheduled().claim("a"),
        StartToClose => plan.close_within("10s", on_timeout).scheduled().claim("a"),
        ScheduleToClose => plan.with_total_timeout("10s", on_timeout != Cancel).scheduled().claim("a"),
    }
}

const PER_ATTEMPT: [TimeoutKind; 3] = [ScheduleToStart, Heartbeat, StartToClose];

#[test]
fn a_per_attempt_timeout_that_retries_does_so_while_attempts_are_left() {
    for kind in PER_ATTEMPT {
        let scene = heading_for(task().attempts(2).delay("5s"), kind, Retry)
            .at("10s")
            .tick()
            .replies(TIMED_OUT)
            .is(Status::Pending)
            .on_attempt(1)
            .available_at("15s");
        // The hint of an attempt that wasn't claimed is still in the queue.
        let scene = match kind {
            ScheduleToStart => scene.sends_no_hint(),
            ScheduleToClose | Heartbeat | StartToClose => scene.sends_hint_for("15s"),
        };
        assert_eq!(scene.record().history[0].ending, Ending::TimedOut(kind));
        assert_eq!(scene.record().history[0].error.as_ref().unwrap().code, "timed_out");
    }
}

#[test]
fn a_per_attempt_timeout_that_retries_is_final_without_attempts_left() {
    for kind in PER_ATTEMPT {
        let scene = heading_for(task(), kind, Retry).at("10s").tick().is(Status::TimedOut).sends_nothing();
        assert!(matches!(scene.outcome(), Outcome::TimedOut { kind: ended, .. } if *ended == kind));
        let second = heading_for(task().attempts(2), kind, Retry).at("10s").tick();
        let second = if kind == ScheduleToStart { second } else { second.claim("b") };
        second.at("20s").tick().is(Status::TimedOut).on_attempt(2);
    }
}

#[test]
fn a_terminal_timeout_ends_the_task_whatever_attempts_are_left() {
    for kind in [ScheduleToStart, Heartbeat, StartToClose, ScheduleToClose] {
        for attempts in [1, 5, -1] {
            let scene = heading_for(task().attempts(attempts), kind, Terminal);
            let scene = scene.at("10s").tick().replies(TIMED_OUT).is(Status::TimedOut).sends_nothing();
            assert!(matches!(scene.outcome(), Outcome::TimedOut { kind: ended, .. } if *ended == kind));
        }
    }
}

#[test]
fn a_timeout_that_is_no_error_cancels_the_task_and_is_never_retried() {
    for kind in [ScheduleToStart, Heartbeat, StartToClose, ScheduleToClose] {
        for attempts in [1, 5, -1] {
            let scene = heading_for(task().attempts(attempts), kind, Cancel);
            scene.at("10s").tick().ended_as(&Outcome::Cancelled { timeout: Some(kind) }).sends_nothing();
        }
    }
}

#[test]
fn the_error_of_a_timeout_says_what_passed_and_when_and_the_last_error() {
    let scene = task().deadline("1m").scheduled().at("1m").tick();
    assert_eq!(
        scene.error().message,
        "the task's deadline passed: schedule_to_close was 2023-11-14T22:14:20.000Z"
    );
    let scene = task().attempts(3).deadline("1m").scheduled().claim("a").fail("a").at("2m").tick();
    assert!(
        scene.error().message.ends_with("; last error: broken: the printer is on fire"),
        "{:?}",
        scene.error()
    );
}

#[test]
fn the_last_error_is_shown_although_later_attempts_were_lost_or_released() {
    let failed = || task().attempts(3).deadline("1m").scheduled().claim("a").fail("a");
    for scene in [failed().claim("b").release("b"), failed().claim_for("b", "10s").at("10s").claim("c")] {
        let scene = scene.at("2m").tick().is(Status::TimedOut);
        assert!(scene.error().message.contains("the printer is on fire"), "{:?}", scene.error());
    }
}

#[test]
fn of_several_errors_the_latest_is_shown() {
    let scene = task().attempts(3).deadline("1m").scheduled().claim("a").fail_with("a", "first", "");
    let scene = scene.claim("b").fail_with("b", "second", "").at("2m").tick();
    assert!(scene.error().message.ends_with("; last error: second"), "{:?}", scene.error());
}

// ---- precedence

#[test]
fn of_several_timeouts_that_expired_at_once_the_highest_counts() {
    let waiting = task().deadline("10s").start_within("10s", Terminal).scheduled();
    ended_by(waiting, ScheduleToClose);
    let all = task().deadline("10s").heartbeats("10s", Terminal).close_within("10s", Terminal);
    ended_by(all.scheduled().claim("a"), ScheduleToClose);
    let inner = task().heartbeats("10s", Terminal).close_within("10s", Terminal);
    ended_by(inner.scheduled().claim("a"), Heartbeat);
    // If both are found late, the one that passed first has no precedence.
    let later = task().deadline("50s").heartbeats("40s", Terminal).close_within("10s", Terminal);
    ended_by(later.scheduled().claim("a"), ScheduleToClose);
}

#[track_caller]
fn ended_by(scene: Scene, kind: TimeoutKind) {
    let scene = scene.at("1m").tick();
    assert!(matches!(scene.outcome(), Outcome::TimedOut { kind: ended, .. } if *ended == kind), "{kind:?}");
}

// ---- the boundary

#[test]
fn a_millisecond_before_a_timeout_everything_is_still_allowed() {
    for kind in [Heartbeat, StartToClose, ScheduleToClose] {
        let last_moment = || heading_for(task().attempts(2), kind, Terminal).at("9s 999ms");
        last_moment().tick().is(Status::Running).changes_nothing();
        last_moment().complete("a").replies(ACCEPTED).is(Status::Completed);
        last_moment().heartbeat("a").replies(Reply::Extended);
        last_moment().release("a").replies(ACCEPTED);
    }
    heading_for(task(), ScheduleToStart, Terminal).at("9s 999ms").claim("a").replies(CLAIMED);
    task().deadline("10s").scheduled().at("9s 999ms").claim("a").replies(CLAIMED);
}

#[test]
fn at_the_very_instant_of_a_timeout_a_report_is_refused_and_the_expiry_is_recorded_by_that_call() {
    for kind in [Heartbeat, StartToClose, ScheduleToClose] {
        let too_late = Reject::DeadlineExceeded { kind };
        let on_time = || heading_for(task().attempts(2), kind, Terminal).at("10s");
        for scene in
            [on_time().complete("a"), on_time().fail("a"), on_time().heartbeat("a"), on_time().release("a")]
        {
            scene.refuses(too_late.clone()).writes_the_task().is(Status::TimedOut);
        }
    }
}

#[test]
fn at_the_very_instant_of_a_timeout_a_claim_finds_the_task_ended() {
    let waiting = heading_for(task(), ScheduleToStart, Terminal);
    waiting.at("10s").claim("a").replies(SPENT).writes_the_task().is(Status::TimedOut);
    task().deadline("10s").scheduled().at("10s").claim("a").replies(SPENT).is(Status::TimedOut);
}

#[test]
fn a_refused_report_of_an_attempt_that_is_tried_again_sends_the_hint_of_the_next_one() {
    for kind in [Heartbeat, StartToClose] {
        let late = heading_for(task().attempts(2).delay("5s"), kind, Retry).at("12s").complete("a");
        late.refuses(Reject::DeadlineExceeded { kind }).is(Status::Pending).sends_hint_for("17s");
    }
}

#[test]
fn a_timeout_is_recorded_once_for_any_number_of_calls() {
    let scene = task().deadline("10s").scheduled().at("10s").tick().replies(TIMED_OUT).writes_the_task();
    scene.at("20s").tick().replies(Reply::Due(DueReply::Nothing)).changes_nothing().is(Status::TimedOut);
}

// ---- timeouts that start again, and the deadline that doesn't

#[test]
fn the_deadline_is_carried_unchanged_through_failures_losses_releases_and_timeouts() {
    let scene = task()
        .attempts(-1)
        .deadline("1h")
        .heartbeats("20s", Retry)
        .scheduled()
        .at("1m")
        .claim("a")
        .fail("a")
        .claim_for("b", "10s")
        .at("1m 10s")
        .claim("c")
        .heartbeat("c")
        .release("c")
        .claim("d")
        .at("2m")
        .tick()
        .is(Status::Pending)
        .claim("e");
    assert_eq!(scene.record().deadline_at, Some(t("1h")));
    ended_at_the_deadline(scene);
}

fn ended_at_the_deadline(scene: Scene) {
    scene.at("1h").tick().is(Status::TimedOut);
}

#[test]
fn the_timeouts_of_an_attempt_are_fresh_with_each_attempt() {
    let scene = task()
        .attempts(2)
        .delay("1m")
        .start_within("30s", Retry)
        .close_within("40s", Retry)
        .heartbeats("20s", Retry)
        .scheduled();
    assert_eq!(scene.pending().schedule_to_start_at, Some(t("30s")));
    let scene = scene.at("10s").claim("a");
    assert_eq!(scene.running().start_to_close_at, Some(t("50s")));
    assert_eq!(scene.running().heartbeat_at, Some(t("30s")));
    let scene = scene.at("25s").fail("a").available_at("1m 25s");
    assert_eq!(scene.pending().schedule_to_start_at, Some(t("1m 55s")));
    let scene = scene.at("1m 30s").claim("b");
    assert_eq!(scene.running().start_to_close_at, Some(t("2m 10s")));
    assert_eq!(scene.running().heartbeat_at, Some(t("1m 50s")));
}

#[test]
fn waiting_to_start_counts_from_when_a_task_may_start() {
    let scene = task().starting_in("5m").start_within("10s", Terminal).scheduled();
    scene.at("5m 9s").tick().is(Status::Pending).at("5m 10s").tick().is(Status::TimedOut);
}

#[test]
fn a_heartbeat_puts_off_its_own_timeout_and_no_other() {
    let beating =
        task().deadline("1m").heartbeats("10s", Terminal).scheduled().claim("a").at("9s").heartbeat("a");
    beating.at("18s").heartbeat("a").replies(Reply::Extended).at("28s").tick().is(Status::TimedOut);
    let beating = task().close_within("15s", Terminal).heartbeats("10s", Terminal).scheduled().claim("a");
    ended_by_its_own_time(beating.at("9s").heartbeat("a"));
}

fn ended_by_its_own_time(scene: Scene) {
    let scene = scene.at("15s").heartbeat("a").refuses(Reject::DeadlineExceeded { kind: StartToClose });
    assert!(matches!(scene.outcome(), Outcome::TimedOut { kind: StartToClose, .. }));
}

#[test]
fn a_cancellation_that_comes_too_late_records_the_timeout() {
    let scene = task().deadline("10s").scheduled().at("10s").cancel();
    scene.replies(Reply::Cancel { changed: false }).is(Status::TimedOut).writes_the_task();
}

#[test]
fn a_cancellation_of_an_attempt_that_timed_out_ends_the_task_instead_of_trying_again() {
    let scene = task().attempts(2).heartbeats("10s", Retry).scheduled().claim("a").at("10s").cancel();
    scene.replies(Reply::Cancel { changed: true }).is(Status::Cancelled).sends_nothing();
}

#[test]
fn an_attempt_that_was_not_claimed_in_time_keeps_its_one_hint() {
    let scene = task().attempts(3).delay("5s").start_within("10s", Retry).scheduled().at("10s");
    // The hint itself is received too early: it is sent again with a delay, and isn't duplicated.
    let available_at = t("15s");
    scene
        .claim("a")
        .replies(Reply::Claim(ClaimReply::Early { available_at }))
        .is(Status::Pending)
        .writes_the_task()
        .sends_no_hint();
}
