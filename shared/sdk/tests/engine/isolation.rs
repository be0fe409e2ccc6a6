//! Work whose last worker was lost, perhaps because of that work: the next worker runs nothing else beside it.

use tickover::prelude::*;
use tickover::{Registry, Worker, WorkerSettings};
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;

use crate::scene::{Count, Scene, execution_id, settings};

static PAID: Count = Count::new();

#[tickover::step(queue = "payments")]
async fn pay(number: u32) -> Result<u32> {
    PAID.add();
    Ok(number)
}

#[tickover::workflow("pays-twice")]
async fn pays_twice(ctx: Ctx, (): ()) -> Result<()> {
    ctx.join_all("pay", (0..2).map(pay)).await?;
    Ok(())
}

#[tokio::test]
async fn work_that_must_run_alone_waits_for_no_long_poll_of_another_queue() {
    let scene = Scene::new();
    let turns = scene.worker_of(Registry::new().with(pays_twice), "workflows");
    scene.start(&pays_twice, "twice", &()).await;
    scene.pass(&turns, Millis::from_secs(5)).await;
    // This process leases both and then dies.
    assert_eq!(scene.work("payments", Millis::from_secs(60)).await.len(), 2);
    scene.clock.advance(Millis::from_secs(60));

    let queues = ["letters", "payments"].map(|name| QueueName::parse(name).unwrap()).to_vec();
    let registry = Registry::new().with_step::<pay>();
    let next = Worker::new(scene.service.clone(), registry, WorkerSettings { queues, ..settings() }).unwrap();
    scene.pass(&next, Millis::from_secs(3)).await;
    assert_eq!(PAID.get(), 2, "the long poll of the other queue takes 20 s");
    let execution = scene.service.execution(&execution_id("twice")).await.unwrap().unwrap().execution;
    assert_eq!(execution.wakes, 1);
}
