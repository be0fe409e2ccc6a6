//! Whole lives: a workflow comes to its end over HTTP, beside several programs, and beyond restarts.

use tickover::client::ExecutionError;
use tickover::prelude::*;
use tickover::{Client, Registry};

use crate::flows::{Ran, all, everything, far, refuses, small, undone};
use crate::scene::{System, settings, within, worker};

/// The result of [`everything`].
pub(crate) const RESULT: &str = "first-1 1000 FAR-1-0,FAR-1-1 42 two 500";

/// Starts [`everything`], gives it its events, and waits for its result.
pub(crate) async fn live(client: &Client, id: &str) -> String {
    let run = client.start(&everything, 0).id(id).await.unwrap();
    for (nth, word) in ["one", "two"].into_iter().enumerate() {
        run.send_event("word", word).id(format!("e-{nth}")).await.unwrap();
    }
    within(run.result()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_of_all_kinds_comes_to_its_end_over_http() {
    let (system, ran) = (tokio::task::block_in_place(System::new), Ran::default());
    let worker = worker(system.address, all(&ran), settings());
    assert_eq!(live(&system.client(), "e-1").await, RESULT);
    let times = ran.times();
    assert_eq!(times.len(), 7, "{times:?}");
    assert_eq!(times["large-x"], 2, "once a run: {times:?}");
    assert!(times.iter().all(|(name, times)| *times == 1 || name == "large-x"), "{times:?}");

    let failed = within(system.client().start(&undone, ()).await.unwrap().result()).await;
    let ran = ran.times();
    assert!(matches!(failed, Err(ExecutionError::Failed(_))), "{failed:?}");
    assert_eq!((ran["booked"], ran["refused"], ran["cancelled"]), (1, 2, 1));
    worker.abort();
    system.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_programs_beside_one_system_share_its_work() {
    let system = tokio::task::block_in_place(System::new);
    let (one, other) = (Ran::default(), Ran::default());
    let flows = Registry::new().with((everything, small, undone)).with_state(one.clone());
    let steps = Registry::new().with_step::<far>().with_step::<refuses>().with_state(other.clone());
    let workers = [worker(system.address, flows, settings()), worker(system.address, steps, settings())];
    assert_eq!(live(&system.client(), "e-1").await, RESULT);
    let (one, other) = (one.times(), other.times());
    assert!(other.len() == 4 && other.keys().all(|name| name.starts_with("far-")), "{other:?}");
    assert!(one.len() == 3 && one.keys().all(|name| !name.starts_with("far-")), "{one:?}");
    workers.iter().for_each(tokio::task::JoinHandle::abort);
    system.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_outlives_restarts_of_its_system() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let first = tokio::task::block_in_place(|| System::in_file(data.clone(), "127.0.0.1:0".to_owned()));
    let (address, ran) = (first.address, Ran::default());
    let worker = worker(address, all(&ran), settings());
    let run = first.client().start(&everything, 0).id("e-1").await.unwrap();
    let waits = async {
        while ran.times().len() < 4 {
            tokio::task::yield_now().await;
        }
    };
    within(waits).await;
    drop(run);
    first.kill();
    let second = tokio::task::block_in_place(|| System::in_file(data, address.to_string()));
    assert_eq!(live(&second.client(), "e-1").await, RESULT);
    worker.abort();
    second.kill();
}

static WAITS: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(0);
static BEGUN: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(0);

#[tickover::step]
async fn slow() -> Result<u32> {
    BEGUN.add_permits(1);
    WAITS.acquire().await.unwrap().forget();
    Ok(7)
}

#[tickover::workflow("patient", queue = "patient")]
async fn patient(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(slow()).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_goes_on_while_its_system_is_restarted() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let first = tokio::task::block_in_place(|| System::in_file(data.clone(), "127.0.0.1:0".to_owned()));
    let address = first.address;
    // The lease is far longer than the test: nobody else gets the turn.
    let long = tickover::WorkerSettings { lease: tickover::Millis::from_secs(3_600), ..settings() };
    let worker = worker(address, Registry::new().with(patient), long);
    first.client().start(&patient, ()).id("p-1").await.unwrap();
    within(BEGUN.acquire()).await.unwrap().forget();
    first.kill();
    let second = tokio::task::block_in_place(|| System::in_file(data, address.to_string()));
    WAITS.add_permits(1);
    let run = second.client().handle::<u32>("p-1").unwrap();
    assert_eq!(within(run.result()).await.unwrap(), 7);
    assert_eq!(BEGUN.available_permits(), 0, "the step ran once");
    worker.abort();
    second.kill();
}
