//! `GET /metrics` of a local server.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use tickover_core::limits::Limits;
use tickover_embedded::{Local, Storage, Ticks};
use tickover_tests::http::Caller;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A server, and a way to stop it.
struct Server {
    base: String,
    client: reqwest::Client,
    stop: oneshot::Sender<()>,
    served: tokio::task::JoinHandle<()>,
}

impl Server {
    async fn start() -> Self {
        Self::over(&Storage::Memory).await
    }

    async fn over(storage: &Storage) -> Self {
        let local = Local::open(storage, Limits::default()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = local.serve(listener, Ticks::default(), async { drop(stopped.await) });
        let served = tokio::spawn(async { serving.await.unwrap() });
        Self { base, client: reqwest::Client::new(), stop, served }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self.client.post(format!("{}{path}", self.base)).json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.unwrap()
    }

    async fn scrape(&self) -> String {
        let answer = self.client.get(format!("{}/metrics", self.base)).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
        answer.text().await.unwrap()
    }

    /// Asks until the task has timed out. This test runs in real time.
    async fn timed_out(&self, id: &str) {
        for _ in 0..10_000 {
            let task = self.client.get(format!("{}/v1/tasks/{id}", self.base)).send().await.unwrap();
            if task.json::<Value>().await.unwrap()["task"]["status"] == "timed_out" {
                return;
            }
        }
        panic!("never timed out");
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.served.await.unwrap();
    }
}

/// The value of the line with exactly this name and these labels.
#[track_caller]
fn value<'a>(text: &'a str, series: &str) -> &'a str {
    let line = text.lines().find(|line| line.rsplit_once(' ').is_some_and(|(name, _)| name == series));
    line.unwrap_or_else(|| panic!("no {series} in\n{text}")).rsplit_once(' ').unwrap().1
}

#[tokio::test]
async fn a_scrape_shows_counts_lateness_histograms_and_queue_depths() {
    let server = Server::start().await;
    // No other test in this process uses this queue.
    let task =
        |id: &str, timeout: &str| json!({"id": id, "queue": "scraped", "kind": "k", "timeout": timeout});
    server.post("/v1/tasks", task("late", "2ms")).await;
    server.timed_out("late").await;
    server.post("/v1/tasks", task("held", "1h")).await;
    server.post("/v1/tasks", task("waiting", "1h")).await;
    // The hint of the first task is still in the queue, and has no effect.
    let claimed = server.post("/v1/queues/scraped/claim", json!({"max": 1})).await;
    let task = &claimed["tasks"][0];
    let id = task["id"].as_str().unwrap();
    server.post(&format!("/v1/tasks/{id}/heartbeat"), json!({"lease": task["lease"]})).await;

    let text = server.scrape().await;
    assert_eq!(value(&text, r#"tickover_tasks_scheduled_total{queue="scraped"}"#), "3");
    let timeouts = r#"tickover_task_timeouts_total{queue="scraped",kind="schedule_to_close"}"#;
    assert_eq!(value(&text, timeouts), "1");
    let ended = r#"tickover_task_duration_seconds_count{queue="scraped",outcome="timed_out"}"#;
    assert_eq!(value(&text, ended), "1");
    let lateness = "tickover_deadline_lateness_seconds";
    for bound in ["0.005", "0.1", "1", "600", "+Inf"] {
        let series = format!(r#"{lateness}_bucket{{kind="schedule_to_close",le="{bound}"}}"#);
        let count: u64 = value(&text, &series).parse().unwrap();
        assert!(bound != "+Inf" || count >= 1, "{text}");
    }
    assert_eq!(value(&text, r#"tickover_queue_depth{queue="scraped",state="visible"}"#), "1");
    assert_eq!(value(&text, r#"tickover_queue_depth{queue="scraped",state="in_flight"}"#), "1");
    assert_eq!(value(&text, "tickover_active_heartbeats"), "1");
    assert!(text.contains(&format!("# TYPE {lateness} histogram")), "{text}");
    assert!(text.contains("# HELP tickover_queue_depth "), "{text}");
    server.stop().await;
}

#[tokio::test]
async fn a_scrape_shows_the_commits_and_the_sizes_of_the_data_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let server = Server::over(&Storage::File(path.clone())).await;
    for _ in 0..10 {
        server.post("/v1/tasks", json!({"queue": "stored", "kind": "k"})).await;
    }
    let text = server.scrape().await;
    assert_eq!(value(&text, "tickover_commits_waiting"), "0");
    let number = |series: &str| value(&text, series).parse::<u64>().unwrap();
    let syncs = number("tickover_commit_duration_seconds_count");
    assert!(syncs >= 10, "{text}");
    assert_eq!(number("tickover_commits_together_count"), syncs);
    assert!(number("tickover_commits_together_sum") >= syncs, "{text}");
    for (part, name) in [("file", "data.db"), ("log", "data.db-wal")] {
        let bytes = std::fs::metadata(folder.path().join(name)).unwrap().len();
        let series = format!(r#"tickover_data_bytes{{part="{part}"}}"#);
        assert_eq!(value(&text, &series), bytes.to_string(), "{part}");
    }
    server.stop().await;
}

#[tokio::test]
async fn the_interface_that_lambda_serves_has_no_metrics() {
    let (status, problem) = Caller::default().send(Method::GET, "/metrics", None).await;
    assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
}
