//! Tasks that start by the rate of a key.

use std::num::NonZeroU32;

use super::fixture::{Plan, Scene, span, t, task};
use crate::decision::{Effect, FreePlaces};
use crate::error::Reject;
use crate::flow::{Pace, Paced, Priority};
use crate::gate::rate::Reservation;
use crate::id::Fingerprint;
use crate::task::Status;
use crate::task::command::{Claim, HintedRecord};
use crate::task::decision::{ClaimReply, Reply};
use crate::task::next::{Next, NextStep, next};
use crate::timeout::OnTimeout::Retry;

const CLAIMED: Reply = Reply::Claim(ClaimReply::Claimed);
const STALE: Reply = Reply::Claim(ClaimReply::Stale);
const NEEDS_START: Reply = Reply::Claim(ClaimReply::NeedsStart);

fn early(text: &str) -> Reply {
    Reply::Claim(ClaimReply::Early { available_at: t(text) })
}

fn reserved(text: &str) -> Reservation {
    Reservation { start_at: t(text), planned_at: t(text), epoch: t("0s"), ticket: None }
}

/// A task of a key, with the start that was reserved for it.
fn paced(mut plan: Plan, start: Option<&str>) -> Scene {
    let pace = Pace { limit: NonZeroU32::MIN, per: span("1s"), burst: NonZeroU32::MIN };
    let (key, text, start) = (Fingerprint::from_bytes([7; 16]), "smtp".to_owned(), start.map(reserved));
    plan.schedule.flow.paced = Some(Paced { key, pace, text, start, put_off: false });
    plan.scheduled()
}

fn claim_with(scene: Scene, name: &str, start: &str) -> Scene {
    scene.claim_like(name, |claim| claim.start = Some(reserved(start)))
}

/// The start that the last step gives back.
fn given_back(scene: &Scene) -> Option<Reservation> {
    scene.decision().effects.iter().find_map(|effect| match effect {
        Effect::FreePlaces(freed) => {
            let FreePlaces { start, .. } = &**freed;
            start.as_ref()?.start
        }
        Effect::Dispatch { .. }
        | Effect::Timer(_)
        | Effect::Turn { .. }
        | Effect::CameToLine { .. }
        | Effect::NotifyParent(_) => None,
    })
}

#[test]
fn a_task_is_available_from_its_reserved_start_on_and_uses_it_once() {
    let scene = paced(task().attempts(2), Some("30s")).available_at("30s").sends_hint_for("30s");
    let scene = scene.at("29s").claim("a").replies(early("30s")).changes_nothing();
    let scene = scene.at("30s").claim("a").replies(CLAIMED);
    assert_eq!(scene.record().reserved(), None);
    let scene = scene.fail("a").is(Status::Pending).claim("b").replies(NEEDS_START).changes_nothing();
    claim_with(scene, "b", "30s").replies(CLAIMED).on_attempt(2);
}

#[test]
fn a_claim_that_comes_late_reserves_another_start() {
    let late = || paced(task(), Some("0s"));
    late().at("5s").claim("a").replies(CLAIMED);
    let scene = late().at("5s 1ms").claim("a").replies(NEEDS_START).changes_nothing();
    claim_with(scene, "a", "5s 1ms").replies(CLAIMED);
}

#[test]
fn a_claim_whose_start_comes_later_puts_the_task_off_without_an_attempt() {
    let plan = || task().starting_in("1m").start_within("10s", Retry);
    let scene = claim_with(paced(plan(), None).available_at("1m").at("1m"), "a", "90s");
    let scene =
        scene.replies(STALE).is(Status::Pending).available_at("90s").on_attempt(0).sends_hint_for("90s");
    assert_eq!(scene.pending().schedule_to_start_at, Some(t("100s")));
    assert_eq!(scene.record().reserved(), Some(reserved("90s")));
    assert_eq!(scene.record().lane().priority, Priority::High, "it would be late behind a backlog again");
    let scene = scene.at("89s").claim("b").replies(early("90s")).at("90s").claim("b").replies(CLAIMED);
    assert_eq!(scene.record().lane().priority, Priority::Normal);
}

#[test]
fn old_hints_of_a_task_that_was_put_off_are_stale() {
    let scene = paced(task(), None);
    let hint = Some(HintedRecord { incarnation: scene.record().incarnation, version: 1, again: false });
    let scene = claim_with(scene, "a", "30s").at("30s");
    let scene = scene.claim_like("b", |claim| claim.hint = hint).replies(STALE).changes_nothing();
    scene.claim("b").replies(CLAIMED);
}

#[test]
fn a_start_that_was_moved_is_put_off() {
    let moved = |claim: &mut Claim| claim.start = Some(Reservation { start_at: t("90s"), ..reserved("30s") });
    let scene = paced(task(), Some("30s")).at("30s").claim_like("a", moved);
    let scene = scene.replies(STALE).available_at("90s").sends_hint_for("90s");
    scene.at("90s").claim("a").replies(CLAIMED);
}

#[test]
fn the_hint_of_a_start_that_is_put_off_by_hours_comes_from_the_tick() {
    let scene = claim_with(paced(task(), None), "a", "2h").replies(STALE).sends_nothing();
    assert!(scene.pending().hint_later);
    let scene = scene.at("1h").claim("a").replies(STALE).changes_nothing();
    // At its old slot, the tick moves the record to the one from which on a queue can delay the hint.
    scene.next_tick().sends_no_hint().next_tick().sends_hint_for("2h").at("2h").claim("a").replies(CLAIMED);
}

#[test]
fn a_start_of_the_record_that_another_claim_has_used_meanwhile_counts_no_more() {
    let confirmed = |version| {
        move |claim: &mut Claim| (claim.start, claim.start_of) = (Some(reserved("0s")), Some(version))
    };
    let waiting = || paced(task().attempts(2), Some("0s"));
    let version = waiting().record().version;
    waiting().claim_like("a", confirmed(version)).replies(CLAIMED);
    let lost = waiting().claim_for("a", "10s").at("10s").claim_like("b", confirmed(version));
    lost.replies(NEEDS_START).changes_nothing();
    let failed = waiting().claim("a").fail("a").claim_like("b", confirmed(version));
    failed.replies(NEEDS_START).changes_nothing();
}

#[test]
fn a_task_whose_worker_was_lost_needs_a_start_and_still_runs_alone() {
    let lost = || paced(task(), Some("0s")).claim_for("a", "1m").at("1m");
    let scene = lost().claim("b").replies(NEEDS_START).changes_nothing();
    let scene = claim_with(scene, "b", "62s").replies(early("62s")).is(Status::Running);
    let scene = scene.claim_among_others("c").replies(Reply::Claim(ClaimReply::Suspect));
    let scene = scene.claim("c").replies(early("62s")).changes_nothing();
    let scene = scene.at("62s").claim("c").replies(CLAIMED);
    assert_eq!((scene.record().losses, scene.record().attempt), (1, 1));
    let poisoned = scene.edit(|task| task.losses = 3).at("3m").claim("d");
    poisoned.is(Status::Failed);
}

#[test]
fn a_task_that_ends_before_its_start_gives_it_back() {
    let scene = paced(task(), Some("30s")).cancel().is(Status::Cancelled);
    assert_eq!(given_back(&scene), Some(reserved("30s")));
    assert_eq!(scene.record().reserved(), None);
    let scene = paced(task().deadline("10s"), Some("30s")).at("10s").tick().is(Status::TimedOut);
    assert_eq!(given_back(&scene), Some(reserved("30s")));
}

#[test]
fn a_start_that_was_used_or_has_passed_is_not_given_back() {
    let cancelled = paced(task(), Some("0s")).at("1m").cancel();
    assert_eq!(given_back(&cancelled), None);
    let completed = paced(task(), Some("0s")).claim("a").complete("a");
    assert_eq!(given_back(&completed), None);
}

#[test]
fn a_start_more_than_a_year_ahead_is_refused() {
    let reason = "so many tasks of its key wait that its start would be more than a year ahead";
    let mut plan = task();
    let start = Some(reserved("366d"));
    let pace = Pace { limit: NonZeroU32::MIN, per: span("1d"), burst: NonZeroU32::MIN };
    plan.schedule.flow.paced = Some(Paced {
        key: Fingerprint::from_bytes([7; 16]),
        pace,
        text: String::new(),
        start,
        put_off: false,
    });
    plan.scheduled().refuses(Reject::field("rate", reason));
}

#[test]
fn what_comes_next_for_a_task_that_waits_for_its_rate_is_said() {
    let what = |scene: &Scene, now: &str| next(scene.record(), t(now));
    let waiting = paced(task(), Some("30s"));
    assert_eq!(what(&waiting, "29s"), Next { what: NextStep::Rate, at: Some(t("30s")) });
    assert_eq!(what(&waiting, "30s"), Next { what: NextStep::Claim, at: None });
    let delayed = paced(task().starting_in("1m"), None);
    assert_eq!(what(&delayed, "0s").what, NextStep::Available);
}

#[test]
fn an_operators_retry_needs_a_start_of_its_own() {
    let scene = paced(task(), Some("30s")).cancel().at("30s").retry().is(Status::Pending);
    scene.claim("a").replies(NEEDS_START);
}
