//! The deployed system, and its interfaces.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_sqs::Client as Sqs;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use reqwest::{Client, Method, RequestBuilder, Url};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use crate::http::sign_for;
use crate::target::{Target, aws};

/// The variable in which `cargo xtask e2e` passes the system's name.
const SYSTEM: &str = "TICKOVER_TEST_SYSTEM";
/// How often a test checks for what it waits for.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// How long an operation may take that waits for no schedule: functions start cold, several at once on few processors.
pub(crate) const SOON: Duration = Duration::from_secs(90);
/// On AWS, changes of settings take up to a minute, and Lambda polls with backoff after failures.
const SLOWER_ON_AWS: u32 = 4;

/// The outputs of the core's stack. All tests share them.
static OUTPUTS: OnceCell<Value> = OnceCell::const_new();

/// The system that all tests share.
pub(crate) struct System {
    /// Its name, the prefix of all its resources' names.
    pub(crate) name: String,
    pub(crate) sqs: Sqs,
    config: SdkConfig,
    http: Client,
    /// The HTTP API's address. An emulator has one address for everything.
    api: String,
    /// The address of Lambda.
    lambda: String,
    /// The host name by which an emulator recognises the HTTP API.
    host: Option<String>,
}

impl System {
    /// The system that `cargo xtask e2e` has deployed.
    pub(crate) async fn deployed() -> Self {
        let name = name();
        let config = Target::here().config().await;
        let outputs = OUTPUTS.get_or_init(async || outputs(&name).await).await;
        let output = |key: &str| outputs[key].as_str().unwrap_or_else(|| panic!("no {key}: {outputs}"));
        let (api, lambda, host) = if let Some(emulator) = Target::here().endpoint() {
            let host = match outputs["ApiId"].as_str() {
                Some(id) => format!("{id}.execute-api.localhost"),
                // A function URL, which has a host name of its own.
                None => Url::parse(output("ApiUrl")).unwrap().host_str().unwrap().to_owned(),
            };
            (emulator.clone(), emulator, Some(host))
        } else {
            let lambda = format!("https://lambda.{}.amazonaws.com", config.region().unwrap());
            (output("ApiUrl").to_owned(), lambda, None)
        };
        let http = Client::builder();
        let http = if host.is_some() { http.no_proxy() } else { http };
        Self { sqs: Sqs::new(&config), config, http: http.build().unwrap(), api, lambda, host, name }
    }

    /// Calls the HTTP API; returns the answer's status and body.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let request = self.request(method, path);
        let request = if let Some(body) = body { request.json(&body) } else { request };
        let mut request = request.build().unwrap();
        sign_for("execute-api", &self.config, &mut request).await;
        let answer = self.http.execute(request).await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Calls the HTTP API without credentials; returns the answer's status.
    pub(crate) async fn call_unsigned(&self, method: Method, path: &str) -> u16 {
        self.request(method, path).send().await.unwrap().status().as_u16()
    }

    /// The same with a body.
    pub(crate) async fn post_unsigned(&self, path: &str, body: &Value) -> u16 {
        self.request(Method::POST, path).json(body).send().await.unwrap().status().as_u16()
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.api));
        match &self.host {
            Some(host) => request.header("host", host),
            None => request,
        }
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
        let url = format!("{}/2015-03-31/functions/{}-{function}/invocations", self.lambda, self.name);
        let mut request = self.http.post(url).json(event).build().unwrap();
        sign_for("lambda", &self.config, &mut request).await;
        let answer = self.http.execute(request).await.unwrap();
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

/// The name that `cargo xtask e2e` has given the system.
pub(crate) fn name() -> String {
    std::env::var(SYSTEM).unwrap_or_else(|error| panic!("{SYSTEM}: {error}. Run `cargo xtask e2e`"))
}

/// The outputs of a core's stack, by their names.
async fn outputs(stack: &str) -> Value {
    let found = aws(vec![json!(["cloudformation", "describe_stacks", {"StackName": stack}])]).await;
    let outputs = found[0]["Stacks"][0]["Outputs"].as_array().unwrap();
    outputs
        .iter()
        .map(|output| (output["OutputKey"].as_str().unwrap().to_owned(), output["OutputValue"].clone()))
        .collect()
}

/// Calls `look` until it returns a value.
pub(crate) async fn until<T>(what: &str, within: Duration, look: impl AsyncFn() -> Option<T>) -> T {
    let within = if Target::here() == Target::Account { within * SLOWER_ON_AWS } else { within };
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
