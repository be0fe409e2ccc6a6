//! Closes that take more than one call: how much each call does, and which calls continue them.

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::{
    Execution, ExecutionState, ExecutionTimeouts, Parent, ParentClosePolicy, Progress,
};
use tickover_core::id::{QueueName, WorkflowName};

use super::mortal::NEVER;
use super::scene::{DAY, Scene, event, id, name};
use super::{fanned_out, remote_id};
use crate::error::ServiceError;
use crate::executions::{Seen, StartRequest, StartedTurn, TurnWrite};
use crate::lease::LeaseToken;

/// The most writes of one call: a page of 50 with the record of its progress, and the writes of an end.
const WRITES_MAX: u64 = 120;
/// After this many seconds without recorded progress, the tick takes a close over.
const BACKSTOP: u64 = 600;

/// An execution with children that must be terminated with it, each with open steps of its own.
pub(super) async fn family(children: usize, steps: usize) -> Scene {
    let scene = Scene::new();
    let parent = scene.started("e", None).await;
    with_children(&scene, &parent, children, steps).await;
    scene
}

/// The same of an execution that has a turn.
pub(super) async fn with_children(scene: &Scene, parent: &StartedTurn, children: usize, steps: usize) {
    let (mut begun, mut turns) = (Vec::new(), Vec::new());
    for number in 0..children {
        let child = id(&format!("child-{number}"));
        let (workflow, queue) = (WorkflowName::parse("packing").unwrap(), QueueName::parse("work").unwrap());
        let request = StartRequest {
            id: Some(child.clone()),
            parent: Some(Parent::of(&parent.execution)),
            ..StartRequest::new(workflow, queue)
        };
        scene.service.start(request).await.unwrap();
        turns.push(scene.turn().await.unwrap());
        let (name, policy) = (name(&format!("pack[{number}]")), ParentClosePolicy::Terminate);
        let what = Happened::Child { name, execution: child, policy, left: false, was_left: false };
        begun.push(Entry { at: parent.execution.created_at, what });
    }
    for turn in turns {
        let entries = scene.start_remote(&turn.execution, steps).await;
        scene.suspend(&turn, entries).await;
    }
    scene.suspend(parent, begun).await;
}

fn is_ended(execution: &Execution) -> bool {
    matches!(execution.state, ExecutionState::Ended(_))
}

pub(super) async fn assert_steps_ended(scene: &Scene, of: &str, steps: usize) {
    let execution = scene.execution(of).await;
    assert!(is_ended(&execution), "{of}");
    for number in 0..steps {
        let id = remote_id(&execution, &name(&format!("label[{number}]")));
        assert!(scene.service.describe(&id).await.unwrap().task.ended().is_some(), "{number} of {of}");
    }
}

async fn steps_done(scene: &Scene) -> u32 {
    scene.execution("e").await.progress.map_or(0, |progress| progress.steps)
}

/// An execution whose close takes longer than its caller had time for.
async fn closing() -> Scene {
    let scene = fanned_out(1_500).await;
    scene.slow(40);
    scene.service.terminate(&id("e")).await.unwrap();
    assert!(steps_done(&scene).await > 0);
    scene
}

#[tokio::test]
async fn a_call_without_time_does_one_page_of_a_close_whatever_its_children_leave_open() {
    let scene = family(60, 60).await;
    scene.slow(6_000);
    let before = scene.writes();
    scene.service.terminate(&id("e")).await.unwrap();
    scene.slow(0);
    assert!(scene.writes() - before <= WRITES_MAX, "{}", scene.writes() - before);
    for call in 0.. {
        let before = scene.writes();
        if !scene.fire_one(0).await {
            break;
        }
        let writes = scene.writes() - before;
        assert!((1..=WRITES_MAX).contains(&writes), "call {call} wrote {writes}");
        assert!(call < 200, "{call}");
    }
    assert!(is_ended(&scene.execution("e").await));
    for number in 0..60 {
        assert_steps_ended(&scene, &format!("child-{number}"), 60).await;
    }
}

#[tokio::test]
async fn children_are_closed_in_their_parents_call_while_there_is_time() {
    let scene = family(3, 60).await;
    scene.service.terminate(&id("e")).await.unwrap();
    assert_eq!(scene.fire(0).await, 0);
    for number in 0..3 {
        assert_steps_ended(&scene, &format!("child-{number}"), 60).await;
    }
}

#[tokio::test]
async fn an_execution_that_has_the_id_of_a_child_by_now_goes_on_when_the_parent_closes() {
    let scene = family(2, 0).await;
    let (gone, child) = (id("child-0"), "child-1");
    scene.service.terminate(&gone).await.unwrap();
    scene.pass(60 * DAY).await;
    assert!(scene.service.execution(&gone).await.unwrap().is_none());
    let (workflow, queue) = (WorkflowName::parse("other").unwrap(), QueueName::parse("unserved").unwrap());
    let start = StartRequest { id: Some(gone), ..StartRequest::new(workflow, queue) };
    scene.service.start(start).await.unwrap();
    scene.service.terminate(&id("e")).await.unwrap();
    assert!(is_ended(&scene.execution("e").await) && is_ended(&scene.execution(child).await));
    assert!(scene.execution("child-0").await.closed().is_none());
}

/// A turn elsewhere has started children, with these policies, and can't record them because its execution has ended. Each
/// read of the clock takes this many milliseconds meanwhile.
async fn lost_elsewhere(policies: &[ParentClosePolicy], slow: i64) -> Scene {
    let scene = Scene::new();
    let turn = scene.started("e", None).await;
    let mut entries = vec![];
    for (number, on_close) in policies.iter().enumerate() {
        let (workflow, queue) =
            (WorkflowName::parse("packing").unwrap(), QueueName::parse("unserved").unwrap());
        let called = format!("child-{number}");
        let parent = Parent { on_close: *on_close, ..Parent::of(&turn.execution) };
        let (child, parent) = (Some(id(&called)), Some(parent));
        let request = StartRequest { id: child, parent, ..StartRequest::new(workflow, queue) };
        scene.service.start(request).await.unwrap();
        let (name, policy) = (name(&called), ParentClosePolicy::Terminate);
        let what = Happened::Child { name, execution: id(&called), policy, left: false, was_left: false };
        entries.push(Entry { at: turn.execution.created_at, what });
    }
    scene.service.terminate(&id("e")).await.unwrap();
    let token = LeaseToken { incarnation: turn.execution.incarnation, lease: turn.lease, receipt: None };
    let seen = Seen { version: turn.execution.version, entries: 0 };
    let write = TurnWrite::Heartbeat(entries, None);
    scene.slow(slow);
    let written = scene.service.write_turn(&id("e"), &token, seen, write).await;
    scene.slow(0);
    assert!(matches!(written, Err(ServiceError::Rejected(Reject::TurnLost))), "{written:?}");
    scene
}

#[tokio::test]
async fn a_child_that_a_turn_elsewhere_has_started_and_cannot_record_ends_with_its_parent() {
    let scene = lost_elsewhere(&[ParentClosePolicy::Terminate, ParentClosePolicy::Abandon], 0).await;
    assert!(is_ended(&scene.execution("child-0").await));
    assert!(scene.execution("child-1").await.closed().is_none());
}

#[tokio::test]
async fn of_children_that_cannot_be_recorded_a_call_ends_as_many_as_there_is_time_for() {
    let scene = lost_elsewhere(&[ParentClosePolicy::Terminate; 20], 100).await;
    let mut ended = 0;
    for number in 0..20 {
        ended += u32::from(is_ended(&scene.execution(&format!("child-{number}")).await));
    }
    assert!((1..20).contains(&ended), "{ended}");
}

#[tokio::test]
async fn only_its_own_message_continues_a_close() {
    let scene = closing().await;
    let mut seen = 0;
    while !is_ended(&scene.execution("e").await) {
        let steps = steps_done(&scene).await;
        assert!(steps > seen, "{steps} after {seen}");
        seen = steps;
        let before = scene.writes();
        for _ in 0..5 {
            scene.service.cancel_execution(&id("e")).await.unwrap();
        }
        for _ in 0..3 {
            let offered = scene.service.send_event(&id("e"), event("go"), None, None).await;
            let refused = matches!(offered, Err(ServiceError::Rejected(Reject::ExecutionClosed { .. })));
            assert!(refused, "{offered:?}");
        }
        assert_eq!((scene.writes(), steps_done(&scene).await), (before, steps));
        assert_eq!(scene.fire(1_000).await, 1);
    }
    assert_eq!(scene.fire(1_000).await, 0);
    assert_steps_ended(&scene, "e", 1_500).await;
}

#[tokio::test]
async fn a_call_behind_another_in_the_same_close_is_refused() {
    let scene = closing().await;
    let behind = scene.execution("e").await;
    let steps = steps_done(&scene).await;
    assert_eq!(scene.fire(10_000).await, 1);
    let reached = steps_done(&scene).await;
    assert!(reached > steps + 50, "{reached} after {steps}");
    let progress = |steps| Progress { steps, ..Progress::default() };
    for steps in [steps + 50, reached] {
        assert_eq!(scene.service.note_progress(&behind, progress(steps)).await.unwrap(), None);
        assert_eq!(steps_done(&scene).await, reached);
    }
    assert!(scene.service.note_progress(&behind, progress(reached + 1)).await.unwrap().is_some());
}

#[tokio::test]
async fn the_tick_leaves_a_close_alone_while_its_messages_continue_it() {
    let scene = closing().await;
    scene.slow(0);
    for _ in 0..4 {
        scene.advance(BACKSTOP / 2);
        let steps = steps_done(&scene).await;
        scene.tick().await.unwrap();
        assert_eq!(steps_done(&scene).await, steps);
        scene.slow(40);
        assert_eq!(scene.fire(1_000).await, 1);
        scene.slow(0);
        assert!(steps_done(&scene).await > steps);
    }
    while scene.fire(1_000).await > 0 {}
    assert_steps_ended(&scene, "e", 1_500).await;
}

#[tokio::test]
async fn the_tick_continues_a_close_whose_message_was_lost() {
    let scene = Scene::new();
    let turn = scene.started("e", None).await;
    // If their tasks existed, the tick would process each of them as well.
    let begun = |number| Happened::Remote { name: name(&format!("label[{number}]")) };
    let entry = |number| Entry { at: turn.execution.created_at, what: begun(number) };
    scene.suspend(&turn, (0..1_500).map(entry).collect()).await;
    scene.slow(200);
    scene.service.terminate(&id("e")).await.unwrap();
    for _ in 0..3 {
        scene.slow(0);
        assert_eq!(scene.lose_timers().await, 1);
        let steps = steps_done(&scene).await;
        scene.advance(BACKSTOP);
        scene.slow(200);
        scene.tick().await.unwrap();
        assert!(steps_done(&scene).await > steps);
    }
    scene.slow(0);
    assert_eq!(scene.fire(1_000).await, 1);
    assert_eq!(scene.fire(1_000).await, 0);
    assert!(is_ended(&scene.execution("e").await));
}

/// An execution with open steps and a deadline, whose timer has been sent.
async fn with_deadline(seconds: u64, steps: usize) -> Scene {
    let scene = Scene::new();
    let (workflow, queue) = (WorkflowName::parse("orders").unwrap(), QueueName::parse("work").unwrap());
    let timeouts = ExecutionTimeouts { execution: Some(Millis::from_secs(seconds)), run: None };
    let request = StartRequest { id: Some(id("e")), timeouts, ..StartRequest::new(workflow, queue) };
    scene.service.start(request).await.unwrap();
    let turn = scene.turn().await.unwrap();
    let entries = scene.start_remote(&turn.execution, steps).await;
    scene.suspend(&turn, entries).await;
    scene
}

#[tokio::test]
async fn the_timer_of_a_deadline_that_fails_in_the_close_comes_back_and_continues_it() {
    let scene = with_deadline(60, 200).await;
    scene.advance(60);
    scene.crash_after(120);
    assert!(scene.try_fire(1_000).await.contains(&true));
    scene.crash_after(NEVER);
    assert_eq!(steps_done(&scene).await, 100);
    scene.advance(61);
    while scene.fire(1_000).await > 0 {}
    assert_steps_ended(&scene, "e", 200).await;
}

#[tokio::test]
async fn the_timer_of_a_deadline_does_nothing_of_a_close_that_came_before_it() {
    let scene = with_deadline(100, 200).await;
    scene.slow(6_000);
    scene.service.terminate(&id("e")).await.unwrap();
    scene.slow(0);
    scene.advance(100);
    assert_eq!(steps_done(&scene).await, 50);
    let mut wrote = Vec::new();
    loop {
        let before = scene.writes();
        if !scene.fire_one(0).await {
            break;
        }
        wrote.push(scene.writes() - before);
    }
    wrote.sort_unstable();
    // The write of the deadline, and three pages: two with recorded progress, the last one with the end.
    assert_eq!(wrote, [0, 51, 51, 51]);
    assert_steps_ended(&scene, "e", 200).await;
}
