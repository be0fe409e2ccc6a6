//! The deployed system, and its interfaces.

use std::time::Duration;

use aws_sdk_sqs::Client as Sqs;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tickover_tests::emulator::{aws_config, endpoint};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

/// The variable in which `cargo xtask e2e` passes the system's name.
const SYSTEM: &str = "TICKOVER_TEST_SYSTEM";
/// A signature header for IAM. The emulator refuses requests without it, and doesn't check the signature.
const SIGNATURE: &str = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/execute-api/aws4_request, \
                         SignedHeaders=host, Signature=0";
/// How often a test checks for what it waits for.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// How long an operation may take that waits for no schedule: functions start cold, several at once on few processors.
pub(crate) const SOON: Duration = Duration::from_secs(90);

/// The system that all tests share.
pub(crate) struct System {
    /// Its name, the prefix of all its resources' names.
    pub(crate) name: String,
    pub(crate) sqs: Sqs,
    http: Client,
    /// The host name by which the emulator recognises the HTTP API.
    api_host: String,
}

impl System {
    /// The system that `cargo xtask e2e` has deployed.
    pub(crate) async fn deployed() -> Self {
        let name =
            std::env::var(SYSTEM).unwrap_or_else(|error| panic!("{SYSTEM}: {error}. Run `cargo xtask e2e`"));
        let http = Client::builder().no_proxy().build().unwrap();
        let apis = http.get(format!("{}/v2/apis", endpoint())).send().await.unwrap();
        let apis: Value = apis.json().await.unwrap();
        let ours = apis["items"].as_array().unwrap().iter().find(|api| api["name"] == name.as_str());
        let id = ours.and_then(|api| api["apiId"].as_str()).unwrap_or_else(|| panic!("no API: {apis}"));
        let api_host = format!("{id}.execute-api.localhost");
        Self { sqs: Sqs::new(&aws_config().await), http, api_host, name }
    }

    /// Calls the HTTP API; returns the answer's status and body.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let request = self.request(method, path).header("authorization", SIGNATURE);
        let request = if let Some(body) = body { request.json(&body) } else { request };
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Calls the HTTP API without credentials; returns the answer's status.
    pub(crate) async fn call_unsigned(&self, method: Method, path: &str) -> u16 {
        self.request(method, path).send().await.unwrap().status().as_u16()
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", endpoint()));
        request.header("host", &self.api_host)
    }

    /// Posts a body; the request must be accepted.
    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.call(Method::POST, path, Some(body)).await;
        assert!((200..300).contains(&status), "{path}: {status} {answer}");
        answer
    }

    /// The task as it is now; `None` if there is none.
    pub(crate) async fn task(&self, id: &str) -> Option<Value> {
        let (status, mut answer) = self.call(Method::GET, &format!("/v1/tasks/{id}"), None).await;
        assert!(status == 200 || status == 404, "{status} {answer}");
        (status == 200).then(|| answer["task"].take())
    }

    /// Invokes a function directly; returns its answer.
    pub(crate) async fn invoke(&self, function: &str, event: &Value) -> Value {
        let path = format!("/2015-03-31/functions/{}-{function}/invocations", self.name);
        let answer = self.http.post(format!("{}{path}", endpoint())).json(event).send().await.unwrap();
        let failed = answer.headers().contains_key("x-amz-function-error");
        let answer: Value = answer.json().await.unwrap();
        assert!(!failed, "{function}: {answer}");
        answer
    }

    /// The URL of one of its queues.
    pub(crate) async fn queue_url(&self, queue: &str) -> String {
        let found = self.sqs.get_queue_url().queue_name(format!("{}-{queue}", self.name)).send().await;
        found.unwrap().queue_url.unwrap()
    }

    /// Sends messages to one of its queues, all at once.
    pub(crate) async fn send(&self, queue: &str, bodies: impl IntoIterator<Item = Value>) {
        let entries = bodies.into_iter().enumerate().map(|(place, body)| {
            let entry = SendMessageBatchRequestEntry::builder().id(place.to_string());
            entry.message_body(body.to_string()).build().unwrap()
        });
        let batch = self.sqs.send_message_batch().queue_url(self.queue_url(queue).await);
        let sent = batch.set_entries(Some(entries.collect())).send().await.unwrap();
        assert!(sent.failed().is_empty(), "{:?}", sent.failed());
    }

    /// Waits for a task's status.
    pub(crate) async fn status(&self, id: &str, status: &str, within: Duration) -> Value {
        let what = format!("{id} to be {status}");
        until(&what, within, async || self.task(id).await.filter(|task| task["status"] == status)).await
    }
}

/// Calls `look` until it returns a value.
pub(crate) async fn until<T>(what: &str, within: Duration, look: impl AsyncFn() -> Option<T>) -> T {
    let end = Instant::now() + within;
    let mut looks = interval(CHECK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let seen = timeout_at(end, async {
        loop {
            looks.tick().await;
            if let Some(seen) = look().await {
                return seen;
            }
        }
    });
    seen.await.unwrap_or_else(|_| panic!("waited {within:?} in vain for {what}"))
}

/// A task of this id and queue with these further fields.
pub(crate) fn task(id: &str, queue: &str, more: Value) -> Value {
    let mut task =
        json!({"id": id, "queue": queue, "kind": "send-email", "input": {"to": "ada@example.com"}});
    if let (Some(task), Value::Object(more)) = (task.as_object_mut(), more) {
        task.extend(more);
    }
    task
}
