//! The calls, sent to the HTTP API.
//!
//! A call that can be sent twice without harm is sent again, a few times, where its answer doesn't come.

mod wire;

use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::execution::command::StartPolicy;
use tickover_core::id::{CronId, EventName, ExecutionId, TaskId};
use tickover_service::crons::CronRequest;
use tickover_service::executions::StartRequest;
use tickover_service::ports::TaskFilter;
use tickover_service::schedule::ScheduleRequest;
use tickover_service::transact::Prepared;

use super::calls::{Again, Calls, End, Hold, List, NewEvent};
use super::{
    Client, ClientError, CronDescription, Crons, Description, Ended, Event, EventSent, Executions,
    TaskDescription, Tasks, TimelineEntry, request,
};

/// How long an answer may take, a long poll's wait apart: above the 30 s that an HTTP API on AWS allows.
const ANSWER_BOUND: Duration = Duration::from_secs(35);
const CONNECT_BOUND: Duration = Duration::from_secs(5);
/// Times a call is sent.
const TRIES: u32 = 4;
/// The pause after the first of them.
const TRY_PAUSE: Millis = Millis::new(200);
/// Where executions are.
const EXECUTIONS: &str = "executions";
/// Where tasks are.
const TASKS: &str = "tasks";
/// Where crons are.
const CRONS: &str = "crons";
/// Characters of a foreign answer that an error repeats.
const EXCERPT_CHARS: usize = 200;

/// An endpoint of the HTTP API.
#[derive(Clone, Debug)]
pub struct Http {
    sender: reqwest::Client,
    endpoint: Url,
    /// In each call.
    headers: HeaderMap,
    /// After the first try; then twice as long each time.
    pause: Millis,
}

impl Http {
    /// An endpoint, such as `http://127.0.0.1:7070`, that needs no credentials.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        let http = reqwest::Client::builder().timeout(ANSWER_BOUND).connect_timeout(CONNECT_BOUND);
        let endpoint = endpoint(url)?;
        // A proxy that the environment names would look for the server on its own machine.
        let http = if is_loopback(&endpoint) { http.no_proxy() } else { http };
        let sender = http.build().map_err(|error| ClientError::invalid("url", chain(&error)))?;
        Ok(Self { sender, endpoint, headers: HeaderMap::new(), pause: TRY_PAUSE })
    }

    /// With this header in each call, such as the token that a gateway in front of the API asks for.
    ///
    /// ```
    /// # fn example(token: &str) -> Result<(), tickover::client::ClientError> {
    /// use tickover::client::{Client, Http};
    ///
    /// let http = Http::new("https://tasks.example.com")?.header("authorization", &format!("Bearer {token}"))?;
    /// let client = Client::from(http);
    /// # Ok(())
    /// # }
    /// # example("t").unwrap();
    /// ```
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, ClientError> {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|problem| ClientError::invalid("header", format_args!("{name:?}: {problem}")))?;
        let mut value = HeaderValue::from_str(value)
            // What it holds may be a secret.
            .map_err(|problem| ClientError::invalid("header", format_args!("{name}: {problem}")))?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(self)
    }

    /// An endpoint that is called with an HTTP client of the caller's own: one that brings the headers that a gateway
    /// in front of the API asks for. Its timeouts have to leave room for long polls of 20 seconds.
    pub fn with(url: &str, sender: reqwest::Client) -> Result<Self, ClientError> {
        Ok(Self { sender, endpoint: endpoint(url)?, headers: HeaderMap::new(), pause: TRY_PAUSE })
    }

    /// The address of a call, whose path is made of these.
    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.endpoint.clone();
        // Only an address without a host can't take a path, and those are refused.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(path);
        }
        url
    }

    /// Sends a call that may be sent more than once.
    async fn call<T: DeserializeOwned>(
        &self,
        request: impl Fn(&reqwest::Client) -> RequestBuilder,
    ) -> Result<T, ClientError> {
        let mut tries = 1;
        loop {
            match self.call_once(request(&self.sender)).await {
                Err(error) if error.is_transient() && tries < TRIES => {
                    self.sleep(self.pause.saturating_mul(1 << (tries - 1))).await;
                    tries += 1;
                }
                answer => return answer,
            }
        }
    }

    async fn call_once<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let unavailable = |error: reqwest::Error| ClientError::Unavailable { reason: chain(&error) };
        let response = request.headers(self.headers.clone()).send().await.map_err(unavailable)?;
        let status = response.status();
        let body = response.bytes().await.map_err(unavailable)?;
        if !status.is_success() {
            return Err(refused(status, &body));
        }
        serde_json::from_slice(&body).map_err(|error| ClientError::Unreadable { reason: error.to_string() })
    }
}

impl From<Http> for Client {
    fn from(http: Http) -> Self {
        Self { calls: std::sync::Arc::new(http) }
    }
}

#[async_trait]
impl Calls for Http {
    fn place(&self) -> String {
        self.endpoint.to_string()
    }

    async fn start(&self, start: StartRequest) -> Result<Description, ClientError> {
        let (url, body) = (self.url(&[EXECUTIONS]), request::start(&start));
        let send = |http: &reqwest::Client| http.post(url.clone()).json(&body);
        // A start that refuses duplicates would be refused for its own first try.
        let answer: wire::One = match start.policy {
            StartPolicy::UseExisting => self.call(send).await?,
            StartPolicy::Reject => self.call_once(send(&self.sender)).await?,
        };
        answer.execution.describe()
    }

    async fn prepare(&self, _: StartRequest) -> Result<Prepared<ExecutionId>, ClientError> {
        Err(ClientError::NotOverHttp { what: "starting in a transaction" })
    }

    async fn announce(&self, _: Prepared<ExecutionId>) -> Result<(), ClientError> {
        Err(ClientError::NotOverHttp { what: "announcing" })
    }

    async fn describe(&self, id: &ExecutionId, wait: Millis) -> Result<Description, ClientError> {
        let mut url = self.url(&[EXECUTIONS, id.as_str()]);
        if !wait.is_zero() {
            url.query_pairs_mut().append_pair("wait", &format!("{}ms", wait.as_u64()));
        }
        let bound = ANSWER_BOUND + Duration::from_millis(wait.as_u64());
        let answer: wire::One = self.call(|http| http.get(url.clone()).timeout(bound)).await?;
        answer.execution.describe()
    }

    async fn list(&self, list: &List) -> Result<Executions, ClientError> {
        let mut url = self.url(&[EXECUTIONS]);
        url.query_pairs_mut().append_pair("workflow", list.workflow.as_str());
        for status in &list.statuses {
            url.query_pairs_mut().append_pair("status", status.as_str());
        }
        add_page(&mut url, list.limit, list.cursor.as_deref());
        let page: wire::Page = self.call(|http| http.get(url.clone())).await?;
        let executions: Result<_, ClientError> =
            page.executions.into_iter().map(wire::View::describe).collect();
        Ok(Executions { executions: executions?, cursor: page.cursor })
    }

    async fn send_event(&self, id: &ExecutionId, event: NewEvent) -> Result<EventSent, ClientError> {
        let url = self.url(&[EXECUTIONS, id.as_str(), "events", event.name.as_str()]);
        let body = wire::send_event(&event);
        let send = |http: &reqwest::Client| http.post(url.clone()).json(&body);
        // Without an id of its own, an event that is sent again is another one.
        let taken: wire::Taken = match event.id {
            Some(_) => self.call(send).await?,
            None => self.call_once(send(&self.sender)).await?,
        };
        Ok(EventSent { duplicate: taken.duplicate, pending: taken.pending })
    }

    async fn events(&self, id: &ExecutionId) -> Result<Vec<Event>, ClientError> {
        let mut url = self.url(&[EXECUTIONS, id.as_str(), "events"]);
        let mut events = Vec::new();
        loop {
            let page: wire::Events = self.call(|http| http.get(url.clone())).await?;
            events.extend(page.events.into_iter().map(Event::from));
            let Some(cursor) = page.cursor else { return Ok(events) };
            url.query_pairs_mut().clear().append_pair("cursor", &cursor);
        }
    }

    async fn clear_events(&self, id: &ExecutionId, name: &EventName) -> Result<u32, ClientError> {
        let url = self.url(&[EXECUTIONS, id.as_str(), "events", name.as_str()]);
        let drained: wire::EventsCleared = self.call_once(self.sender.delete(url)).await?;
        Ok(drained.drained)
    }

    async fn end(&self, id: &ExecutionId, how: End) -> Result<Ended, ClientError> {
        let call = match how {
            End::Cancel => "cancel",
            End::Terminate => "terminate",
        };
        let url = self.url(&[EXECUTIONS, id.as_str(), call]);
        let cancelled: wire::Cancelled = self.call(|http| http.post(url.clone()).json(&json!({}))).await?;
        Ok(cancelled.outcome.into())
    }

    async fn hold(&self, id: &ExecutionId, hold: Hold) -> Result<bool, ClientError> {
        let url = self.url(&[EXECUTIONS, id.as_str(), hold.as_str()]);
        let changed: wire::Changed = self.call_once(self.sender.post(url).json(&json!({}))).await?;
        Ok(changed.changed)
    }

    async fn begin_again(&self, id: &ExecutionId, again: &Again) -> Result<Description, ClientError> {
        let (url, body) = match again {
            Again::Restart => (self.url(&[EXECUTIONS, id.as_str(), "restart"]), json!({})),
            Again::Rerun { steps, preserve } => {
                let body = json!({ "steps": steps, "preserve": preserve });
                (self.url(&[EXECUTIONS, id.as_str(), "rerun"]), body)
            }
            Again::RetryStep { name } => {
                (self.url(&[EXECUTIONS, id.as_str(), "steps", name.as_str(), "retry"]), json!({}))
            }
        };
        let answer: wire::One = self.call_once(self.sender.post(url).json(&body)).await?;
        answer.execution.describe()
    }

    async fn timeline(&self, id: &ExecutionId) -> Result<Vec<TimelineEntry>, ClientError> {
        let url = self.url(&[EXECUTIONS, id.as_str(), "timeline"]);
        let timeline: wire::Timeline = self.call(|http| http.get(url.clone())).await?;
        Ok(timeline.entries)
    }

    async fn schedule(&self, task: ScheduleRequest) -> Result<TaskId, ClientError> {
        let (url, body) = (self.url(&[TASKS]), request::task(&task));
        let answer: wire::OneTask = self.call(|http| http.post(url.clone()).json(&body)).await?;
        Ok(answer.task.id)
    }

    async fn task(&self, id: &TaskId) -> Result<TaskDescription, ClientError> {
        let url = self.url(&[TASKS, id.as_str()]);
        let answer: wire::OneTask = self.call(|http| http.get(url.clone())).await?;
        answer.task.describe()
    }

    async fn tasks(
        &self,
        filter: &TaskFilter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Tasks, ClientError> {
        let mut url = self.url(&[TASKS]);
        if let Some(queue) = &filter.queue {
            url.query_pairs_mut().append_pair("queue", queue.as_str());
        }
        for status in &filter.statuses {
            url.query_pairs_mut().append_pair("status", status.as_str());
        }
        add_page(&mut url, limit, cursor);
        let page: wire::TaskPage = self.call(|http| http.get(url.clone())).await?;
        let tasks: Result<_, ClientError> = page.tasks.into_iter().map(wire::TaskView::describe).collect();
        Ok(Tasks { tasks: tasks?, cursor: page.cursor })
    }

    async fn cancel_task(&self, id: &TaskId, force: bool) -> Result<Ended, ClientError> {
        let url = self.url(&[TASKS, id.as_str(), "cancel"]);
        let body = json!({ "force": force });
        let cancelled: wire::Cancelled = self.call(|http| http.post(url.clone()).json(&body)).await?;
        Ok(cancelled.outcome.into())
    }

    async fn retry_task(&self, id: &TaskId) -> Result<TaskDescription, ClientError> {
        let url = self.url(&[TASKS, id.as_str(), "retry"]);
        let answer: wire::OneTask = self.call_once(self.sender.post(url).json(&json!({}))).await?;
        answer.task.describe()
    }

    async fn define(&self, definition: CronRequest, replace: bool) -> Result<CronDescription, ClientError> {
        let body = wire::cron(&definition);
        let (method, url) = match &definition.id {
            Some(id) if replace => (Method::PUT, self.url(&[CRONS, id.as_str()])),
            Some(_) | None => (Method::POST, self.url(&[CRONS])),
        };
        let send = |http: &reqwest::Client| http.request(method.clone(), url.clone()).json(&body);
        let answer: wire::OneCron = self.call(send).await?;
        Ok(answer.schedule)
    }

    async fn cron(&self, id: &CronId) -> Result<CronDescription, ClientError> {
        let url = self.url(&[CRONS, id.as_str()]);
        let answer: wire::OneCron = self.call(|http| http.get(url.clone())).await?;
        Ok(answer.schedule)
    }

    async fn crons(&self, limit: usize, cursor: Option<&str>) -> Result<Crons, ClientError> {
        let mut url = self.url(&[CRONS]);
        add_page(&mut url, limit, cursor);
        self.call(|http| http.get(url.clone())).await
    }

    async fn hold_cron(&self, id: &CronId, hold: Hold) -> Result<CronDescription, ClientError> {
        let url = self.url(&[CRONS, id.as_str(), hold.as_str()]);
        let answer: wire::OneCron = self.call(|http| http.post(url.clone()).json(&json!({}))).await?;
        Ok(answer.schedule)
    }

    async fn trigger(&self, id: &CronId) -> Result<String, ClientError> {
        let url = self.url(&[CRONS, id.as_str(), "trigger"]);
        let triggered: wire::Triggered = self.call_once(self.sender.post(url).json(&json!({}))).await?;
        Ok(triggered.run)
    }

    async fn delete_cron(&self, id: &CronId) -> Result<(), ClientError> {
        let url = self.url(&[CRONS, id.as_str()]);
        let _: serde::de::IgnoredAny = self.call_once(self.sender.delete(url)).await?;
        Ok(())
    }

    async fn sleep(&self, span: Millis) {
        tokio::time::sleep(Duration::from_millis(span.as_u64())).await;
    }
}

/// Which page of a list.
fn add_page(url: &mut Url, limit: usize, cursor: Option<&str>) {
    let mut query = url.query_pairs_mut();
    query.append_pair("limit", &limit.to_string());
    if let Some(cursor) = cursor {
        query.append_pair("cursor", cursor);
    }
}

impl Hold {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }
}

fn endpoint(url: &str) -> Result<Url, ClientError> {
    let endpoint: Url = url.parse().map_err(|problem| ClientError::invalid("url", problem))?;
    if !matches!(endpoint.scheme(), "http" | "https") || endpoint.cannot_be_a_base() {
        let problem = format!("expected an http or https address, found `{endpoint}`");
        return Err(ClientError::invalid("url", problem));
    }
    Ok(endpoint)
}

fn is_loopback(endpoint: &Url) -> bool {
    let host = endpoint.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The error that an answer with this status and body means.
fn refused(status: StatusCode, body: &[u8]) -> ClientError {
    let busy = [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT];
    let is_transient = status.is_server_error() || busy.contains(&status);
    let (code, message) = if let Ok(problem) = serde_json::from_slice::<wire::Problem>(body) {
        let message = problem.detail.or(problem.title).unwrap_or_else(|| status.to_string());
        (problem.code, message)
    } else {
        // A gateway's or a proxy's own page.
        let text: String = String::from_utf8_lossy(body).trim().chars().take(EXCERPT_CHARS).collect();
        (format!("http_{}", status.as_u16()), if text.is_empty() { status.to_string() } else { text })
    };
    if is_transient {
        ClientError::Unavailable { reason: format!("{code}: {message}") }
    } else {
        ClientError::Refused { code, message }
    }
}

/// An error with its causes, down to "connection refused".
fn chain(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        told = format!("{told}: {error}");
        cause = error.source();
    }
    told
}

#[cfg(test)]
mod tests;
