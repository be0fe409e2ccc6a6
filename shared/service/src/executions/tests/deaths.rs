//! Calls of operators, and ticks, whose process dies after any single write: what they have begun is over when a lease would
//! be.

use tickover_core::duration::Millis;
use tickover_core::execution::command::Cleanup;
use tickover_core::execution::{ExecutionState, ExecutionTimeouts};
use tickover_core::flow::FlowRequest;
use tickover_core::id::{CronId, WorkflowName};

use super::chains::{assert_steps_ended, family, with_children};
use super::mortal::NEVER;
use super::scene::{Scene, id, queue};
use crate::executions::StartRequest;

/// The lease of a worker, in seconds.
const LEASE: u64 = 60;
const CHILDREN: usize = 3;
const STEPS: usize = 2;

/// How an operator ends an execution.
#[derive(Clone, Copy, Debug)]
enum How {
    Cancel,
    Terminate,
}

async fn end(scene: &Scene, of: &str, how: How) {
    match how {
        How::Cancel => drop(scene.service.cancel_execution(&id(of)).await),
        How::Terminate => drop(scene.service.terminate(&id(of)).await),
    }
}

/// Time passes, and only messages arrive.
async fn pass_by_messages(scene: &Scene) {
    scene.crash_after(NEVER);
    scene.look_after_calls();
    scene.advance(LEASE);
    while scene.fire(50_000).await > 0 {}
}

async fn assert_all_ended(scene: &Scene) {
    assert!(matches!(scene.execution("e").await.state, ExecutionState::Ended(_)));
    for number in 0..CHILDREN {
        assert_steps_ended(scene, &format!("child-{number}"), STEPS).await;
    }
}

#[tokio::test]
async fn the_children_of_an_execution_end_in_time_after_its_callers_death() {
    for how in [How::Cancel, How::Terminate] {
        let scene = family(CHILDREN, STEPS).await;
        let before = scene.writes();
        end(&scene, "e", how).await;
        let writes = scene.writes() - before;
        assert_all_ended(&scene).await;
        assert!(writes > 6, "{writes}");
        for write in 1..=writes {
            let scene = family(CHILDREN, STEPS).await;
            scene.crash_after(write);
            end(&scene, "e", how).await;
            pass_by_messages(&scene).await;
            assert_all_ended(&scene).await;
        }
    }
}

#[tokio::test]
async fn a_parent_learns_of_its_childs_end_in_time_after_the_callers_death() {
    for how in [How::Cancel, How::Terminate] {
        for write in 1.. {
            let scene = Scene::new();
            let parent = scene.started("e", None).await;
            let entry = scene.begin_child(&parent.execution, "child", 86_400).await;
            scene.wait(&parent, vec![entry], true).await;
            let before = scene.writes();
            scene.crash_after(write);
            end(&scene, "child", how).await;
            let made = scene.writes() - before;
            pass_by_messages(&scene).await;
            let turn = scene.turn().await.map(|turn| turn.execution.id);
            assert_eq!(turn, Some(id("e")), "{how:?}, write {write}");
            if made < write {
                break;
            }
        }
    }
}

#[tokio::test]
async fn the_code_after_a_cancellation_begins_in_time_after_the_callers_death() {
    let scene = Scene::new();
    let turn = scene.started("e", None).await;
    let cleanup = Cleanup { on_cancel: Some(Millis::from_secs(300)), ..Cleanup::default() };
    scene.wait_with(&turn, vec![], false, cleanup).await;
    // It dies after it has written the request, and before it sends the hint.
    scene.crash_after(1);
    end(&scene, "e", How::Cancel).await;
    pass_by_messages(&scene).await;
    assert_eq!(scene.turn().await.map(|turn| turn.execution.id), Some(id("e")));
}

#[tokio::test]
async fn the_children_of_an_execution_end_in_time_after_the_death_of_the_tick_that_ended_it() {
    let expired = async || {
        let scene = Scene::new();
        let timeouts = ExecutionTimeouts { execution: Some(Millis::from_secs(3_600)), run: None };
        let workflow = WorkflowName::parse("orders").unwrap();
        let request = StartRequest { id: Some(id("e")), timeouts, ..StartRequest::new(workflow, queue()) };
        scene.service.start(request).await.unwrap();
        let parent = scene.turn().await.unwrap();
        with_children(&scene, &parent, CHILDREN, STEPS).await;
        scene.advance(3_600);
        while scene.lose_timers().await > 0 {}
        scene
    };
    for write in 1.. {
        let scene = expired().await;
        let before = scene.writes();
        scene.crash_after(write);
        drop(scene.tick().await);
        let made = scene.writes() - before;
        scene.crash_after(NEVER);
        scene.advance(LEASE);
        scene.tick().await.unwrap();
        assert_all_ended(&scene).await;
        if made < write {
            return assert!(made > 6, "{made}");
        }
    }
}

/// An execution with a deadline in 10 minutes, whose cron starts its next run when it ends.
async fn run_of_a_cron(scene: &Scene) {
    let flow = FlowRequest { cron: Some(CronId::parse("nightly").unwrap()), ..FlowRequest::default() };
    let timeouts = ExecutionTimeouts { execution: Some(Millis::from_secs(600)), run: None };
    let request = StartRequest {
        id: Some(id("e")),
        flow: Box::new(flow),
        timeouts,
        ..StartRequest::new(WorkflowName::parse("orders").unwrap(), queue())
    };
    scene.service.start(request).await.unwrap();
}

/// Whether its cron learns of the end though the first message about it is lost with its process.
async fn is_told_again(scene: &Scene) -> bool {
    assert!(scene.execution("e").await.closed().is_some());
    assert_eq!(scene.lose_timers().await, 1);
    scene.look_after_calls();
    scene.advance(LEASE);
    scene.lose_timers().await == 1
}

#[tokio::test]
async fn a_cron_learns_of_the_end_of_its_run_in_time_after_a_death() {
    for how in [How::Cancel, How::Terminate] {
        let scene = Scene::new();
        run_of_a_cron(&scene).await;
        end(&scene, "e", how).await;
        assert!(is_told_again(&scene).await, "{how:?}");
    }
    let scene = Scene::new();
    run_of_a_cron(&scene).await;
    scene.advance(600);
    scene.lose_timers().await;
    scene.tick().await.unwrap();
    assert!(is_told_again(&scene).await);
}
