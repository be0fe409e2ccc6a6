//! What requests look like, for the `OpenAPI` document. They are read field by field elsewhere, so that every
//! error can name its field; a test holds the two to the same fields.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

mod crons;
mod execution;
mod policy;
mod report;
mod words;

pub use crons::CronRequest;
pub use execution::{EventRequest, RerunRequest, StartRequest};
pub use policy::{
    Delay, Duration, Interval, Lease, RetryObject, RetryPolicy, RunTimeout, SteepRetries, SteepTimeout,
    SteepTimeoutObject, Timeout, Wait,
};
pub use report::{
    CancelRequest, ClaimRequest, CompleteBatchEntry, CompleteBatchRequest, CompleteRequest, FailError,
    FailRequest, HeartbeatRequest, Nothing, ReleaseRequest,
};
pub use words::{Jitter, Missed, OnTimeout, Overlap, StartPolicy, TimeoutScope};

/// A request for a task.
///
/// Each duration may also be given under its name with `_seconds` or `_ms`, as a whole number in that unit.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleRequest {
    /// Where workers find it.
    pub queue: String,
    /// What sort of work it is.
    pub kind: String,
    /// Any JSON, at most 350 KiB and 64 levels deep. It is kept as it is.
    #[schema(required = false)]
    pub input: Value,
    /// Its id; at random if none is given. The same request again under one id finds the task.
    pub id: Option<String>,
    /// Makes the request repeatable for 24 hours, and as long as its task is open. At most 256 bytes.
    pub idempotency_key: Option<String>,
    /// From when a worker may have it, counted from now: at most a year.
    pub delay: Option<Duration>,
    /// `delay` in whole seconds.
    pub delay_seconds: Option<u64>,
    /// `delay` in whole milliseconds.
    pub delay_ms: Option<u64>,
    /// From when a worker may have it, instead of `delay`: RFC 3339 with any offset, at most a year ahead.
    #[schema(format = DateTime)]
    pub run_at: Option<String>,
    /// The time it has in all, from scheduling: it ends at that deadline whatever attempts are left.
    pub timeout: Option<Timeout>,
    /// `timeout` in whole seconds.
    pub timeout_seconds: Option<u64>,
    /// `timeout` in whole milliseconds.
    pub timeout_ms: Option<u64>,
    /// `global` (default), or `per_attempt`: then `timeout` counts from each claim, and is final.
    pub timeout_scope: Option<TimeoutScope>,
    /// How long each attempt may wait for a worker.
    pub schedule_to_start_timeout: Option<Timeout>,
    /// The same in whole seconds.
    pub schedule_to_start_timeout_seconds: Option<u64>,
    /// The same in whole milliseconds.
    pub schedule_to_start_timeout_ms: Option<u64>,
    /// How long each attempt may run, from its claim.
    pub start_to_close_timeout: Option<Timeout>,
    /// The same in whole seconds.
    pub start_to_close_timeout_seconds: Option<u64>,
    /// The same in whole milliseconds.
    pub start_to_close_timeout_ms: Option<u64>,
    /// How long an attempt may go without a heartbeat.
    pub heartbeat_timeout: Option<Timeout>,
    /// The same in whole seconds.
    pub heartbeat_timeout_seconds: Option<u64>,
    /// The same in whole milliseconds.
    pub heartbeat_timeout_ms: Option<u64>,
    /// What the timeouts of an attempt do: `retry` (default) while attempts are left, or `terminal`.
    pub on_timeout: Option<OnTimeout>,
    /// Whether a timeout counts as an error (default). If not, it ends in `cancelled`, which is never retried.
    pub error_on_timeout: Option<bool>,
    /// How it is tried again; by default it isn't.
    pub retry: Option<RetryPolicy>,
    /// At most 16, with names of 1 to 64 and values of at most 256 characters, 4 KiB in all.
    pub labels: Option<BTreeMap<String, String>>,
    /// Steep's heartbeat timeout.
    #[schema(rename = "maxInactivity")]
    pub max_inactivity: Option<SteepTimeout>,
    /// Steep's start-to-close timeout.
    #[schema(rename = "maxRuntime")]
    pub max_runtime: Option<SteepTimeout>,
    /// Steep's timeout over all attempts.
    pub deadline: Option<SteepTimeout>,
    /// Steep's name for `retry`.
    pub retries: Option<RetryPolicy>,
    /// The trace that it belongs to, instead of the header of that name: W3C's trace context. What isn't one is ignored.
    pub traceparent: Option<String>,
}

/// Many requests at once, at most 100.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleBatchRequest {
    /// The requests.
    pub tasks: Vec<ScheduleRequest>,
}
