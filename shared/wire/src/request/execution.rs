//! Executions and their events.

use serde::{Deserialize, Serialize};
use tickover_core::id::{EventId, EventName, ExecutionId, FlowKey, QueueName, StepName, WorkflowName};

use super::flow::{Concurrency, Debounce, Rate, Unique};
use crate::verbatim::present;
use crate::{Duration, Labels, PriorityWord, RunTimeout, StartPolicyWord, Verbatim};

/// A request for an execution.
///
/// Each duration may also be given under its name with `_seconds` or `_ms`, as a whole number in that unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StartRequest {
    /// The workflow whose code it runs.
    pub workflow: WorkflowName,
    /// Its id; random by default. A second start with this id returns the execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<ExecutionId>,
    /// The queue of its workers. By default the queue whose workers were the last to announce the workflow, which
    /// workers do when they start; if no worker has announced it, `workflows`, or the only queue there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueName>,
    /// Any JSON, at most 350 KiB and 64 levels deep. It is kept as it is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub input: Option<Verbatim>,
    /// At most 16, with names of 1 to 64 and values of at most 256 characters, 4 KiB in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// Any JSON of at most 4 KiB. It is stored with the execution.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub memo: Option<Verbatim>,
    /// An event that waits for it from the beginning. If the execution is there already, by its id or its `unique` key,
    /// the event is sent to it instead: one of the two happens, never both. One that has ended refuses the event with
    /// `already_terminal`. Not allowed with `debounce`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<FirstEvent>,
    /// The time limit of all its runs together, from now: 1 s to a year.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_timeout: Option<RunTimeout>,
    /// The time limit of each run, from its start: 1 s to a year.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_timeout: Option<RunTimeout>,
    /// The time limit of the workflow's failure handler (`on_failure`), in addition to the other limits: 1 s to a year.
    /// It is only needed if no worker may start a turn in time, because a worker that starts a turn sets it too. A
    /// workflow without a handler ends with its failure when a worker has started a turn, or when this time is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure_timeout: Option<RunTimeout>,
    /// How long from now its first turn is delayed: at most a year.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// At most 3 keys, each with how many of its tasks and executions run at once. An execution has its places from its
    /// first turn until its outcome is final, also while it waits. Of two limits for one key, the later one counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(max_items = 3))]
    pub concurrency: Option<Vec<Concurrency>>,
    /// How fast executions of a key start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// `high`, `normal` (default) or `low`: which turns of the queue start first. Its children have the same, and so
    /// have its remote steps, unless they have `high` or `low` of their own. In SQS it needs `Priorities=on`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityWord>,
    /// Executions of one such key, with their remote steps and children, don't delay those of the others. At most 256
    /// bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness_key: Option<FlowKey>,
    /// While another execution has the key, this one isn't started beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique: Option<Unique>,
    /// Of a burst of starts with the key, only the last one runs. Not allowed with `id`, `delay` or `unique`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debounce: Option<Debounce>,
    /// What happens if an execution of this workflow has the id: `use_existing` (default) answers with that execution,
    /// and ignores the other fields; `reject_duplicate` refuses the start, and its event. If the execution has another workflow, the
    /// start is always refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<StartPolicyWord>,
    /// The trace that it belongs to, instead of the header of that name: W3C's trace context. An invalid value is
    /// ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl StartRequest {
    /// A request with the required fields only.
    pub const fn new(workflow: WorkflowName) -> Self {
        Self {
            workflow,
            id: None,
            queue: None,
            input: None,
            labels: None,
            memo: None,
            event: None,
            execution_timeout: None,
            run_timeout: None,
            on_failure_timeout: None,
            delay: None,
            concurrency: None,
            rate: None,
            priority: None,
            fairness_key: None,
            unique: None,
            debounce: None,
            policy: None,
            traceparent: None,
        }
    }
}

/// The event of a start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FirstEvent {
    /// The event's name.
    pub name: EventName,
    /// Any JSON, at most 350 KiB and 64 levels deep. It is kept as it is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub payload: Option<Verbatim>,
    /// Makes the call repeatable, together with the execution's `id`: of two events with one id, the first is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<EventId>,
}

/// A request for a new run with results of the last one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RerunRequest {
    /// Steps that run again although they completed. Failed steps always run again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<StepName>>,
    /// A step that runs again with all steps and children that began after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<StepName>,
    /// Another input of the workflow. Results that are kept are those of the last run's input.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub input: Option<Verbatim>,
    /// Whether the results of all other steps are kept: `true` by default. If not, only captured values are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserve: Option<bool>,
}

/// How a failed step runs again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RetryStepRequest {
    /// Another input, for a remote step only: the input of any other one is the code's. It counts for this run.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub input: Option<Verbatim>,
}

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EventRequest {
    /// Any JSON, at most 350 KiB and 64 levels deep. It is kept as it is.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub payload: Option<Verbatim>,
    /// Makes the call repeatable: of two events with one id, the first is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<EventId>,
    /// The trace that it belongs to, instead of the header of that name. It becomes the execution's trace, if the
    /// execution has none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// An event from an SQS message. It has no path, so the fields name the execution and the event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventMessage {
    /// The execution's id.
    pub id: ExecutionId,
    /// The event's name.
    pub name: EventName,
    /// As in [`EventRequest`].
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub payload: Option<Verbatim>,
    /// As in [`EventRequest`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<EventId>,
    /// As in [`EventRequest`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}
