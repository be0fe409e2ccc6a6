//! Turns whose workers are lost, and turns of a paused queue.

use crate::decision::{DueReply, Effect};
use crate::execution::append;
use crate::execution::decision::{Reply, StartTurnReply};
use crate::execution::journal::{Entry, Happened};
use crate::execution::status::ExecutionStatus as Status;
use crate::queue::QueueView;

use super::fixture::{EMPTY, Scene, begun, done, execution, t};

const TAKEN: Reply = Reply::StartTurn(StartTurnReply::Started);
const SUSPECT: Reply = Reply::StartTurn(StartTurnReply::NeedsIsolation);
const PARKED: Reply = Reply::StartTurn(StartTurnReply::Parked);
const PAUSED: QueueView = QueueView { paused: true, ..EMPTY };

#[test]
fn a_turn_lost_among_others_is_not_counted_and_after_the_second_the_next_one_runs_apart() {
    let scene = execution().started().start_turn_shared("a").at("1m").start_turn_shared("b").replies(TAKEN);
    let scene = scene.at("2m").start_turn_shared("c").replies(SUSPECT).changes_nothing();
    let scene = scene.start_turn("c").replies(TAKEN);
    assert_eq!(scene.record().idle_turns, 1);
    let scene = scene.at("3m").start_turn_shared("d").replies(SUSPECT).start_turn("e").replies(TAKEN);
    assert_eq!(scene.record().idle_turns, 2, "its process had no other work when it was lost");
}

#[test]
fn a_turn_lost_among_others_is_not_counted_either_where_it_was_held_meanwhile() {
    let scene = execution().started().start_turn_shared("a").pause().at("1m").resume();
    assert_eq!(scene.record().idle_turns, 0);
    let scene = execution().started().start_turn("a").pause().at("1m").resume();
    assert_eq!(scene.record().idle_turns, 1, "its process had no other work when it was lost");
}

/// How many times the journal says that a turn was lost.
fn losses(scene: &Scene) -> usize {
    let is_loss =
        |entry: &&Entry| matches!(&entry.what, Happened::Note { kind, .. } if kind == append::TURN_LOST);
    scene.record().journal.iter().filter(is_loss).count()
}

#[test]
fn a_lost_turn_is_noted_by_the_write_that_finds_it() {
    let scene = execution().started().start_turn("a").at("1m").start_turn("b").replies(TAKEN);
    assert_eq!(losses(&scene), 1);
    assert_eq!(scene.decision().writes.len(), 1);
    let scene = scene.release("b", "0").start_turn("c").replies(TAKEN);
    assert_eq!(losses(&scene), 1, "a released turn isn't lost");
    let scene = scene.pause().at("2m").resume();
    assert_eq!(losses(&scene), 2, "no worker could start it during the pause");
    let scene = execution().started().start_turn("a").record_entries("a", vec![begun("charge", "30s")]);
    let scene = scene.at("31s").timer_for("31s");
    assert_eq!(losses(&scene), 1, "it didn't report the timeout of an attempt");
}

#[test]
fn a_lost_turn_is_not_noted_if_that_would_cost_another_write() {
    let taken_over = |bytes| {
        let entries = vec![done("charge", &format!("\"{}\"", "x".repeat(bytes)))];
        let scene =
            execution().started().start_turn("a").record_entries("a", entries).at("1m").start_turn("b");
        scene.replies(TAKEN)
    };
    let seals = |scene: &Scene| !scene.decision().segments().is_empty();
    let full = (300..900).find(|bytes| seals(&taken_over(*bytes))).unwrap();
    // The note doesn't fit if the record has only just enough space for the turn itself.
    assert_eq!(losses(&taken_over(full - 1)), 0);
    assert_eq!(losses(&taken_over(full - 100)), 1);
}

#[test]
fn a_parked_turn_gets_one_hint_when_its_queue_is_resumed() {
    let scene = execution().started().take_paused("a").replies(PARKED).is(Status::Pending);
    let scene = scene.take_paused("b").replies(PARKED).changes_nothing();
    let scene = scene.at("2m").unpark();
    assert!(matches!(scene.decision().effects[..], [Effect::Turn { .. }]), "{:?}", scene.decision());
    scene.unpark().changes_nothing().start_turn("c").replies(TAKEN);
}

#[test]
fn an_execution_that_waits_for_a_notification_is_found_while_it_is_parked() {
    let scene = execution().started().start_turn("a").wait("a").tick();
    let scene = scene.wake().take_paused("b").replies(PARKED);
    assert!(scene.record().due.is_some());
    let scene = scene.next_tick_seeing(PAUSED).replies(Reply::Due(DueReply::Rearmed));
    let resumed = QueueView { paused: false, ..PAUSED };
    let scene = scene.next_tick_seeing(resumed).replies(Reply::Due(DueReply::Dispatched));
    scene.start_turn("c").replies(TAKEN);
}

#[test]
fn a_worker_that_suspends_after_its_turn_was_parked_gets_its_own_hint_at_the_end_of_the_wait() {
    let scene = execution().started().start_turn("a").at("2m").take_paused("b").replies(PARKED);
    let scene = scene.sleep_until("a", "4m");
    assert!(scene.record().parked.is_no());
    let [Effect::Turn { at, .. }] = scene.decision().effects[..] else { panic!("{:?}", scene.decision()) };
    assert_eq!(at, t("4m"));
    scene.at("3m").unpark().changes_nothing().at("4m").start_turn("c").replies(TAKEN);
}
