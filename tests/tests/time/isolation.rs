//! Processes that die while several attempts run: one of the attempts is the cause, and the system can't know which.

use tickover_core::duration::Millis;
use tickover_core::id::{ExecutionId, WorkflowName};
use tickover_core::task::Status;
use tickover_service::claim::{ClaimedTask, Delivered, Hinted, Isolation};
use tickover_service::executions::{StartRequest, Work};
use tickover_service::ports::{Queue as _, Received};
use tickover_tests::scene::{Scene, claim_request, queue_name, request, task_id};

const LEASE: Millis = Millis::from_secs(60);

async fn scheduled(count: u32) -> Scene {
    let scene = Scene::in_memory();
    for number in 0..count {
        scene.service.schedule(request("work", Some(&number.to_string()), None)).await.unwrap();
    }
    scene
}

async fn complete(scene: &Scene, claimed: &ClaimedTask) {
    scene.service.complete(&claimed.task.id, &claimed.token, None).await.unwrap();
}

/// The guilty attempt kills its process with all others; without it, the others complete.
async fn work_on(scene: &Scene, claimed: &[ClaimedTask]) {
    if !claimed.iter().any(|claimed| claimed.task.id == task_id("0")) {
        for claimed in claimed {
            complete(scene, claimed).await;
        }
    }
}

async fn the_innocent_complete_and_the_guilty_one_is_poisoned(scene: &Scene, count: u32) {
    for number in 0..count {
        let task = scene.service.describe(&task_id(&number.to_string())).await.unwrap().task;
        if number == 0 {
            assert_eq!((task.status(), task.losses), (Status::Failed, 4), "{task:?}");
        } else {
            assert_eq!((task.status(), task.losses), (Status::Completed, 0), "{task:?}");
        }
    }
}

#[tokio::test]
async fn after_a_batch_died_twice_the_innocent_complete_and_the_guilty_one_is_poisoned_alone() {
    let scene = scheduled(10).await;
    let work = queue_name("work");
    for _ in 0..2 {
        // The first death says little about each of them.
        let together = scene.service.claim(&work, &claim_request(10)).await.unwrap();
        assert_eq!(together.len(), 10);
        scene.clock.advance(LEASE);
    }
    for _ in 0..40 {
        scene.clock.advance(LEASE.saturating_mul(2));
        let claimed = scene.service.claim(&work, &claim_request(10)).await.unwrap();
        assert!(claimed.len() <= 1, "a task that may be guilty is claimed alone: {claimed:?}");
        work_on(&scene, &claimed).await;
    }
    the_innocent_complete_and_the_guilty_one_is_poisoned(&scene, 10).await;
}

#[tokio::test]
async fn a_suspect_is_claimed_even_if_new_work_never_ends() {
    let scene = scheduled(1).await;
    let work = queue_name("work");
    scene.service.schedule(request("work", Some("mate"), None)).await.unwrap();
    for _ in 0..2 {
        assert_eq!(scene.service.claim(&work, &claim_request(10)).await.unwrap().len(), 2);
        scene.clock.advance(LEASE);
    }
    for round in 0..300 {
        for number in 0..10 {
            let id = format!("new-{round}-{number}");
            scene.service.schedule(request("work", Some(&id), None)).await.unwrap();
        }
        scene.clock.advance(Millis::from_secs(5));
        let claimed = scene.service.claim(&work, &claim_request(10)).await.unwrap();
        assert!(claimed.len() == 1 || !claimed.iter().any(|one| one.task.id == task_id("0")));
        work_on(&scene, &claimed).await;
    }
    let mate = scene.service.describe(&task_id("mate")).await.unwrap().task;
    assert_eq!(mate.status(), Status::Completed);
    let guilty = scene.service.describe(&task_id("0")).await.unwrap().task;
    assert_eq!((guilty.status(), guilty.losses), (Status::Failed, 4));
}

/// The messages that a function is invoked with: the queue's poller received them.
async fn batch(scene: &Scene) -> Vec<Received> {
    scene.queue.receive(&queue_name("work"), 10, LEASE, Millis::ZERO).await.unwrap()
}

#[tokio::test]
async fn a_function_runs_each_message_alone_after_its_process_died_twice() {
    let scene = scheduled(3).await;
    let claim = async |message: &Received, isolation| {
        let (body, receipt) = (message.body.as_str(), Some(message.receipt.as_str()));
        let delivered = Delivered { body, receipt, receives: message.receive_count };
        scene.service.claim_hinted(delivered, &claim_request(1), isolation).await.unwrap()
    };
    for _ in 0..2 {
        for message in &batch(&scene).await {
            assert!(matches!(claim(message, Isolation::Shared).await, Hinted::Taken(_)));
        }
        scene.clock.advance(LEASE);
    }
    for message in &batch(&scene).await {
        assert!(matches!(claim(message, Isolation::Shared).await, Hinted::Suspect));
        let Hinted::Taken(claimed) = claim(message, Isolation::Alone).await else {
            panic!("the claim should succeed")
        };
        assert_eq!((claimed.task.losses, claimed.task.attempt), (0, 1));
        complete(&scene, &claimed).await;
    }
}

#[tokio::test]
async fn turns_that_died_together_twice_start_again_one_by_one_and_none_counts() {
    let scene = Scene::in_memory();
    let work = queue_name("work");
    for id in ["e-1", "e-2"] {
        let mut start = StartRequest::new(WorkflowName::parse("w").unwrap(), work.clone());
        start.id = Some(ExecutionId::parse(id).unwrap());
        scene.service.start(start).await.unwrap();
    }
    for _ in 0..2 {
        let taken = scene.service.work_apart(&work, &claim_request(10), &|_| true).await.unwrap();
        assert_eq!((taken.work.len(), taken.suspects.len()), (2, 0));
        scene.clock.advance(LEASE);
    }
    let offered = scene.service.work_apart(&work, &claim_request(10), &|_| true).await.unwrap();
    assert_eq!((offered.work.len(), offered.suspects.len()), (0, 2));
    for suspect in &offered.suspects {
        let taken = scene.service.take_suspect(&work, suspect, &claim_request(1)).await.unwrap();
        let Some(Work::Turn(turn)) = taken else { panic!("a turn: {taken:?}") };
        assert_eq!(turn.execution.idle_turns, 1);
    }
}
