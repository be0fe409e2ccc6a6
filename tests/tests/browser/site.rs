//! A system in virtual time with the dashboard and the API over HTTP.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::DATE;
use axum::middleware::map_response;
use axum::response::Response;
use chrono::DateTime;
use serde_json::{Value, json};
use tickover::Client;
use tickover::test::TestEnv;
use tickover_core::id::{QueueName, WorkflowName};
use tickover_dashboard::Settings;
use tickover_embedded::Bounds;
use tickover_service::Service;
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemClock;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::flows::{Order, approval, note_down, order, parcel, print_label, relay};

/// How long a call of a page may take to arrive.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server of a dashboard, and how to stop it.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(address: &str, router: Router) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let serving = tickover_embedded::serve(listener, router, vec![], Bounds::default(), stopped);
        Self { address, stop, served: tokio::spawn(async { serving.await.unwrap() }) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.served.await.unwrap();
    }
}

/// A system whose time passes only when a test says so.
pub(crate) struct Site {
    pub(crate) env: TestEnv,
    pub(crate) server: Server,
}

impl Site {
    /// A system without any records. Its clock agrees with this machine's.
    pub(crate) async fn empty() -> Self {
        let env = TestEnv::new();
        let env = env
            .workflow(order)
            .workflow(note_down)
            .workflow(approval)
            .workflow(relay)
            .workflow(parcel)
            .step::<print_label>();
        let behind = SystemClock.now().since(env.now());
        env.advance(behind).await.unwrap();
        let server = Server::start(
            "127.0.0.1:0",
            router(env.service(), Settings { metrics: false, ..Settings::default() }),
        )
        .await;
        Self { env, server }
    }

    /// A system with something in each view: an order that waits for its event, one that failed, tasks in several states, a
    /// cron, a paused queue.
    pub(crate) async fn full() -> Self {
        let site = Self::empty().await;
        site.order(7).await;
        site.order(crate::flows::DECLINED).await;
        site.env.advance("4d").await.unwrap();
        site.task("mail-1", &json!({"labels": {"team": "blue"}, "timeout": "2h"})).await;
        site.failed_task("mail-2").await;
        site.failed_task("mail-3").await;
        let task = json!({"queue": "reports", "kind": "daily"});
        site.post("crons", json!({"id": "nightly", "cron": "0 3 * * *", "task": task})).await;
        site.post("tasks", json!({"queue": "reports", "kind": "weekly", "id": "report-1"})).await;
        site.post("queues/reports/pause", json!({})).await;
        site.limited("ocr-1").await;
        site.claim("ocr-1").await;
        site.limited("ocr-2").await;
        let claimed = site.post("tasks/ocr-2/claim", json!({"worker": "ada"})).await;
        assert_eq!(claimed["tasks"], json!([]), "its key has one place");
        site
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// Starts an order `order-N`, and lets it run as far as it comes by itself within a minute.
    pub(crate) async fn order(&self, number: u32) {
        // As a worker does when it starts.
        let routes = [("order", "workflows"), ("note", "workflows")];
        let routes = routes.map(|(workflow, queue)| {
            (WorkflowName::parse(workflow).unwrap(), QueueName::parse(queue).unwrap())
        });
        self.env.service().announce_routes(&routes.into()).await.unwrap();
        let placed = Order { number, note: "handle with care".to_owned() };
        self.client()
            .start(&order, placed)
            .id(format!("order-{number}"))
            .label("team", "blue")
            .await
            .unwrap();
        self.env.advance("5m").await.unwrap();
    }

    /// Waits until so many operations were asked for, dry runs included. Only then may time pass.
    pub(crate) async fn operations(&self, count: usize) {
        let asked =
            async { while self.get("operations").await["operations"].as_array().unwrap().len() < count {} };
        tokio::time::timeout(PATIENCE, asked).await.unwrap();
    }

    /// Waits until the latest operation has this status. Only then may time pass.
    pub(crate) async fn latest_operation_is(&self, status: &str) {
        let asked = async { while self.get("operations").await["operations"][0]["status"] != status {} };
        tokio::time::timeout(PATIENCE, asked).await.unwrap();
    }

    pub(crate) fn client(&self) -> &Client {
        self.env.client()
    }

    /// Schedules a task of the kind `welcome`, with more fields.
    pub(crate) async fn task(&self, id: &str, more: &Value) {
        let mut task =
            json!({"queue": "emails", "kind": "welcome", "id": id, "input": {"to": "ada@example.com"}});
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post("tasks", task).await;
    }

    /// A task whose only attempt failed.
    pub(crate) async fn failed_task(&self, id: &str) {
        self.task(id, &json!({})).await;
        let lease = self.claim(id).await;
        let error =
            json!({"code": "no_such_address", "message": "nobody has this address", "retryable": false});
        self.post(&format!("tasks/{id}/fail"), json!({"lease": lease, "error": error})).await;
    }

    /// A task that no worker has claimed before its deadline.
    pub(crate) async fn timed_out_task(&self, id: &str) {
        self.task(id, &json!({"timeout": "5s"})).await;
        self.env.advance("5s").await.unwrap();
        assert_eq!(self.get(&format!("tasks/{id}")).await["task"]["timeout_kind"], "schedule_to_close");
    }

    /// Schedules a task of which only one runs at a time.
    pub(crate) async fn limited(&self, id: &str) {
        let limits = json!([{"key": "ocr", "limit": 1}]);
        self.post("tasks", json!({"queue": "pages", "kind": "ocr", "id": id, "concurrency": limits})).await;
    }

    /// Claims a task as the worker `ada`, and returns its lease.
    pub(crate) async fn claim(&self, id: &str) -> String {
        let claimed = self.post(&format!("tasks/{id}/claim"), json!({"worker": "ada"})).await;
        claimed["tasks"][0]["lease"].as_str().unwrap_or_else(|| panic!("{claimed}")).to_owned()
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let address = format!("{}/v1/{path}", self.url());
        let answer = reqwest::Client::new().post(address).json(&body).send().await.unwrap();
        let status = answer.status();
        let answer: Value = answer.json().await.unwrap();
        assert!(status.is_success(), "{path}: {answer}");
        answer
    }

    /// An answer of the API, whatever its status.
    pub(crate) async fn get(&self, path: &str) -> Value {
        reqwest::get(format!("{}/v1/{path}", self.url())).await.unwrap().json().await.unwrap()
    }

    pub(crate) async fn execution(&self, id: &str) -> Value {
        self.get(&format!("executions/{id}")).await["execution"].take()
    }
}

/// The API of a service and the dashboard. Its answers have the date of the service's clock.
pub(crate) fn router(service: &Service, settings: Settings) -> Router {
    let clock = service.clone();
    let dated = map_response(move |mut response: Response| {
        let now = DateTime::from_timestamp_millis(clock.now().as_millis()).unwrap();
        let date = now.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        response.headers_mut().insert(DATE, HeaderValue::from_str(&date).unwrap());
        async { response }
    });
    tickover_api::router(service.clone()).merge(tickover_dashboard::router(settings)).layer(dated)
}
