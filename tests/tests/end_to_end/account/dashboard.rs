//! The dashboard shows what the functions measure.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemClock;

use crate::system::{SOON, System, task, until};
use crate::target::{Check, Target, aws};
use crate::workflow::ended;

/// A search takes up to a quarter of an hour to find a metric that is new. `until` takes four times this on AWS.
const FOUND: Duration = Duration::from_mins(6);
/// Each look is charged.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// Measured only when AWS refuses something.
const ONLY_IN_TROUBLE: [&str; 2] = ["Throttles", "WriteThrottleEvents"];
const HOUR_SECONDS: i64 = 3600;

/// Metrics of the dashboard, as queries. Each has the name of its metric.
fn queries(dashboard: &Value) -> Vec<(String, Value)> {
    let widgets = dashboard["widgets"].as_array().unwrap();
    let of_widget = |widget: &Value| {
        let properties = &widget["properties"];
        let metrics = properties["metrics"].as_array().unwrap().clone();
        metrics.into_iter().map(|metric| query(&metric, properties)).collect::<Vec<_>>()
    };
    let all = widgets.iter().flat_map(of_widget);
    let number = |(place, (name, mut query)): (usize, (String, Value))| {
        query["Id"] = json!(format!("m{place}"));
        (name, query)
    };
    all.enumerate().map(number).collect()
}

fn query(metric: &Value, properties: &Value) -> (String, Value) {
    if let Some(expression) = metric[0]["expression"].as_str() {
        let (_, name) = expression.split_once("MetricName=\"").unwrap();
        return (name.split('"').next().unwrap().to_owned(), json!({"Expression": expression}));
    }
    let text = |place: usize| metric[place].as_str().unwrap();
    let found = json!({"Namespace": text(0), "MetricName": text(1),
                       "Dimensions": [{"Name": text(2), "Value": text(3)}]});
    let statistic = json!({"Metric": found, "Period": properties["period"], "Stat": properties["stat"]});
    (text(1).to_owned(), json!({"MetricStat": statistic}))
}

/// The names of the metrics without a single value in the last hours.
async fn empty(queries: &[(String, Value)]) -> BTreeSet<String> {
    let now = SystemClock.now().as_millis() / 1000;
    let asked: Vec<&Value> = queries.iter().map(|(_, query)| query).collect();
    let parameters = json!({"MetricDataQueries": asked, "StartTime": now - 3 * HOUR_SECONDS, "EndTime": now});
    let answers = aws(vec![json!(["cloudwatch", "get_metric_data", parameters])]).await;
    let results = answers[0]["MetricDataResults"].as_array().unwrap();
    let has_values = |query: &Value| {
        let mut found = results.iter().filter(|result| result["Id"] == query["Id"]);
        found.any(|result| result["Values"].as_array().is_some_and(|values| !values.is_empty()))
    };
    queries.iter().filter(|(_, query)| !has_values(query)).map(|(name, _)| name.clone()).collect()
}

#[tokio::test]
async fn every_graph_of_the_dashboard_has_data() {
    if !Target::here().shows(Check::Dashboard) {
        return;
    }
    let system = System::deployed().await;
    // A deadline that passes, an order with remote steps, and the ticks meanwhile.
    system.post("/v1/tasks", task("dashboard", "default", json!({"timeout": "2s"}))).await;
    let order = json!({"number": 9, "boxes": ["books"], "express": true});
    let start = json!({"workflow": "order-fulfilment", "id": "order-9", "queue": "orders", "input": order});
    system.post("/v1/executions", start).await;
    let shipped = json!({"payload": {"carrier": "a bicycle"}});
    system.post("/v1/executions/order-9/events/shipped", shipped).await;
    ended(&system, "order-9", SOON).await;
    system.status("dashboard", "timed_out", SOON).await;

    let region = Target::here().config().await.region().unwrap().to_string();
    let name = format!("{}-{region}", system.name);
    let dashboard = json!(["cloudwatch", "get_dashboard", {"DashboardName": name}]);
    let body = aws(vec![dashboard]).await[0]["DashboardBody"].as_str().unwrap().to_owned();
    let queries = queries(&serde_json::from_str(&body).unwrap());
    let expected: BTreeSet<String> = ONLY_IN_TROUBLE.map(str::to_owned).into();
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let looks = tokio::sync::Mutex::new(looks);
    until("data in all graphs", FOUND, async || {
        looks.lock().await.tick().await;
        let empty = empty(&queries).await;
        println!("without data: {empty:?}");
        empty.is_subset(&expected).then_some(())
    })
    .await;
}

#[test]
fn a_dashboards_graphs_are_read_as_queries() {
    let template = include_str!("../../../../infra/core.yaml");
    let (_, body) = template.split_once("DashboardBody: !Sub |\n").unwrap();
    let (body, _) = body.split_once("\nOutputs:").unwrap();
    let queries = queries(&serde_json::from_str(body).unwrap());
    let graphs = body.matches("\"expression\"").count() + body.matches("[\"AWS/DynamoDB\"").count();
    assert_eq!(queries.len(), graphs);
    let names: BTreeSet<&str> = queries.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["tickover_tasks_scheduled_total", "Invocations", "ConsumedWriteCapacityUnits"] {
        assert!(names.contains(name), "{names:?}");
    }
    assert!(ONLY_IN_TROUBLE.iter().all(|name| names.contains(name)), "{names:?}");
    let ids: BTreeSet<String> = queries.iter().map(|(_, query)| query["Id"].to_string()).collect();
    assert_eq!(ids.len(), queries.len());
}
