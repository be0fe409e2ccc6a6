//! Queries: filters of records, and pages.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use tickover_core::execution::ExecutionStatus;
use tickover_core::id::{ExecutionId, QueueName, TaskId, TaskKind, WorkflowName};
use tickover_core::task::Status;

use crate::{Cursor, FailureCode, Instant, Label, PageLimit, RunNumber, ValueVersion, Wait, Words};

/// A query for tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct TasksQuery {
    /// Only tasks of this queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueName>,
    /// Only records with these statuses, separated by commas; may be repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatuses>,
    /// Whether `failed` includes `timed_out`: `false` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_timed_out: Option<bool>,
    /// Only tasks of this kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<TaskKind>,
    /// Only tasks with this label: `name=value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// Only tasks that have failed or timed out with an error of this code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<FailureCode>,
    /// Only tasks that were scheduled at this instant or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_from: Option<Instant>,
    /// Only tasks that were scheduled before this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_before: Option<Instant>,
    /// Only tasks that ended at this instant or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_from: Option<Instant>,
    /// Only tasks that ended before this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_before: Option<Instant>,
    /// Whether only those are listed that wait and get no worker before somebody acts: their queue is paused, or none of its
    /// workers has said that it provides what they require. `false` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<bool>,
    /// Only tasks whose id begins with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_prefix: Option<TaskId>,
    /// The number of records on a page, at most: 1 to 500, 50 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<PageLimit>,
    /// The `cursor` of the page before, with the same filters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// A query for executions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct ExecutionsQuery {
    /// Only executions of this workflow. A deployment on AWS needs it, unless `status` is `failed`, `timed_out` or both, or
    /// the deployment lists all executions (`TICKOVER_LISTS=all`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowName>,
    /// Only records with these statuses, separated by commas; may be repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ExecutionStatuses>,
    /// Whether `failed` includes `timed_out`: `false` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_timed_out: Option<bool>,
    /// Only executions with this label: `name=value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// Only executions that have failed with an error of this code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<FailureCode>,
    /// Only executions that were started at this instant or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_from: Option<Instant>,
    /// Only executions that were started before this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_before: Option<Instant>,
    /// Only executions that ended at this instant or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_from: Option<Instant>,
    /// Only executions that ended before this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_before: Option<Instant>,
    /// Whether only those are listed that may need an operator: they are paused, or no worker can continue them (`stuck`).
    /// `false` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<bool>,
    /// Only executions whose id begins with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_prefix: Option<ExecutionId>,
    /// The number of records on a page, at most: 1 to 500, 50 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<PageLimit>,
    /// The `cursor` of the page before, with the same filters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// A query for the history of the last day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct HistoryQuery {
    /// Only of this queue; without it, of all queues together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueName>,
    /// Only parts that begin at this instant or later. The day's beginning by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Instant>,
}

/// A query for what has failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct FailuresQuery {
    /// Only what ended at this instant or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_from: Option<Instant>,
    /// Only what ended before this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_before: Option<Instant>,
}

/// Why an operator's call, or one that cancels, is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct ReasonQuery {
    /// Why the call is made, at most 128 bytes: what it changes says so, with the caller, and so does the audit line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A query for a page, without filters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct PageQuery {
    /// The number of records on a page, at most: 1 to 500, 50 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<PageLimit>,
    /// The `cursor` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// A query for the export of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct ExportQuery {
    /// The run, if not the current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunNumber>,
    /// Whether the inputs and results are wanted, too: `false` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payloads: Option<bool>,
    /// The `cursor` of the part before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// A query for the timeline of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct TimelineQuery {
    /// The run, if not the current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunNumber>,
}

/// How an execution is described.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct DescribeQuery {
    /// How long to wait for the outcome: at most 20 s, not at all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// An earlier run: the execution as it was at the end of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunNumber>,
}

/// The query of a published value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct ValueQuery {
    /// How long to wait for a later version: at most 20 s, not at all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// The version that the caller has: with `wait`, the answer comes once there is a later one. 0 by default: then it
    /// comes once anything is published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<ValueVersion>,
}

/// The query of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct EventQuery {
    /// Asks for the answer of the execution's code, and how long to wait for it: at most 20 s. If it isn't there by then, the
    /// status is 202. The same call with the `event_id` of that answer waits again, and sends nothing twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Wait>,
}

/// Statuses of tasks.
pub type TaskStatuses = Statuses<Status>;
/// Statuses of executions.
pub type ExecutionStatuses = Statuses<ExecutionStatus>;

/// Statuses, separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statuses<T>(pub Vec<T>);

impl<T: Words> Serialize for Statuses<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let words: Vec<_> = self.0.iter().map(Words::as_word).collect();
        serializer.serialize_str(&words.join(","))
    }
}

impl<'de, T: Words> Deserialize<'de> for Statuses<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<T>(PhantomData<T>);

        impl<T: Words> Visitor<'_> for List<T> {
            type Value = Statuses<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                let words: Vec<_> = T::ALL.iter().map(Words::as_word).collect();
                write!(formatter, "one or more of {}", words.join(", "))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Statuses<T>, E> {
                let status = |word: &str| {
                    T::of_word(word.trim()).ok_or_else(|| E::invalid_value(Unexpected::Str(word), &self))
                };
                text.split(',').map(status).collect::<Result<_, _>>().map(Statuses)
            }
        }

        deserializer.deserialize_str(List(PhantomData))
    }
}

/// A query as names and values, not yet percent-encoded. Only for the queries of this module: lists, objects and `null`
/// are left out.
pub fn pairs<T: Serialize>(query: &T) -> Vec<(String, String)> {
    let Ok(Value::Object(fields)) = serde_json::to_value(query) else { return vec![] };
    let pair = |(name, value): (String, Value)| match value {
        Value::String(text) => Some((name, text)),
        Value::Bool(_) | Value::Number(_) => Some((name, value.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    fields.into_iter().filter_map(pair).collect()
}
