//! A server on a free port, and a caller that reads every answer as JSON.

use std::collections::BTreeSet;

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_tests::scene::Scene;

/// A server with its own tasks and its own time.
pub(crate) struct Api {
    pub(crate) scene: Scene,
    base: String,
    client: Client,
}

/// An answer to a call.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
    pub(crate) body: Value,
}

impl Api {
    pub(crate) async fn start() -> Self {
        Self::over(Scene::in_memory()).await
    }

    pub(crate) async fn over(scene: Scene) -> Self {
        let router = tickover_api::router(scene.service.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { scene, base, client: Client::builder().no_proxy().build().unwrap() }
    }

    pub(crate) fn advance(&self, ms: u64) {
        self.scene.clock.advance(Millis::new(ms));
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base))
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.post_text(path, body.to_string()).await
    }

    pub(crate) async fn post_text(&self, path: &str, body: impl Into<reqwest::Body>) -> Reply {
        send(self.request(Method::POST, path).header("content-type", "application/json").body(body)).await
    }

    /// Schedules a task on queue `q` with these further fields; returns the task.
    pub(crate) async fn schedule(&self, id: &str, fields: Value) -> Value {
        let mut body = json!({"queue": "q", "kind": "work", "id": id});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.post("/v1/tasks", body).await.ok(201)["task"].clone()
    }

    /// Claims one task of queue `q`.
    pub(crate) async fn claim(&self) -> Value {
        let reply = self.post("/v1/queues/q/claim", json!({"worker": "w1"})).await.ok(200);
        let tasks = reply["tasks"].as_array().unwrap();
        assert_eq!(tasks.len(), 1, "{reply}");
        tasks[0].clone()
    }

    /// Schedules a task and claims it; returns its lease.
    pub(crate) async fn running(&self, id: &str, fields: Value) -> String {
        self.schedule(id, fields).await;
        let claimed = self.claim().await;
        assert_eq!(claimed["id"], id);
        claimed["lease"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn task(&self, id: &str) -> Value {
        self.get(&format!("/v1/tasks/{id}")).await.ok(200)["task"].clone()
    }
}

pub(crate) async fn send(request: RequestBuilder) -> Reply {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await.unwrap();
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    Reply { status, headers, text, body }
}

impl Reply {
    /// The body of an answer that must have this status.
    #[track_caller]
    pub(crate) fn ok(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(self.headers["content-type"], "application/json");
        self.body
    }

    /// The problem in the answer, which must have this status and code, and every member that all problems have.
    #[track_caller]
    pub(crate) fn problem(self, status: u16, code: &str) -> Value {
        assert_eq!((self.status, &self.body["code"]), (status, &json!(code)), "{}", self.text);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(self.body["status"], status);
        for member in ["type", "title", "detail"] {
            assert!(
                self.body[member].as_str().is_some_and(|text| !text.is_empty()),
                "{member}: {}",
                self.text
            );
        }
        self.body
    }
}

/// The names of an object's fields.
pub(crate) fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Names separated by spaces.
pub(crate) fn names(text: &str) -> BTreeSet<&str> {
    text.split_whitespace().collect()
}
