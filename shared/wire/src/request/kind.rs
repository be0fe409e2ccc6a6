//! The defaults of a kind of task.

use serde::{Deserialize, Serialize};
use tickover_core::id::{Capability, FlowKey, QueueName, TaskKind};

use super::{Concurrency, Rate, Retry, ScheduleRequest, SteepTimeout};
use crate::{OnTimeoutWord, PriorityWord, Timeout, TimeoutScopeWord};

/// The defaults of a kind of task on a queue: each counts for tasks whose own request leaves it open.
///
/// Each duration may also be given under its name with `_seconds` or `_ms`, as a whole number in that unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KindDefaults {
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
}

// Its fields are those of a `ScheduleRequest`, and can't be one struct with them: serde's `flatten` doesn't go together
// with `deny_unknown_fields`, so an unknown field would be accepted, and it reads each value into a buffer first, which
// loses the text of a payload and the path of a wrong value in the error. `request` names each field of both structs, so
// that a new one doesn't compile before it is decided whether it may be a default.
impl KindDefaults {
    /// A request for a task that gives them all itself.
    pub fn request(self, queue: QueueName, kind: TaskKind) -> ScheduleRequest {
        let Self {
            timeout,
            timeout_scope,
            schedule_to_start_timeout,
            start_to_close_timeout,
            heartbeat_timeout,
            on_timeout,
            error_on_timeout,
            retry,
            concurrency,
            rate,
            priority,
            fairness_key,
            requires,
            max_inactivity,
            max_runtime,
            deadline,
            retries,
        } = self;
        ScheduleRequest {
            queue: Some(queue),
            kind,
            input: None,
            id: None,
            idempotency_key: None,
            delay: None,
            run_at: None,
            timeout,
            timeout_scope,
            schedule_to_start_timeout,
            start_to_close_timeout,
            heartbeat_timeout,
            on_timeout,
            error_on_timeout,
            retry,
            labels: None,
            concurrency,
            rate,
            priority,
            fairness_key,
            unique: None,
            debounce: None,
            requires,
            max_inactivity,
            max_runtime,
            deadline,
            retries,
            traceparent: None,
        }
    }
}
