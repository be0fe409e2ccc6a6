//! Crons whose tasks start by the rate of a key.

use serde_json::json;
use tickover_tests::http::Caller;

use super::{cron, make, tasks, until};

#[tokio::test]
async fn the_tasks_of_crons_with_one_key_start_one_after_the_other() {
    let caller = Caller::default();
    let rate = json!({"key": "smtp", "limit": 6, "per": "1m"});
    for id in ["a", "b"] {
        let task = json!({"queue": "work", "kind": "work", "rate": rate});
        make(&caller, id, json!({"every": "1h", "task": task})).await;
    }
    assert_eq!(cron(&caller, "a").await["task"]["rate"]["key"], "smtp");
    until(&caller, "2026-01-01T01:00:00Z").await;
    let mut starts = vec![];
    for id in tasks(&caller).await {
        starts.push(caller.task(&id).await["available_at"].as_str().unwrap()[11..19].to_owned());
    }
    starts.sort_unstable();
    assert_eq!(starts, ["01:00:00", "01:00:10"]);
}
