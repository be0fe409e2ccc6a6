//! Answers that are lost, and workers that die after each call.

use std::sync::atomic::Ordering;

use tickover::Registry;
use tickover::prelude::*;

use crate::flows::{Ran, all};
use crate::life::{RESULT, live};
use crate::scene::{System, settings, within, worker};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_to_each_call_changes_nothing() {
    let (system, ran) = (tokio::task::block_in_place(System::new), Ran::default());
    system.line.loses.store(true, Ordering::SeqCst);
    let worker = worker(system.address, all(&ran), settings());
    assert_eq!(live(&system.client(), "e-1").await, RESULT);
    let ran = ran.times();
    assert!(ran.iter().all(|(name, times)| *times == 1 || name == "large-x" && *times == 2), "{ran:?}");
    let calls = system.line.calls();
    assert!(calls.len() > 20, "each call but the claims came twice: {calls:?}");
    worker.abort();
    system.kill();
}

#[tickover::step]
async fn counted(#[state] ran: &Ran, name: String) -> Result<usize> {
    ran.add(&name);
    Ok(name.len())
}

#[tickover::step(remote)]
async fn counted_far(#[state] ran: &Ran, name: String) -> Result<usize> {
    ran.add(&name);
    Ok(name.len())
}

#[tickover::workflow("mortal", queue = "workflows")]
async fn mortal(ctx: Ctx, (): ()) -> Result<usize> {
    let one = ctx.step(counted("one".to_owned()).named("one")).await?;
    let two = ctx.step(counted_far("far".to_owned())).await?;
    ctx.sleep("nap", "5ms").await?;
    let large = ctx.capture("large", || "z".repeat(400)).await?;
    let three = ctx.step(counted("three".to_owned()).named("three")).await?;
    Ok(one + two + three + large.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_may_die_after_any_of_its_calls() {
    let mut died = 0;
    for answers in 1.. {
        let (system, ran) = (tokio::task::block_in_place(System::new), Ran::default());
        let registry = || Registry::new().with(mortal).with_step::<counted_far>().with_state(ran.clone());
        system.line.answers.store(answers, Ordering::SeqCst);
        let first = worker(system.address, registry(), settings());
        let run = system.client().start(&mortal, ()).id("m-1").await.unwrap();
        let result = tokio::select! {
            result = within(run.result()) => Some(result.unwrap()),
            () = system.line.is_cut.notified() => None,
        };
        first.abort();
        let survived = result.is_some();
        let result = if let Some(result) = result {
            result
        } else {
            died += 1;
            system.line.answers.store(0, Ordering::SeqCst);
            let second = worker(system.address, registry(), settings());
            let result = within(run.result()).await.unwrap();
            second.abort();
            result
        };
        assert_eq!(result, 3 + 3 + 5 + 400, "after {answers} calls");
        let ran = ran.times();
        let again: u32 = ran.values().map(|times| times - 1).sum();
        assert!(ran.len() == 3 && again <= 1, "after {answers} calls: {ran:?}");
        system.kill();
        if survived {
            break;
        }
    }
    assert!(died >= 7, "only {died} calls were the last");
}
