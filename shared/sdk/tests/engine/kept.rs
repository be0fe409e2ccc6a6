//! Suspended runs that stay in their worker's memory: when their code goes on from there, and when it is replayed.

use std::cell::Cell;

use tickover::prelude::*;
use tickover::{Registry, Worker, WorkerSettings};
use tickover_core::duration::Millis;

use crate::scene::{Scene, execution_id, settings};

thread_local! {
    /// How often the code was started from its first line in this thread's test.
    static STARTS: Cell<u32> = const { Cell::new(0) };
}

/// Sleeps for so many hours, in as many turns, and then waits for an event.
#[tickover::workflow("naps")]
async fn naps(ctx: Ctx, hours: u32) -> Result<u32> {
    STARTS.set(STARTS.get() + 1);
    for hour in 0..hours {
        ctx.sleep(format!("nap[{hour}]"), "1h").await?;
    }
    Ok(ctx.wait_for_event("go", forever()).await?)
}

fn worker(scene: &Scene, kept_runs: usize) -> Worker {
    let settings = WorkerSettings { kept_runs, ..settings() };
    Worker::new(scene.service.clone(), Registry::new().with(naps), settings).unwrap()
}

async fn end(scene: &Scene, worker: &Worker, id: &str) {
    scene.send_event(id, "go", 7).await;
    assert_eq!(scene.finish(worker, id).await.output::<u32>(), 7);
}

#[tokio::test]
async fn a_run_in_memory_goes_on_where_its_last_turn_has_ended() {
    for (kept_runs, starts) in [(1, 1), (0, 22)] {
        STARTS.set(0);
        let scene = Scene::new();
        let worker = worker(&scene, kept_runs);
        scene.start(&naps, "one", &20).await;
        scene.pass(&worker, Millis::from_secs(21 * 3_600)).await;
        end(&scene, &worker, "one").await;
        assert_eq!(STARTS.get(), starts);
    }
}

#[tokio::test]
async fn what_another_worker_has_done_is_replayed() {
    let scene = Scene::new();
    let (one, other) = (worker(&scene, 1), worker(&scene, 1));
    scene.start(&naps, "shared", &3).await;
    for (worker, starts) in [(&one, 1), (&other, 2), (&one, 3)] {
        scene.pass(worker, Millis::from_secs(80 * 60)).await;
        assert_eq!(STARTS.get(), starts);
    }
    end(&scene, &one, "shared").await;
    assert_eq!(STARTS.get(), 3);
}

#[tokio::test]
async fn a_run_that_an_operator_has_changed_is_replayed() {
    let scene = Scene::new();
    let worker = worker(&scene, 1);
    scene.start(&naps, "paused", &1).await;
    scene.pass(&worker, Millis::from_secs(2 * 3_600)).await;
    scene.service.pause(&execution_id("paused")).await.unwrap();
    scene.service.resume(&execution_id("paused")).await.unwrap();
    end(&scene, &worker, "paused").await;
    assert_eq!(STARTS.get(), 2);
}

#[tokio::test]
async fn the_run_that_has_waited_longest_is_dropped_first() {
    let scene = Scene::new();
    let worker = worker(&scene, 1);
    scene.start(&naps, "first", &2).await;
    scene.pass(&worker, Millis::from_secs(30 * 60)).await;
    scene.start(&naps, "second", &2).await;
    scene.pass(&worker, Millis::from_secs(4 * 3_600)).await;
    // Each turn of one has dropped the other.
    assert_eq!(STARTS.get(), 6);
    end(&scene, &worker, "second").await;
    assert_eq!(STARTS.get(), 6);
    end(&scene, &worker, "first").await;
    assert_eq!(STARTS.get(), 7);
}
