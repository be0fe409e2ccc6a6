//! Deadlines depend on the store and the tick alone: queues may be unreachable, or deleted.

use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionTimeouts;
use tickover_core::id::{ExecutionId, WorkflowName};
use tickover_core::task::Status;
use tickover_service::executions::StartRequest;
use tickover_service::ports::Queue as _;
use tickover_tests::faulty_queue::{FaultyQueue, QueueFault};
use tickover_tests::scene::{Scene, queue_name, request, task_id};

use super::{after, tick_of, with_deadline};

fn execution(id: &str, seconds: u64) -> StartRequest {
    let timeouts = ExecutionTimeouts { execution: Some(Millis::from_secs(seconds)), run: None };
    StartRequest {
        id: ExecutionId::parse(id).ok(),
        timeouts,
        ..StartRequest::new(WorkflowName::parse("orders").unwrap(), queue_name("work"))
    }
}

async fn status(scene: &Scene, id: &str) -> Status {
    scene.service.describe(&task_id(id)).await.unwrap().task.status()
}

#[tokio::test]
async fn an_hour_without_any_queue_delays_no_deadline_beyond_the_next_tick() {
    for fault in [QueueFault::Fails, QueueFault::Hangs] {
        let (scene, queue) = FaultyQueue::scene(4);
        for seconds in [60, 900, 1_800] {
            scene.service.schedule(with_deadline(&format!("t{seconds}"), seconds)).await.unwrap();
            scene.service.start(execution(&format!("e{seconds}"), seconds)).await.unwrap();
        }
        for number in 0..300 {
            scene.service.schedule(request("work", Some(&format!("idle{number}")), None)).await.unwrap();
        }
        queue.set_fault(Some(fault));
        for minute in 1..=60 {
            let began = after(minute * 60).max(scene.service.now());
            let report = tick_of(&scene, minute, 0).await;
            assert_eq!((report.failed, report.out_of_time), (0, false), "{fault:?}, minute {minute}");
            let took = scene.service.now().since(began);
            assert!(took <= Millis::from_secs(30), "{fault:?}, minute {minute}: {took}");
            for seconds in [60, 900, 1_800] {
                let ended = status(&scene, &format!("t{seconds}")).await == Status::TimedOut;
                assert_eq!(ended, minute * 60 >= seconds, "{fault:?}, minute {minute}: t{seconds}");
                let id = ExecutionId::parse(format!("e{seconds}")).unwrap();
                let execution = scene.service.execution(&id).await.unwrap().unwrap().execution;
                assert_eq!(execution.closed().is_some(), minute * 60 >= seconds, "{fault:?}: e{seconds}");
            }
        }
        // Work continues when the queues are back: every lost hint is found.
        queue.set_fault(None);
        scene.lose_messages(&queue_name("work")).await;
        for minute in 61..=77 {
            tick_of(&scene, minute, 0).await;
            scene.fire().await;
        }
        let depth = scene.queue.depth(&queue_name("work")).await.unwrap();
        assert!(depth.visible >= 300, "{fault:?}: {depth:?}");
    }
}

#[tokio::test]
async fn a_refused_message_is_sent_again_unless_the_queue_kept_its_caller_waiting() {
    // After two minutes it was the process that stood still.
    for (seconds, sent) in [(0, 1), (15, 0), (120, 1)] {
        let (scene, queue) = FaultyQueue::scene(1);
        scene.service.schedule(request("work", Some("first"), None)).await.unwrap();
        queue.set_fault(Some(QueueFault::FailsAfter(Millis::from_secs(seconds))));
        scene.service.schedule(request("work", Some("second"), None)).await.unwrap();
        let depth = scene.queue.depth(&queue_name("work")).await.unwrap();
        assert_eq!(depth.visible, 1 + sent, "{seconds} s");
    }
}

#[tokio::test]
async fn a_queue_that_does_not_answer_is_asked_once_in_a_tick() {
    let (scene, queue) = FaultyQueue::scene(1);
    for number in 0..200 {
        scene.service.schedule(request("work", Some(&format!("t{number}")), None)).await.unwrap();
    }
    queue.set_fault(Some(QueueFault::Fails));
    for minute in 1..=10 {
        queue.calls("depth");
        tick_of(&scene, minute, 0).await;
    }
    assert_eq!(queue.calls("depth"), 1);
}

#[tokio::test]
async fn a_deadline_is_decided_before_any_queue_is_asked() {
    let (scene, queue) = FaultyQueue::scene(1);
    scene.service.schedule(with_deadline("t", 900)).await.unwrap();
    scene.service.start(execution("e", 900)).await.unwrap();
    for minute in 1..15 {
        tick_of(&scene, minute, 0).await;
    }
    queue.calls("depth");
    assert_eq!(tick_of(&scene, 15, 0).await.timed_out, 2);
    assert_eq!(queue.calls("depth"), 0);
}

#[tokio::test]
async fn deadlines_do_not_wait_for_the_probes_of_a_queue_that_hangs() {
    let (scene, queue) = FaultyQueue::scene(1);
    for number in 0..200 {
        scene.service.schedule(request("work", Some(&format!("idle{number}")), None)).await.unwrap();
        scene.service.schedule(with_deadline(&format!("t{number}"), 600)).await.unwrap();
    }
    queue.set_fault(Some(QueueFault::Hangs));
    queue.calls("depth");
    let began = after(660);
    assert_eq!(tick_of(&scene, 11, 0).await.timed_out, 200);
    assert!(queue.calls("depth") > 0 && scene.service.now() > began, "nothing had to wait");
    for number in 0..200 {
        let task = scene.service.describe(&task_id(&format!("t{number}"))).await.unwrap().task;
        assert_eq!(task.ended().unwrap().ended_at, began, "t{number}");
    }
}

#[tokio::test]
async fn records_of_a_removed_queue_do_not_block_the_index_and_get_hints_when_it_is_back() {
    let (scene, queue) = FaultyQueue::scene(1);
    let gone = queue_name("gone");
    for number in 0..50 {
        scene.service.schedule(request("gone", Some(&format!("t{number}")), None)).await.unwrap();
    }
    scene.lose_messages(&gone).await;
    queue.set_missing(&gone, true);
    let mut looks = 0;
    for minute in 1..=360 {
        let report = tick_of(&scene, minute, 0).await;
        assert_eq!(report.failed, 0, "minute {minute}");
        looks += report.looked_at;
    }
    // At 10 and 40 minutes, and then once an hour.
    assert!((50 * 4..=50 * 8).contains(&looks), "{looks}");
    queue.set_missing(&gone, false);
    for minute in 361..=425 {
        tick_of(&scene, minute, 0).await;
    }
    assert_eq!(scene.queue.depth(&gone).await.unwrap().visible, 50);
}
