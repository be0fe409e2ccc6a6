//! Builds requests of the HTTP API. A cron stores its task or execution in this form.

use serde::Serialize;
use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::flow::{FlowRequest, Priority};
use tickover_core::kind::Policy;
use tickover_core::limits::SPAN_MAX;
use tickover_core::payload::Json;
use tickover_core::timeout::{AttemptTimeout, OnTimeout, Timeouts};
use tickover_service::ports::Ids as _;
use tickover_service::system::SystemIds;
use tickover_wire::request::{self as wire, ScheduleRequest, StartRequest, TimeoutScope};
use tickover_wire::{Labels, PageLimit, Verbatim};

use super::ClientError;
use crate::codec;
use crate::options::IntoMillis;

/// A task with these timeouts, which come from a task's options. `on_timeout` applies to all timeouts of an attempt.
/// The exception is a final timeout of each attempt without a timeout for the whole task: it becomes a `timeout` with
/// the scope "per attempt".
pub(super) fn with_timeouts(task: ScheduleRequest, timeouts: &Timeouts) -> ScheduleRequest {
    let after = |timeout: Option<AttemptTimeout>| timeout.map(|timeout| timeout.after.into());
    let whole = timeouts.schedule_to_close;
    let is_final = |timeout: &AttemptTimeout| timeout.on_timeout == OnTimeout::Terminal;
    let each = timeouts.start_to_close.filter(|each| whole.is_none() && is_final(each));
    let close = timeouts.start_to_close.filter(|_| each.is_none());
    let attempt_timeouts = [timeouts.schedule_to_start, close, timeouts.heartbeat];
    let does = |what| attempt_timeouts.iter().flatten().any(|timeout| timeout.on_timeout == what);
    let cancels = does(OnTimeout::Cancel) || whole.is_some_and(|whole| !whole.is_error);
    ScheduleRequest {
        timeout: whole.map(|whole| whole.after.into()).or(after(each)),
        timeout_scope: each.map(|_| TimeoutScope::PerAttempt.into()),
        schedule_to_start_timeout: after(timeouts.schedule_to_start),
        start_to_close_timeout: after(close),
        heartbeat_timeout: after(timeouts.heartbeat),
        on_timeout: does(OnTimeout::Terminal).then(|| wire::OnTimeout::Terminal.into()),
        error_on_timeout: cancels.then_some(false),
        ..task
    }
}

/// A task that asks for this of flow control.
pub(super) fn with_flow(task: ScheduleRequest, flow: &FlowRequest, given: &[Policy]) -> ScheduleRequest {
    let is_given = |policy| given.contains(&policy);
    let concurrency: Vec<_> = flow.concurrency.iter().map(wire::Concurrency::from).collect();
    ScheduleRequest {
        concurrency: (!concurrency.is_empty()).then_some(concurrency),
        rate: flow.rate.as_ref().map(wire::Rate::from),
        priority: (flow.priority != Priority::default() || is_given(Policy::Priority))
            .then_some(flow.priority.into()),
        fairness_key: flow.fairness.clone(),
        unique: flow.unique.as_ref().map(wire::Unique::from),
        debounce: flow.debounce.as_ref().map(wire::Debounce::from),
        requires: (!flow.requires.is_empty() || is_given(Policy::Requires)).then(|| flow.requires.clone()),
        ..task
    }
}

/// An execution whose start is limited so.
pub(super) fn with_limits(start: StartRequest, flow: &FlowRequest) -> StartRequest {
    let concurrency: Vec<_> = flow.concurrency.iter().map(wire::Concurrency::from).collect();
    StartRequest {
        concurrency: (!concurrency.is_empty()).then_some(concurrency),
        rate: flow.rate.as_ref().map(wire::Rate::from),
        fairness_key: flow.fairness.clone(),
        unique: flow.unique.as_ref().map(wire::Unique::from),
        debounce: flow.debounce.as_ref().map(wire::Debounce::from),
        ..start
    }
}

/// A length of time, or `None` for zero.
pub(super) fn unless_zero<S: From<Millis>>(span: Millis) -> Option<S> {
    (!span.is_zero()).then(|| span.into())
}

/// A value as JSON.
pub(super) fn written(field: &str, value: &(impl Serialize + ?Sized)) -> Result<Json, ClientError> {
    codec::encode(value).map_err(|problem| ClientError::invalid(field, problem))
}

/// A value as a payload.
pub(super) fn payload(field: &str, value: &(impl Serialize + ?Sized)) -> Result<Verbatim, ClientError> {
    written(field, value).map(Verbatim)
}

/// Adds a label. Of two labels with one name, the last one counts.
pub(super) fn add_label(labels: &mut Option<Labels>, name: String, value: String) {
    labels.get_or_insert_default().0.insert(name, value);
}

/// A length of time of at most a year.
pub(super) fn span<S: From<Millis>>(
    field: &str,
    span: impl IntoMillis,
    zero: ZeroRule,
) -> Result<S, ClientError> {
    let span = span.into_millis(zero).map_err(|problem| ClientError::invalid(field, problem))?;
    if span > SPAN_MAX {
        return Err(ClientError::invalid(field, format_args!("must be at most {SPAN_MAX}, not {span}")));
    }
    Ok(span.into())
}

/// The number of records on a page, if it is allowed.
pub(super) fn page(limit: usize) -> Result<PageLimit, ClientError> {
    let (least, most) = (PageLimit::LEAST, PageLimit::MOST);
    if (least..=most).contains(&limit) {
        return Ok(PageLimit(limit));
    }
    let problem = format_args!("expected a whole number from {least} to {most}, found {limit}");
    Err(ClientError::invalid("limit", problem))
}

/// A random id, for a caller that gives none. The client chooses it so that it can repeat a call whose answer was lost.
pub(super) fn random_id() -> String {
    let mut bytes = [0; 16];
    SystemIds.fill(&mut bytes);
    format!("{:032x}", u128::from_be_bytes(bytes))
}
