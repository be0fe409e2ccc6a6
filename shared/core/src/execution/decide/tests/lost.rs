//! Turns whose workers die, and turns of a paused queue.

use crate::decision::{DueReply, Effect};
use crate::execution::decision::{ExecutionReply, TakeReply};
use crate::execution::status::ExecutionStatus as Status;
use crate::queue::QueueView;

use super::fixture::{EMPTY, execution};

const TAKEN: ExecutionReply = ExecutionReply::Take(TakeReply::Taken);
const SUSPECT: ExecutionReply = ExecutionReply::Take(TakeReply::Suspect);
const PARKED: ExecutionReply = ExecutionReply::Take(TakeReply::Parked);
const PAUSED: QueueView = QueueView { paused: true, ..EMPTY };

#[test]
fn a_turn_lost_among_others_is_not_counted_and_the_next_one_runs_alone() {
    let scene = execution().started().take_among_others("a").at("1m");
    let scene = scene.take_among_others("b").replies(SUSPECT).changes_nothing().take("c").replies(TAKEN);
    assert_eq!(scene.record().idle_turns, 1);
    let scene = scene.at("2m").take_among_others("d").replies(SUSPECT).take("e").replies(TAKEN);
    assert_eq!(scene.record().idle_turns, 2, "this one was alone when it was lost");
}

#[test]
fn a_turn_lost_among_others_is_not_counted_either_where_it_was_held_meanwhile() {
    let scene = execution().started().take_among_others("a").pause().at("1m").resume();
    assert_eq!(scene.record().idle_turns, 0);
    let scene = execution().started().take("a").pause().at("1m").resume();
    assert_eq!(scene.record().idle_turns, 1, "this one was alone when it was lost");
}

#[test]
fn a_parked_turn_gets_one_hint_when_its_queue_is_resumed() {
    let scene = execution().started().take_paused("a").replies(PARKED).is(Status::Pending);
    let scene = scene.take_paused("b").replies(PARKED).changes_nothing();
    let scene = scene.at("2m").unpark();
    assert!(matches!(scene.decision().effects[..], [Effect::Turn { .. }]), "{:?}", scene.decision());
    scene.unpark().changes_nothing().take("c").replies(TAKEN);
}

#[test]
fn an_execution_that_only_waits_to_be_told_is_found_while_it_is_parked() {
    let scene = execution().started().take("a").wait("a").tick();
    let scene = scene.wake().take_paused("b").replies(PARKED);
    assert!(scene.record().due.is_some());
    let scene = scene.next_tick_seeing(PAUSED).replies(ExecutionReply::Due(DueReply::Rearmed));
    let resumed = QueueView { paused: false, ..PAUSED };
    let scene = scene.next_tick_seeing(resumed).replies(ExecutionReply::Due(DueReply::Dispatched));
    scene.take("c").replies(TAKEN);
}
