//! What a workflow's attribute asks of flow control also counts for executions that are started by name.

use std::sync::{Arc, Mutex, PoisonError};

use tickover::client::Overlap;
use tickover::prelude::*;
use tickover::test::{TestEnv, with_each_death};

/// What the executions have noted, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[tickover::step]
async fn note(#[state] log: &Log, line: String) -> Result<()> {
    log.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    Ok(())
}

#[tickover::workflow(concurrency(key = "who", limit = 1))]
async fn single(ctx: Ctx, who: String) -> Result<String> {
    ctx.step(note(format!("{who} begins")).named("begins")).await?;
    ctx.sleep("work", "10m").await?;
    ctx.step(note(format!("{who} ends")).named("ends")).await?;
    Ok(who)
}

#[tickover::workflow(rate(key = "who", limit = 1, per = "1h"))]
async fn paced(ctx: Ctx, who: String) -> Result<String> {
    let begun = ctx.now("begun").await?.as_millis().to_string();
    ctx.step(note(begun)).await?;
    Ok(who)
}

fn env() -> (TestEnv, Log) {
    let log = Log::default();
    (TestEnv::new().workflow((single, paced)).state(log.clone()), log)
}

#[tokio::test]
async fn a_limit_of_the_attribute_counts_for_a_start_by_name() {
    let (env, log) = env();
    let start = |id: &str, who: &str| {
        env.submit(env.client().start_by_name::<String>("single", "workflows", who).id(id))
    };
    let ada = start("a", "ada").await.unwrap();
    let again = start("b", "ada").await.unwrap();
    let bob = start("c", "bob").await.unwrap();
    assert_eq!(bob.result().await.unwrap(), "bob");
    assert_eq!((ada.result().await.unwrap(), again.result().await.unwrap()), ("ada".into(), "ada".into()));
    let of_ada: Vec<String> = log.lines().into_iter().filter(|line| line.starts_with("ada")).collect();
    assert_eq!(of_ada, ["ada begins", "ada ends", "ada begins", "ada ends"]);
}

#[tokio::test]
async fn a_typed_start_and_one_by_name_share_the_limit() {
    let (env, log) = env();
    let typed = env.submit(env.client().start(&single, "ada".to_owned())).await.unwrap();
    let named = env.submit(env.client().start_by_name::<String>("single", "workflows", "ada")).await.unwrap();
    named.result().await.unwrap();
    typed.result().await.unwrap();
    assert_eq!(log.lines(), ["ada begins", "ada ends", "ada begins", "ada ends"]);
}

#[tokio::test]
async fn a_rate_of_the_attribute_counts_for_a_start_by_name() {
    let (env, log) = env();
    let mut runs = vec![];
    for id in ["a", "b", "c"] {
        runs.push(
            env.submit(env.client().start_by_name::<String>("paced", "workflows", "ada").id(id))
                .await
                .unwrap(),
        );
    }
    for run in runs {
        run.result().await.unwrap();
    }
    let begun = log.lines();
    let at = |index: usize| begun[index].parse::<i64>().unwrap();
    assert!(at(2) - at(0) >= 7_190_000, "{begun:?}");
}

#[tokio::test]
async fn a_start_by_name_with_a_limit_survives_each_death() {
    let story = async |env: &TestEnv| {
        let run = env.submit(env.client().start_by_name::<String>("single", "workflows", "ada").id("a"));
        run.await.unwrap().result().await.unwrap()
    };
    assert_eq!(with_each_death(|| env().0, story).await, "ada");
}

/// Two crons, each of which starts its next run when the one before has ended.
#[tokio::test]
async fn a_limit_of_the_attribute_counts_for_the_runs_of_crons_that_wait_for_each_other() {
    let (env, log) = env();
    for name in ["first", "second"] {
        let start = env.client().start_by_name::<String>("single", "workflows", "ada");
        let cron = env.client().cron(name).unwrap().create(start);
        cron.every("1m").overlap(Overlap::BufferAll).max_runs(2).await.unwrap();
    }
    env.advance("41m 30s").await.unwrap();
    // Four runs of ten minutes, one after the other, and no pause between them.
    assert_eq!(log.lines(), ["ada begins", "ada ends"].repeat(4));
}
