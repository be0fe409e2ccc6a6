//! Requests as the HTTP API reads them. A cron keeps what it starts in this form, whichever way it came.

use serde::Serialize;
use serde_json::value::RawValue;
use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::execution::command::StartPolicy;
use tickover_core::id::{ExecutionId, TaskId};
use tickover_core::limits::SPAN_MAX;
use tickover_core::payload::Json;
use tickover_core::retry::{Delay, Jitter, MaxAttempts, RetryPolicy};
use tickover_core::task::command;
use tickover_core::timeout::{AttemptTimeout, OnTimeout, Timeouts};
use tickover_service::executions::StartRequest;
use tickover_service::ports::Ids as _;
use tickover_service::schedule::ScheduleRequest;
use tickover_service::system::SystemIds;

use super::ClientError;
use crate::codec;
use crate::options::IntoMillis;

/// Most entries of a page.
const PAGE_MAX: usize = 500;

/// A start.
#[derive(Serialize)]
pub(super) struct Start<'a> {
    workflow: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    queue: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memo: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_timeout_ms: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_timeout_ms: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_failure_timeout_ms: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'static str>,
}

pub(super) fn start(request: &StartRequest) -> Start<'_> {
    Start {
        workflow: request.workflow.as_str(),
        id: request.id.as_ref().map(ExecutionId::as_str),
        queue: request.queue.as_str(),
        input: raw(request.input.as_ref()),
        labels: raw(request.labels.as_ref()),
        memo: raw(request.memo.as_ref()),
        execution_timeout_ms: request.timeouts.execution,
        run_timeout_ms: request.timeouts.run,
        on_failure_timeout_ms: request.on_failure,
        delay_ms: unless_zero(request.delay),
        policy: match request.policy {
            StartPolicy::UseExisting => None,
            StartPolicy::Reject => Some("reject_duplicate"),
        },
    }
}

/// A task.
#[derive(Serialize)]
pub(super) struct Task<'a> {
    queue: &'a str,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<Retry<'a>>,
    #[serde(flatten)]
    timeouts: Limits,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_at: Option<String>,
}

pub(super) fn task(request: &ScheduleRequest) -> Task<'_> {
    let (delay_ms, run_at) = match request.start {
        command::Start::After(delay) => (unless_zero(delay), None),
        command::Start::At(instant) => (None, Some(instant.to_rfc3339())),
    };
    Task {
        queue: request.queue.as_str(),
        kind: request.kind.as_str(),
        id: request.id.as_ref().map(TaskId::as_str),
        idempotency_key: request.idempotency_key.as_deref(),
        input: raw(request.input.as_ref()),
        labels: raw(request.labels.as_ref()),
        retry: (request.retry != RetryPolicy::none()).then(|| Retry::of(&request.retry)),
        timeouts: Limits::of(&request.timeouts),
        delay_ms,
        run_at,
    }
}

#[derive(Serialize)]
struct Retry<'a> {
    max_attempts: MaxAttempts,
    delay: &'a Delay,
    backoff: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_delay: Option<Millis>,
    jitter: Jitter,
    non_retryable: &'a [String],
}

impl<'a> Retry<'a> {
    fn of(policy: &'a RetryPolicy) -> Self {
        Self {
            max_attempts: policy.max_attempts,
            delay: &policy.delay,
            backoff: policy.backoff,
            max_delay: policy.max_delay,
            jitter: policy.jitter,
            non_retryable: &policy.non_retryable,
        }
    }
}

/// A task's timeouts.
#[derive(Serialize)]
struct Limits {
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_scope: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule_to_start_timeout_ms: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_to_close_timeout_ms: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heartbeat_timeout_ms: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_timeout: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_on_timeout: Option<bool>,
}

impl Limits {
    /// Those that options of a task can come to: they say one thing for all timeouts, but that one of the scope
    /// "per attempt", in the place of one over all attempts, is final.
    fn of(timeouts: &Timeouts) -> Self {
        let after = |timeout: Option<AttemptTimeout>| timeout.map(|timeout| timeout.after);
        let whole = timeouts.schedule_to_close;
        let is_final = |timeout: &AttemptTimeout| timeout.on_timeout == OnTimeout::Terminal;
        let each = timeouts.start_to_close.filter(|each| whole.is_none() && is_final(each));
        let close = timeouts.start_to_close.filter(|_| each.is_none());
        let said = [timeouts.schedule_to_start, close, timeouts.heartbeat];
        let does = |what| said.iter().flatten().any(|timeout| timeout.on_timeout == what);
        let cancels = does(OnTimeout::Cancel) || whole.is_some_and(|whole| !whole.is_error);
        Self {
            timeout_ms: whole.map(|whole| whole.after).or(after(each)),
            timeout_scope: each.map(|_| "per_attempt"),
            schedule_to_start_timeout_ms: after(timeouts.schedule_to_start),
            start_to_close_timeout_ms: after(close),
            heartbeat_timeout_ms: after(timeouts.heartbeat),
            on_timeout: does(OnTimeout::Terminal).then_some("terminal"),
            error_on_timeout: cancels.then_some(false),
        }
    }
}

fn unless_zero(delay: Millis) -> Option<Millis> {
    (!delay.is_zero()).then_some(delay)
}

/// As it was written. What is in a [`Json`] is always JSON.
pub(super) fn raw(json: Option<&Json>) -> Option<&RawValue> {
    json.and_then(|json| serde_json::from_str(json.as_str()).ok())
}

/// A value as JSON.
pub(super) fn written(field: &str, value: &(impl Serialize + ?Sized)) -> Result<Json, ClientError> {
    codec::encode(value).map_err(|problem| ClientError::invalid(field, problem))
}

/// Labels in the order of their names; the last of a name counts.
pub(super) fn labels(labels: Vec<(String, String)>) -> Result<Option<Json>, ClientError> {
    let labels: std::collections::BTreeMap<_, _> = labels.into_iter().collect();
    if labels.is_empty() { Ok(None) } else { written("labels", &labels).map(Some) }
}

/// A length of time of at most a year.
pub(super) fn span(field: &str, span: impl IntoMillis, zero: ZeroRule) -> Result<Millis, ClientError> {
    let span = span.into_millis(zero).map_err(|problem| ClientError::invalid(field, problem))?;
    if span > SPAN_MAX {
        return Err(ClientError::invalid(field, format_args!("must be at most {SPAN_MAX}, not {span}")));
    }
    Ok(span)
}

/// Entries of a page, as many as there may be.
pub(super) fn page(limit: usize) -> Result<usize, ClientError> {
    if (1..=PAGE_MAX).contains(&limit) {
        return Ok(limit);
    }
    let problem = format_args!("expected a whole number from 1 to {PAGE_MAX}, found {limit}");
    Err(ClientError::invalid("limit", problem))
}

/// An id nobody chose. It is chosen here, so that a call whose answer was lost can be sent again.
pub(super) fn random_id() -> String {
    let mut bytes = [0; 16];
    SystemIds.fill(&mut bytes);
    format!("{:032x}", u128::from_be_bytes(bytes))
}
