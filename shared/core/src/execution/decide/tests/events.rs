//! Events: sent once, kept until they are taken, and cleared on request.

use crate::decision::NewItem;
use crate::due::DueKind;
use crate::error::Reject;
use crate::execution::ExecutionStatus as Status;
use crate::execution::command::{Bound, Command, SendEvent};
use crate::execution::decision::Reply;
use crate::execution::journal::{Entry, Happened, pending_events};

use crate::payload::{BlobRef, Payload};

use super::fixture::{Scene, blob, done, event, event_id, execution, json, t, waited};
use super::lifecycle::{CLOSED, SUSPENDED, TAKEN};

const OFFERED: Reply = Reply::EventSent { duplicate: false };
const KNOWN: Reply = Reply::EventSent { duplicate: true };

#[test]
fn an_event_wakes_an_execution_that_waits_however_long_it_would_have() {
    let scene = execution()
        .started()
        .start_turn("a")
        .wait("a")
        .has_no_due()
        .at("1d")
        .send_event("go")
        .replies(OFFERED);
    let scene = scene.is(Status::Waiting).sends_hint_for("1d").due("1d 10m", DueKind::Backstop);
    // One hint is enough for all events before a worker receives it.
    let scene = scene.at("1d 1s").send_event("go").replies(OFFERED).sends_nothing();
    assert_eq!(scene.record().pending_events, 2);
    let scene = scene.start_turn("b").replies(TAKEN).record_entries("b", vec![waited("wait", "go")]);
    assert_eq!(scene.record().pending_events, 1);
    scene.wait("b").replies(SUSPENDED).start_turn("c").is(Status::Waiting);
}

#[test]
fn an_event_for_an_execution_that_is_at_work_or_about_to_be_needs_no_hint() {
    execution().started().send_event("go").replies(OFFERED).sends_nothing();
    execution()
        .started()
        .start_turn("a")
        .send_event("go")
        .replies(OFFERED)
        .sends_nothing()
        .is(Status::Running);
    // The hint of the sleep's end would arrive later.
    execution()
        .started()
        .start_turn("a")
        .sleep_until("a", "10m")
        .at("1m")
        .send_event("go")
        .sends_hint_for("1m");
    execution().started().start_turn("a").sleep_until("a", "10m").at("11m").send_event("go").sends_nothing();
}

#[test]
fn an_event_with_an_id_is_recorded_once() {
    let scene = execution().started().start_turn("a").wait("a").send_event_once("go", "1").replies(OFFERED);
    // The same call, repeated: its hint may have been lost.
    let scene =
        scene.at("1m").send_event_once("go", "1").replies(KNOWN).changes_nothing().sends_hint_for("0s");
    let scene = scene.start_turn("b").record_entries("b", vec![waited("wait", "go")]);
    let scene = scene.send_event_once("go", "1").replies(KNOWN).changes_nothing().sends_nothing();
    scene.send_event_once("go", "2").replies(OFFERED);
    let known = SendEvent {
        name: event("go"),
        id: Some(event_id("3")),
        payload: None,
        known: true,
        seen: (1, 0),
        trace: None,
        bound: None,
    };
    execution().started().apply(&Command::SendEvent(known)).replies(KNOWN).changes_nothing();
    // It may have left the record since the call looked for it. The call looks again, also if that was at the end.
    let unknown = SendEvent {
        name: event("go"),
        id: Some(event_id("3")),
        payload: None,
        known: false,
        seen: (1, 1),
        trace: None,
        bound: None,
    };
    let looks_again = Reply::Changed { changed: false };
    let scene =
        execution().started().apply(&Command::SendEvent(unknown.clone())).replies(looks_again.clone());
    scene.terminate().apply(&Command::SendEvent(unknown)).replies(looks_again).changes_nothing();
}

#[test]
fn an_execution_starts_with_its_first_event_in_the_same_write() {
    let value = Payload::Inline(json(r#"{"item":"a lamp"}"#));
    let scene = execution().input("1").with_event("add", "1", Some(value)).started();
    assert_eq!(scene.decision().writes.len(), 1);
    assert_eq!((scene.record().pending_events, ids(&scene.journal())), (1, vec!["1"]));
    let scene = scene.sends_hint_for("0s");
    // Repeated, whether by the same call or by another one, it sends the hint again: no worker has begun.
    assert!(scene.record().is_untouched());
    let scene = scene.at("1s").start_repeated().changes_nothing().sends_hint_for("0s");
    let scene = scene.start_again().replies(Reply::Started { existed: true }).changes_nothing();
    let scene = scene.sends_hint_for("0s").send_event_once("add", "1").replies(KNOWN).changes_nothing();
    // The first turn takes it, and then it is the event of the next run no more.
    let scene = scene.start_turn("a").replies(TAKEN).record_entries("a", vec![waited("wait", "add")]);
    let scene = scene.continue_as_new("a", vec![]).replies(CLOSED);
    assert_eq!((scene.record().pending_events, scene.journal().len()), (0, 0));
}

#[test]
fn an_execution_that_starts_later_keeps_a_large_first_event_until_then() {
    let at = BlobRef { id: blob("event"), bytes: 1_000, expires_at: t("70d") };
    let plan = execution().starting_in("200d").with_event("add", "1", Some(Payload::Blob(at)));
    let scene = plan.started();
    let kept = scene.record().kept.unwrap();
    assert!(kept > t("200d"));
    let first = scene.record().journal[0].payload().and_then(Payload::blob).unwrap();
    assert_eq!(first.expires_at, kept);
    assert_eq!(scene.decision().writes.len(), 2, "the blob is kept longer, with the start");
}

#[test]
fn no_more_events_wait_than_the_limit_allows() {
    let scene =
        execution().limited(|limits| limits.pending_events = 2).started().send_event("go").send_event("go");
    let full = || Reject::LimitExceeded { limit: "pending_events", value: 3, maximum: 2 };
    let scene = scene.send_event("go").refuses(full()).changes_nothing().start_turn("a");
    let scene = scene.record_entries("a", vec![waited("wait", "go")]).send_event("go").replies(OFFERED);
    scene
        .send_event("go")
        .refuses(full())
        .clear_events("go", 2)
        .replies(Reply::EventsCleared(2))
        .send_event("go")
        .replies(OFFERED);
}

#[test]
fn pending_events_are_cleared_if_the_record_has_not_changed_since_they_were_counted() {
    let scene = execution()
        .started()
        .send_event("go")
        .send_event("stop")
        .clear_events("go", 1)
        .replies(Reply::EventsCleared(1));
    assert_eq!(scene.record().pending_events, 1);
    let scene = scene.clear_events("go", 0).replies(Reply::EventsCleared(0)).changes_nothing();
    let seen_version = scene.record().version - 1;
    let stale = Command::ClearEvents { name: event("stop"), count: 1, seen_version };
    scene.apply(&stale).replies(Reply::EventsCleared(0)).changes_nothing();
}

#[test]
fn an_execution_that_has_ended_takes_no_events() {
    let closed = Reject::ExecutionClosed { status: Status::Cancelled };
    execution()
        .started()
        .cancel()
        .send_event("go")
        .refuses(closed.clone())
        .changes_nothing()
        .clear_events("go", 1)
        .refuses(closed);
}

// ---- into the next run

/// A turn during which three events of one name and one of another were sent, and which took the first one. Returns the
/// scene, and the remaining events as its worker knows them.
fn with_some_left() -> (Scene, Vec<Entry>) {
    let scene =
        execution().started().start_turn("a").send_event_once("go", "1").at("1s").send_event_once("go", "2");
    let scene = scene.record_entries("a", vec![waited("wait", "go")]).at("2s").send_event_once("stop", "3");
    let scene = scene.at("3s").send_event_once("go", "4");
    let left = pending_events(&scene.journal()).into_iter().cloned().collect();
    (scene, left)
}

/// The ids of a journal's events, in order.
fn ids(journal: &[Entry]) -> Vec<&str> {
    let mut ids = Vec::new();
    for entry in journal {
        if let Happened::Event { id: Some(id), .. } = &entry.what {
            ids.push(id.as_str());
        }
    }
    ids
}

#[test]
fn pending_events_are_carried_into_the_next_run_in_their_order() {
    let (scene, left) = with_some_left();
    let scene = scene.at("1m").continue_as_new("a", left).replies(CLOSED);
    assert_eq!((scene.record().run, scene.record().pending_events), (2, 3));
    assert_eq!(ids(&scene.journal()), ["2", "3", "4"]);
    assert_eq!(scene.journal()[0].at, t("1s"));
    // A new event comes after these, and an event with a known id isn't added again.
    let scene = scene.send_event_once("go", "5").replies(OFFERED).send_event_once("go", "4").replies(KNOWN);
    let scene = scene.start_turn("b").replies(TAKEN).record_entries("b", vec![waited("wait", "go")]);
    let journal = scene.journal();
    let free: Vec<Entry> = pending_events(&journal).into_iter().cloned().collect();
    assert_eq!((ids(&free), scene.record().pending_events), (vec!["3", "4", "5"], 3));
    let scene = scene.continue_as_new("b", free).replies(CLOSED);
    assert_eq!(ids(&scene.journal()), ["3", "4", "5"]);
}

#[test]
fn a_turn_does_not_go_on_in_the_next_run_without_an_event_that_it_has_not_seen() {
    let (scene, left) = with_some_left();
    let scene = scene.send_event_once("go", "5").continue_as_new("a", left.clone());
    let scene = scene.refuses(Reject::TurnLost).changes_nothing().is(Status::Running);
    let all = pending_events(&scene.journal()).into_iter().cloned().collect();
    let scene = scene.continue_as_new("a", all).replies(CLOSED);
    assert_eq!(ids(&scene.journal()), ["2", "3", "4", "5"]);
    // Nor does it continue with an event that was cleared since.
    let (scene, left) = with_some_left();
    let scene = scene.clear_events("go", 2).continue_as_new("a", left);
    scene.refuses(Reject::TurnLost).changes_nothing();
}

#[test]
fn events_survive_the_next_run_though_its_first_part_is_sealed() {
    let (scene, _) = with_some_left();
    let large = |index: usize| done(&format!("large[{index}]"), &format!("\"{}\"", "x".repeat(200)));
    let scene = scene.record_entries("a", (0..6).map(large).collect());
    assert!(scene.record().sealed.is_some());
    let left = pending_events(&scene.journal()).into_iter().cloned().collect();
    let scene = scene.continue_as_new("a", left).replies(CLOSED);
    assert_eq!((ids(&scene.journal()), scene.record().sealed), (vec!["2", "3", "4"], None));
}

#[test]
fn an_event_that_is_bound_to_a_record_is_not_written_to_a_later_one_nor_after_its_wait() {
    let scene = execution().started().start_turn("a").wait("a");
    let version = scene.record().version;
    let bound = |version, before: &str| {
        let bound = Some(Bound { version, before: Some(t(before)) });
        let (name, trace, payload) = (event("go"), None, None);
        Command::SendEvent(SendEvent { name, id: None, payload, known: false, seen: (1, 0), trace, bound })
    };
    let scene = scene
        .at("1h")
        .apply(&bound(version - 1, "2h"))
        .replies(Reply::Changed { changed: false })
        .changes_nothing();
    let scene =
        scene.apply(&bound(version, "1h")).replies(Reply::Changed { changed: false }).changes_nothing();
    scene.apply(&bound(version, "2h")).replies(OFFERED);
}

/// The ids of the events that have items of their own by the last decision.
fn with_items(scene: &Scene) -> Vec<String> {
    let ids = scene.decision().new_items.iter().filter_map(|item| match item {
        NewItem::Event { id, .. } => Some(id.to_string()),
        NewItem::Blob { .. } | NewItem::Segment { .. } => None,
    });
    ids.collect()
}

#[test]
fn an_event_that_leaves_the_record_has_an_item_and_only_one_that_was_stored_before() {
    let (scene, left) = with_some_left();
    let scene = scene.continue_as_new("a", left).replies(CLOSED);
    assert_eq!(with_items(&scene), ["1"], "those that wait stay in the record");
    let (mut scene, mut items) = (scene, vec![]);
    for number in 0..100 {
        let id = format!("many-{number}");
        scene = scene.send_event_once("go", &id).replies(OFFERED);
        let now = with_items(&scene);
        assert!(!now.contains(&id), "{id} was sealed before it was stored");
        items.extend(now);
    }
    let kept = ids(&scene.record().journal);
    assert!(!kept.is_empty() && scene.record().sealed.is_some());
    assert_eq!(items.len() + kept.len(), 103);
}
