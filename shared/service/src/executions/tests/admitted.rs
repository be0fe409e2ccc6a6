//! Executions with places at keys, and a process that dies after any write.

use std::num::NonZeroU16;

use tickover_core::duration::Millis;
use tickover_core::execution::command::{Cleanup, Close, Ending};
use tickover_core::execution::{ExecutionOutcome, ExecutionStatus};
use tickover_core::flow::{Concurrency, FlowRequest, Priority};
use tickover_core::id::{FlowKey, QueueName, WorkflowName};

use super::mortal::NEVER;
use super::scene::{Scene, id};
use crate::claim::ClaimRequest;
use crate::executions::{StartRequest, StartedTurn, Work};

fn queue() -> QueueName {
    QueueName::parse("work").unwrap()
}

/// An execution that needs a place at these keys, of one each.
fn limited(called: &str, keys: &[&str]) -> StartRequest {
    let one = |key: &&str| Concurrency { key: FlowKey::parse(*key).unwrap(), limit: NonZeroU16::MIN };
    let flow = FlowRequest { concurrency: keys.iter().map(one).collect(), ..FlowRequest::default() };
    let workflow = WorkflowName::parse("orders").unwrap();
    StartRequest { id: Some(id(called)), flow: Box::new(flow), ..StartRequest::new(workflow, queue()) }
}

fn requests() -> [StartRequest; 3] {
    [limited("a", &["x", "y"]), limited("b", &["y", "z"]), limited("c", &["x", "z"])]
}

/// Ends a turn, or leaves it as a dead process would.
async fn end(scene: &Scene, turn: StartedTurn) -> bool {
    let ending = Ending::Outcome(ExecutionOutcome::Completed { output: None });
    let close =
        Close { lease: turn.lease, entries: vec![], ending, cleanup: Cleanup::default(), values: None };
    let closed = scene.service.close_turn(&turn.execution, close).await.is_ok();
    if closed {
        scene.service.done_with(&queue(), turn.receipt.as_deref().unwrap()).await;
    }
    closed
}

#[tokio::test]
async fn a_system_that_starts_sends_no_message_for_one_in_a_line() {
    let scene = Scene::new();
    scene.service.open_queue(&queue()).await.unwrap();
    scene.service.start(limited("a", &["x"])).await.unwrap();
    let lease = Millis::from_secs(30);
    let request = ClaimRequest { worker: None, max: 1, lease, wait: Millis::ZERO, provides: vec![] };
    let Some(Work::Turn(turn)) = scene.service.next_work(&queue(), &request).await.unwrap().pop() else {
        panic!("its turn comes");
    };
    scene.service.start(limited("b", &["x"])).await.unwrap();
    assert_eq!(scene.service.hint_all().await.unwrap(), 1, "that of the turn which may be lost");
    assert!(end(&scene, *turn).await);
    assert_eq!(
        scene.execution("b").await.lane().priority,
        Priority::High,
        "who is called goes before others"
    );
    assert!(matches!(scene.service.next_work(&queue(), &request).await.unwrap().pop(), Some(Work::Turn(_))));
}

#[tokio::test]
async fn whichever_write_a_process_dies_after_executions_run_and_no_two_have_one_place() {
    for last in 0.. {
        let scene = Scene::new();
        scene.service.open_queue(&queue()).await.unwrap();
        scene.crash_after(last);
        let mut survived = true;
        for request in requests() {
            survived &= scene.service.start(request).await.is_ok();
        }
        let (mut open, mut has_died): (Vec<StartedTurn>, bool) = (vec![], false);
        for second in 0..1_200_u64 {
            let lease = Millis::from_secs(30);
            let request = ClaimRequest { worker: None, max: 1, lease, wait: Millis::ZERO, provides: vec![] };
            let taken = scene.service.next_work(&queue(), &request).await;
            survived &= taken.is_ok();
            if let Some(Work::Turn(turn)) = taken.ok().and_then(|mut work| work.pop()) {
                open.push(*turn);
            }
            // Each of the three shares a key with both others.
            let mut in_progress = vec![];
            for called in ["a", "b", "c"] {
                let found = scene.store.execution(&id(called)).await.unwrap();
                let begun = found.filter(|one| {
                    one.closed().is_none() && one.admission.as_deref().is_some_and(|of| of.held.is_some())
                });
                in_progress.extend(begun.map(|_| called));
            }
            assert!(in_progress.len() <= 1, "{last}: {in_progress:?} at {second} s");
            if second.is_multiple_of(5) {
                for turn in open.drain(..) {
                    survived &= end(&scene, turn).await;
                }
            }
            if !survived && !has_died {
                // Another process goes on. Who called repeats the request.
                has_died = true;
                scene.crash_after(NEVER);
                for request in requests() {
                    scene.service.start(request).await.unwrap();
                }
            }
            scene.advance(1);
            if second.is_multiple_of(60) {
                scene.tick().await.ok();
                while scene.fire(50_000).await > 0 {}
            }
        }
        for called in ["a", "b", "c"] {
            assert_eq!(
                scene.execution(called).await.status(),
                ExecutionStatus::Completed,
                "{last}: {called}"
            );
        }
        for key in ["x", "y", "z"] {
            let limit = scene.service.limit(&FlowKey::parse(key).unwrap()).await.unwrap();
            assert!(limit.waiting.is_empty(), "{last}: {key}: {limit:?}");
        }
        if survived {
            assert!(last > 15, "{last} writes are too few");
            return;
        }
    }
}

#[tokio::test]
async fn an_execution_that_is_paused_leaves_its_line_and_what_it_was_offered_goes_on() {
    let scene = Scene::new();
    scene.service.open_queue(&queue()).await.unwrap();
    let lease = Millis::from_secs(30);
    let request = ClaimRequest { worker: None, max: 1, lease, wait: Millis::ZERO, provides: vec![] };
    let next = async || scene.service.next_work(&queue(), &request).await.unwrap().pop();
    scene.service.start(limited("a", &["x"])).await.unwrap();
    let Some(Work::Turn(turn)) = next().await else { panic!("its turn comes") };
    for called in ["b", "c"] {
        scene.advance(1);
        scene.service.start(limited(called, &["x"])).await.unwrap();
    }
    assert!(end(&scene, *turn).await);
    scene.service.pause(&id("b")).await.unwrap();
    let of = |work: Option<Work>| match work {
        Some(Work::Turn(turn)) => turn,
        other => panic!("{other:?}"),
    };
    let turn = of(next().await);
    assert_eq!(turn.execution.id, id("c"));
    scene.service.resume(&id("b")).await.unwrap();
    assert!(next().await.is_none());
    assert!(end(&scene, *turn).await);
    assert_eq!(of(next().await).execution.id, id("b"));
}
