//! Tasks that wait in the line of a key: an item there, the position in the record, and no hint.

use crate::decision::{DueReply, Effect};
use crate::due::DueKind;
use crate::duration::Millis;
use crate::flow::Priority;
use crate::gate::line::{KEEPS_UP_TO, WAITER_KEPT};
use crate::gate::tests::told;
use crate::gate::{Position, Waiter};
use crate::id::{Fingerprint, GateId};
use crate::parked::Parked;
use crate::task::Status;
use crate::task::command::{Bounce, Command};
use crate::task::decision::{ClaimReply, Reply};
use crate::task::hint::Hint;
use crate::timeout::OnTimeout;

use super::fixture::{Plan, Scene, blob, gated, json, span, t, task};
use super::life::CLAIMED;

const PARKED: Reply = Reply::Claim(ClaimReply::Parked);
const NEEDS_PLACES: Reply = Reply::Claim(ClaimReply::NeedsPlaces);
const STALE: Reply = Reply::Claim(ClaimReply::Stale);

/// A task that needs a place at one key.
fn limited() -> Plan {
    task().limited(1)
}

fn gate(number: usize) -> GateId {
    GateId::from(&gated(number, 1).key)
}

/// What the last step wrote, by kind.
fn writes(scene: &Scene) -> Vec<&'static str> {
    told::writes(&scene.decision().writes)
}

/// The key that the last step has to look at.
fn came_to(scene: &Scene) -> Option<(GateId, Waiter)> {
    told::came_to(&scene.decision().effects)
}

fn position(scene: &Scene) -> Option<Position> {
    scene.record().parked.in_line()
}

fn leaves(scene: Scene) -> Scene {
    assert_eq!((position(&scene), scene.item()), (None, None), "{:#?}", scene.record());
    assert!(writes(&scene).ends_with(&["leaves"]), "{:?}", writes(&scene));
    scene
}

#[test]
fn a_task_for_which_there_is_no_place_goes_in_line_and_has_no_hint_there() {
    let scene = limited().scheduled().sends_hint_for("0s");
    let scene = scene.at("1m").claim("a").replies(NEEDS_PLACES).changes_nothing();
    let scene = scene.wait_in_line().replies(PARKED).is(Status::Pending).sends_no_hint();
    assert_eq!(writes(&scene), ["enters", "updates"], "the item is there before the record says so");
    let expected = Position { since: t("0s"), version: 2 };
    assert_eq!((position(&scene), scene.record().version), (Some(expected), 2));
    let item = scene.item().unwrap();
    assert_eq!(
        (item.position, item.written_at, item.owner.task()),
        (expected, t("1m"), Some(&scene.record().id))
    );
    assert_eq!(came_to(&scene), Some((gate(0), item.clone())));
    assert_eq!(scene.record().hint_at(), None);
    // Who is called goes before others of its queue.
    let hint = Hint::of(scene.record());
    assert_eq!(
        (scene.record().lane().priority, scene.record().priority()),
        (Priority::High, Priority::Normal)
    );
    assert_eq!(Hint::lane_of(&hint.body().unwrap()), scene.record().lane());
    // The slot is left to the tick: a move costs two index writes.
    let scene = looked_at(scene.due("10m", DueKind::Backstop).at("10m")).due("30h 10m", DueKind::Backstop);
    // Another version has another item: what was decided on the earlier one can't be written any more.
    let scene = scene.at("2m").wait_in_line().replies(PARKED).sends_no_hint();
    assert_eq!(writes(&scene), ["enters", "updates", "leaves"]);
    assert_eq!(position(&scene), Some(Position { version: 3, ..expected }));
    let scene = scene.schedule_again().changes_nothing().sends_nothing();
    scene.unpark().replies(Reply::Unparked { was_parked: false }).changes_nothing().sends_nothing();
}

/// The tick has found it in the line, and neither its record nor its item has changed.
fn looked_at(scene: Scene) -> Scene {
    let before = (position(&scene), scene.record().version);
    let scene = scene.tick().replies(Reply::Due(DueReply::Rearmed)).sends_nothing();
    assert_eq!(((position(&scene), scene.record().version), writes(&scene)), (before, vec!["rearms"]));
    scene
}

/// It came to the line as version 2, and neither its item nor its due slot has changed since.
fn stays(scene: Scene) -> Scene {
    let position = position(&scene).unwrap();
    assert_eq!((scene.item().map(|item| item.position), position.version), (Some(position), 2));
    assert_eq!(writes(&scene), ["updates"]);
    scene.due("30h 10m", DueKind::Backstop)
}

#[test]
fn whoever_is_called_claims_it_with_places_and_it_stays_in_the_line_until_its_attempt_ends() {
    let runs = || {
        let scene = looked_at(limited().scheduled().wait_in_line().at("10m"));
        let scene = scene.at("1h").claim("a").replies(NEEDS_PLACES);
        let scene = scene.claim_with_places("a", 1).replies(NEEDS_PLACES).changes_nothing();
        stays(scene.claim_with_places("a", 2).replies(CLAIMED))
    };
    leaves(runs().complete("a").is(Status::Completed));
    assert!(!runs().record().waits_in_line(), "it runs");
    let scene = stays(runs().heartbeat_with_places("a", 3).replies(Reply::Extended));
    // The next attempt begins with a hint of its own, and may wait again: by another item.
    let scene = leaves(scene.release("a").sends_hint_for("1h")).at("2h").wait_in_line();
    assert_eq!(position(&scene), Some(Position { since: t("1h"), version: 6 }));
}

#[test]
fn one_that_came_from_the_line_and_whose_worker_was_lost_waits_there_once_it_has_come_again() {
    let waits = || looked_at(limited().attempts(3).scheduled().wait_in_line().at("10m"));
    let runs = || waits().at("1h").claim_with_places("a", 2);
    // Its message leads a worker to it.
    let scene = stays(stays(runs()).at("1h 2m").claim_with_places("b", 3).replies(CLAIMED));
    assert_eq!(scene.record().losses, 1);
    let scene = runs().at("1h 2m").wait_in_line().replies(PARKED).is(Status::Running);
    assert_eq!(writes(&scene), ["enters", "updates", "leaves"]);
    assert_eq!(position(&scene), Some(Position { since: t("1h 1m"), version: 4 }));
    assert!(scene.record().waits_in_line());
    let scene = scene.claim_with_places("b", 4).replies(CLAIMED);
    assert!(position(&scene).is_some() && !scene.record().waits_in_line());
}

#[test]
fn where_many_may_run_at_a_key_nobody_stays_in_its_line_while_it_runs() {
    let waits = |limit| looked_at(task().limited(limit).scheduled().wait_in_line().at("10m")).at("1h");
    stays(waits(KEEPS_UP_TO).claim_with_places("a", 2).replies(CLAIMED));
    let scene = leaves(waits(KEEPS_UP_TO + 1).claim_with_places("a", 2).replies(CLAIMED));
    scene.due("1h 10m", DueKind::Backstop);
    // One that begins there has the slot that its attempt keeps.
    let begins = |limit| task().limited(limit).in_line().scheduled();
    begins(KEEPS_UP_TO).due("30h", DueKind::Backstop);
    let scene = begins(KEEPS_UP_TO + 1).due("10m", DueKind::Backstop).at("9m");
    leaves(scene.claim_with_places("a", 1).replies(CLAIMED)).due("10m", DueKind::Backstop);
}

#[test]
fn only_what_the_caller_has_seen_goes_in_line() {
    let wait = |seen_version| Command::WaitInLine { seen_version };
    let scene = limited().scheduled().run(&wait(2)).replies(NEEDS_PLACES).changes_nothing();
    let scene = scene.claim_with_places("a", 1).replies(CLAIMED);
    scene.wait_in_line().replies(NEEDS_PLACES).changes_nothing();
    limited().starting_in("1h").scheduled().at("59m").wait_in_line().replies(NEEDS_PLACES).changes_nothing();
    limited().scheduled().cancel().wait_in_line().replies(STALE).changes_nothing();
    task().scheduled().wait_in_line().replies(STALE).changes_nothing();
}

#[test]
fn it_waits_at_the_scarcest_of_its_gates_in_the_branch_of_its_queue_and_the_others() {
    let scene = task().limited(5).limited(2).limited(9).scheduled().wait_in_line();
    let (at, item) = came_to(&scene).unwrap();
    assert_eq!((at, &item.branch.queue), (gate(1), &scene.record().queue));
    assert_eq!(item.branch.others, [gate(0), gate(2)]);
    assert_eq!(scene.record().waiting().mark(), item.branch.mark());
}

#[test]
fn a_task_may_begin_in_the_line_without_a_hint() {
    let scene = limited().in_line().scheduled().replies(Reply::Scheduled { existed: false }).sends_no_hint();
    assert_eq!(writes(&scene), ["enters", "creates"]);
    assert_eq!(position(&scene), Some(Position { since: t("0s"), version: 1 }));
    assert!(came_to(&scene).is_some());
    let scene = scene.due("30h", DueKind::Backstop).at("1m").schedule_again().sends_nothing();
    leaves(scene.claim_with_places("a", 1).replies(CLAIMED).complete("a"));
}

#[test]
fn one_that_cannot_start_at_once_or_needs_no_place_does_not_begin_in_the_line() {
    let later = limited().in_line().starting_in("5m").scheduled().sends_hint_for("5m");
    let skipped = limited().in_line().attempts(0).scheduled().is(Status::Skipped);
    let free = task().in_line().scheduled().sends_hint_for("0s");
    for scene in [later, skipped, free] {
        assert_eq!((position(&scene), writes(&scene), came_to(&scene)), (None, vec!["creates"], None));
    }
}

#[test]
fn a_task_in_line_whose_start_expires_leaves_it_and_has_a_hint_of_its_own() {
    let plan = || limited().start_within("5m", OnTimeout::Retry).attempts(2);
    for scene in [plan().in_line().scheduled(), plan().scheduled().wait_in_line()] {
        let scene = leaves(scene.at("5m").tick().replies(Reply::Due(DueReply::TimedOut)).is(Status::Pending));
        assert_eq!(scene.record().attempt, 1);
        let scene = scene.sends_hint_for("5m").due("10m", DueKind::Instant);
        // It comes to the line again, and its second attempt expires there.
        leaves(scene.wait_in_line().replies(PARKED).at("10m").tick().is(Status::TimedOut).sends_no_hint());
    }
    // Whoever comes first records it.
    let scene = leaves(plan().in_line().scheduled().at("5m").wait_in_line().replies(STALE));
    leaves(plan().in_line().scheduled().at("5m").claim_with_places("a", 1));
    scene.sends_hint_for("5m");
}

#[test]
fn a_deadline_ends_a_task_in_line_when_it_comes() {
    let scene = limited().deadline("1h").in_line().scheduled().due("1h", DueKind::Instant);
    leaves(scene.at("1h").tick().is(Status::TimedOut)).sends_no_hint();
}

fn bounce(wait: &str) -> Command {
    Command::Bounce(Box::new(Bounce {
        fingerprint: Fingerprint::from_bytes([8; 16]),
        input: Some(json("1")),
        labels: None,
        blob_ids: [blob("input"), blob("labels")],
        wait: span(wait),
        at_most: span("1h"),
    }))
}

#[test]
fn another_request_of_a_burst_takes_it_out_of_the_line_until_it_can_start() {
    let scene = limited().in_line().scheduled().at("1m").run(&bounce("10s"));
    let scene = leaves(scene.replies(Reply::Bounced { taken: true }).sends_hint_for("1m 10s"));
    let scene = scene.at("2m").wait_in_line();
    assert_eq!(position(&scene), Some(Position { since: t("1m 10s"), version: 3 }));
}

#[test]
fn whoever_ends_it_deletes_its_item() {
    for begin in [limited().in_line().scheduled(), limited().scheduled().wait_in_line()] {
        let scene = leaves(begin.at("1m").cancel().is(Status::Cancelled).sends_no_hint());
        let freed = scene.decision().effects.iter().any(|effect| matches!(effect, Effect::FreePlaces(_)));
        assert!(freed, "it may have been called");
        let scene = scene.retry().is(Status::Pending).sends_hint_for("1m");
        assert_eq!(writes(&scene), ["updates"]);
    }
}

#[test]
fn a_pause_of_its_execution_takes_a_step_out_of_the_line() {
    let plan = || limited().step().deadline("10m").in_line();
    let held =
        leaves(plan().scheduled().at("10m").hold().replies(Reply::Due(DueReply::Rearmed)).sends_no_hint());
    assert!(held.record().is_held());
    let freed = |effect: &Effect| matches!(effect, Effect::FreePlaces(freed) if freed.waited.is_some());
    assert!(held.decision().effects.iter().any(freed), "it may have been called");
    let held = leaves(plan().scheduled().at("1m").claim_held("a").replies(PARKED).sends_no_hint());
    let scene = held.at("1h").unpark().sends_hint_for("0s").wait_in_line().replies(PARKED);
    assert_eq!(scene.record().deadline_at, Some(t("1h 10m")));
}

#[test]
fn the_time_of_a_held_step_starts_afresh_also_if_it_goes_from_the_pause_into_the_line() {
    let plan = || limited().step().deadline("10m").start_within("5m", OnTimeout::Terminal);
    let scene = plan().scheduled().at("1m").claim_held("a").at("1h").wait_in_line().replies(PARKED);
    assert_eq!(scene.record().deadline_at, Some(t("1h 10m")));
    assert_eq!(scene.pending().schedule_to_start_at, Some(t("1h 5m")));
}

#[test]
fn a_pause_of_its_queue_leaves_it_in_the_line() {
    let scene = limited().in_line().scheduled().at("1m").claim_paused("a").replies(PARKED).changes_nothing();
    let scene = scene.unpark().replies(Reply::Unparked { was_parked: false }).changes_nothing();
    assert!(position(&scene).is_some());
    // One that was parked by a pause may come to the line after it.
    let scene = limited().scheduled().claim_paused("a").at("1m").wait_in_line().replies(PARKED);
    assert_eq!(position(&scene), Some(Position { since: t("0s"), version: 3 }));
    scene.sends_no_hint().unpark().changes_nothing();
}

#[test]
fn the_next_attempt_after_a_lost_worker_may_wait_in_line_and_a_late_worker_still_ends_it() {
    let lost = || limited().attempts(2).scheduled().claim_with_places("a", 1).at("2m").wait_in_line();
    let scene = lost().replies(PARKED).is(Status::Running).sends_no_hint().due("10m", DueKind::Backstop);
    assert_eq!(position(&scene), Some(Position { since: t("1m"), version: 3 }));
    let scene = scene.at("1h").claim_with_places("b", 3).replies(CLAIMED);
    assert_eq!((scene.record().losses, position(&scene).is_some()), (1, true));
    leaves(lost().complete("a").is(Status::Completed));
    leaves(lost().fail("a").is(Status::Pending).sends_hint_for("2m"));
    leaves(lost().release("a").is(Status::Pending).sends_hint_for("2m"));
}

#[test]
fn a_late_worker_keeps_a_task_that_came_to_the_line_only_by_a_place_that_it_has_taken_since() {
    let lost = || limited().attempts(2).scheduled().claim_with_places("a", 1).at("2m").wait_in_line();
    // Whoever brought it to the line gives up what was taken before.
    let late = lost().heartbeat_with_places("a", 2).replies(Reply::Extended).is(Status::Running);
    assert_eq!(position(&late), Some(Position { since: t("1m"), version: 3 }));
    assert!(late.record().running().unwrap().lease_expires_at < late.now());
    let back = leaves(lost().heartbeat_with_places("a", 3).replies(Reply::Extended));
    assert!(back.record().running().unwrap().lease_expires_at > back.now());
}

#[test]
fn the_end_of_an_attempt_frees_what_was_taken_for_any_version_before_it() {
    let freed = |scene: &Scene| {
        scene.decision().effects.iter().find_map(|effect| match effect {
            Effect::FreePlaces(freed) => Some((freed.before, freed.waited.is_some())),
            _ => None,
        })
    };
    let begun = || limited().attempts(2).scheduled().claim_with_places("a", 1);
    assert_eq!(freed(&begun()), None);
    let ended = begun().complete("a");
    assert_eq!(freed(&ended), Some((3, false)));
    // A repeated report frees the same; not once the next attempt runs.
    let again = begun().fail("a").fail("a");
    assert_eq!((again.record().version, freed(&again)), (3, Some((3, false))));
    let next = begun().release("a").claim_with_places("b", 3).replies(CLAIMED).release("a");
    assert_eq!(freed(&next), None);
    let lost = begun().at("2m").wait_in_line().complete("a");
    assert_eq!(freed(&lost), Some((4, true)), "it may have been called");
}

#[test]
fn the_tick_writes_the_item_again_and_looks_later_each_time() {
    let scene = limited().in_line().scheduled().due("30h", DueKind::Backstop);
    let before = position(&scene);
    let scene = scene.next_tick().replies(Reply::Due(DueReply::Rearmed)).sends_no_hint();
    assert_eq!(writes(&scene), ["enters", "rearms"]);
    assert!(came_to(&scene).is_some(), "a place may be free");
    assert_eq!(scene.item().unwrap().written_at, t("30h"));
    assert_eq!((position(&scene), scene.record().version), (before, 1));
    let scene = scene.due("150h", DueKind::Backstop).next_tick().due("270h", DueKind::Backstop);
    scene.at("269h").tick().replies(Reply::Due(DueReply::Nothing)).changes_nothing();
}

#[test]
fn the_queue_is_not_asked_about_the_hint_of_one_that_waits_in_line() {
    let scene = limited().in_line().scheduled().at("30h");
    let (record, limits) = (scene.record(), crate::limits::Limits::default());
    assert!(!crate::task::due::may_be_lost(record, t("30h"), &limits));
    assert!(!crate::task::due::needs_queue_view(record, t("30h"), &limits));
}

/// Its payloads and its key must be kept as well, by ticks of the same due slots.
#[test]
fn in_a_year_in_the_line_neither_the_item_nor_a_payload_expires() {
    for (days, after) in
        [1, 10, 25, 60].into_iter().flat_map(|days| ["0s", "240h", "480h", "900h"].map(|after| (days, after)))
    {
        let mut plan = limited().keyed().input(&format!("\"{}\"", "x".repeat(2_000)));
        (plan.limits.idempotency, plan.limits.retention) = (Millis::from_days(days), Millis::from_days(1));
        let mut scene = plan.scheduled().at(after).wait_in_line();
        while scene.now() < t("8760h") {
            scene = scene.next_tick();
            let (now, item) = (scene.now(), scene.item().unwrap());
            let next = scene.record().due.unwrap().at;
            assert!(next < item.written_at.plus(WAITER_KEPT), "its item, {days} {after} {now:?}");
            assert!(
                scene.record().blobs().all(|blob| blob.expires_at > next),
                "its input, {days} {after} {now:?}"
            );
            let key = scene.record().key.unwrap();
            assert!(key.expires_at > next, "its key, {days} {after} {now:?}");
        }
    }
}

#[test]
fn what_carries_a_record_is_stored_as_a_flag_or_as_the_position() {
    let line = Parked::InLine(Position { since: t("0s"), version: 7 });
    for (parked, stored) in [(Parked::No, "false"), (Parked::Paused, "true"), (line, "[1700000000000,7]")] {
        assert_eq!(serde_json::to_string(&parked).unwrap(), stored);
        assert_eq!(serde_json::from_str::<Parked>(stored).unwrap(), parked);
    }
    for wrong in ["1", "null", "[1700000000000]", "\"yes\"", "{}"] {
        assert!(serde_json::from_str::<Parked>(wrong).is_err(), "{wrong}");
    }
    let stored = |scene: &Scene| serde_json::to_value(scene.record()).unwrap().get("prk").cloned();
    assert_eq!(stored(&limited().scheduled()), None);
    assert_eq!(stored(&limited().scheduled().claim_paused("a")), Some(true.into()));
    let scene = limited().scheduled().wait_in_line();
    assert_eq!(stored(&scene), Some(serde_json::json!([1_700_000_000_000_u64, 2])));
    let text = serde_json::to_string(scene.record()).unwrap();
    assert_eq!(&serde_json::from_str::<crate::task::Task>(&text).unwrap(), scene.record());
}

#[test]
fn a_record_is_parked_by_a_pause_or_in_a_line_and_out_of_the_line_by_what_makes_it_wait() {
    let position = Position { since: t("0s"), version: 7 };
    let line = Parked::InLine(position);
    assert_eq!([Parked::No, Parked::Paused, line].map(|one| one.is_no()), [true, false, false]);
    assert_eq!([Parked::No, Parked::Paused, line].map(Parked::is_paused), [false, true, false]);
    assert_eq!([Parked::No, Parked::Paused, line].map(Parked::in_line), [None, None, Some(position)]);
    let out = [Parked::No, Parked::Paused, line].map(Parked::out_of_line);
    assert_eq!(out, [Parked::No, Parked::Paused, Parked::No]);
}
