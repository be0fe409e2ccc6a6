//! What workers and operators send.

use serde_json::Value;
use utoipa::ToSchema;

use super::{Lease, Wait};

/// A request for work.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest {
    /// Who asks: shown in the list of attempts.
    pub worker: Option<String>,
    /// At most how many tasks; 1 by default.
    pub max: Option<u8>,
    /// How long the tasks are the worker's without a heartbeat: 1 s to 12 h, 60 s by default.
    pub lease: Option<Lease>,
    /// How long to wait for the first task: at most 20 s, not at all by default.
    pub wait: Option<Wait>,
}

/// A result.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteRequest {
    /// The token that the claim gave.
    pub lease: String,
    /// Any JSON, at most 350 KiB and 64 levels deep. It is kept as it is.
    #[schema(required = false)]
    pub output: Value,
}

/// Many results at once, at most 100.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteBatchRequest {
    /// The results.
    pub tasks: Vec<CompleteBatchEntry>,
}

/// A result among others.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteBatchEntry {
    /// The task's id.
    pub id: String,
    /// The token that the claim gave.
    pub lease: String,
    /// Any JSON, at most 350 KiB and 64 levels deep. It is kept as it is.
    #[schema(required = false)]
    pub output: Value,
}

/// The end of an attempt that failed.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailRequest {
    /// The token that the claim gave.
    pub lease: String,
    /// What went wrong.
    pub error: FailError,
}

/// What went wrong.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailError {
    /// What sort of error: compared with the policy's `non_retryable`. At most 64 bytes of UTF-8.
    pub code: String,
    /// For people. What is longer than a payload may be is cut, and ends by saying so.
    pub message: Option<String>,
    /// Whether trying again can help: `true` by default.
    pub retryable: Option<bool>,
}

/// A sign of life.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatRequest {
    /// The token that the claim gave.
    pub lease: String,
    /// How far the attempt is, from 0 to 1. The next one is told.
    #[schema(minimum = 0.0, maximum = 1.0)]
    pub progress: Option<f64>,
}

/// A task given back.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// The token that the claim gave.
    pub lease: String,
}

/// A cancellation.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// Whether to end the task even while a worker has it: `false` by default.
    pub force: Option<bool>,
}

/// An object without fields; nothing at all will do as well.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}
