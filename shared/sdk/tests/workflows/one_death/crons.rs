//! The runs of crons.

use tickover::client::{CronHandle, Overlap};
use tickover::test::TestEnv;

use super::{far_and_flaky, far_and_slow, kid, slow, stays_in_time, until};

/// The statuses of its runs that have ended, oldest first.
async fn ended(cron: &CronHandle) -> Vec<String> {
    let runs = cron.describe().await.unwrap().runs;
    let statuses = runs.into_iter().filter_map(|run| run.status);
    statuses.filter(|status| ["completed", "cancelled"].contains(&status.as_str())).collect()
}

#[tokio::test]
async fn the_runs_of_a_cron_end_in_time_after_a_death() {
    let story = async |env: &TestEnv| {
        let nightly = env.client().cron("nightly").unwrap();
        let work = env.client().schedule(far_and_flaky(1));
        nightly.create(work).every("10m").max_runs(2).run_ids("run-{occurrence}").await.unwrap();
        env.advance("24m").await.unwrap();
        until(env, async || ended(&nightly).await == ["completed"; 2]).await;
    };
    stays_in_time(story).await;
}

#[tokio::test]
async fn a_run_that_waits_for_the_one_before_starts_in_time_after_a_death() {
    for overlap in [Overlap::BufferOne, Overlap::CancelOther] {
        let story = async |env: &TestEnv| {
            let nightly = env.client().cron("nightly").unwrap();
            let work = env.client().start(&kid, 1);
            let made = nightly.create(work).every("2m").overlap(overlap).max_runs(2);
            made.run_ids("run-{occurrence}").await.unwrap();
            env.advance("6m").await.unwrap();
            until(env, async || ended(&nightly).await.len() == 2).await;
        };
        stays_in_time(story).await;
    }
}

/// After a wait of 25 minutes, its cron itself would look for the end only every five minutes.
#[tokio::test]
async fn a_run_that_has_waited_for_long_starts_in_time_after_a_death() {
    let story = async |env: &TestEnv| {
        let nightly = env.client().cron("nightly").unwrap();
        let made = nightly.create(env.client().start(&slow, 1)).every("20m");
        made.overlap(Overlap::BufferOne).max_runs(2).run_ids("run-{occurrence}").await.unwrap();
        env.advance("1h 49m").await.unwrap();
        until(env, async || ended(&nightly).await == ["completed"; 2]).await;
    };
    stays_in_time(story).await;
}

/// After a wait of 12 minutes, it would look for the end two and a half minutes later.
#[tokio::test]
async fn a_task_that_has_waited_for_long_starts_in_time_after_a_death() {
    let story = async |env: &TestEnv| {
        let nightly = env.client().cron("nightly").unwrap();
        let made = nightly.create(env.client().schedule(far_and_slow(1))).every("16m");
        made.overlap(Overlap::BufferOne).max_runs(2).run_ids("run-{occurrence}").await.unwrap();
        env.advance("71m").await.unwrap();
        until(env, async || ended(&nightly).await == ["completed"; 2]).await;
    };
    stays_in_time(story).await;
}
