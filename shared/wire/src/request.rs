//! Requests: bodies, and the queries of addresses.

mod callback;
mod cron;
mod execution;
mod flow;
mod kind;
mod limit;
mod operation;
mod query;
mod report;
mod retry;
mod task;
mod timeout;
mod turn;

use serde::{Deserialize, Serialize};
use tickover_core::error::Reject;

pub use callback::{CallbackFailure, CallbackRequest, CallbackResult};
pub use cron::CronRequest;
pub use execution::{EventMessage, EventRequest, FirstEvent, RerunRequest, RetryStepRequest, StartRequest};
pub use flow::{Concurrency, Debounce, Rate, Unique, UniqueFor};
pub use kind::KindDefaults;
pub use limit::LimitRequest;
pub use operation::{ExecutionSelection, OperationEvent, OperationRequest, TaskSelection};
pub use query::{
    DescribeQuery, EventQuery, ExecutionStatuses, ExecutionsQuery, ExportQuery, FailuresQuery, HistoryQuery,
    PageQuery, ReasonQuery, Statuses, TaskStatuses, TasksQuery, TimelineQuery, ValueQuery, pairs,
};
pub use report::{
    CancelRequest, ClaimRequest, CompleteBatchEntry, CompleteBatchRequest, CompleteRequest, FailError,
    FailRequest, HeartbeatRequest, Nothing, ReleaseRequest,
};
pub use retry::{Codes, Delay, Retry, RetryObject, SteepRetries};
pub use task::{ScheduleBatchRequest, ScheduleRequest};
pub use timeout::{OnTimeout, SteepTimeout, SteepTimeoutObject, TimeoutScope};
pub use turn::{
    AwaitedExecution, BeginLimits, TurnCallbackRequest, TurnCancelRequest, TurnPayloadRequest,
    TurnReadRequest, TurnRelease, TurnStartRequest, TurnSuspension, TurnWriteRequest, WorkRequest,
    WorkerWorkflow,
};

use crate::Verbatim;

/// A batch whose entries aren't parsed yet, so that a wrong entry fails alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// The entries.
    pub tasks: Vec<Verbatim>,
}

/// The refusal of a field together with another field of the same meaning.
pub fn contradiction(field: &str, other: &str) -> Reject {
    Reject::instead_of(field, format_args!("expected only one of {other} and {field}"), "both")
}
