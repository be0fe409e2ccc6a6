//! Crons whose tasks get the defaults of their kind.

use axum::http::Method;
use serde_json::json;
use tickover_tests::http::Caller;

use super::{make, tasks, until};

#[tokio::test]
async fn the_tasks_of_a_cron_get_the_defaults_that_their_kind_has_when_they_are_scheduled() {
    let caller = Caller::default();
    let set = async |defaults: serde_json::Value| {
        let path = "/v1/queues/work/kinds/work";
        let (status, answer) = caller.send(Method::PUT, path, Some(&defaults)).await;
        assert_eq!(status.as_u16(), 200, "{answer}");
    };
    let own = json!({"queue": "work", "kind": "work", "retry": "none", "timeout": "5m"});
    make(&caller, "open", json!({"every": "1h"})).await;
    make(&caller, "own", json!({"every": "1h", "task": own})).await;
    set(json!({"retry": "fixed(3, 2s)", "timeout": "30m", "priority": "low"})).await;
    until(&caller, "2026-01-01T01:00:00Z").await;
    set(json!({"retry": "fixed(1, 2s)"})).await;
    until(&caller, "2026-01-01T02:00:00Z").await;
    let mut seen = vec![];
    for id in tasks(&caller).await {
        let task = caller.task(&id).await;
        let deadline = task["deadline_at"].as_str().map(|at| at[11..16].to_owned());
        seen.push((task["max_attempts"].as_u64(), task["priority"].as_str().map(str::to_owned), deadline));
    }
    let (low, at) = (Some("low".to_owned()), |time: &str| Some(time.to_owned()));
    // The options of the cron's own task go before the defaults, also a retry policy without retries.
    let expected = [
        (Some(4), low.clone(), at("01:30")),
        (Some(2), None, None),
        (Some(1), low, at("01:05")),
        (Some(1), None, at("02:05")),
    ];
    assert_eq!(seen, expected);
}
