//! Timers: one is on the way to every instant whose effect users can see, and none is sent without need.

use super::fixture::{Scene, task};
use crate::decision::DueReply;
use crate::due::DueKind;
use crate::task::Status;
use crate::task::decision::Reply;
use crate::timeout::OnTimeout::{Retry, Terminal};

const WAITING: Reply = Reply::Due(DueReply::Waiting);
const NOTHING: Reply = Reply::Due(DueReply::Nothing);

#[test]
fn the_writer_of_a_near_instant_sends_its_timer() {
    task().deadline("200s").scheduled().due("200s", DueKind::Armed).sends_timer_for("200s");
    task().deadline("201s").scheduled().due("201s", DueKind::Instant).sends_no_timer();
    let scene = task().close_within("30s", Terminal).scheduled().sends_no_timer().at("1m").claim("a");
    scene.due("1m 30s", DueKind::Armed).sends_timer_for("1m 30s");
    task().start_within("5s", Retry).scheduled().sends_timer_for("5s");
}

#[test]
fn leases_starts_and_backstops_get_no_timer() {
    let scene = task().starting_in("1m").scheduled().sends_no_timer().at("1m").claim("a").sends_no_timer();
    scene.heartbeat("a").sends_no_timer().next_tick().sends_no_timer();
    task().starting_in("1h").scheduled().sends_no_timer().next_tick().sends_no_timer();
}

#[test]
fn a_timer_that_arrives_in_time_records_the_expired_timeout() {
    let scene = task().deadline("1m").scheduled().at("1m").timer_for("1m");
    scene.is(Status::TimedOut).sends_nothing().timer_for("1m").replies(NOTHING).changes_nothing();
}

#[test]
fn a_timer_whose_instant_has_moved_is_sent_again_for_it() {
    let scene = task().heartbeats("20s", Retry).scheduled().claim("a").sends_timer_for("20s");
    let scene = scene.at("15s").heartbeat("a").sends_nothing();
    let scene = scene.at("20s").timer_for("20s").replies(WAITING).changes_nothing().sends_timer_for("35s");
    // The record's due slot doesn't change. The one timer is sent again from heartbeat to heartbeat.
    let scene = scene.at("30s").heartbeat("a").sends_nothing();
    let scene = scene.at("35s").timer_for("20s").replies(WAITING).sends_timer_for("50s");
    scene.at("50s").timer_for("20s").replies(Reply::Due(DueReply::TimedOut));
}

#[test]
fn a_timer_for_an_old_due_slot_is_not_sent_again() {
    let scene = task().heartbeats("20s", Retry).scheduled().claim("a").at("15s").heartbeat("a");
    // The tick moves the record to its new due slot, and sends a timer for that.
    let scene = scene.at("21s").tick().due("35s", DueKind::Armed).sends_timer_for("35s");
    scene.timer_for("20s").replies(NOTHING).sends_nothing();
}

#[test]
fn an_attempt_shorter_than_the_wait_before_it_needs_no_timer_of_its_own() {
    // The timer of the earlier slot arrives first, and is sent again for the end of the attempt.
    let scene = task().start_within("30s", Retry).close_within("1m", Terminal).scheduled();
    let scene = scene.sends_timer_for("30s").at("10s").claim("a").due("30s", DueKind::Armed).sends_nothing();
    let scene = scene.at("30s").timer_for("30s").replies(WAITING).sends_timer_for("1m 10s");
    scene.at("1m 10s").timer_for("30s").is(Status::TimedOut);
}

#[test]
fn a_timer_that_may_arrive_before_the_write_is_not_relied_on() {
    let scene = task().start_within("30s", Retry).close_within("1m", Terminal).scheduled();
    scene.at("20s").claim("a").due("1m 20s", DueKind::Armed).sends_timer_for("1m 20s");
}

#[test]
fn a_due_slot_in_the_past_covers_no_new_instant_so_that_gets_its_own_timer() {
    let scene = task().attempts(3).close_within("10s", Retry).scheduled().claim("a").at("4s").fail("a");
    let scene = scene.at("12s").timer_for("10s").replies(NOTHING).claim("b");
    scene.due("22s", DueKind::Armed).sends_timer_for("22s");
}

#[test]
fn an_instant_just_after_a_backstop_does_not_wait_for_the_tick_of_that_backstop() {
    let scene = task().close_within("3m 30s", Terminal).scheduled().at("7m").claim("a");
    // At 10m 30s, while the due slot was at 10m: the tick of that slot may be a minute late.
    scene.due("10m 30s", DueKind::Instant).sends_no_timer();
    let scene = task().close_within("3m", Terminal).scheduled().at("7m 30s").claim("a");
    scene.due("10m 30s", DueKind::Armed).sends_timer_for("10m 30s");
}

#[test]
fn a_retry_under_a_deadline_has_a_timer_for_the_deadline() {
    let scene = task().attempts(3).deadline("2m").close_within("30s", Retry).scheduled().claim("a");
    let scene = scene.sends_timer_for("30s").at("30s").timer_for("30s").is(Status::Pending);
    scene.due("2m", DueKind::Armed).sends_timer_for("2m");
}

#[test]
fn an_operators_retry_takes_its_timers_from_its_new_instants() {
    let scene: Scene = task().start_within("1m", Terminal).scheduled().at("1m").timer_for("1m");
    let scene = scene.is(Status::TimedOut).at("10m").retry().is(Status::Pending);
    scene.due("11m", DueKind::Armed).sends_timer_for("11m");
}
