//! Executions that wait in the line of a key: an item there, the position in the record, and no hint.

use crate::decision::{DueReply, Effect};
use crate::due::DueKind;
use crate::execution::ExecutionStatus as Status;
use crate::execution::command::{Bounce, Command, Given};
use crate::execution::decision::{Reply, StartTurnReply};
use crate::gate::line::WAITER_KEPT;
use crate::gate::tests::told;
use crate::gate::{Position, Waiter};
use crate::id::GateId;
use crate::queue::QueueView;

use super::fixture::{BUSY, EMPTY, Plan, Scene, blob, done, execution, gated, json, span, t};

const NEEDS_PLACES: Reply = Reply::StartTurn(StartTurnReply::NeedsPlaces);
const STARTED: Reply = Reply::StartTurn(StartTurnReply::Started);
const PARKED: Reply = Reply::StartTurn(StartTurnReply::Parked);
const CHANGED: Reply = Reply::Changed { changed: true };
const UNCHANGED: Reply = Reply::Changed { changed: false };
const PAUSED: QueueView = QueueView { paused: true, ..EMPTY };

fn limited() -> Plan {
    execution().needing(&[1])
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
fn an_execution_for_which_there_is_no_place_goes_in_line_and_has_no_hint_there() {
    let scene = limited().started().sends_hint_for("0s").at("1m").start_turn("a").replies(NEEDS_PLACES);
    let scene = scene.wait_in_line().replies(CHANGED).is(Status::Pending).sends_no_hint();
    assert_eq!(writes(&scene), ["enters", "updates"], "the item is there before the record says so");
    let expected = Position { since: t("0s"), version: 2 };
    assert_eq!((position(&scene), scene.record().version), (Some(expected), 2));
    let item = scene.item().unwrap();
    assert_eq!((item.position, item.written_at), (expected, t("1m")));
    assert_eq!(item.owner.execution(), Some(&scene.record().id));
    assert_eq!(came_to(&scene), Some((gate(0), item.clone())));
    // The slot is left to the tick: a move costs two index writes.
    let scene = scene.due("10m", DueKind::Backstop).at("10m").tick().sends_nothing();
    assert_eq!((position(&scene), writes(&scene)), (Some(expected), vec!["rearms"]));
    let scene = scene.due("30h 10m", DueKind::Backstop);
    // Calls that are repeated send nothing.
    let scene = scene.start_repeated().changes_nothing().sends_nothing();
    scene.unpark().replies(Reply::Unparked { was_parked: false }).changes_nothing().sends_nothing();
}

#[test]
fn who_waits_in_line_already_stays_where_it_is_and_only_its_version_changes() {
    let scene = limited().started().wait_in_line();
    let before = position(&scene);
    let scene = scene.at("1h").wait_in_line().replies(CHANGED).sends_no_hint();
    assert_eq!((position(&scene), writes(&scene), came_to(&scene)), (before, vec!["updates"], None));
    assert!(scene.record().owns_place(3), "places of the version before can be given up");
    let scene = scene.apply(&Command::WaitInLine { seen_version: 2 }).replies(UNCHANGED).changes_nothing();
    leaves(scene.with_places("a", 3).replies(STARTED));
}

#[test]
fn whoever_is_called_starts_its_turn_with_places_and_its_item_leaves_after_that() {
    let scene = limited().started().wait_in_line().at("1h").start_turn("a").replies(NEEDS_PLACES);
    let scene = scene.with_places("a", 1).replies(NEEDS_PLACES).changes_nothing();
    let scene = leaves(scene.with_places("a", 2).replies(STARTED));
    assert_eq!(writes(&scene), ["updates", "leaves"]);
    // It keeps its places, so it never waits again.
    scene.wait("a").wake().start_turn("b").replies(STARTED);
}

#[test]
fn an_execution_may_begin_in_the_line_without_a_hint() {
    let scene = limited().in_line().started().replies(Reply::Started { existed: false }).sends_no_hint();
    assert_eq!(writes(&scene), ["enters", "creates"]);
    assert_eq!(position(&scene), Some(Position { since: t("0s"), version: 1 }));
    assert!(came_to(&scene).is_some());
    // Not later than a turn may keep it: it leaves the line then.
    let scene = scene.due("6h", DueKind::Backstop).at("1m").start_repeated().sends_nothing();
    leaves(scene.with_places("a", 1).replies(STARTED));
    for scene in [
        limited().in_line().starting_in("5m").started().sends_hint_for("5m"),
        execution().in_line().started().sends_hint_for("0s"),
    ] {
        assert_eq!((position(&scene), writes(&scene), came_to(&scene)), (None, vec!["creates"], None));
    }
}

#[test]
fn it_waits_at_the_scarcest_of_its_gates_in_the_branch_of_its_queue_and_the_others() {
    let scene = execution().needing(&[5, 2, 9]).started().wait_in_line();
    let (at, item) = came_to(&scene).unwrap();
    assert_eq!((at, &item.branch.queue), (gate(1), &scene.record().queue));
    assert_eq!(item.branch.others, [gate(0), gate(2)]);
}

#[test]
fn another_request_of_a_burst_takes_it_out_of_the_line_until_it_can_start() {
    let given = Given { input: Some(json("2")), details: None, blob_ids: [blob("input"), blob("details")] };
    let bounce = Command::Bounce(Box::new(Bounce { given, wait: span("10s"), at_most: span("1h") }));
    let scene = limited().in_line().started().at("1m").apply(&bounce);
    let scene = leaves(scene.replies(Reply::Bounced { taken: true }).sends_hint_for("1m 10s"));
    let gives_up = |effect: &Effect| matches!(effect, Effect::FreePlaces(freed) if freed.waited.is_some() && !freed.gates.is_empty());
    assert!(scene.decision().effects.iter().any(gives_up), "what it was offered goes on");
    let scene = scene.at("2m").wait_in_line();
    assert_eq!(position(&scene), Some(Position { since: t("1m 10s"), version: 3 }));
}

#[test]
fn whatever_ends_it_deletes_its_item() {
    let begin = || limited().run_deadline("1h").in_line().started();
    leaves(begin().at("1m").terminate().is(Status::Cancelled).sends_no_hint());
    leaves(begin().at("1h").tick().is(Status::TimedOut).sends_no_hint());
    leaves(begin().at("1h").wait_in_line().replies(UNCHANGED).is(Status::TimedOut));
    let failing = limited().run_deadline("1h").on_failure("1h").in_line().started().at("1h").tick();
    let failing = leaves(failing.sends_hint_for("1h"));
    assert!(failing.record().failing.is_some(), "its `on_failure` code needs a place of its own");
    failing.start_turn("a").replies(NEEDS_PLACES);
    // A restart begins with a hint.
    let again = begin().terminate().restart(vec![]).is(Status::Pending).sends_hint_for("0s");
    assert_eq!((position(&again), again.item()), (None, None));
}

#[test]
fn an_operator_s_pause_takes_it_out_of_the_line_and_its_resume_sends_its_hint() {
    let scene = leaves(limited().in_line().started().at("1m").pause().is(Status::Paused).sends_no_hint());
    assert_eq!((position(&scene), scene.record().ready_at()), (None, None));
    let scene =
        scene.start_turn("a").changes_nothing().at("1h").resume().replies(CHANGED).sends_hint_for("0s");
    // It comes back to where it would be.
    let scene = scene.wait_in_line().replies(CHANGED);
    assert_eq!(position(&scene).map(|position| position.since), Some(t("0s")));
}

#[test]
fn a_pause_of_its_queue_leaves_it_in_the_line_and_one_that_was_parked_by_it_stays_parked() {
    let scene = limited().in_line().started().take_paused("a").replies(PARKED).changes_nothing();
    assert!(position(&scene.unpark().changes_nothing()).is_some());
    let scene = limited().started().take_paused("a").replies(PARKED).wait_in_line().replies(CHANGED);
    assert_eq!((position(&scene), scene.record().parked.is_paused()), (None, true));
    scene.unpark().sends_hint_for("0s");
}

#[test]
fn a_turn_in_progress_and_one_for_later_are_not_put_in_line() {
    let running = limited().started().with_places("a", 1).replies(STARTED).at("30s");
    running.wait_in_line().replies(Reply::Changed { changed: false }).changes_nothing();
    let later = limited().starting_in("5m").started().at("4m");
    later.wait_in_line().replies(Reply::Changed { changed: false }).changes_nothing();
}

#[test]
fn a_turn_whose_worker_was_lost_may_wait_in_line_and_a_late_worker_takes_it_out_again() {
    // Only places that are about to end are taken again.
    let lost = || {
        let scene = limited().started().with_places("a", 1).wait("a").wake().at("366d");
        let version = scene.record().version;
        let scene = scene.with_places("b", version).replies(STARTED).at_instant(t("366d").plus(span("2m")));
        scene.edit(|record| record.admission.as_mut().unwrap().held = None).wait_in_line()
    };
    let scene = lost().replies(CHANGED).is(Status::Running).sends_no_hint();
    assert_eq!(position(&scene).map(|one| one.since), Some(t("366d").plus(span("1m"))));
    let version = scene.record().version;
    leaves(scene.with_places("c", version).replies(STARTED));
    leaves(lost().wait("b"));
    leaves(lost().release("b", "0"));
    leaves(lost().heartbeat("b"));
}

#[test]
fn an_event_that_comes_meanwhile_leaves_it_in_the_line_and_a_cancellation_ends_it_there() {
    let scene = limited().in_line().started().at("1m").send_event("go").sends_no_hint();
    assert!(position(&scene).is_some());
    leaves(scene.cancel().replies(CHANGED).is(Status::Cancelled).sends_no_hint());
}

#[test]
fn the_tick_writes_the_item_again_and_looks_later_each_time() {
    for queue in [BUSY, EMPTY, PAUSED] {
        let scene = limited().in_line().started().due("6h", DueKind::Backstop).next_tick();
        assert_eq!(writes(&scene), ["rearms"], "its item is new");
        let scene = scene.due("36h", DueKind::Backstop);
        let before = position(&scene);
        let scene = scene.next_tick_seeing(queue).replies(Reply::Due(DueReply::Rearmed)).sends_no_hint();
        assert_eq!((writes(&scene), came_to(&scene).is_some()), (vec!["enters", "rearms"], true));
        assert_eq!(scene.item().unwrap().written_at, t("36h"));
        assert_eq!((position(&scene), scene.record().version), (before, 1));
        let scene = scene.due("156h", DueKind::Backstop).next_tick().due("276h", DueKind::Backstop);
        scene.at("275h").tick().replies(Reply::Due(DueReply::Nothing)).changes_nothing();
    }
}

#[test]
fn the_item_of_one_that_waits_for_a_year_never_expires() {
    let mut scene = limited().in_line().started();
    while scene.now() < t("8760h") {
        scene = scene.next_tick();
        let next = scene.record().due.unwrap().at;
        assert!(next < scene.item().unwrap().written_at.plus(WAITER_KEPT), "at {:?}", scene.now());
    }
    let limits = crate::limits::Limits::default();
    assert!(!crate::execution::due::may_be_lost(scene.record(), scene.now(), &limits));
    assert!(!crate::execution::due::needs_queue_view(scene.record(), scene.now(), &limits));
}

#[test]
fn the_position_is_stored_in_the_place_of_the_flag() {
    let stored = |scene: &Scene| serde_json::to_value(scene.record()).unwrap().get("prk").cloned();
    assert_eq!(stored(&limited().started()), None);
    assert_eq!(stored(&limited().started().take_paused("a")), Some(true.into()));
    let scene = limited().started().wait_in_line();
    assert_eq!(stored(&scene), Some(serde_json::json!([1_700_000_000_000_u64, 2])));
    let text = serde_json::to_string(scene.record()).unwrap();
    assert_eq!(&serde_json::from_str::<crate::execution::Execution>(&text).unwrap(), scene.record());
}

#[test]
fn coming_to_the_line_with_a_full_journal_moves_no_entry_out_of_the_record() {
    for bytes in (2..400).step_by(9) {
        let scene = limited().started().with_places("a", 1);
        let entries = vec![done("charge", &format!("\"{}\"", "x".repeat(bytes)))];
        let scene = scene.record_entries("a", entries).release("a", "0");
        let scene = scene.edit(|record| record.admission.as_mut().unwrap().held = None).wait_in_line();
        assert!(position(&scene).is_some() && scene.decision().segments().is_empty(), "{bytes}");
    }
}
