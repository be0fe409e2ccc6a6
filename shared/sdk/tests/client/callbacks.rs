//! Callbacks of workflows, in virtual time.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::{Mutex, PoisonError};

use tickover::prelude::*;
use tickover::test::{TestEnv, with_each_death};
use tickover_wire::request::{CallbackFailure, CallbackResult};

static TOKENS: Mutex<Vec<String>> = Mutex::new(vec![]);

#[tickover::workflow("approval")]
async fn approval(ctx: Ctx, run: String) -> Result<String> {
    ask(ctx, run).await
}

async fn ask(ctx: Ctx, run: String) -> Result<String> {
    let callback = ctx.callback("approval", within("3d")).await?.heartbeat("1h")?;
    assert_eq!(callback.url(), None);
    TOKENS.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{run} {}", callback.token()));
    Ok(match callback.result::<u32>().await {
        Ok(answer) => format!("answered {answer}"),
        Err(error) => error.to_string(),
    })
}

/// The token of this run, which must be the same in each replay.
fn token(run: &str) -> String {
    let all = TOKENS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found: Vec<&str> = all.iter().filter_map(|line| line.strip_prefix(&format!("{run} "))).collect();
    found.dedup();
    assert_eq!(found.len(), 1, "{run}");
    found[0].to_owned()
}

#[tokio::test]
async fn a_callback_ends_with_the_result_that_its_token_brings_and_is_kept_by_heartbeats() {
    let env = TestEnv::new().workflow(approval);
    let run = env.start(&approval, "kept".to_owned()).await.unwrap();
    for _ in 0..3 {
        env.advance("50m").await.unwrap();
        env.client().api().callback_heartbeat(&token("kept")).await.unwrap();
    }
    env.advance("50m").await.unwrap();
    assert!(!run.timeline().await.unwrap().contains(&token("kept")));
    let result = CallbackResult { output: serde_json::from_str("7").ok() };
    env.client().api().complete_callback(&token("kept"), &result).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "answered 7");
}

#[tokio::test]
async fn a_callback_without_a_heartbeat_in_time_is_given_up_while_nothing_runs() {
    let env = TestEnv::new().workflow(approval);
    let run = env.start(&approval, "silent".to_owned()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "callback `approval` had no heartbeat within 1h");
    let late = env.client().api().callback_heartbeat(&token("silent")).await;
    assert!(late.is_err());
}

/// Asks before and after its failure, under the same name.
#[tickover::workflow("asks-twice", on_failure = ask_again, on_failure_timeout = "7d")]
async fn asks_twice(ctx: Ctx, run: String) -> Result<String> {
    let callback = ctx.callback("approval", within("3d")).await?;
    TOKENS.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{run}-first {}", callback.token()));
    callback.result::<u32>().await?;
    Err(Error::new("broken", "as planned"))
}

async fn ask_again(ctx: Ctx, run: String, _: Cause) -> Result<Option<String>> {
    let answer = ask(ctx.clone(), run).await?;
    ctx.sleep("afterwards", "1d").await?;
    Ok(Some(answer))
}

#[tokio::test]
async fn a_callback_of_the_code_after_a_failure_is_its_own_and_is_bounded_as_any() {
    let env = TestEnv::new().workflow(asks_twice);
    let run = env.start(&asks_twice, "after".to_owned()).await.unwrap();
    env.advance("1m").await.unwrap();
    let api = env.client().api();
    let result = CallbackResult { output: serde_json::from_str("7").ok() };
    api.complete_callback(&token("after-first"), &result).await.unwrap();
    env.advance("50m").await.unwrap();
    api.callback_heartbeat(&token("after")).await.unwrap();
    env.advance("2h").await.unwrap();
    assert!(api.callback_heartbeat(&token("after")).await.is_err(), "its wait is over");
    assert!(api.complete_callback(&token("after"), &result).await.is_err(), "its wait is over");
    assert_eq!(run.result().await.unwrap(), "callback `approval` had no heartbeat within 1h");
}

#[tokio::test]
async fn a_callbacks_failure_is_a_typed_error_of_the_wait() {
    let env = TestEnv::new().workflow(approval);
    let run = env.start(&approval, "failed".to_owned()).await.unwrap();
    env.run_until_idle().await.unwrap();
    let error = serde_json::from_str(r#"{"error":{"code":"declined","message":"no"}}"#);
    let failure: CallbackFailure = error.unwrap();
    env.client().api().fail_callback(&token("failed"), &failure).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "callback `approval` failed: declined: no");
}

/// Goes on for a day after its callback has ended, however that is.
#[tickover::workflow("patient")]
async fn patient(ctx: Ctx, (run, has_heartbeats): (String, bool)) -> Result<String> {
    let mut callback = ctx.callback("approval", within("1d")).await?;
    if has_heartbeats {
        callback = callback.heartbeat("1h")?;
    }
    TOKENS.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{run} {}", callback.token()));
    let answer = match callback.result::<u32>().await {
        Ok(answer) => format!("answered {answer}"),
        Err(error) => error.to_string(),
    };
    ctx.sleep("after", "1d").await?;
    Ok(answer)
}

/// The answer to a report, as its caller sees it.
async fn answer_to(env: &TestEnv, token: &str, report: &str) -> String {
    let api = env.client().api().clone();
    let answer = match report {
        "complete" => api.complete_callback(token, &CallbackResult { output: None }).await.map(drop),
        "fail" => {
            let failure: CallbackFailure =
                serde_json::from_str(r#"{"error":{"code":"no","message":"no"}}"#).unwrap();
            api.fail_callback(token, &failure).await.map(drop)
        }
        _ => api.callback_heartbeat(token).await.map(drop),
    };
    answer.map_or_else(|error| error.to_string(), |()| "received".to_owned())
}

#[tokio::test]
async fn a_report_after_its_wait_has_ended_gets_the_answer_of_a_forged_token() {
    for (name, has_heartbeats, ended_after) in [("unheard", true, "1h"), ("unheard-later", true, "2h")] {
        let env = TestEnv::new().workflow(patient);
        let run = env.start(&patient, (name.to_owned(), has_heartbeats)).await.unwrap();
        env.advance(ended_after).await.unwrap();
        for report in ["complete", "fail", "heartbeat"] {
            let forged = answer_to(&env, "AAAA", report).await;
            assert_ne!(forged, "received");
            assert_eq!(answer_to(&env, &token(name), report).await, forged, "{name} {report}");
        }
        assert_eq!(run.result().await.unwrap(), "callback `approval` had no heartbeat within 1h");
    }
    let env = TestEnv::new().workflow(patient);
    let run = env.start(&patient, ("heard".to_owned(), true)).await.unwrap();
    env.advance("1m").await.unwrap();
    let result = CallbackResult { output: serde_json::from_str("7").ok() };
    env.client().api().complete_callback(&token("heard"), &result).await.unwrap();
    env.advance("2h").await.unwrap();
    for report in ["complete", "fail", "heartbeat"] {
        assert_eq!(answer_to(&env, &token("heard"), report).await, answer_to(&env, "AAAA", report).await);
    }
    assert_eq!(run.result().await.unwrap(), "answered 7");
}

#[tokio::test]
async fn heartbeats_by_token_are_written_a_bounded_number_of_times_between_two_that_are_needed() {
    let env = TestEnv::new().workflow(patient);
    let run = env.start(&patient, ("flooded".to_owned(), true)).await.unwrap();
    env.run_until_idle().await.unwrap();
    let before = env.writes();
    for _ in 0..90 {
        env.advance("1m").await.unwrap();
        for _ in 0..10 {
            assert_eq!(answer_to(&env, &token("flooded"), "heartbeat").await, "received");
        }
    }
    let writes = env.writes() - before;
    // One in six minutes, each with the turn that takes it: not 900.
    assert!((15..=15 * 6).contains(&writes), "{writes} writes");
    let result = CallbackResult { output: serde_json::from_str("7").ok() };
    env.client().api().complete_callback(&token("flooded"), &result).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "answered 7");
}

#[tokio::test]
async fn a_wait_for_a_callback_survives_a_death_after_each_write() {
    let story = async |env: &TestEnv| {
        let run = env.start(&patient, ("mortal".to_owned(), true)).await.unwrap();
        env.advance("30m").await.unwrap();
        // Without an answer, its caller repeats the report: it counts once.
        for _ in 0..2 {
            answer_to(env, &token("mortal"), "heartbeat").await;
        }
        env.advance("40m").await.unwrap();
        let result = CallbackResult { output: serde_json::from_str("7").ok() };
        let mut answers = vec![];
        for _ in 0..3 {
            answers.push(env.client().api().complete_callback(&token("mortal"), &result).await.is_ok());
        }
        assert!(answers.iter().filter(|is_taken| **is_taken).count() <= 1, "{answers:?}");
        let ended = run.result().await.unwrap();
        TOKENS.lock().unwrap_or_else(PoisonError::into_inner).retain(|line| !line.starts_with("mortal "));
        let timeline = run.timeline().await.unwrap();
        (ended, timeline.matches("took an event").count())
    };
    let (ended, taken) = with_each_death(|| TestEnv::new().workflow(patient), story).await;
    assert_eq!((ended.as_str(), taken), ("answered 7", 2));
}
