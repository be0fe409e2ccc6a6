//! How executions end: on request, by a deadline, or by a failure that `on_failure` handles.

use tickover::prelude::*;
use tickover::{Failure, Registry, forever};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Happened, StepOutcome};
use tickover_core::execution::{DeadlineKind, ExecutionOutcome};

use crate::scene::{Count, Scene, clock, execution_id};

#[tickover::step]
async fn charge(amount: u32) -> Result<u32, Failure> {
    if amount > 100 { Err(Failure::new("declined", "too much")) } else { Ok(amount) }
}

static REFUNDS: Count = Count::new();

#[tickover::step]
async fn give_back() -> Result<(), Failure> {
    REFUNDS.add();
    Ok(())
}

async fn refund(ctx: Ctx, amount: u32, cause: Cause) -> Result<Option<String>> {
    ctx.step(give_back()).await?;
    // The body of the workflow uses the same name.
    ctx.sleep("settle", "1m").await?;
    Ok((amount < 1_000).then(|| cause.to_string()))
}

#[tickover::workflow("order", run_timeout = "10m", on_failure = refund)]
async fn order(ctx: Ctx, amount: u32) -> Result<String> {
    ctx.sleep("settle", "1m").await?;
    if amount == 1 {
        ctx.wait_for_event::<()>("never", forever()).await?;
    }
    if amount == 2 {
        return Err(Error::new("odd", "two"));
    }
    ctx.step(charge(amount).retry("fixed(1, 1s)")).await?;
    Ok("paid".to_owned())
}

#[tokio::test]
async fn on_failure_code_gets_the_cause_and_may_recover() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(order));
    scene.start(&order, "declined", &500).await;
    scene.start(&order, "late", &1).await;
    scene.start(&order, "odd", &2).await;
    scene.start(&order, "lost", &5_000).await;
    let declined = scene.finish(&worker, "declined").await;
    assert_eq!(declined.output::<String>(), "step `charge`: declined: too much");
    let late = scene.finish(&worker, "late").await;
    assert_eq!(late.output::<String>(), "the run's deadline passed");
    assert!((660_000..662_000).contains(&late.took()), "{}", late.took());
    assert_eq!(scene.finish(&worker, "odd").await.output::<String>(), "odd: two");
    let lost = scene.finish(&worker, "lost").await;
    assert_eq!(lost.code(), "declined");
    let ExecutionOutcome::Failed { step, retries_exhausted, .. } = lost.outcome() else { unreachable!() };
    assert_eq!((step.as_deref(), *retries_exhausted), (Some("charge"), true));
    assert_eq!(REFUNDS.get(), 4);
}

#[tickover::step]
async fn slow(seconds: u64) -> Result<u64, Failure> {
    clock().after(Millis::from_secs(seconds)).await;
    Ok(seconds)
}

#[tickover::workflow("deadline", timeout = "1h", run_timeout = "1h")]
async fn deadline(ctx: Ctx, seconds: u64) -> Result<()> {
    ctx.step(slow(seconds)).await?;
    ctx.wait_for_event::<()>("never", forever()).await?;
    Ok(())
}

#[tokio::test]
async fn the_executions_deadline_ends_running_and_waiting_executions() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(deadline));
    scene.start(&deadline, "runs", &5_000).await;
    scene.start(&deadline, "waits", &5).await;
    for id in ["runs", "waits"] {
        let ended = scene.inside(scene.finish(&worker, id)).await;
        assert_eq!(ended.outcome(), &ExecutionOutcome::TimedOut { kind: DeadlineKind::Execution });
        assert!((3_600_000..3_601_000).contains(&ended.took()), "{id}: {}", ended.took());
    }
}

static STARTED: Count = Count::new();

#[tickover::step]
async fn noted(seconds: u64) -> Result<u64, Failure> {
    STARTED.add();
    clock().after(Millis::from_secs(seconds)).await;
    Ok(seconds)
}

#[tickover::workflow("steps")]
async fn steps(ctx: Ctx, (): ()) -> Result<u64> {
    let mut sum = 0;
    for index in 0..10 {
        sum += ctx.step(noted(60).named(format!("noted[{index}]"))).await?;
    }
    Ok(sum)
}

#[tokio::test]
async fn a_cancelled_execution_finishes_running_steps_and_starts_no_new_ones() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(steps));
    scene.start(&steps, "cancelled", &()).await;
    let id = execution_id("cancelled");
    let ended = scene
        .inside(async {
            scene.pass(&worker, Millis::from_secs(1)).await;
            scene.service.cancel_execution(&id).await.unwrap();
            scene.finish(&worker, "cancelled").await
        })
        .await;
    assert_eq!(ended.outcome(), &ExecutionOutcome::Cancelled { terminated: false });
    // The worker of the first second is gone, and so is the attempt that it ran. The step is not started again.
    assert_eq!(STARTED.get(), 1);
}

static STEPS: Count = Count::new();

#[tickover::step]
async fn counted(seconds: u64) -> Result<u64, Failure> {
    STEPS.add();
    clock().after(Millis::from_secs(seconds)).await;
    Ok(seconds)
}

#[tickover::workflow("pausable")]
async fn pausable(ctx: Ctx, (): ()) -> Result<u64> {
    let mut sum = 0;
    for index in 0..4 {
        sum += ctx.step(counted(60).named(format!("counted[{index}]"))).await?;
    }
    Ok(sum)
}

#[tokio::test]
async fn a_paused_execution_stops_at_the_next_step_and_continues_when_resumed() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(pausable));
    scene.start(&pausable, "pausable", &()).await;
    let id = execution_id("pausable");
    let pause = async {
        scene.after(Millis::from_secs(90)).await;
        scene.service.pause(&id).await.unwrap();
        scene.after(Millis::from_secs(1_000)).await;
        // By then the worker has sent a heartbeat for the second step's turn, and its answer said that the execution is
        // paused.
        assert_eq!((STEPS.get(), scene.status("pausable").await.as_str()), (2, "paused"));
        scene.service.resume(&id).await.unwrap();
    };
    let whole = Box::pin(async {
        scene.until(&worker, pause).await;
        scene.finish(&worker, "pausable").await
    });
    let ended = scene.inside(whole).await;
    assert_eq!(ended.output::<u64>(), 240);
    assert_eq!(STEPS.get(), 4);
}

#[tokio::test]
async fn a_terminated_execution_loses_its_worker() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(deadline));
    scene.start(&deadline, "terminated", &1_000).await;
    let id = execution_id("terminated");
    let terminate = async {
        scene.after(Millis::from_secs(90)).await;
        scene.service.terminate(&id).await.unwrap();
        scene.after(Millis::from_secs(2_000)).await;
    };
    scene.inside(scene.until(&worker, terminate)).await;
    let ended = scene.inside(scene.finish(&worker, "terminated")).await;
    assert_eq!(ended.outcome(), &ExecutionOutcome::Cancelled { terminated: true });
}

static DOOMED: Count = Count::new();

/// Each attempt fails after 40 minutes.
#[tickover::step(timeout = "2h", retry = "fixed(9, 1s)")]
async fn doomed() -> Result<(), Failure> {
    DOOMED.add();
    clock().after(Millis::from_secs(2_400)).await;
    Err(Failure::new("doomed", "after 40 minutes"))
}

/// Arguments: whether all attempts of its step share the step's timeout, and whether the step runs elsewhere.
#[tickover::workflow("short-lived", timeout = "1h")]
async fn short_lived(ctx: Ctx, (is_shared, is_remote): (bool, bool)) -> Result<()> {
    let step = doomed().scope(if is_shared { Scope::Global } else { Scope::PerAttempt });
    ctx.step(if is_remote { step.on_queue("elsewhere") } else { step }).await?;
    Ok(())
}

#[tokio::test]
async fn a_steps_timeout_of_either_scope_ends_at_the_executions_deadline() {
    // All cases are in one test because they share the counter `DOOMED`.
    for case in [(true, false), (false, false), (true, true), (false, true)] {
        let scene = Scene::new();
        let worker = scene.worker_of(Registry::new().with(short_lived), "workflows");
        let elsewhere = scene.worker_of(Registry::new().with_step::<doomed>(), "elsewhere");
        let before = DOOMED.get();
        scene.start(&short_lived, "short-lived", &case).await;
        let ended = scene.inside(scene.with(&elsewhere, scene.finish(&worker, "short-lived"))).await;
        assert_eq!(
            ended.outcome(),
            &ExecutionOutcome::TimedOut { kind: DeadlineKind::Execution },
            "{case:?}"
        );
        assert!((3_600_000..3_601_000).contains(&ended.took()), "{case:?}: {}", ended.took());
        // The second attempt was running. No other one begins.
        let later = scene.pass(&worker, Millis::from_secs(10_000));
        scene.inside(scene.with(&elsewhere, later)).await;
        assert_eq!(DOOMED.get() - before, 2, "{case:?}");
        if case.1 {
            let status = scene.remote_status(&ended.described.execution, "doomed").await;
            assert!(["timed_out", "cancelled"].contains(&status), "{case:?}: {status}");
        }
    }
}

#[tickover::workflow("oversleeps", timeout = "1h")]
async fn oversleeps(ctx: Ctx, (): ()) -> Result<()> {
    ctx.sleep("long", "2h").await
}

#[tokio::test]
async fn a_sleep_does_not_outlast_the_executions_deadline() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(oversleeps));
    scene.start(&oversleeps, "oversleeps", &()).await;
    let ended = scene.finish(&worker, "oversleeps").await;
    assert_eq!(ended.outcome(), &ExecutionOutcome::TimedOut { kind: DeadlineKind::Execution });
    assert!((3_600_000..3_601_000).contains(&ended.took()), "{}", ended.took());
    // The end of the sleep changes nothing.
    let version = crate::fencing::version(&scene, "oversleeps").await;
    scene.pass(&worker, Millis::from_secs(7_200)).await;
    assert_eq!(crate::fencing::version(&scene, "oversleeps").await, version);
}

static KEPT: Count = Count::new();

#[tickover::step]
async fn kept(seconds: u64) -> Result<u64, Failure> {
    KEPT.add();
    clock().after(Millis::from_secs(seconds)).await;
    Ok(seconds)
}

#[tickover::workflow("three-steps")]
async fn three_steps(ctx: Ctx, (): ()) -> Result<()> {
    for index in 0..3 {
        ctx.step(kept(60 + index).named(format!("kept[{index}]"))).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_cancellation_lets_the_running_step_end_and_keeps_its_result() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(three_steps));
    scene.start(&three_steps, "three-steps", &()).await;
    let id = execution_id("three-steps");
    let cancel = async {
        scene.after(Millis::from_secs(90)).await;
        scene.service.cancel_execution(&id).await.unwrap();
        assert_eq!(scene.status("three-steps").await.as_str(), "running");
        scene.after(Millis::from_secs(1_000)).await;
    };
    scene.inside(scene.until(&worker, cancel)).await;
    let ended = scene.finish(&worker, "three-steps").await;
    assert_eq!(ended.outcome(), &ExecutionOutcome::Cancelled { terminated: false });
    // The second step has taken its whole 61 s, and the third one has not begun.
    assert_eq!((ended.took(), KEPT.get()), (121_000, 2));
    let results = ended.journal.iter().filter_map(|entry| match &entry.what {
        Happened::Step { name, outcome: StepOutcome::Completed { output: Some(output) }, .. } => {
            Some(format!("{name} {output:?}"))
        }
        _ => None,
    });
    let results: Vec<String> = results.collect();
    assert_eq!(results.len(), 2, "{results:?}");
    for (result, expected) in results.iter().zip([("kept[0]", "60"), ("kept[1]", "61")]) {
        assert!(result.contains(expected.0) && result.contains(expected.1), "{result}");
    }
}
