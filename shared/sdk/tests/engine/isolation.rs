//! Work whose last worker was lost, perhaps because of that work: the next worker runs one such piece at a time, and it
//! keeps nothing else from starting.

use tickover::prelude::*;
use tickover::{Registry, Worker, WorkerSettings};
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;

use std::sync::Mutex;

use crate::scene::{Count, Scene, clock, execution_id, settings};

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
    for _ in 0..2 {
        // This process leases both and then dies.
        assert_eq!(scene.work_beside_others("payments", Millis::from_secs(60)).await.len(), 2);
        scene.clock.advance(Millis::from_secs(60));
    }

    let queues = ["letters", "payments"].map(|name| QueueName::parse(name).unwrap()).to_vec();
    let registry = Registry::new().with_step::<pay>();
    let next = Worker::new(scene.service.clone(), registry, WorkerSettings { queues, ..settings() }).unwrap();
    scene.pass(&next, Millis::from_secs(3)).await;
    assert_eq!(PAID.get(), 2, "the long poll of the other queue takes 20 s");
    let execution = scene.service.execution(&execution_id("twice")).await.unwrap().unwrap().execution;
    assert_eq!(execution.wakes, 1);
}

/// What ran, in order: when each step began and ended.
static ORDER: Mutex<Vec<String>> = Mutex::new(vec![]);

/// Carries a parcel, which takes ten seconds.
#[tickover::step(queue = "parcels")]
async fn carry(parcel: String) -> Result<()> {
    ORDER.lock().unwrap().push(format!("{parcel} begins"));
    clock().after(Millis::from_secs(10)).await;
    ORDER.lock().unwrap().push(format!("{parcel} ends"));
    Ok(())
}

#[tokio::test]
async fn suspects_run_one_at_a_time_and_hold_up_nothing_that_is_new() {
    let scene = Scene::new();
    let client = tickover::Client::from(scene.service.clone());
    for parcel in ["a", "b"] {
        client.schedule(carry(parcel.to_owned())).await.unwrap();
    }
    for _ in 0..2 {
        assert_eq!(scene.work_beside_others("parcels", Millis::from_secs(60)).await.len(), 2);
        scene.clock.advance(Millis::from_secs(60));
    }
    client.schedule(carry("new".to_owned())).await.unwrap();
    let worker = scene.worker_of(Registry::new().with_step::<carry>(), "parcels");
    scene.inside(scene.pass(&worker, Millis::from_secs(40))).await;
    let order = ORDER.lock().unwrap().clone();
    let at = |line: &str| order.iter().position(|one| one == line).unwrap();
    let (a, b) = ((at("a begins"), at("a ends")), (at("b begins"), at("b ends")));
    assert!(a.1 < b.0 || b.1 < a.0, "{order:?}");
    assert!(at("new begins") < a.0.max(b.0), "{order:?}");
}

/// When each attempt was made, in milliseconds.
static KNOCKS: Mutex<Vec<(String, u64)>> = Mutex::new(vec![]);

#[tickover::step(retry = "fixed(2, 4s)")]
async fn knock(door: String) -> Result<(), Failure> {
    let mut made = KNOCKS.lock().unwrap();
    made.push((door.clone(), clock().passed()));
    let of_door = made.iter().filter(|(of, _)| *of == door).count();
    if of_door < 3 { Err(Failure::new("nobody", "is at home")) } else { Ok(()) }
}

#[tickover::workflow("knocks")]
async fn knocks(ctx: Ctx, door: String) -> Result<()> {
    Ok(ctx.step(knock(door)).await?)
}

#[tokio::test]
async fn nobody_is_alone_while_it_waits_for_a_retry() {
    let scene = Scene::new();
    for door in ["a", "b"] {
        scene.start(&knocks, door, &door.to_owned()).await;
    }
    for _ in 0..2 {
        assert_eq!(scene.work_beside_others("workflows", Millis::from_secs(60)).await.len(), 2);
        scene.clock.advance(Millis::from_secs(60));
    }
    let worker = scene.worker(Registry::new().with(knocks));
    for door in ["a", "b"] {
        scene.inside(scene.finish(&worker, door)).await;
    }
    let tries = KNOCKS.lock().unwrap().clone();
    let first = |door: &str| tries.iter().find(|(of, _)| of == door).unwrap().1;
    // Each waits eight seconds in all.
    assert!(first("a").abs_diff(first("b")) < 4_000, "{tries:?}");
}
