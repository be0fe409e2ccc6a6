//! Requests with an answer, whose workers are elsewhere.

use tickover::prelude::*;
use tickover::{Registry, WorkerSettings};

use crate::scene::{System, settings, within, worker};

#[tickover::workflow("basket", queue = "near")]
async fn basket(ctx: Ctx, size: usize) -> Result<Vec<String>> {
    let (mut items, adds) = (vec![], ctx.requests::<String, usize>("add-item"));
    while items.len() < size {
        let add = adds.next(forever()).await?;
        items.push(add.body().clone());
        add.answer(items.len()).await?;
    }
    Ok(items)
}

/// A run is kept in memory or read again for each turn: its answers are the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_answered_once_by_a_worker_over_http() {
    for kept_runs in [WorkerSettings::default().kept_runs, 0] {
        let system = tokio::task::block_in_place(System::new);
        let worker =
            worker(system.address, Registry::new().with(basket), WorkerSettings { kept_runs, ..settings() });
        let run = system.client().start(&basket, 3).id("b-1").await.unwrap();
        let add = async |id: &str, item: &str| {
            within(async { run.request::<usize>("add-item", item).id(id).await }).await
        };
        assert_eq!(add("first", "a lamp").await.unwrap(), 1);
        assert_eq!(add("second", "a chair").await.unwrap(), 2);
        assert_eq!(add("first", "a lamp").await.unwrap(), 1, "its answer stays");
        assert_eq!(add("third", "a table").await.unwrap(), 3);
        assert_eq!(within(run.result()).await.unwrap(), ["a lamp", "a chair", "a table"]);
        assert_eq!(add("second", "a chair").await.unwrap(), 2, "also after the end");
        assert!(add("fourth", "a bed").await.is_err(), "nobody takes it any more");
        worker.abort();
        system.kill();
    }
}
