//! A clock that is set back: the cron follows the new time, and starts nothing twice.

use super::fixture::{Scene, cron, every, max_runs, t};
use crate::cron::plan::{Overlap, When};

/// A cron that has run for a while by a clock that is ahead, and the same cron after the clock was set back.
fn set_back(when: When, from: &str, to: &str) -> Scene {
    let scene = Scene::of(when, |plan| plan.overlap = Overlap::AllowAll).until(from);
    scene.at(to)
}

#[test]
fn a_cron_that_is_further_ahead_than_its_own_next_instant_plans_anew() {
    for (from, to) in [("2026-01-01T10:30:00Z", "09:31:00"), ("2026-01-02T09:30:30Z", "09:31:00")] {
        for when in [every("5m"), cron("*/5 * * * *", "UTC")] {
            assert_eq!(set_back(when, from, to).due(), Some(t("09:35:00")), "{from}");
        }
    }
}

#[test]
fn what_ran_by_the_old_time_runs_once() {
    let scene = set_back(every("1h"), "03:30:00", "01:30:00");
    assert_eq!((scene.due(), scene.starts), (Some(t("02:00:00")), 3));
    let scene = scene.until("05:30:00");
    assert_eq!(scene.started(), ["01:00:00", "02:00:00", "03:00:00", "04:00:00", "05:00:00"]);
}

#[test]
fn a_run_that_the_record_knows_does_not_count_twice() {
    let scene = Scene::of(every("1h"), |plan| plan.max_runs = max_runs(3)).until("01:30:00").end_all();
    let scene = scene.until("02:30:00").end_all().at("00:30:00").until("02:30:00").end_all();
    assert_eq!(scene.until("09:30:00").started(), ["01:00:00", "02:00:00", "03:00:00"]);
}

#[test]
fn intervals_from_a_creation_that_is_still_to_come_count_from_now() {
    let scene = Scene::of(every("5m"), |_| {}).at("2025-11-30T08:00:00.250Z");
    assert_eq!(scene.due(), Some(t("2025-11-30T08:05:00Z")));
    assert_eq!(scene.record().anchor, t("2025-11-30T08:00:00Z"));
}

#[test]
fn a_clock_that_is_a_little_behind_another_one_changes_nothing() {
    let scene = Scene::of(every("5m"), |_| {}).until("00:05:00");
    let before = scene.record().clone();
    assert_eq!(*scene.at("00:04:58").record(), before);
    let new = Scene::of(every("5m"), |_| {});
    let before = new.record().clone();
    assert_eq!(*new.at("2025-12-31T23:59:58Z").record(), before);
}
