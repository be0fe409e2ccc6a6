//! Requests of workers and operators.

use serde::{Deserialize, Serialize};
use tickover_core::id::{Capability, TaskId, WorkerName, WorkerVersion};

use crate::text::lossy;
use crate::verbatim::present;
use crate::{ClaimCount, FailureCode, Lease, LeaseToken, Progress, Verbatim, Wait};

/// A request for work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClaimRequest {
    /// The worker's name. It is shown in the list of attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
    /// The version of the worker's code. It is shown in the list of workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<WorkerVersion>,
    /// The number of tasks, at most; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<ClaimCount>,
    /// How long the leases last without a heartbeat: 1 s to 12 h, 60 s by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// How long to wait for the first task: at most 20 s, not at all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// Whether all tasks are of one kind and have the same `fairness_key`, or none: those of the first task. Messages of
    /// other tasks are given back at once. `false` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_key: Option<bool>,
    /// How long after the first task to wait for others, up to `max`: at most 20 s, at most half of `lease`, and at most
    /// 25 s together with `wait`. Not at all by default. The leases begin when this time is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill: Option<Wait>,
    /// What the worker provides, such as `gpu`, at most 32 names: it gets no task that requires anything else. Workers
    /// of the queue count as providing it from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(max_items = 32))]
    pub provides: Option<Vec<Capability>>,
}

/// A result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CompleteRequest {
    /// The token that the claim gave.
    pub lease: LeaseToken,
    /// Any JSON, at most 350 KiB and 64 levels deep. It is kept as it is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output: Option<Verbatim>,
}

/// Many results at once, at most 100.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CompleteBatchRequest {
    /// The results.
    #[cfg_attr(feature = "schema", schema(max_items = 100))]
    pub tasks: Vec<CompleteBatchEntry>,
}

/// A result among others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CompleteBatchEntry {
    /// The task's id.
    pub id: TaskId,
    /// The token that the claim gave.
    pub lease: LeaseToken,
    /// Any JSON, at most 350 KiB and 64 levels deep. It is kept as it is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output: Option<Verbatim>,
}

/// The end of an attempt that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailRequest {
    /// The token that the claim gave.
    pub lease: LeaseToken,
    /// What went wrong.
    pub error: FailError,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailError {
    /// The kind of error. It is compared with the policy's `non_retryable`. A longer one than 64 bytes of UTF-8 is cut.
    pub code: FailureCode,
    /// For people. A message longer than the limit of a payload is cut, with a note at its end. Half a surrogate pair is
    /// replaced by U+FFFD, here and in the code.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lossy")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub message: Option<String>,
    /// Whether a retry can succeed: `true` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}

/// A heartbeat: the worker and its work are alive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HeartbeatRequest {
    /// The token that the claim gave.
    pub lease: LeaseToken,
    /// The attempt's progress, from 0 to 1. The next attempt gets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Details of the progress: any JSON of at most 512 bytes. The next attempt gets them.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub details: Option<Verbatim>,
    /// Whether it says only that the worker is alive, and nothing about its work: it extends the lease, and the
    /// heartbeat timeout isn't restarted. For heartbeats that a worker sends by a timer. `false` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_only: Option<bool>,
}

/// The release of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReleaseRequest {
    /// The token that the claim gave.
    pub lease: LeaseToken,
}

/// A cancellation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CancelRequest {
    /// Whether to end the task even while a worker has leased it: `false` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

/// An object without fields. The body may also be empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Nothing {}
