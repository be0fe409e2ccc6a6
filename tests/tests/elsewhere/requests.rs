//! How many requests a turn costs.

use tickover::prelude::*;
use tickover::{Registry, WorkerSettings};

use crate::flows::Ran;
use crate::scene::{System, settings, within, worker};

#[tickover::step]
async fn page(#[state] ran: &Ran, n: u32) -> Result<String> {
    ran.add(&format!("page-{n}"));
    Ok("p".repeat(300))
}

#[tickover::step(remote)]
async fn print(#[state] ran: &Ran, n: u32) -> Result<String> {
    ran.add(&format!("print-{n}"));
    Ok("q".repeat(300))
}

/// A turn with steps and large results, one that starts steps elsewhere, and one that replays all of it.
#[tickover::workflow("book", queue = "workflows")]
async fn book(ctx: Ctx, pages: u32) -> Result<usize> {
    let mut bytes = 0;
    for n in 0..pages {
        bytes += ctx.step(page(n).named(format!("page[{n}]"))).await?.len();
    }
    ctx.sleep("dry", "10ms").await?;
    let printed = ctx.join_all("print", (0..pages).map(print)).await?;
    Ok(bytes + printed.iter().map(String::len).sum::<usize>())
}

/// The calls by turn: each begins with a claim that brought work.
fn turns(calls: &[String]) -> Vec<Vec<&str>> {
    let mut turns: Vec<Vec<&str>> = vec![];
    for call in calls {
        let call = call.rsplit('/').next().unwrap();
        if call == "claim" {
            turns.push(vec![]);
        }
        turns.last_mut().unwrap().push(call);
    }
    turns
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_makes_no_more_requests_than_it_has_writes_and_one() {
    let (system, ran) = (tokio::task::block_in_place(System::new), Ran::default());
    // One piece of work at a time, so that the calls of one turn follow each other. Each turn replays.
    let alone = WorkerSettings { concurrency: 1, kept_runs: 0, ..settings() };
    let registry = Registry::new().with(book).with_step::<print>().with_state(ran.clone());
    let worker = worker(system.address, registry, alone);
    let run = system.client().start(&book, 4).id("b-1").await.unwrap();
    assert_eq!(within(run.result()).await.unwrap(), 8 * 300);
    worker.abort();
    let calls = system.line.calls();
    let of_turns: Vec<_> = turns(&calls).into_iter().filter(|turn| !turn.contains(&"complete")).collect();
    assert!(of_turns.len() >= 3, "{of_turns:?}");
    for turn in &of_turns {
        // Each of these is a write: that of the lease, of the record, of large payloads, and of tasks.
        let writes = |call: &&&str| ["claim", "turn", "payload", "start", "cancel"].contains(*call);
        let reads = turn.iter().filter(|call| !writes(call)).count();
        assert!(reads <= 1, "{turn:?}");
    }
    // The journal and its large results came with the claim.
    assert!(of_turns.last().unwrap().len() <= 4, "{of_turns:?}");
    system.kill();
}

#[tickover::workflow("naps", queue = "workflows")]
async fn naps(ctx: Ctx, naps: u32) -> Result<u32> {
    for n in 0..naps {
        ctx.sleep(format!("nap[{n}]"), "1ms").await?;
    }
    Ok(naps)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_stays_in_memory_needs_no_journal() {
    let system = tokio::task::block_in_place(System::new);
    let worker = worker(system.address, Registry::new().with(naps), settings());
    let run = system.client().start(&naps, 60).id("n-1").await.unwrap();
    assert_eq!(within(run.result()).await.unwrap(), 60);
    worker.abort();
    let calls = system.line.calls();
    let reads = calls.iter().filter(|call| call.ends_with("?journal")).count();
    assert_eq!(reads, 0, "{calls:?}");
    system.kill();
}
