//! The fields of a cron in answers.

use std::collections::BTreeSet;

use axum::http::Method;
use serde_json::{Value, json};
use tickover_tests::http::Caller;

use super::{cron, make, until};

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn an_answer_has_only_the_fields_that_apply() {
    let caller = Caller::default();
    let made = make(&caller, "s", json!({"every": "90m"})).await;
    let always = "id status created_at overlap missed started waiting run_ids runs task";
    let expected = |more: &'static str| always.split(' ').chain(more.split(' ')).collect::<BTreeSet<_>>();
    assert_eq!(keys(&made), expected("every next_at next_start_at"));
    assert_eq!((&made["every"], &made["run_ids"]), (&json!("1h 30m"), &json!("s-{occurrence}")));
    let paused = caller.ok("/v1/crons/s/pause", json!({})).await["cron"].take();
    assert_eq!(keys(&paused), expected("every paused_at"));
    let full = json!({"cron": "0 9 * * *", "jitter": "5m", "max_runs": 3});
    let made = make(&caller, "t", full).await;
    assert_eq!(keys(&made), expected("cron time_zone jitter max_runs next_at next_start_at"));
    assert_eq!((&made["time_zone"], &made["jitter"]), (&json!("UTC"), &json!("5m")));
}

#[tokio::test]
async fn a_run_is_shown_with_its_task_and_the_tasks_status() {
    let caller = Caller::default();
    make(&caller, "s", json!({"every": "1h"})).await;
    until(&caller, "2026-01-01T01:00:00Z").await;
    let run = json!({"at": "2026-01-01T01:00:00.000Z", "id": "s-20260101T010000Z", "manual": false,
        "state": "open", "status": "pending"});
    assert_eq!(cron(&caller, "s").await["runs"], json!([run]));
}

#[tokio::test]
async fn a_list_has_the_statuses_of_each_crons_last_two_runs() {
    let caller = Caller::default();
    make(&caller, "s", json!({"every": "1h"})).await;
    make(&caller, "quiet", json!({"every": "1d"})).await;
    for hour in 1..=3 {
        until(&caller, &format!("2026-01-01T0{hour}:00:00Z")).await;
        caller.ok(&format!("/v1/tasks/s-20260101T0{hour}0000Z/cancel"), json!({})).await;
    }
    let listed = caller.send(Method::GET, "/v1/crons", None).await.1;
    let statuses = |id: &str| {
        let crons = listed["crons"].as_array().unwrap();
        let one = crons.iter().find(|one| one["id"] == id).unwrap();
        let runs = one["runs"].as_array().unwrap().iter();
        runs.map(|run| run.get("status").cloned()).collect::<Vec<_>>()
    };
    let cancelled = Some(json!("cancelled"));
    assert_eq!(statuses("s"), [None, cancelled.clone(), cancelled]);
    assert_eq!(statuses("quiet"), []);
}
