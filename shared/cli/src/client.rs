//! The HTTP API from a caller's side. It sends each call once: who repeats what is up to the callers.

mod answer;
mod error;

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tickover_core::duration::Millis;
use tickover_core::id::{QueueName, TaskId, WorkerName};

pub(crate) use answer::{Attempt, Cancelled, ClaimedTask, Closed, Page, Renewed, Single, instant, present};
pub(crate) use error::CallError;

use answer::Claimed;

/// How long an answer may take, a long poll's wait apart: above the 30 s that an HTTP API on AWS allows.
const ANSWER_BOUND: Duration = Duration::from_secs(35);
const CONNECT_BOUND: Duration = Duration::from_secs(5);

/// A server to call.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    endpoint: Url,
}

/// What a worker asks for.
#[derive(Debug, Serialize)]
pub(crate) struct Claim<'a> {
    /// For whom.
    pub(crate) worker: &'a WorkerName,
    /// At most how many tasks.
    pub(crate) max: usize,
    /// For how long without a heartbeat.
    pub(crate) lease: Millis,
    /// How long to wait for the first one.
    pub(crate) wait: Millis,
}

/// How a worker closes an attempt.
#[derive(Debug)]
pub(crate) enum Report {
    /// With this result.
    Complete(Option<Box<RawValue>>),
    /// With an error.
    Fail(Failure),
    /// Undone: somebody else is to have it.
    Release,
}

/// An error to report.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    /// What sort of error.
    pub(crate) code: String,
    /// For people.
    pub(crate) message: String,
    /// Whether another attempt can help.
    pub(crate) retryable: bool,
}

#[derive(Serialize)]
struct ReportBody<'a> {
    lease: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

impl Client {
    /// A client of the server at this address, which may have a path of its own.
    pub(crate) fn new(endpoint: Url) -> anyhow::Result<Self> {
        anyhow::ensure!(
            ["http", "https"].contains(&endpoint.scheme()) && endpoint.has_host(),
            "the endpoint must be an http or https address, not {endpoint}"
        );
        let mut http = reqwest::Client::builder().timeout(ANSWER_BOUND).connect_timeout(CONNECT_BOUND);
        if is_loopback(&endpoint) {
            // A proxy that the environment names would look for the server on its own machine.
            http = http.no_proxy();
        }
        Ok(Self { http: http.build()?, endpoint })
    }

    /// The server's address, to which a path can be appended.
    pub(crate) fn endpoint(&self) -> &str {
        self.endpoint.as_str().trim_end_matches('/')
    }

    /// Schedules a task; the answer is `{"task": …}`.
    pub(crate) async fn schedule(&self, body: &impl Serialize) -> Result<Single, CallError> {
        self.answer(self.http.post(self.url(&["tasks"])).json(body)).await
    }

    /// Reads a task.
    pub(crate) async fn describe(&self, id: &TaskId) -> Result<Single, CallError> {
        self.answer(self.http.get(self.url(&["tasks", id.as_str()]))).await
    }

    /// Reads a page of tasks; the parameters are those of the API.
    pub(crate) async fn list(&self, parameters: &[(&str, String)]) -> Result<Page, CallError> {
        let mut url = self.url(&["tasks"]);
        url.query_pairs_mut().extend_pairs(parameters);
        self.answer(self.http.get(url)).await
    }

    /// Ends a task, or asks its worker to.
    pub(crate) async fn cancel(&self, id: &TaskId, force: bool) -> Result<Cancelled, CallError> {
        let body = serde_json::json!({ "force": force });
        self.answer(self.http.post(self.url(&["tasks", id.as_str(), "cancel"])).json(&body)).await
    }

    /// Revives a task that ended without a result.
    pub(crate) async fn retry(&self, id: &TaskId) -> Result<Single, CallError> {
        let body = serde_json::json!({});
        self.answer(self.http.post(self.url(&["tasks", id.as_str(), "retry"])).json(&body)).await
    }

    /// Takes tasks from a queue; it waits as long as the claim says for the first one.
    pub(crate) async fn claim(
        &self,
        queue: &QueueName,
        claim: &Claim<'_>,
    ) -> Result<Vec<ClaimedTask>, CallError> {
        let request = self.http.post(self.url(&["queues", queue.as_str(), "claim"])).json(claim);
        // An answer that came just after we hung up would leave its tasks with nobody.
        let bound = ANSWER_BOUND + Duration::from(claim.wait);
        let claimed: Claimed = self.answer(request.timeout(bound)).await?;
        Ok(claimed.tasks)
    }

    /// Renews a lease.
    pub(crate) async fn heartbeat(
        &self,
        id: &TaskId,
        lease: &str,
        bound: Duration,
    ) -> Result<Renewed, CallError> {
        let body = ReportBody { lease, output: None, error: None };
        let request = self.http.post(self.url(&["tasks", id.as_str(), "heartbeat"])).json(&body);
        self.answer(request.timeout(bound)).await
    }

    /// Closes an attempt. Repeating it is safe: the first report stands.
    pub(crate) async fn report(
        &self,
        id: &TaskId,
        lease: &str,
        report: &Report,
    ) -> Result<Closed, CallError> {
        let (call, output, error) = match report {
            Report::Complete(output) => ("complete", output.as_deref(), None),
            Report::Fail(error) => ("fail", None, Some(error)),
            Report::Release => ("release", None, None),
        };
        let body = ReportBody { lease, output, error };
        self.answer(self.http.post(self.url(&["tasks", id.as_str(), call])).json(&body)).await
    }

    /// Any call of the API.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        parameters: &[(&str, String)],
        body: Option<&RawValue>,
    ) -> Result<T, CallError> {
        let mut url = self.url(path);
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(parameters);
        }
        let wants_json = method == Method::POST || method == Method::PUT;
        let request = self.http.request(method, url);
        self.answer(match body {
            Some(body) => request.json(body),
            None if wants_json => request.json(&serde_json::json!({})),
            None => request,
        })
        .await
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.endpoint.clone();
        // Only an address without a host can't take a path, and `new` refuses those.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(path);
        }
        url
    }

    async fn answer<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, CallError> {
        let unreachable = |source| CallError::Unreachable { endpoint: self.endpoint.clone(), source };
        let response = request.send().await.map_err(unreachable)?;
        let (status, retry_after) = (response.status(), error::retry_after(response.headers()));
        let body = response.bytes().await.map_err(unreachable)?;
        if !status.is_success() {
            return Err(CallError::refused(status, retry_after, &body));
        }
        serde_json::from_slice(&body)
            .map_err(|source| CallError::Malformed { endpoint: self.endpoint.clone(), source })
    }
}

fn is_loopback(endpoint: &Url) -> bool {
    let host = endpoint.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_endpoint_stays_and_ids_are_one_segment() {
        for (endpoint, expected) in [
            ("http://127.0.0.1:7070", "http://127.0.0.1:7070/v1/tasks/a:b"),
            ("https://example.com/prod/", "https://example.com/prod/v1/tasks/a:b"),
        ] {
            let client = Client::new(endpoint.parse().unwrap()).unwrap();
            assert_eq!(client.url(&["tasks", "a:b"]).as_str(), expected);
        }
        assert!(Client::new("file:///tmp".parse().unwrap()).is_err());
    }

    #[test]
    fn this_machine_is_recognised_in_every_spelling() {
        let local = ["http://localhost:1", "http://127.0.0.2", "http://[::1]:7070"];
        assert!(local.iter().all(|url| is_loopback(&url.parse().unwrap())));
        assert!(!is_loopback(&"https://example.com".parse().unwrap()));
    }
}
