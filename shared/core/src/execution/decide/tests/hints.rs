//! The tick and lost hints: when it probes, and when it counts a hint as lost.

use crate::decision::{DueReply, Write};
use crate::due::DueKind;
use crate::execution::decision::Reply;
use crate::execution::due::may_be_lost;
use crate::queue::QueueView;

use super::fixture::{EMPTY, claimed_up_to, execution, span, t};
use super::lifecycle::TAKEN;

const REARMED: Reply = Reply::Due(DueReply::Rearmed);
const DISPATCHED: Reply = Reply::Due(DueReply::Dispatched);
const NOTHING: Reply = Reply::Due(DueReply::Nothing);

#[test]
fn while_its_queue_is_not_empty_each_probe_interval_is_four_times_the_last() {
    let scene =
        execution().started().next_tick().replies(REARMED).sends_nothing().due("40m", DueKind::Backstop);
    let version = scene.record().version;
    let scene = scene.next_tick().replies(REARMED).due("2h 40m", DueKind::Backstop);
    assert_eq!(scene.record().version, version);
    assert!(matches!(scene.decision().writes[..], [Write::Rearm { .. }]));
    let scene = scene.next_tick().due("6h", DueKind::Backstop).next_tick().replies(DISPATCHED);
    scene.sends_hint_for("6h").due("6h 10m", DueKind::Backstop);
}

#[test]
fn a_queue_seen_empty_twice_a_minute_apart_has_lost_the_hint() {
    let scene = execution().started().next_tick_seeing(EMPTY).replies(REARMED).due("11m", DueKind::Recheck);
    let scene = scene.next_tick_seeing(EMPTY).replies(DISPATCHED).sends_hint_for("11m");
    scene.due("21m", DueKind::Backstop).start_turn("a").replies(TAKEN);
}

#[test]
fn a_hint_that_was_overtaken_by_five_minutes_is_lost() {
    execution().started().at("10m").tick_seeing(claimed_up_to("5m")).replies(DISPATCHED);
    execution().started().at("10m").tick_seeing(claimed_up_to("4m 59s")).replies(REARMED);
}

#[test]
fn a_leased_turn_needs_no_hint_and_a_lost_one_does() {
    let scene = execution().started().take_for("a", "12h").next_tick_seeing(EMPTY).replies(REARMED);
    scene.due("40m", DueKind::Backstop).next_tick_seeing(EMPTY).replies(REARMED);
    let scene =
        execution().started().take_for("a", "1m").at("10m").tick_seeing(EMPTY).due("11m", DueKind::Backstop);
    let scene = scene.next_tick_seeing(EMPTY).due("12m", DueKind::Recheck).next_tick_seeing(EMPTY);
    scene.replies(DISPATCHED).sends_hint_for("12m").start_turn("b").replies(TAKEN);
}

#[test]
fn the_hint_of_a_sleeps_end_may_be_lost_as_well() {
    let scene = execution().started().start_turn("a").sleep_until("a", "5m").next_tick_seeing(EMPTY);
    let scene = scene.due("15m", DueKind::Backstop).next_tick_seeing(EMPTY).due("16m", DueKind::Recheck);
    scene.next_tick_seeing(EMPTY).replies(DISPATCHED).sends_hint_for("16m");
}

#[test]
fn the_hint_of_an_event_may_be_lost_as_well() {
    let scene = execution()
        .started()
        .start_turn("a")
        .wait("a")
        .at("1h")
        .send_event("go")
        .due("1h 10m", DueKind::Backstop);
    let scene = scene.next_tick_seeing(EMPTY).next_tick_seeing(EMPTY).replies(DISPATCHED);
    scene.sends_hint_for("1h 11m").start_turn("b").replies(TAKEN);
}

#[test]
fn the_hint_for_a_look_at_others_may_be_lost_and_whoever_wakes_the_execution_sends_another() {
    let looks = || execution().started().start_turn("a").wait_for_others("a").next_tick_seeing(EMPTY);
    let looked = || looks().next_tick_seeing(EMPTY).replies(DISPATCHED);
    looked().at("41m").send_event("go").sends_hint_for("41m").send_event("go").sends_nothing();
    looked().at("41m").pause().resume().sends_hint_for("41m");
}

#[test]
fn an_execution_that_the_tick_never_has_to_act_on_leaves_the_index() {
    let scene = execution().started().edit(|record| record.paused = true).next_tick();
    scene.replies(REARMED).writes_the_record().has_no_due().tick().replies(NOTHING).changes_nothing();
}

#[test]
fn a_backlog_gets_a_hint_each_six_hours_at_most() {
    let mut scene = execution().started();
    let mut sent = Vec::new();
    while scene.record().due.unwrap().at < t("2d") {
        let now = scene.record().due.unwrap().at;
        scene = scene.at_instant(now).tick_seeing(QueueView { looks_empty: false, ..QueueView::default() });
        sent.extend(scene.hints());
    }
    assert_eq!(sent.len(), 7);
    assert!(sent.windows(2).all(|pair| pair[1].since(pair[0]) >= span("6h")), "{sent:?}");
}

#[test]
fn only_what_waits_for_its_hint_for_long_may_have_lost_it() {
    let scene = execution().started();
    let limits = crate::limits::Limits::default();
    assert!(
        !may_be_lost(scene.record(), t("9m 59s"), &limits) && may_be_lost(scene.record(), t("10m"), &limits)
    );
    let asleep = execution().started().start_turn("a").sleep_until("a", "1h");
    assert!(!may_be_lost(asleep.record(), t("10m"), &limits));
    let endless = execution().started().start_turn("a").wait("a");
    assert!(!may_be_lost(endless.record(), t("1d"), &limits));
}
