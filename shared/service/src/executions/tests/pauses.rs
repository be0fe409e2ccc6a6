//! Remote steps that no worker asks for while their execution is paused, and a process that dies after any write.

use tickover_core::duration::Millis;
use tickover_core::task::Task;
use tickover_core::timeout::{LifeTimeout, Timeouts};

use super::mortal::NEVER;
use super::scene::{Scene, id, queue, remote_step};
use crate::claim::ClaimRequest;
use crate::executions::{RemoteStep, remote_id};
use tickover_core::execution::journal::{Entry, Happened};

const STEPS: usize = 2;
const TIMEOUT: Millis = Millis::from_secs(600);

/// Six minutes of an execution with waiting steps, five of them in a pause.
async fn paused(timeouts: Timeouts) -> Scene {
    let scene = Scene::new();
    let turn = scene.started("e", None).await;
    let steps = (0..STEPS).map(|number| RemoteStep { timeouts, ..remote_step(number) }).collect();
    let names = scene.service.start_remote(&turn.execution, steps).await.all().unwrap();
    let entries = names.into_iter().map(|name| Entry { at: scene.now(), what: Happened::Remote { name } });
    scene.suspend(&turn, entries.collect()).await;
    scene.advance(60);
    scene.service.pause(&id("e")).await.unwrap();
    scene.advance(300);
    scene
}

async fn paused_with_timeouts() -> Scene {
    let schedule_to_close = Some(LifeTimeout { after: TIMEOUT, is_error: true });
    paused(Timeouts { schedule_to_close, ..Timeouts::default() }).await
}

async fn steps(scene: &Scene) -> Vec<Task> {
    let execution = scene.execution("e").await;
    let ids: Vec<_> = (0..STEPS).map(|number| remote_id(&execution, &remote_step(number).name)).collect();
    scene.store.tasks(&ids).await.unwrap()
}

#[tokio::test]
async fn whichever_write_of_a_resume_a_process_dies_after_each_step_that_waits_has_its_time_afresh() {
    for last in 0.. {
        let scene = paused_with_timeouts().await;
        scene.crash_after(last);
        let resumed = scene.service.resume(&id("e")).await;
        scene.crash_after(NEVER);
        if scene.execution("e").await.paused {
            scene.service.resume(&id("e")).await.unwrap();
        }
        let afresh = Some(scene.now().plus(TIMEOUT));
        for step in steps(&scene).await {
            // The next claim or the tick starts the time of one that is still on hold.
            assert!(step.is_held() || step.deadline_at == afresh, "{last}: {step:?}");
        }
        if resumed.is_ok() {
            assert!(last > 2, "{last}");
            break;
        }
        // The same call, repeated.
        scene.service.resume(&id("e")).await.unwrap();
        assert!(steps(&scene).await.iter().all(|step| step.deadline_at == afresh), "{last}");
        // A repeated resume sends the hint of the turn again.
        assert!((1..=2).contains(&(scene.depth().await - 2 * STEPS as u64)), "{last}");
    }
}

#[tokio::test]
async fn a_resume_of_what_is_not_paused_moves_no_time_of_its_steps() {
    let scene = paused_with_timeouts().await;
    scene.service.resume(&id("e")).await.unwrap();
    let (before, depth) = (steps(&scene).await, scene.depth().await);
    scene.advance(60);
    scene.service.resume(&id("e")).await.unwrap();
    // It sends the hint of the turn again: it may be the same call, repeated.
    assert_eq!((steps(&scene).await, scene.depth().await), (before, depth + 1));
}

#[tokio::test]
async fn a_resume_leaves_a_step_without_timeouts_as_it_is() {
    let scene = paused(Timeouts::default()).await;
    let before = steps(&scene).await;
    scene.service.resume(&id("e")).await.unwrap();
    assert_eq!(steps(&scene).await, before);
    assert_eq!(scene.depth().await, 1 + STEPS as u64);
}

#[tokio::test]
async fn a_pause_that_follows_a_resume_at_once_stops_the_time_again() {
    let scene = paused_with_timeouts().await;
    scene.service.resume(&id("e")).await.unwrap();
    scene.service.pause(&id("e")).await.unwrap();
    scene.advance(900);
    scene.tick().await.unwrap();
    assert!(steps(&scene).await.iter().all(Task::is_held));
    scene.service.resume(&id("e")).await.unwrap();
    let afresh = Some(scene.now().plus(TIMEOUT));
    assert!(steps(&scene).await.iter().all(|step| step.deadline_at == afresh));
}

/// Its execution may have its outcome already, and then the end of the pause would leave it on hold.
#[tokio::test]
async fn a_step_that_an_operator_has_started_again_runs_in_a_pause_and_the_others_wait() {
    let scene = paused_with_timeouts().await;
    let again = steps(&scene).await[0].id.clone();
    scene.service.cancel(&again, true).await.unwrap();
    scene.service.retry(&again).await.unwrap();
    let (lease, wait) = (Millis::from_secs(60), Millis::ZERO);
    let request = ClaimRequest { worker: None, max: 10, lease, wait, provides: vec![] };
    let claimed = scene.service.claim(&queue(), &request).await.unwrap();
    assert!(matches!(&claimed[..], [one] if one.task.id == again), "{claimed:?}");
    assert!(steps(&scene).await[1].is_held());
}
