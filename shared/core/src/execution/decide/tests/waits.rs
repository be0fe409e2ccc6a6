//! Suspensions: what an execution waits for, what wakes it, and that it misses nothing in between.

use crate::decision::{Condition, DueReply, Write};
use crate::due::DueKind;
use crate::execution::ExecutionStatus as Status;
use crate::execution::command::Command;
use crate::execution::decision::{Reply, StartTurnReply};

use super::fixture::{EMPTY, Scene, claimed_up_to, done, ended, execution, remote, t};
use super::lifecycle::{GO_ON, SPENT, SUSPENDED, TAKEN};

const REARMED: Reply = Reply::Due(DueReply::Rearmed);
const DISPATCHED: Reply = Reply::Due(DueReply::Dispatched);

fn early(text: &str) -> Reply {
    Reply::StartTurn(StartTurnReply::Early { available_at: t(text) })
}

// ---- sleeps

#[test]
fn a_sleep_of_at_most_fifteen_minutes_is_sent_at_once_with_its_end() {
    let scene = execution().started().start_turn("a").sleep_until("a", "15m").replies(SUSPENDED);
    let scene = scene.is(Status::Waiting).sends_hint_for("15m").due("10m", DueKind::Backstop);
    let scene = scene.next_tick().sends_no_hint().due("25m", DueKind::Backstop);
    let scene = scene.at("14m 55s").start_turn("b").replies(early("15m")).changes_nothing();
    scene.at("15m").start_turn("b").replies(TAKEN);
}

#[test]
fn the_message_of_a_turn_that_is_received_again_brings_the_end_of_the_wait() {
    let asleep = |until| execution().started().start_turn("a").sleep_until("a", until).at("1m");
    let again = |scene: Scene| scene.take_like("b", |take| take.again = true).changes_nothing();
    again(asleep("10m")).replies(early("10m"));
    // The tick sends the hint of a longer one.
    again(asleep("2h")).replies(SPENT);
    again(execution().started().start_turn("a").wait("a")).replies(SPENT);
}

#[test]
fn the_timer_of_a_deadline_that_is_received_again_brings_the_failure_handler() {
    let plan = execution().deadline("1h").on_failure("5m").started().start_turn("a").wait("a").at("1h");
    let again = Command::Timer { due_at: t("1h"), again: true };
    let failing = plan.timer_for("1h").sends_hint_for("1h");
    failing
        .timer_for("1h")
        .sends_nothing()
        .at("1h 1m")
        .apply(&again)
        .sends_hint_for("1h 1m")
        .changes_nothing();
}

#[test]
fn the_hint_of_a_longer_sleep_is_left_to_the_tick_which_finds_it_in_the_index() {
    let scene = execution().started().start_turn("a").sleep_until("a", "2h").sends_nothing();
    assert!(scene.waiting().hint_later);
    // The slot is the first probe of that hint: nobody writes the record before the turn does.
    let scene = scene.due("2h 10m", DueKind::Asleep).start_turn("b").replies(SPENT);
    let scene = scene.at("1h 59m 55s").start_turn("b").replies(early("2h")).changes_nothing();
    scene.at("2h").tick().changes_nothing().start_turn("b").replies(TAKEN).due("2h 10m", DueKind::Asleep);
}

#[test]
fn a_lost_hint_of_a_longer_sleep_is_sent_again_once() {
    let asleep = || execution().started().start_turn("a").sleep_until("a", "2h");
    let scene = asleep().next_tick_seeing(EMPTY).replies(REARMED).sends_nothing();
    let scene = scene.due("2h 11m", DueKind::Recheck);
    assert!(!scene.waiting().hint_later);
    let scene = scene.next_tick_seeing(EMPTY).replies(DISPATCHED).sends_hint_for("2h 11m");
    let scene = scene.due("2h 21m", DueKind::Backstop).next_tick().replies(REARMED).sends_nothing();
    scene.start_turn("b").replies(TAKEN);
    // In a queue with messages it counts as lost only when younger ones were received.
    let scene = asleep().next_tick().replies(REARMED).sends_nothing().due("2h 40m", DueKind::Backstop);
    scene.next_tick_seeing(claimed_up_to("2h 6m")).replies(DISPATCHED).sends_hint_for("2h 40m");
}

#[test]
fn a_longer_sleep_that_a_deadline_follows_soon_has_the_slot_of_a_later_start() {
    let asleep = |deadline| execution().deadline(deadline).started().start_turn("a").sleep_until("a", "2h");
    let scene = asleep("2h 13m").due("1h 57m", DueKind::Start);
    let scene = scene.next_tick().sends_hint_for("2h").due("2h 9m 40s", DueKind::Backstop);
    scene.at("2h").start_turn("b").replies(TAKEN);
    asleep("2h 13m 20s").due("2h 10m", DueKind::Asleep);
}

#[test]
fn a_slot_that_lies_where_the_first_probe_of_a_sleep_does_becomes_that_of_the_sleep() {
    let scene = execution().started().next_tick().due("40m", DueKind::Backstop);
    scene.start_turn("a").sleep_until("a", "30m").due("40m", DueKind::Asleep);
}

#[test]
fn an_event_in_a_longer_sleep_wakes_it_and_the_next_sleep_has_a_slot_of_its_own() {
    let scene = execution().started().start_turn("a").sleep_until("a", "2h").at("1h").send_event("go");
    let scene = scene.sends_hint_for("1h").due("1h 10m", DueKind::Backstop).start_turn("b").replies(TAKEN);
    scene.sleep_until("b", "2h").sends_nothing().due("2h 10m", DueKind::Asleep);
}

#[test]
fn a_message_left_from_something_else_does_not_stay_until_a_sleeps_end() {
    execution()
        .started()
        .start_turn("a")
        .sleep_until("a", "10m")
        .at("1m")
        .start_turn("b")
        .replies(SPENT)
        .changes_nothing();
}

#[test]
fn a_sleep_that_is_over_already_goes_round_at_once() {
    execution()
        .started()
        .start_turn("a")
        .at("1m")
        .sleep_until("a", "30s")
        .sends_hint_for("30s")
        .start_turn("b")
        .replies(TAKEN);
}

#[test]
fn an_endless_wait_is_not_in_the_index() {
    let scene =
        execution().started().start_turn("a").wait("a").replies(SUSPENDED).has_no_due().sends_nothing();
    scene.start_turn("b").replies(SPENT).tick().changes_nothing();
    // Only a deadline can end it without a call.
    execution()
        .deadline("1d")
        .started()
        .start_turn("a")
        .wait("a")
        .due("10m", DueKind::Backstop)
        .next_tick()
        .due("1d", DueKind::Instant);
}

// ---- nothing is missed

#[test]
fn a_suspension_is_conditional_on_the_wakes_seen() {
    let scene = execution().started().start_turn("a").wake().wake().wait_for_others("a").replies(SUSPENDED);
    let [Write::Put { condition, .. }] = scene.decision().writes.as_slice() else { panic!() };
    assert!(matches!(condition, Condition::Unchanged { wakes: Some(2), .. }), "{condition:?}");
}

#[test]
fn a_suspension_that_has_not_seen_a_wake_goes_on() {
    let scene = execution().started().start_turn("a").wake();
    let scene = scene.suspend("a", |suspend| {
        suspend.seen_wakes = 0;
        suspend.awaits_others = true;
    });
    scene.replies(GO_ON).changes_nothing().is(Status::Running);
}

#[test]
fn a_suspension_that_has_not_seen_an_event_goes_on_with_what_it_brought() {
    let scene = execution().started().start_turn("a");
    let seen = scene.record().version;
    let scene = scene.send_event("go").sends_nothing().suspend("a", |suspend| {
        suspend.seen_version = seen;
        suspend.entries = vec![done("step", "1")];
    });
    let scene = scene.replies(GO_ON).is(Status::Running).writes_the_record();
    assert_eq!(scene.journal().len(), 2);
    scene.wait("a").replies(SUSPENDED).is(Status::Waiting);
}

#[test]
fn a_suspension_that_was_to_be_cancelled_goes_on() {
    let scene = execution().started().start_turn("a").cancel();
    let scene = scene.suspend("a", |suspend| suspend.seen_version -= 1).replies(GO_ON).is(Status::Running);
    scene.wait("a").replies(GO_ON).suspend("a", |suspend| suspend.cleanup.undoes = true).is(Status::Waiting);
}

#[test]
fn a_wake_while_it_waits_lets_a_turn_begin() {
    let scene = execution().started().start_turn("a").wait_for_others("a").start_turn("b").replies(SPENT);
    scene
        .wake()
        .start_turn("b")
        .replies(TAKEN)
        .wait_for_others("b")
        .replies(SUSPENDED)
        .start_turn("c")
        .replies(SPENT);
}

// ---- remote steps and children

/// A turn that has started a remote step.
fn printing() -> Scene {
    execution().started().start_turn("a").record_entries("a", vec![remote("print")])
}

/// Waits for remote steps again and again without a result. Returns the intervals in seconds.
fn looks(mut scene: Scene, count: usize) -> Vec<u64> {
    let mut waits = Vec::new();
    for _ in 0..count {
        let recheck = scene.waiting().recheck.unwrap();
        waits.push(recheck.after.as_u64() / 1000);
        scene = scene.at_instant(recheck.at).start_turn("a").replies(TAKEN).wait_for_others("a");
    }
    waits
}

#[test]
fn the_recheck_interval_grows_fourfold_up_to_an_hour() {
    let scene = printing().wait_for_others("a").due("10m", DueKind::Backstop);
    assert_eq!(looks(scene, 12), [600, 2400, 3600, 3600, 3600, 3600, 3600, 3600, 3600, 3600, 3600, 3600]);
    // A result resets the count.
    let scene = printing().wait_for_others("a").at("10m").start_turn("a").wait_for_others("a");
    let scene = scene.at("50m").start_turn("a").suspend("a", |suspend| {
        suspend.entries = vec![ended("print")];
        suspend.awaits_others = true;
    });
    assert_eq!(looks(scene, 2), [600, 2400]);
}

#[test]
fn rechecks_without_a_result_are_no_poison_however_low_the_limit() {
    for limit in 1..5 {
        let plan = execution().limited(|limits| limits.idle_turns = limit);
        let scene = plan.started().start_turn("a").wait_for_others("a");
        looks(scene, 20);
    }
}

#[test]
fn the_tick_sends_the_hint_for_a_recheck_once() {
    let scene = printing().wait_for_others("a").due("10m", DueKind::Backstop);
    let scene = scene.at("10m 10s").tick().sends_hint_for("10m 10s").due("20m 10s", DueKind::Backstop);
    let scene = scene.tick().changes_nothing().next_tick().sends_no_hint();
    scene.start_turn("b").replies(TAKEN);
}

#[test]
fn the_earlier_of_a_sleep_and_a_recheck_comes_first() {
    let both = |until: &str| {
        printing().suspend("a", |suspend| {
            suspend.awaits_others = true;
            suspend.until = Some(t(until));
        })
    };
    both("15m").sends_hint_for("15m").due("10m", DueKind::Backstop).next_tick().sends_hint_for("10m");
    // The turn that the sleep's hint starts also rechecks.
    both("30s").sends_hint_for("30s").due("10m", DueKind::Backstop).at("1m").tick().sends_nothing();
    both("2h").sends_nothing().due("10m", DueKind::Backstop).next_tick().sends_hint_for("10m");
}
