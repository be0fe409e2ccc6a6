//! Callbacks of workflows, in virtual time.

use std::sync::{Mutex, PoisonError};

use tickover::prelude::*;
use tickover::test::TestEnv;
use tickover_wire::request::{CallbackFailure, CallbackResult};

static TOKENS: Mutex<Vec<String>> = Mutex::new(vec![]);

#[tickover::workflow("approval")]
async fn approval(ctx: Ctx, run: String) -> Result<String> {
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
