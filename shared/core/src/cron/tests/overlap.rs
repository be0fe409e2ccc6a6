//! The result of an occurrence while an earlier run is still open, for each policy.

use super::fixture::{RunStatus, Scene, every, t};
use crate::cron::command::Command;
use crate::cron::plan::Overlap;
use crate::cron::run::{RunState, Skip, Stop};
use crate::cron::{HISTORY, LIVE_MAX, WAITING_MAX};

fn run(at: &str, state: RunState) -> (String, RunState) {
    (at.to_owned(), state)
}

const OPEN: RunState = RunState::Open;

#[test]
fn skip_leaves_out_what_comes_while_a_run_is_open() {
    let scene = Scene::overlapping(Overlap::Skip).until("03:30:00");
    let skipped = RunState::Skipped(Skip::Overlap);
    let expected = [run("01:00:00", OPEN), run("02:00:00", skipped.clone()), run("03:00:00", skipped)];
    assert_eq!(scene.runs(), expected);
    assert_eq!(scene.end_all().until("04:30:00").started(), ["01:00:00", "04:00:00"]);
}

#[test]
fn buffer_one_starts_the_first_that_waited_as_soon_as_it_sees_the_end() {
    let scene = Scene::overlapping(Overlap::BufferOne).until("03:59:00");
    assert_eq!(scene.started(), ["01:00:00"]);
    assert_eq!(scene.runs()[1], run("03:00:00", RunState::Skipped(Skip::Full)));
    let ended = scene.end_all();
    let due = ended.due().unwrap();
    assert!(due <= t("04:04:00"), "it checks every five minutes at the latest: {due:?}");
    let scene = ended.until("03:59:59").until("04:00:00");
    assert_eq!(scene.started(), ["01:00:00", "02:00:00"]);
    let scene = scene.end_all().until("05:30:00");
    assert_eq!(scene.started(), ["01:00:00", "02:00:00", "04:00:00"]);
}

#[test]
fn a_waiting_occurrence_is_checked_soon_at_first() {
    let scene = Scene::overlapping(Overlap::BufferOne).until("02:00:00");
    assert_eq!(scene.due(), Some(t("02:00:05")));
    assert_eq!(scene.end_all().until("02:00:05").started(), ["01:00:00", "02:00:00"]);
}

#[test]
fn buffer_all_keeps_everything_in_order_however_long_it_takes() {
    let mut scene = Scene::overlapping(Overlap::BufferAll).until("05:30:00");
    assert_eq!(scene.record().waiting.unwrap().count, 4);
    for expected in 2..=5 {
        scene = scene.end_all().handle_due();
        assert_eq!(scene.started().len(), expected);
        assert_eq!(scene.started().last().unwrap(), &format!("0{expected}:00:00"));
    }
    assert_eq!(scene.record().waiting, None);
    assert_eq!(scene.until("06:30:00").record().waiting.unwrap().count, 1);
}

#[test]
fn buffer_all_collects_even_missed_occurrences_up_to_its_limit() {
    let scene = Scene::of(every("1s"), |plan| plan.overlap = Overlap::BufferAll).at("00:00:01");
    let scene = scene.at("00:10:01");
    assert_eq!(scene.record().waiting.unwrap().count, 600);
    let scene = scene.at("09:00:00");
    assert_eq!(scene.record().waiting.unwrap().count, WAITING_MAX);
    assert_eq!(scene.record().next().unwrap().at, t("09:00:01"));
    assert_eq!(scene.end_all().handle_due().started(), ["00:00:01", "00:00:02"]);
}

#[test]
fn allow_all_starts_every_occurrence_in_parallel_and_follows_none() {
    let scene = Scene::overlapping(Overlap::AllowAll).until("07:30:00");
    assert_eq!(scene.started().len(), 7);
    assert!(scene.runs().iter().all(|(_, state)| *state == RunState::Done));
    assert_eq!(scene.runs().len(), HISTORY);
}

#[test]
fn allow_all_catches_up_with_many_that_came_at_once() {
    let scene = Scene::of(every("10s"), |plan| plan.overlap = Overlap::AllowAll).at("00:02:00");
    assert_eq!(scene.started().len(), 12);
    assert_eq!(scene.due(), Some(t("00:02:10")));
}

#[test]
fn cancel_other_repeats_its_request_and_starts_the_latest_once_the_open_one_has_ended() {
    let scene = Scene::overlapping(Overlap::CancelOther).until("02:00:00");
    assert_eq!(scene.started(), ["01:00:00"]);
    assert_eq!(scene.stops, [("report-20260101T010000Z".to_owned(), Stop::Cancel)]);
    let scene = scene.until("02:00:30");
    assert!(scene.stops.len() > 1, "the first request may have been lost");
    let scene = scene.until("03:10:00").end_all().until("03:59:00");
    assert_eq!(scene.started(), ["01:00:00", "03:00:00"]);
    assert!(scene.runs().contains(&run("02:00:00", RunState::Skipped(Skip::Overlap))));
}

#[test]
fn terminate_other_ends_the_open_one_and_starts_at_once() {
    let scene = Scene::overlapping(Overlap::TerminateOther).until("03:30:00");
    assert_eq!(scene.started(), ["01:00:00", "02:00:00", "03:00:00"]);
    let open: Vec<_> = scene.world.values().map(|fate| *fate == RunStatus::Open).collect();
    assert_eq!(open, [false, false, true]);
    assert!(scene.stops.iter().all(|(_, stop)| *stop == Stop::Terminate));
}

#[test]
fn runs_that_do_not_end_limit_the_runs_started_in_parallel() {
    let mut scene = Scene::overlapping(Overlap::TerminateOther);
    scene.ignores_stops = true;
    let scene = scene.until("03:30:00");
    assert_eq!(scene.world.len(), LIVE_MAX);
    let scene = scene.at("04:00:00").at("04:01:00");
    assert_eq!(scene.world.len(), LIVE_MAX);
    assert!(scene.due() <= Some(t("04:00:00")), "it stays due");
    assert_eq!(scene.end_all().at("04:02:00").started().last().unwrap(), "04:00:00");
}

/// Otherwise each look would send one more timer, each of which looks again.
#[test]
fn a_look_before_the_next_check_of_a_run_that_has_not_stopped_writes_nothing() {
    for overlap in [Overlap::CancelOther, Overlap::TerminateOther, Overlap::BufferOne] {
        let mut scene = Scene::overlapping(overlap);
        scene.ignores_stops = true;
        let mut scene = scene.until("02:00:00");
        for later in ["02:00:01", "02:00:02", "02:00:04"] {
            scene.now = t(later);
            let decision = scene.decide(&Command::Due { ended: vec![] });
            assert!(decision.writes.is_empty() && decision.effects.is_empty(), "{overlap:?} at {later}");
        }
        assert_eq!(scene.due(), Some(t("02:00:05")));
    }
}
