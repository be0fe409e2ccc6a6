//! Requests with an answer: once for each id, whatever happens to the worker, and also after the run that gave it.

#![expect(clippy::unwrap_used, reason = "a test fails if it doesn't find what it expects")]

use std::future::IntoFuture as _;

use tickover::client::{ClientError, Rerun};
use tickover::prelude::*;
use tickover::test::{Run, TestEnv, with_each_death};

/// Takes as many items as each run may, and continues as new. Every second answer is too large for a record.
#[tickover::workflow("basket")]
async fn basket(ctx: Ctx, (mut items, size): (Vec<String>, usize)) -> Result<Vec<String>> {
    let adds = ctx.requests::<String, String>("add-item");
    for _ in 0..2 {
        if items.len() == size {
            return Ok(items);
        }
        let add = adds.next(forever()).await?;
        items.push(add.body().clone());
        let count = items.len();
        add.answer(format!("{count}{}", "x".repeat(if count % 2 == 0 { 3_000 } else { 0 }))).await?;
    }
    ctx.continue_as_new((items, size)).await
}

/// The number in the answer to a request with this id.
async fn add<O>(env: &TestEnv, run: &Run<'_, O>, id: &str) -> Result<String, ClientError> {
    let answer = run.handle().request::<String>("add-item", id).id(id).into_future();
    env.run(answer).await?.map(|answer| answer.trim_end_matches('x').to_owned())
}

#[tokio::test]
async fn each_request_gets_its_own_answer_once_also_after_its_run_and_whenever_a_worker_dies() {
    let story = async |env: &TestEnv| {
        let run = env.start(&basket, (vec![], 5)).await.unwrap();
        let mut answers = vec![];
        for id in ["a", "b", "c", "a", "d", "b", "e"] {
            answers.push(add(env, &run, id).await.unwrap());
        }
        assert_eq!(run.result().await.unwrap(), ["a", "b", "c", "d", "e"]);
        for id in ["e", "c", "b"] {
            answers.push(add(env, &run, id).await.unwrap());
        }
        answers
    };
    let answers = with_each_death(|| TestEnv::new().workflow(basket), story).await;
    assert_eq!(answers, ["1", "2", "3", "1", "4", "2", "5", "5", "3", "2"]);
}

/// How an answer is missing.
async fn missing<O>(env: &TestEnv, run: &Run<'_, O>, id: &str) -> String {
    add(env, run, id).await.unwrap_err().code().unwrap_or_default().to_owned()
}

#[tickover::workflow("forgetful")]
async fn forgetful(ctx: Ctx, run: u32) -> Result<u32> {
    let first = ctx.requests::<String, String>("add-item").next(forever()).await?;
    if run == 1 {
        // The second one waits still, and goes to the next run.
        ctx.continue_as_new::<()>(2).await?;
    }
    ctx.sleep("pause", "1h").await?;
    ctx.clear_events("add-item").await?;
    ctx.wait_for_event::<()>("end", forever()).await?;
    first.answer(run.to_string()).await?;
    Ok(run)
}

#[tokio::test]
async fn a_request_that_its_run_left_unanswered_or_that_was_cleared_is_told_so() {
    let env = TestEnv::new().workflow(forgetful);
    let run = env.start(&forgetful, 1).await.unwrap();
    let send = async |id: &str| run.handle().send_event("add-item", id).id(id).await.unwrap();
    for id in ["a", "b", "c"] {
        send(id).await;
    }
    env.run_until_idle().await.unwrap();
    assert_eq!(missing(&env, &run, "a").await, "unanswered", "its run is over");
    env.advance("1h").await.unwrap();
    assert_eq!(missing(&env, &run, "c").await, "unanswered", "it was cleared");
    send("d").await;
    run.send_event("end", ()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 2);
    assert_eq!(add(&env, &run, "b").await.unwrap(), "2", "an answer may come long after the request");
    assert_eq!(missing(&env, &run, "d").await, "unanswered", "the execution has ended");
    assert_eq!(missing(&env, &run, "e").await, "already_terminal", "it was never sent");
}

/// Answers in another order than that of the requests, in one long run.
#[tickover::workflow("pairs")]
async fn pairs(ctx: Ctx, count: usize) -> Result<usize> {
    let requests = ctx.requests::<String, String>("add-item");
    for pair in 0..count {
        let one = requests.next(forever()).await?;
        let other = requests.next(forever()).await?;
        let (to_one, to_other) = (other.body().clone(), one.body().clone());
        other.answer(to_other).await?;
        ctx.sleep(format!("pause[{pair}]"), "1m").await?;
        one.answer(to_one).await?;
    }
    Ok(count)
}

#[tokio::test]
async fn answers_that_left_the_record_are_found_and_a_rerun_keeps_them() {
    let env = TestEnv::new().workflow(pairs);
    let run = env.start(&pairs, 30).await.unwrap();
    for number in 0..60 {
        let id = format!("request-{number}");
        run.handle().send_event("add-item", &id).id(&id).await.unwrap();
    }
    env.advance("10m").await.unwrap();
    for _ in 0..2 {
        assert_eq!(add(&env, &run, "request-0").await.unwrap(), "request-1");
        assert_eq!(add(&env, &run, "request-3").await.unwrap(), "request-2");
        run.result().await.unwrap();
    }
    run.handle().rerun(Rerun::All).await.unwrap();
    assert_eq!(add(&env, &run, "request-0").await.unwrap(), "request-1");
}
