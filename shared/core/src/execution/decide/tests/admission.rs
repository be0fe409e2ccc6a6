//! What an execution needs before its first turn: places at its keys, and a start by the rate of one.

use std::num::NonZeroU32;

use crate::decision::{Effect, FreePlaces};
use crate::duration::Millis;
use crate::execution::command::{Bounce, Command, Ending, Given};
use crate::execution::decision::{Reply, StartTurnReply};
use crate::execution::{Admission, ExecutionOutcome, ExecutionStatus as Status};
use crate::flow::{Pace, Paced, Priority};
use crate::gate::rate::{Reservation, reserve};
use crate::gate::version_mark;
use crate::id::Fingerprint;

use super::fixture::{Plan, Scene, blob, execution, json, span, t};

const NEEDS_PLACES: Reply = Reply::StartTurn(StartTurnReply::NeedsPlaces);
const NEEDS_START: Reply = Reply::StartTurn(StartTurnReply::NeedsStart);
const STARTED: Reply = Reply::StartTurn(StartTurnReply::Started);

fn pace() -> Pace {
    let one = NonZeroU32::MIN;
    Pace { limit: one, per: Millis::from_secs(60), burst: one }
}

/// An execution that needs a place at one key.
fn limited() -> Plan {
    execution().needing(&[1])
}

/// An execution that starts by a rate, with this start.
fn paced(start: Option<Reservation>) -> Plan {
    let paced = Paced {
        key: Fingerprint::from_bytes([2; 16]),
        pace: pace(),
        text: "api".to_owned(),
        start,
        put_off: false,
    };
    let mut plan = execution();
    plan.start.admission = Some(Box::new(Admission { paced: Some(paced), ..Admission::default() }));
    plan
}

fn start_at(text: &str) -> Reservation {
    reserve(None, &pace(), t(text)).0
}

impl Scene {
    fn freed(&self) -> Vec<FreePlaces> {
        let freed = |effect: &Effect| match effect {
            Effect::FreePlaces(freed) => Some((**freed).clone()),
            Effect::Dispatch { .. }
            | Effect::Timer(_)
            | Effect::Turn { .. }
            | Effect::CameToLine { .. }
            | Effect::NotifyParent(_) => None,
        };
        self.decision().effects.iter().filter_map(freed).collect()
    }
}

#[test]
fn a_first_turn_starts_only_with_places_of_the_version_that_the_record_has() {
    let scene = limited().started().start_turn("a").replies(NEEDS_PLACES).changes_nothing();
    let scene = scene.with_places("a", 7).replies(NEEDS_PLACES).changes_nothing();
    let scene = scene.with_places("a", 1).replies(STARTED);
    assert_eq!(scene.record().place_mark(), version_mark(1));
    // Later turns have them already.
    scene.wait("a").wake().start_turn("b").replies(STARTED);
}

#[test]
fn who_waits_at_one_key_makes_all_who_took_places_for_that_version_take_them_again() {
    let scene = limited().started().apply(&Command::WaitInLine { seen_version: 7 }).changes_nothing();
    let scene = scene.wait_in_line().replies(Reply::Changed { changed: true });
    assert_eq!(scene.record().version, 2);
    assert!(!scene.record().owns_place(version_mark(1)) && scene.record().owns_place(version_mark(2)));
    scene.with_places("a", 1).replies(NEEDS_PLACES).changes_nothing().with_places("a", 2).replies(STARTED);
}

#[test]
fn places_are_kept_through_waits_and_runs_and_given_up_with_the_outcome() {
    let scene = limited().started().with_places("a", 1).wait("a");
    assert!(scene.freed().is_empty() && scene.record().owns_place(version_mark(1)));
    let scene = scene.wake().start_turn("b");
    let scene = scene.close_with("b", vec![], Ending::ContinueAsNew { input: None, carried: vec![] });
    assert!(scene.freed().is_empty() && scene.record().owns_place(version_mark(1)));
    let scene = scene.start_turn("c").close("c", ExecutionOutcome::Completed { output: None });
    let freed = scene.freed();
    assert_eq!((freed.len(), freed[0].before, freed[0].waited), (1, scene.record().version, None));
    assert!(!scene.record().owns_place(version_mark(1)));
    // A restart needs places of its own, with another mark: a late end of the first run frees none of them.
    let scene = scene.restart(vec![]).is(Status::Pending).start_turn("d").replies(NEEDS_PLACES);
    let version = scene.record().version;
    let scene = scene.with_places("d", version).replies(STARTED);
    assert_ne!(scene.record().place_mark(), version_mark(1));
}

#[test]
fn who_ends_before_its_first_turn_leaves_the_line_and_has_no_mark() {
    let scene = limited().started().terminate().is(Status::Cancelled);
    let freed = scene.freed();
    assert_eq!((freed[0].before, freed[0].waited.is_some(), freed[0].gates.len()), (2, true, 1));
}

#[test]
fn a_turn_takes_places_again_once_less_than_half_of_their_time_is_left_and_keeps_their_mark() {
    let scene = limited().started().with_places("a", 1).wait("a").wake();
    let scene = scene.at("364d").start_turn("b").replies(STARTED).wait("b").wake();
    let scene = scene.at("366d").start_turn("c").replies(NEEDS_PLACES).changes_nothing();
    let version = scene.record().version;
    let scene = scene.with_places("c", version).replies(STARTED).wait("c").wake();
    assert_eq!(scene.record().place_mark(), version_mark(1));
    scene.at("700d").start_turn("d").replies(STARTED);
}

#[test]
fn a_reserved_start_is_waited_for_and_used_once() {
    let scene = paced(Some(start_at("30s"))).started();
    assert_eq!(scene.record().run_started_at, t("30s"));
    let early = Reply::StartTurn(StartTurnReply::Early { available_at: t("30s") });
    let scene = scene.start_turn("a").replies(early).changes_nothing();
    let scene = scene.at("30s").start_turn("a").replies(STARTED);
    assert_eq!(scene.record().admission, None);
    scene.wait("a").wake().at("1h").start_turn("b").replies(STARTED);
}

#[test]
fn a_start_that_is_late_or_missing_is_reserved_again_and_a_later_one_puts_the_turn_off() {
    for scene in [paced(None).started(), paced(Some(start_at("0s"))).started().at("21s")] {
        let scene = scene.start_turn("a").replies(NEEDS_START).changes_nothing();
        let later = start_at("90s");
        let put_off = Reply::StartTurn(StartTurnReply::Stale);
        let scene =
            scene.take_like("a", |take| take.start = Some(later)).replies(put_off).is(Status::Pending);
        assert_eq!(scene.record().lane().priority, Priority::High);
        let scene = scene.at("89s").start_turn("b").changes_nothing();
        let scene = scene.at("90s").start_turn("b").replies(STARTED);
        assert_eq!(scene.record().lane().priority, Priority::Normal);
    }
}

#[test]
fn who_ends_before_its_start_gives_that_back_and_who_has_begun_has_none() {
    let start = start_at("30s");
    let freed = paced(Some(start)).started().terminate().freed();
    assert_eq!(freed[0].start.as_ref().and_then(|paced| paced.start), Some(start));
    let scene = paced(Some(start)).started().at("30s").start_turn("a");
    assert!(scene.close("a", ExecutionOutcome::Completed { output: None }).freed().is_empty());
}

fn bounce(wait: &str, at_most: &str, input: &str) -> Command {
    let given = Given { input: Some(json(input)), details: None, blob_ids: [blob("input"), blob("details")] };
    Command::Bounce(Box::new(Bounce { given, wait: span(wait), at_most: span(at_most) }))
}

#[test]
fn a_request_of_a_burst_takes_the_place_of_the_one_that_waits_until_a_worker_has_it() {
    let taken = |taken| Reply::Bounced { taken };
    let scene = execution().run_deadline("1m").input("1").started();
    let scene = scene.at("5s").apply(&bounce("10s", "30s", "2")).replies(taken(true));
    assert_eq!(scene.record().run_deadline_at, Some(t("1m 15s")));
    let scene = scene.at("25s").apply(&bounce("10s", "30s", "3")).replies(taken(true));
    assert_eq!(scene.record().run_started_at, t("30s"));
    let scene = scene.at("29s").start_turn("a").changes_nothing().at("30s").start_turn("a").replies(STARTED);
    scene.apply(&bounce("10s", "30s", "4")).replies(taken(false)).changes_nothing();
}

/// A queue that is paused has no hint of it under way.
#[test]
fn what_ends_the_wait_for_a_paused_queue_sends_a_hint_and_what_does_not_leaves_it_parked() {
    let hints = |scene: &Scene| {
        scene.decision().effects.iter().filter(|effect| matches!(effect, Effect::Turn { .. })).count()
    };
    let parked = || execution().run_deadline("1m").on_failure("1h").started().take_paused("a");
    let bounced = parked().at("5s").apply(&bounce("10s", "30s", "2"));
    assert!(bounced.record().parked.is_paused() && hints(&bounced) == 0);
    assert_eq!(hints(&bounced.unpark()), 1);
    let waits = parked().wait_in_line();
    assert!(waits.record().parked.is_paused() && hints(&waits) == 0);
    let failing = parked().at("1m").tick();
    assert!(failing.record().parked.is_no() && failing.record().failing.is_some());
    assert_eq!(hints(&failing), 1);
    // An operator holds it as well: resuming it sends the hint.
    let held = parked().pause().unpark();
    assert!(held.record().parked.is_no() && hints(&held) == 0);
    assert_eq!(hints(&held.resume()), 1);
}

#[test]
fn an_execution_that_asks_for_nothing_has_nothing_of_it_in_its_record() {
    let record = execution().started().start_turn("a").record().clone();
    assert!(record.admission.is_none() && !serde_json::to_string(&record).unwrap().contains("adm"));
}
