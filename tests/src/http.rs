//! The HTTP interface without a socket, over a service in virtual time.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_service::ports::{Clock as _, Store};
use tower::ServiceExt as _;

use crate::scene::Scene;

/// The largest answer that a test reads.
const ANSWER_MAX: usize = 16 * 1024 * 1024;

/// A caller of the HTTP interface. Its methods panic if a test can't continue with the answer.
pub struct Caller {
    /// The service behind it, and its clock.
    pub scene: Scene,
    router: Router,
}

impl Default for Caller {
    fn default() -> Self {
        Self::of(Scene::in_memory())
    }
}

impl Caller {
    /// A caller of a service over this store.
    pub fn over(store: Arc<dyn Store>) -> Self {
        Self::of(Scene::over(store))
    }

    /// A caller of this scene's service.
    pub fn of(scene: Scene) -> Self {
        let router = tickover_api::router(scene.service.clone());
        Self { scene, router }
    }

    /// Sends a request; returns the status and the JSON of the answer.
    ///
    /// # Panics
    ///
    /// If the answer isn't JSON.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        self.send_text(method, path, body.map_or_else(String::new, Value::to_string)).await
    }

    /// Puts a body of exactly this text.
    pub async fn put_text(&self, path: &str, body: &str) -> (StatusCode, Value) {
        self.send_text(Method::PUT, path, body.to_owned()).await
    }

    #[expect(clippy::expect_used, reason = "test code, outside of a test function")]
    async fn send_text(&self, method: Method, path: &str, body: String) -> (StatusCode, Value) {
        let request = Request::builder().method(method).uri(path);
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(body));
        let answer = self.router.clone().oneshot(request.expect("a request")).await.expect("an answer");
        let status = answer.status();
        let bytes = axum::body::to_bytes(answer.into_body(), ANSWER_MAX).await.expect("a body");
        (status, serde_json::from_slice(&bytes).expect("JSON"))
    }

    /// Posts a body.
    pub async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.send(Method::POST, path, Some(&body)).await
    }

    /// Posts a body; the request must be accepted.
    ///
    /// # Panics
    ///
    /// If it isn't.
    pub async fn ok(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.post(path, body).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    /// Posts a body; the request must be refused. Returns the status and the error code.
    ///
    /// # Panics
    ///
    /// If it isn't refused.
    pub async fn refused(&self, path: &str, body: Value) -> (u16, String) {
        let (status, answer) = self.post(path, body).await;
        assert!(!status.is_success(), "{path}: {status} {answer}");
        (status.as_u16(), answer["code"].as_str().unwrap_or_default().to_owned())
    }

    /// Schedules a task on the queue `work`, kind `work`, with these further fields.
    pub async fn schedule(&self, id: &str, fields: Value) -> Value {
        let mut body = json!({"id": id, "queue": "work", "kind": "work"});
        if let (Some(body), Value::Object(fields)) = (body.as_object_mut(), fields) {
            body.extend(fields);
        }
        self.ok("/v1/tasks", body).await["task"].take()
    }

    /// The task as it is now.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub async fn task(&self, id: &str) -> Value {
        let (status, mut answer) = self.send(Method::GET, &format!("/v1/tasks/{id}"), None).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer["task"].take()
    }

    /// Claims one task from `work` for a minute, if one is ready.
    pub async fn claim(&self) -> Option<Value> {
        self.claim_for("60s").await
    }

    /// Claims one task from `work` for that long.
    pub async fn claim_for(&self, lease: &str) -> Option<Value> {
        let body = json!({"worker": "tester", "max": 1, "lease": lease});
        let mut answer = self.ok("/v1/queues/work/claim", body).await;
        answer["tasks"].as_array_mut().and_then(Vec::pop)
    }

    /// Claims one task from `work` and returns its lease.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[expect(clippy::expect_used, reason = "test code, outside of a test function")]
    pub async fn lease(&self) -> String {
        let task = self.claim().await.expect("a task to claim");
        task["lease"].as_str().unwrap_or_default().to_owned()
    }

    /// Fails the attempt of this lease.
    pub async fn fail(&self, id: &str, lease: &str, code: &str) -> Value {
        let body = json!({"lease": lease, "error": {"code": code, "message": "it broke"}});
        self.ok(&format!("/v1/tasks/{id}/fail"), body).await["task"].take()
    }

    /// Advances the time, and runs the tick.
    ///
    /// # Panics
    ///
    /// If the tick fails.
    #[expect(clippy::expect_used, reason = "test code, outside of a test function")]
    pub async fn pass(&self, seconds: u64) {
        self.scene.clock.advance(Millis::from_secs(seconds));
        self.scene.tick().await.expect("a tick");
    }

    /// The time in the format of answers.
    pub fn now(&self) -> String {
        self.scene.clock.now().to_rfc3339()
    }

    /// The time that many seconds from now, in the format of answers.
    pub fn after(&self, seconds: u64) -> String {
        self.scene.clock.now().plus(Millis::from_secs(seconds)).to_rfc3339()
    }
}
