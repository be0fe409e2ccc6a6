//! A task.

use serde::{Deserialize, Serialize};
use tickover_core::id::{Capability, FlowKey, QueueName, TaskId, TaskKind};

use super::{Concurrency, Debounce, Rate, Retry, SteepTimeout, Unique};
use crate::verbatim::present;
use crate::{
    Duration, IdempotencyKey, Instant, Labels, OnTimeoutWord, PriorityWord, Timeout, TimeoutScopeWord,
    Verbatim,
};

/// A request for a task.
///
/// Each duration may also be given under its name with `_seconds` or `_ms`, as a whole number in that unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ScheduleRequest {
    /// The queue of its workers. Only a task with `requires` may leave it out: then it is the queue whose workers were the
    /// last to say that they provide all of it, or `workflows` while there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueName>,
    /// What kind of work it is.
    pub kind: TaskKind,
    /// Any JSON, at most 350 KiB and 64 levels deep. It is kept as it is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub input: Option<Verbatim>,
    /// Its id; random by default. A repeated request with this id returns the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<TaskId>,
    /// Makes the request repeatable for 24 hours, and as long as its task is open. At most 256 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
    /// How long from now its first attempt is delayed: at most a year.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// From when a worker may claim it, instead of `delay`: RFC 3339 with any offset, at most a year ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Instant>,
    /// The time limit of the whole task, from scheduling. At this deadline the task ends, even if attempts are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Timeout>,
    /// `global` (default), or `per_attempt`: then `timeout` limits each attempt, from its claim, and is final.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_scope: Option<TimeoutScopeWord>,
    /// How long each attempt may wait for a worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_to_start_timeout: Option<Timeout>,
    /// How long each attempt may run, from its claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_to_close_timeout: Option<Timeout>,
    /// The longest time between two signs of life of an attempt's work: heartbeats that aren't of the worker alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout: Option<Timeout>,
    /// What the timeouts of an attempt do: `retry` (default) while attempts are left, or `terminal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnTimeoutWord>,
    /// Whether a timeout counts as an error (default). If not, it ends in `cancelled`, which is never retried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_on_timeout: Option<bool>,
    /// Its retry policy. By default there are no retries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// At most 16, with names of 1 to 64 and values of at most 256 characters, 4 KiB in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// At most 3 keys, each with how many of its tasks run at once. Of two limits for one key, the later one counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(max_items = 3))]
    pub concurrency: Option<Vec<Concurrency>>,
    /// How fast tasks of a key start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// `high`, `normal` (default) or `low`. In SQS it needs `Priorities=on`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityWord>,
    /// Tasks of one such key don't delay those of the others. At most 256 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness_key: Option<FlowKey>,
    /// While another task has the key, this one isn't scheduled beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique: Option<Unique>,
    /// Of a burst of requests with the key, only the last one runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debounce: Option<Debounce>,
    /// What its worker must provide, such as `gpu`: at most 8 names.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(max_items = 8))]
    pub requires: Option<Vec<Capability>>,
    /// Steep's heartbeat timeout: it restarts with each sign of life.
    #[serde(rename = "maxInactivity", skip_serializing_if = "Option::is_none")]
    pub max_inactivity: Option<SteepTimeout>,
    /// Steep's start-to-close timeout.
    #[serde(rename = "maxRuntime", skip_serializing_if = "Option::is_none")]
    pub max_runtime: Option<SteepTimeout>,
    /// Steep's timeout over all attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<SteepTimeout>,
    /// Steep's name for `retry`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retry>,
    /// The trace that it belongs to, instead of the header of that name: W3C's trace context. An invalid value is
    /// ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl ScheduleRequest {
    /// A request with the required fields only.
    pub const fn new(queue: QueueName, kind: TaskKind) -> Self {
        Self {
            queue: Some(queue),
            kind,
            input: None,
            id: None,
            idempotency_key: None,
            delay: None,
            run_at: None,
            timeout: None,
            timeout_scope: None,
            schedule_to_start_timeout: None,
            start_to_close_timeout: None,
            heartbeat_timeout: None,
            on_timeout: None,
            error_on_timeout: None,
            retry: None,
            labels: None,
            concurrency: None,
            rate: None,
            priority: None,
            fairness_key: None,
            unique: None,
            debounce: None,
            requires: None,
            max_inactivity: None,
            max_runtime: None,
            deadline: None,
            retries: None,
            traceparent: None,
        }
    }
}

/// Many requests at once, at most 100.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ScheduleBatchRequest {
    /// The requests.
    #[cfg_attr(feature = "schema", schema(max_items = 100))]
    pub tasks: Vec<ScheduleRequest>,
}
