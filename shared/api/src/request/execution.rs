//! What those send who start executions and operate them.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

use super::{Duration, RunTimeout, StartPolicy};

/// A request for an execution.
///
/// Each duration may also be given under its name with `_seconds` or `_ms`, as a whole number in that unit.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRequest {
    /// Which code.
    pub workflow: String,
    /// Its id; at random if none is given. Starting it again under one id finds it.
    pub id: Option<String>,
    /// Where its workers are. By default the queue whose workers were the last to say that they have the workflow's code,
    /// which they say when they begin; `workflows` if none has.
    pub queue: Option<String>,
    /// Any JSON, at most 350 KiB and 64 levels deep. It is kept as it is.
    #[schema(required = false)]
    pub input: Value,
    /// At most 16, with names of 1 to 64 and values of at most 256 characters, 4 KiB in all.
    pub labels: Option<BTreeMap<String, String>>,
    /// Any JSON of at most 4 KiB, to be found again with it.
    #[schema(required = false)]
    pub memo: Value,
    /// The time that all its runs have together, from now: 1 s to a year.
    pub execution_timeout: Option<RunTimeout>,
    /// `execution_timeout` in whole seconds.
    pub execution_timeout_seconds: Option<u64>,
    /// `execution_timeout` in whole milliseconds.
    pub execution_timeout_ms: Option<u64>,
    /// The time that each run has, from its beginning: 1 s to a year.
    pub run_timeout: Option<RunTimeout>,
    /// `run_timeout` in whole seconds.
    pub run_timeout_seconds: Option<u64>,
    /// `run_timeout` in whole milliseconds.
    pub run_timeout_ms: Option<u64>,
    /// The time of its own that the workflow's code for failures has, beyond every deadline: 1 s to a year. Only
    /// needed where there may be no worker in time, since a worker that takes the execution says it as well. A
    /// workflow without such code ends as it would have, once a worker has taken it or this time is over.
    pub on_failure_timeout: Option<RunTimeout>,
    /// `on_failure_timeout` in whole seconds.
    pub on_failure_timeout_seconds: Option<u64>,
    /// `on_failure_timeout` in whole milliseconds.
    pub on_failure_timeout_ms: Option<u64>,
    /// From when on a worker may take it, counted from now: at most a year.
    pub delay: Option<Duration>,
    /// `delay` in whole seconds.
    pub delay_seconds: Option<u64>,
    /// `delay` in whole milliseconds.
    pub delay_ms: Option<u64>,
    /// What happens if an execution of this workflow has the id: `use_existing` (default) answers with that one,
    /// whatever else was asked for; `reject_duplicate` refuses. One of another workflow is always refused.
    pub policy: Option<StartPolicy>,
    /// The trace that it belongs to, instead of the header of that name: W3C's trace context. What isn't one is ignored.
    pub traceparent: Option<String>,
}

/// A new run with results of the last one.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RerunRequest {
    /// Steps that run again although they had ended well. Those that failed always do.
    pub steps: Option<Vec<String>>,
    /// Whether the results of all other steps are kept: `true` by default. If not, only captured values are.
    pub preserve: Option<bool>,
}

/// An event.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EventRequest {
    /// Any JSON, at most 350 KiB and 64 levels deep. It is kept as it is.
    #[schema(required = false)]
    pub payload: Value,
    /// Makes the call repeatable: of two events with one id, the first stands.
    pub event_id: Option<String>,
    /// The trace that it belongs to, instead of the header of that name: the execution's own, if that has none yet.
    pub traceparent: Option<String>,
}
