//! Missed occurrences.

use super::fixture::{Scene, cron, every, max_runs, t};
use crate::cron::MISSED_AFTER;
use crate::cron::plan::{Missed, Overlap};
use crate::cron::run::{RunState, Skip};

fn hourly(missed: Missed) -> Scene {
    Scene::of(every("1h"), |plan| plan.missed = missed)
}

#[test]
fn skip_leaves_out_what_was_missed_and_says_so_once() {
    let scene = hourly(Missed::Skip).at("05:30:00");
    assert_eq!(scene.started(), [""; 0]);
    assert_eq!(scene.runs(), [("05:00:00".to_owned(), RunState::Skipped(Skip::Missed))]);
    assert_eq!(scene.due(), Some(t("06:00:00")));
}

#[test]
fn run_once_starts_the_last_of_what_was_missed() {
    let scene = hourly(Missed::RunOnce).at("05:30:00");
    assert_eq!(scene.started(), ["05:00:00"]);
    assert_eq!(scene.end_all().until("06:30:00").started(), ["05:00:00", "06:00:00"]);
}

#[test]
fn an_occurrence_in_time_replaces_those_that_were_missed() {
    let scene = hourly(Missed::RunOnce).at("05:01:00");
    assert_eq!(scene.started(), ["05:00:00"]);
    assert_eq!(scene.runs()[0], ("04:00:00".to_owned(), RunState::Skipped(Skip::Missed)));
}

#[test]
fn a_tick_that_is_late_misses_nothing() {
    for missed in Missed::ALL {
        let mut scene = hourly(missed);
        scene.now = t("01:00:00").plus(MISSED_AFTER);
        assert_eq!(scene.handle_due().started(), ["01:00:00"]);
    }
}

#[test]
fn a_late_occurrence_overlaps_an_open_run_like_any_other() {
    let scene = hourly(Missed::RunOnce).until("01:30:00").at("05:30:00");
    assert_eq!(scene.started(), ["01:00:00"]);
    assert_eq!(scene.runs()[1], ("05:00:00".to_owned(), RunState::Skipped(Skip::Overlap)));
}

#[test]
fn years_without_a_tick_are_one_step() {
    let plan = |plan: &mut crate::cron::plan::Plan| plan.missed = Missed::RunOnce;
    let scene = Scene::of(cron("*/10 * * * * *", "Europe/Berlin"), plan).at("2029-03-05T12:00:04.500Z");
    // The last few minutes count as in time, and the first run of them is open at the later occurrences.
    assert_eq!(scene.started(), ["11:55:10"]);
    assert_eq!(scene.due(), Some(t("2029-03-05T12:00:10Z")));
}

#[test]
fn what_was_missed_is_not_counted_as_a_run() {
    let scene = Scene::of(every("1h"), |plan| {
        plan.max_runs = max_runs(1);
        plan.overlap = Overlap::AllowAll;
    });
    assert_eq!(scene.at("05:30:00").until("07:30:00").started(), ["06:00:00"]);
}
