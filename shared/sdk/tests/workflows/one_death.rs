//! One process dies right after any single write, and everything else is in order: nothing ends later than the end it
//! would have had, plus the lease of the lost work and a few seconds.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod crons;

use futures::future::join_all;
use tickover::client::{Action, Rerun};
use tickover::prelude::*;
use tickover::test::{BEGINNING, TestEnv};
use tickover::{Cause, Either, ParentClosePolicy, step_info};

/// The lease of a worker is 60 s.
const LATER_AT_MOST_MS: u64 = 65_000;

#[tickover::step]
async fn near(n: u32) -> Result<u32> {
    Ok(n)
}

#[tickover::step(retry = "fixed(3, 2m)")]
async fn flaky(n: u32) -> Result<u32> {
    third_time_lucky(n)
}

#[tickover::step(remote)]
async fn far(n: u32) -> Result<u32> {
    Ok(n)
}

#[tickover::step(remote, retry = "fixed(3, 2m)")]
async fn far_and_flaky(n: u32) -> Result<u32> {
    third_time_lucky(n)
}

#[tickover::step(remote, retry = "fixed(3, 14m)")]
async fn far_and_slow(n: u32) -> Result<u32> {
    third_time_lucky(n)
}

fn third_time_lucky(n: u32) -> Result<u32> {
    if step_info().unwrap().attempt < 3 {
        return Err(Failure::new("busy", "try again").into());
    }
    Ok(n)
}

#[tickover::workflow]
async fn sleeps(ctx: Ctx, n: u32) -> Result<u32> {
    ctx.sleep("short", "10m").await?;
    let n = ctx.step(near(n)).await?;
    ctx.sleep("long", "2h").await?;
    Ok(n)
}

#[tickover::workflow]
async fn slow(ctx: Ctx, n: u32) -> Result<u32> {
    ctx.sleep("long", "45m").await?;
    Ok(n)
}

#[tickover::workflow]
async fn retries(ctx: Ctx, n: u32) -> Result<u32> {
    Ok(ctx.step(flaky(n)).await?)
}

#[tickover::workflow]
async fn goes_far(ctx: Ctx, n: u32) -> Result<u32> {
    let n = ctx.step(far(n)).await?;
    Ok(ctx.step(far_and_flaky(n)).await?)
}

#[tickover::workflow]
async fn joins(ctx: Ctx, n: u32) -> Result<u32> {
    let all = ctx.join_all("f", (0..n).map(far)).await?;
    Ok(u32::try_from(all.len()).unwrap())
}

#[tickover::workflow]
async fn in_pages(ctx: Ctx, n: u32) -> Result<u32> {
    let all = ctx.map("page", 0..n, near).paged(2).await?;
    Ok(u32::try_from(all.len()).unwrap())
}

#[tickover::workflow]
async fn parent(ctx: Ctx, n: u32) -> Result<u32> {
    Ok(ctx.child(&kid, n).await?)
}

#[tickover::workflow]
async fn kid(ctx: Ctx, n: u32) -> Result<u32> {
    ctx.sleep("nap", "3m").await?;
    Ok(ctx.step(near(n)).await?)
}

#[tickover::workflow]
async fn waits(ctx: Ctx, n: u32) -> Result<u32> {
    let came = ctx.wait_for_event::<u32>("never", within("5m")).await;
    assert!(came.is_err());
    Ok(n)
}

#[tickover::workflow]
async fn runs_again(ctx: Ctx, n: u32) -> Result<u32> {
    ctx.sleep("while", "1m").await?;
    if n > 0 { ctx.continue_as_new(n - 1).await } else { Ok(n) }
}

#[tickover::workflow(retry = "fixed(2, 2m)")]
async fn fails_twice(ctx: Ctx, n: u32) -> Result<u32> {
    let n = ctx.step(far(n)).await?;
    if ctx.run() < 3 { Err(Failure::new("busy", "try again").into()) } else { Ok(n) }
}

/// It waits for an event beside work that nobody does, so it looks after that from time to time.
#[tickover::workflow]
async fn waits_beside_work(ctx: Ctx, n: u32) -> Result<u32> {
    let parcel = ctx.step(remote::<u32>("send", n).named("parcel"));
    match ctx.race("first", parcel, ctx.wait_for_event::<u32>("enough", forever())).await {
        Either::Left(n) => Ok(n?),
        Either::Right(n) => Ok(n?),
    }
}

#[tickover::workflow(on_cancel = tell)]
async fn takes_back(ctx: Ctx, n: u32) -> Result<u32> {
    ctx.on_undo("far", far_and_flaky(n));
    ctx.on_undo("near", near(n));
    Ok(ctx.step(remote::<u32>("send", n).named("parcel")).await?)
}

async fn tell(ctx: Ctx, n: u32) -> Result<()> {
    ctx.step(far(n)).await?;
    Ok(())
}

#[tickover::workflow]
async fn undoes(ctx: Ctx, n: u32) -> Result<u32> {
    ctx.on_undo("far", far_and_flaky(n));
    ctx.on_undo("near", near(n));
    ctx.step(far(n)).await?;
    Err(Failure::new("no", "it can't be done").into())
}

async fn refund(ctx: Ctx, n: u32, _cause: Cause) -> Result<Option<u32>> {
    ctx.sleep("nap", "2m").await?;
    ctx.step(far(n)).await?;
    Ok(None)
}

#[tickover::workflow(timeout = "5m", on_failure = refund)]
async fn is_too_late(ctx: Ctx, n: u32) -> Result<u32> {
    ctx.sleep("hour", "1h").await?;
    Ok(n)
}

#[tickover::workflow(concurrency(key = "n", limit = 1))]
async fn alone(ctx: Ctx, n: u32) -> Result<u32> {
    ctx.sleep("nap", "2m").await?;
    Ok(ctx.step(far(n)).await?)
}

#[tickover::workflow(rate(key = "n", limit = 1, per = "1m"))]
async fn paced(ctx: Ctx, n: u32) -> Result<u32> {
    Ok(ctx.step(near(n)).await?)
}

/// The first of two ends it: a sleep of an hour, or a remote step after its retries.
#[tickover::workflow]
async fn races(ctx: Ctx, n: u32) -> Result<u32> {
    let far = ctx.step(far_and_flaky(n));
    Ok(ctx.timeout("limit", "1h", far).await??)
}

#[tickover::workflow]
async fn family(ctx: Ctx, n: u32) -> Result<u32> {
    let children = (0..n).map(|nth| ctx.child(&kid, nth).named(format!("kid[{nth}]")));
    for ended in join_all(children).await {
        ended?;
    }
    Ok(n)
}

#[tickover::workflow(
    priority = "high",
    concurrency(key = "n", limit = 1),
    rate(key = "n", limit = 1, per = "1m")
)]
async fn alone_and_paced(ctx: Ctx, n: u32) -> Result<u32> {
    Ok(ctx.step(far_and_flaky(n)).await?)
}

/// A place of the remote step's own.
#[tickover::workflow]
async fn limited_steps(ctx: Ctx, n: u32) -> Result<u32> {
    ctx.join_all("f", (0..n).map(|nth| far(nth).concurrency("smtp", 1))).await?;
    Ok(n)
}

#[tickover::workflow]
async fn remote_pages(ctx: Ctx, n: u32) -> Result<u32> {
    let all = ctx.map("page", 0..n, far).paged(2).await?;
    Ok(u32::try_from(all.len()).unwrap())
}

#[tickover::workflow]
async fn asks(ctx: Ctx, n: u32) -> Result<u32> {
    let came = ctx.wait_for_event::<u32>("answer", within("2h")).await?;
    ctx.sleep("nap", "1m").await?;
    Ok(n + came)
}

#[tickover::step(remote)]
async fn broken(_: u32) -> Result<u32> {
    Err(Failure::new("broken", "it never works").into())
}

#[tickover::workflow]
async fn breaks(ctx: Ctx, n: u32) -> Result<u32> {
    let n = ctx.step(far(n)).await?;
    Ok(ctx.step(broken(n)).await?)
}

/// It leaves a child, and fails.
#[tickover::workflow]
async fn leaves_a_child(ctx: Ctx, n: u32) -> Result<u32> {
    ctx.child(&kid, n).policy(ParentClosePolicy::RequestCancel).start().await?;
    Ok(ctx.step(broken(n)).await?)
}

/// It fails, and its child ends with it.
#[tickover::workflow]
async fn takes_its_child(ctx: Ctx, n: u32) -> Result<u32> {
    let policies = [ParentClosePolicy::RequestCancel, ParentClosePolicy::Terminate];
    ctx.child(&kid, n).id("left").policy(policies[n as usize % 2]).start().await?;
    Ok(ctx.step(broken(n)).await?)
}

fn env() -> TestEnv {
    TestEnv::new()
        .workflow((sleeps, retries, goes_far, joins, in_pages, parent, kid, waits))
        .workflow((runs_again, fails_twice, undoes, is_too_late, alone, paced, takes_back, waits_beside_work))
        .workflow((races, family, alone_and_paced, limited_steps, remote_pages, asks, breaks, leaves_a_child))
        .workflow((takes_its_child, slow))
        .step::<far>()
        .step::<far_and_flaky>()
        .step::<far_and_slow>()
        .step::<broken>()
}

/// Tells a story, once without a death, and once for each of the writes with a death after it.
async fn stays_in_time(story: impl AsyncFn(&TestEnv)) {
    let run = async |write: u64| {
        let env = env();
        env.kill_after_write(write);
        story(&env).await;
        (env.now().since(BEGINNING).as_u64(), env.writes())
    };
    let (undisturbed, writes) = run(0).await;
    assert!(writes > 3, "{writes}");
    for write in 1..=writes {
        let late = run(write).await.0.saturating_sub(undisturbed);
        assert!(late <= LATER_AT_MOST_MS, "{late} ms later by a death after write {write} of {writes}");
    }
}

/// The story of `count` executions of a workflow.
async fn keeps_the_law(workflow: &impl AsWorkflow<Input = u32, Output = u32>, count: usize) {
    let story = async |env: &TestEnv| {
        let started = join_all((0..count).map(|_| env.start(workflow, 3))).await;
        for run in started {
            drop(run.unwrap().result().await);
        }
    };
    stays_in_time(story).await;
}

#[tokio::test]
async fn a_sleep_ends_in_time_after_a_death() {
    keeps_the_law(&sleeps, 1).await;
}

#[tokio::test]
async fn a_step_in_place_is_retried_in_time_after_a_death() {
    keeps_the_law(&retries, 1).await;
}

#[tokio::test]
async fn a_remote_step_is_retried_and_noticed_in_time_after_a_death() {
    keeps_the_law(&goes_far, 1).await;
}

#[tokio::test]
async fn a_fan_out_is_noticed_in_time_after_a_death() {
    keeps_the_law(&joins, 1).await;
}

#[tokio::test]
async fn a_map_in_pages_is_noticed_in_time_after_a_death() {
    keeps_the_law(&in_pages, 1).await;
}

#[tokio::test]
async fn a_child_is_noticed_in_time_after_a_death() {
    keeps_the_law(&parent, 1).await;
}

#[tokio::test]
async fn a_wait_ends_in_time_after_a_death() {
    keeps_the_law(&waits, 1).await;
}

#[tokio::test]
async fn runs_follow_each_other_in_time_after_a_death() {
    keeps_the_law(&runs_again, 1).await;
}

#[tokio::test]
async fn a_failed_run_is_run_again_in_time_after_a_death() {
    keeps_the_law(&fails_twice, 1).await;
}

#[tokio::test]
async fn undo_ends_in_time_after_a_death() {
    keeps_the_law(&undoes, 1).await;
}

#[tokio::test]
async fn the_failure_handler_ends_in_time_after_a_death() {
    keeps_the_law(&is_too_late, 1).await;
}

#[tokio::test]
async fn places_are_passed_on_in_time_after_a_death() {
    keeps_the_law(&alone, 3).await;
}

#[tokio::test]
async fn starts_by_a_rate_come_in_time_after_a_death() {
    keeps_the_law(&paced, 3).await;
}

#[tokio::test]
async fn a_race_ends_in_time_after_a_death() {
    keeps_the_law(&races, 1).await;
}

#[tokio::test]
async fn several_children_are_noticed_in_time_after_a_death() {
    keeps_the_law(&family, 1).await;
}

#[tokio::test]
async fn places_and_starts_together_come_in_time_after_a_death() {
    keeps_the_law(&alone_and_paced, 3).await;
}

#[tokio::test]
async fn places_of_remote_steps_are_passed_on_in_time_after_a_death() {
    keeps_the_law(&limited_steps, 1).await;
}

#[tokio::test]
async fn remote_items_of_a_map_in_pages_are_noticed_in_time_after_a_death() {
    keeps_the_law(&remote_pages, 1).await;
}

#[tokio::test]
async fn an_event_is_taken_in_time_after_a_death() {
    let story = async |env: &TestEnv| {
        let run = env.start(&asks, 1).await.unwrap();
        env.advance("10m").await.unwrap();
        run.send_event("answer", 2).await.unwrap();
        assert_eq!(run.result().await.unwrap(), 3);
    };
    stays_in_time(story).await;
}

#[tokio::test]
async fn a_task_is_retried_in_time_after_a_death() {
    let story = async |env: &TestEnv| {
        let task = env.client().schedule(far_and_flaky(1)).await.unwrap();
        env.run_until_idle().await.unwrap();
        env.advance("4m").await.unwrap();
        while task.describe().await.unwrap().ended_at.is_none() {
            env.advance("1s").await.unwrap();
        }
    };
    stays_in_time(story).await;
}

/// Advances until it is true, second by second.
async fn until(env: &TestEnv, is_true: impl AsyncFn() -> bool) {
    while !is_true().await {
        env.advance("1s").await.unwrap();
    }
}

#[tokio::test]
async fn a_cancelled_execution_and_its_steps_end_in_time_after_a_death() {
    let story = async |env: &TestEnv| {
        let run = env.start(&goes_far, 3).await.unwrap();
        env.advance("70s").await.unwrap();
        run.cancel().await.unwrap();
        drop(run.result().await);
    };
    stays_in_time(story).await;
}

#[tokio::test]
async fn a_cancelled_execution_has_undone_its_steps_in_time_after_a_death() {
    for after in ["70s", "10m"] {
        let story = async |env: &TestEnv| {
            let run = env.start(&takes_back, 3).await.unwrap();
            env.advance(after).await.unwrap();
            run.cancel().await.unwrap();
            drop(run.result().await);
        };
        stays_in_time(story).await;
    }
}

#[tokio::test]
async fn an_event_is_taken_in_time_after_a_death_during_a_look_at_other_work() {
    let story = async |env: &TestEnv| {
        let run = env.start(&waits_beside_work, 3).await.unwrap();
        env.advance("10m").await.unwrap();
        run.send_event("enough", 1).await.unwrap();
        run.result().await.unwrap();
    };
    stays_in_time(story).await;
}

#[tokio::test]
async fn a_rerun_ends_in_time_after_a_death() {
    let story = async |env: &TestEnv| {
        let run = env.start(&breaks, 1).await.unwrap();
        drop(run.result().await);
        run.rerun(Rerun::Failed).await.unwrap();
        drop(run.result().await);
    };
    stays_in_time(story).await;
}

#[tokio::test]
async fn an_operation_on_many_ends_in_time_after_a_death() {
    for workflow in [breaks(), leaves_a_child()] {
        let story = async |env: &TestEnv| {
            let run = env.start(&workflow, 1).await.unwrap();
            drop(run.result().await);
            let retry = env.client().on_executions(Action::Retry).only(run.id().as_str()).await.unwrap();
            let ended = env.run(retry.ended()).await.unwrap().unwrap();
            // What was changed before the death counts as unchanged after it.
            assert_eq!((ended.matched, ended.changed + ended.unchanged), (1, 1), "{ended:?}");
            drop(run.result().await);
        };
        stays_in_time(story).await;
    }
}

#[tokio::test]
async fn the_child_of_a_failed_execution_ends_in_time_after_a_death() {
    for n in 0..2 {
        let story = async |env: &TestEnv| {
            drop(env.start(&takes_its_child, n).await.unwrap().result().await);
            let child = env.client().handle::<u32>("left").unwrap();
            until(env, async || child.describe().await.unwrap().ended_at.is_some()).await;
        };
        stays_in_time(story).await;
    }
}
