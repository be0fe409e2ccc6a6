//! What a workflow's code says of its executions before they begin, and what its context asks of the system.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tickover::Registry;
use tickover::client::TaskStatus;
use tickover::prelude::*;

use crate::scene::{System, settings, within, worker};

/// How many executions are between their steps, and how many were at most.
#[derive(Clone, Default)]
struct Inside(Arc<[AtomicU32; 2]>);

#[tickover::step]
async fn enter(#[state] inside: &Inside) -> Result<()> {
    let now = inside.0[0].fetch_add(1, Ordering::SeqCst) + 1;
    inside.0[1].fetch_max(now, Ordering::SeqCst);
    Ok(())
}

#[tickover::step]
async fn leave(#[state] inside: &Inside) -> Result<()> {
    inside.0[0].fetch_sub(1, Ordering::SeqCst);
    Ok(())
}

#[tickover::workflow("single", queue = "single", concurrency(key = "who", limit = 1))]
async fn single(ctx: Ctx, who: String) -> Result<String> {
    ctx.step(enter()).await?;
    ctx.sleep("work", "20ms").await?;
    ctx.step(leave()).await?;
    Ok(who)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_code_of_a_worker_elsewhere_limits_executions_whose_start_said_nothing() {
    let (system, inside) = (tokio::task::block_in_place(System::new), Inside::default());
    let worker = worker(system.address, Registry::new().with(single).with_state(inside.clone()), settings());
    let mut runs = vec![];
    for _ in 0..4 {
        runs.push(system.client().start_by_name::<String>("single", "single", "ada").await.unwrap());
    }
    for run in runs {
        assert_eq!(within(run.result()).await.unwrap(), "ada");
    }
    assert_eq!(inside.0[1].load(Ordering::SeqCst), 1, "at most");
    worker.abort();
    system.kill();
}

static LINK: std::sync::Mutex<Option<String>> = std::sync::Mutex::new(None);

/// Waits for whoever has its token, and tells another execution.
#[tickover::workflow("asks", queue = "asks")]
async fn asks(ctx: Ctx, (): ()) -> Result<bool> {
    let callback = ctx.callback("approval", within_days()).await?;
    *crate::scene::lock(&LINK) = Some(callback.path().clone());
    let is_approved = callback.result::<bool>().await?;
    ctx.send_event("tell", "listener", "told", &is_approved).await?;
    Ok(is_approved)
}

fn within_days() -> tickover::Within {
    tickover::within("3d")
}

#[tickover::workflow("listens", queue = "asks")]
async fn listens(ctx: Ctx, (): ()) -> Result<bool> {
    Ok(ctx.wait_for_event("told", forever()).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_elsewhere_makes_callbacks_and_sends_events() {
    let system = tokio::task::block_in_place(System::new);
    let worker = worker(system.address, Registry::new().with((asks, listens)), settings());
    let listener = system.client().start(&listens, ()).id("listener").await.unwrap();
    let run = system.client().start(&asks, ()).await.unwrap();
    let path = async {
        loop {
            if let Some(path) = crate::scene::lock(&LINK).clone() {
                return path;
            }
            tokio::task::yield_now().await;
        }
    };
    let url = format!("http://{}{}/complete", system.address, within(path).await);
    let answer = reqwest::Client::new().post(url).header("content-type", "application/json");
    assert_eq!(answer.body(r#"{"output": true}"#).send().await.unwrap().status(), 200);
    assert!(within(run.result()).await.unwrap());
    assert!(within(listener.result()).await.unwrap());
    worker.abort();
    system.kill();
}

#[tickover::step(remote, queue = "slow")]
async fn forever_busy(begun: u32) -> Result<u32> {
    std::future::pending::<()>().await;
    Ok(begun)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_elsewhere_is_asked_to_stop_by_its_heartbeat() {
    let system = tokio::task::block_in_place(System::new);
    let worker = worker(system.address, Registry::new().with_step::<forever_busy>(), settings());
    let task = system.client().schedule(forever_busy(1)).await.unwrap();
    let begun = async {
        while task.describe().await.unwrap().status != TaskStatus::Running {
            tokio::task::yield_now().await;
        }
    };
    within(begun).await;
    task.cancel().await.unwrap();
    let ended = async {
        while task.describe().await.unwrap().status != TaskStatus::Cancelled {
            tokio::task::yield_now().await;
        }
    };
    within(ended).await;
    worker.abort();
    system.kill();
}
