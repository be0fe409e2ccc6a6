//! Metrics, as `CloudWatch` finds them on the standard output of a function.

use serde_json::{Value, json};
use tickover_core::id::TaskId;
use tickover_core::time::Timestamp;
use tickover_core::timer::{Timer, Wake};
use tickover_tests::runtime_api::Function;

use crate::deployment::{Deployment, batch, event, failed_messages, now, waiting_task};

/// The labels that metrics may have, beside the function's name. No user chooses their values freely.
const LABELS: [&str; 6] = ["queue", "kind", "ending", "outcome", "result", "state"];

/// The document with this metric, once it is there, checked against the format's specification.
async fn document(function: &Function, metric: &str) -> Value {
    let line = function.line(|line| line.contains(&format!("\"{metric}\""))).await.unwrap();
    let document: Value = serde_json::from_str(&line).unwrap();
    check(&document);
    document
}

fn check(document: &Value) {
    let written_at = Timestamp::from_millis(document["_aws"]["Timestamp"].as_i64().unwrap());
    assert!(now().since(written_at).as_u64() < 60_000 && written_at <= now(), "{document}");
    for directive in document["_aws"]["CloudWatchMetrics"].as_array().unwrap() {
        assert_eq!(directive["Namespace"], "Tickover", "{document}");
        for name in directive["Dimensions"][0].as_array().unwrap() {
            let name = name.as_str().unwrap();
            assert!(name == "function" || LABELS.contains(&name), "{name}: {document}");
            assert!(document[name].as_str().is_some_and(|value| !value.is_empty()), "{name}: {document}");
        }
        for metric in directive["Metrics"].as_array().unwrap() {
            assert!(["Seconds", "Count"].contains(&metric["Unit"].as_str().unwrap()), "{document}");
            let value = &document[metric["Name"].as_str().unwrap()];
            let is_spread = |values: &Vec<Value>| {
                (1..=100).contains(&values.len()) && values.iter().all(Value::is_number)
            };
            assert!(value.is_number() || value.as_array().is_some_and(is_spread), "{document}");
        }
    }
}

#[tokio::test]
async fn the_function_that_enforces_a_deadline_measures_its_lateness() {
    let deployment = Deployment::new().await;
    let [schedule, tick] = [deployment.start("schedule").await, deployment.start("tick").await];
    let task = waiting_task(&schedule, "order-17", json!({"timeout": "1s"})).await;
    let at = Timestamp::parse_rfc3339(task["deadline_at"].as_str().unwrap()).unwrap();
    let timer = Timer { record: TaskId::parse("order-17").unwrap().into(), at, due_at: at };
    let answer = tick.invoke(batch("sqs_timers", [Wake::Timer(timer).body().unwrap()])).await.unwrap();
    assert_eq!(failed_messages(&answer), [""; 0]);

    let document = document(&tick, "tickover_deadline_lateness_seconds").await;
    let directive = &document["_aws"]["CloudWatchMetrics"][0];
    assert_eq!(directive["Dimensions"], json!([["function", "kind"]]));
    assert_eq!(
        (&document["function"], &document["kind"]),
        (&json!("tickover-tick"), &json!("schedule_to_close"))
    );
    let metric = json!({"Name": "tickover_deadline_lateness_seconds", "Unit": "Seconds"});
    assert!(directive["Metrics"].as_array().unwrap().contains(&metric), "{document}");
    let lateness = document["tickover_deadline_lateness_seconds"].as_array().unwrap();
    assert_eq!(lateness.len(), 1, "{document}");
    assert!((0.0..30.0).contains(&lateness[0].as_f64().unwrap()), "{document}");

    for line in tick.stdout().lines() {
        check(&serde_json::from_str(line).unwrap());
    }
    assert!(!tick.stdout().contains("order-17"), "an id is among the metrics: {}", tick.stdout());
}

#[tokio::test]
async fn every_function_writes_metrics_and_each_line_counts_from_zero() {
    let deployment = Deployment::new().await;
    let gateway = deployment.start("gateway").await;
    let created = gateway.invoke(event("http_api_post_task")).await.unwrap();
    assert_eq!(created["statusCode"], 201, "{created}");
    let scheduled = document(&gateway, "tickover_tasks_scheduled_total").await;
    assert_eq!(scheduled["tickover_tasks_scheduled_total"], 1, "{scheduled}");
    assert_eq!((&scheduled["function"], &scheduled["queue"]), (&json!("tickover-gateway"), &json!("emails")));

    // The same request again creates no task, and nothing is counted twice.
    let again = gateway.invoke(event("http_api_post_task")).await.unwrap();
    assert_eq!(again["statusCode"], 200, "{again}");
    let other = gateway.invoke(event("function_url_post_task")).await.unwrap();
    assert_eq!(other["statusCode"], 201, "{other}");
    let total = async {
        loop {
            let lines = gateway.stdout();
            let documents = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let counts = documents.filter_map(|line| line["tickover_tasks_scheduled_total"].as_u64());
            if let total @ 2.. = counts.sum() {
                return total;
            }
            tokio::task::yield_now().await;
        }
    };
    assert_eq!(tokio::time::timeout(std::time::Duration::from_secs(30), total).await, Ok(2));
}
