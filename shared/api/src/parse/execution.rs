//! Requests for executions, and what operators ask of them.

use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::error::Reject;
use tickover_core::execution::command::StartPolicy;
use tickover_core::execution::{ExecutionStatus, ExecutionTimeouts};
use tickover_core::id::{EventId, EventName, ExecutionId, NameError, StepName, WorkflowName};
use tickover_core::limits::WAIT_MAX;
use tickover_core::payload::Json;
use tickover_core::trace::TraceContext;
use tickover_service::executions::StartRequest;

use super::query::{LIMIT_DEFAULT, flag, limit};
use super::schedule::{labels, trace};
use super::timeouts::{duration, span};
use super::{Object, excerpt, queue_name};

/// Where executions go that don't say where.
const QUEUE_DEFAULT: &str = "workflows";
/// Shortest timeout of an execution, a run, or the code that deals with a failure.
pub(crate) const TIMEOUT_MIN: Millis = Millis::from_secs(1);

/// What may happen if an id is taken.
pub(crate) const START_POLICIES: [(&str, StartPolicy); 2] =
    [("use_existing", StartPolicy::UseExisting), ("reject_duplicate", StartPolicy::Reject)];
/// All fields of a start.
pub(crate) const START_FIELDS: &[&str] = &[
    "workflow",
    "id",
    "queue",
    "input",
    "labels",
    "memo",
    "execution_timeout",
    "execution_timeout_seconds",
    "execution_timeout_ms",
    "run_timeout",
    "run_timeout_seconds",
    "run_timeout_ms",
    "on_failure_timeout",
    "on_failure_timeout_seconds",
    "on_failure_timeout_ms",
    "delay",
    "delay_seconds",
    "delay_ms",
    "policy",
    "traceparent",
];
/// The fields of an event.
pub(crate) const EVENT_FIELDS: &[&str] = &["payload", "event_id", "traceparent"];
/// The fields of an event that comes by message, and so has no path to say whose it is.
pub(crate) const EVENT_MESSAGE_FIELDS: &[&str] = &["id", "name", "payload", "event_id", "traceparent"];
/// The fields of a rerun.
pub(crate) const RERUN_FIELDS: &[&str] = &["steps", "preserve"];

/// Reads a start.
pub(crate) fn start(object: &Object<'_>) -> Result<StartRequest, Reject> {
    let workflow = object.require("workflow", "the workflow's name")?;
    let queue = match object.get("queue") {
        Some(field) => queue_name(field.path(), &field.text()?)?,
        None => queue_name("queue", QUEUE_DEFAULT)?,
    };
    Ok(StartRequest {
        id: object.get("id").map(|field| execution_id(field.path(), &field.text()?)).transpose()?,
        input: object.get_with_null("input").map(|field| field.payload()),
        labels: object.get("labels").map(|field| labels(&field)).transpose()?.flatten(),
        memo: object.get("memo").map(|field| field.payload()),
        timeouts: ExecutionTimeouts {
            execution: timeout(object, "execution_timeout")?,
            run: timeout(object, "run_timeout")?,
        },
        on_failure: timeout(object, "on_failure_timeout")?,
        delay: duration(object, "delay", ZeroRule::Allow)?.unwrap_or_default(),
        policy: object
            .get("policy")
            .map_or(Ok(StartPolicy::default()), |field| field.word(&START_POLICIES))?,
        trace: trace(object)?,
        any_queue: object.get("queue").is_none(),
        ..StartRequest::new(workflow.name(WorkflowName::parse)?, queue)
    })
}

fn timeout(object: &Object<'_>, name: &str) -> Result<Option<Millis>, Reject> {
    let Some(span) = span(object, name, ZeroRule::Reject)? else { return Ok(None) };
    if span.length < TIMEOUT_MIN {
        let problem = format!("expected a duration of at least {TIMEOUT_MIN}, found `{}`", span.length);
        return Err(span.field.refuse(problem));
    }
    Ok(Some(span.length))
}

/// An execution's id, from a body or a path.
pub(crate) fn execution_id(field: &str, text: &str) -> Result<ExecutionId, Reject> {
    reachable(field, text, ExecutionId::parse)
}

/// A workflow's name, from a query.
fn workflow_name(field: &str, text: &str) -> Result<WorkflowName, Reject> {
    WorkflowName::parse(text).map_err(|error| Reject::field(field, error))
}

/// An event's name, from a path or a message.
pub(crate) fn event_name(field: &str, text: &str) -> Result<EventName, Reject> {
    reachable(field, text, EventName::parse)
}

/// A step's name, from a path or a list.
pub(crate) fn step_name(field: &str, text: &str) -> Result<StepName, Reject> {
    reachable(field, text, StepName::parse)
}

/// A name that a path can carry: what reads URLs takes dots away.
fn reachable<'t, T>(
    field: &str,
    text: &'t str,
    parse: impl FnOnce(&'t str) -> Result<T, NameError>,
) -> Result<T, Reject> {
    if [".", ".."].contains(&text) {
        return Err(Reject::field(field, format!("expected another name: `{text}` can't be used in a path")));
    }
    parse(text).map_err(|error| Reject::field(field, error))
}

/// What comes with an event.
#[derive(Debug)]
pub(crate) struct EventBody {
    pub(crate) id: Option<EventId>,
    pub(crate) payload: Option<Json>,
    pub(crate) trace: Option<TraceContext>,
}

/// Reads an event's body.
pub(crate) fn event(object: &Object<'_>) -> Result<EventBody, Reject> {
    Ok(EventBody {
        id: object.get("event_id").map(|field| field.name(EventId::parse)).transpose()?,
        payload: object.get_with_null("payload").map(|field| field.payload()),
        trace: trace(object)?,
    })
}

/// Which steps run again, and whether the others' results are kept.
#[derive(Debug)]
pub(crate) struct Rerun {
    pub(crate) steps: Vec<StepName>,
    pub(crate) preserve: bool,
}

/// Reads a rerun.
pub(crate) fn rerun(object: &Object<'_>) -> Result<Rerun, Reject> {
    let entries = object.get("steps").map_or(Ok(vec![]), |field| field.list("a list of steps' names"))?;
    let steps: Result<_, Reject> =
        entries.iter().map(|entry| step_name(entry.path(), &entry.text()?)).collect();
    let preserve = object.get("preserve").map_or(Ok(true), |field| field.boolean())?;
    Ok(Rerun { steps: steps?, preserve })
}

/// How long a description may be waited for; nothing if that isn't asked for.
pub(crate) fn wait_query(query: &[(String, String)]) -> Result<Option<Millis>, Reject> {
    let mut wait = None;
    for (name, value) in query {
        match name.as_str() {
            "wait" if wait.is_some() => return Err(super::object::twice("wait")),
            "wait" => wait = Some(read_wait(value)?),
            unknown => {
                return Err(Reject::field(excerpt(unknown), "unknown parameter; expected only wait"));
            }
        }
    }
    Ok(wait)
}

fn read_wait(text: &str) -> Result<Millis, Reject> {
    let wait = Millis::parse_allowing_zero(text).map_err(|error| Reject::field("wait", error))?;
    if wait > WAIT_MAX {
        let problem = format!("expected a duration from 0ms to {WAIT_MAX}, found `{}`", excerpt(text));
        return Err(Reject::field("wait", problem));
    }
    Ok(wait)
}

/// Which executions, and which page of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExecutionsQuery {
    pub(crate) workflow: WorkflowName,
    pub(crate) statuses: Vec<ExecutionStatus>,
    pub(crate) limit: usize,
    pub(crate) cursor: Option<String>,
}

/// Reads the query's names and values, already percent-decoded. Only `status` may be there more than once.
pub(crate) fn executions_query(query: &[(String, String)]) -> Result<ExecutionsQuery, Reject> {
    let (mut workflow, mut statuses, mut page, mut cursor) = (None, vec![], LIMIT_DEFAULT, None);
    let mut include_timed_out = false;
    for (index, (name, value)) in query.iter().enumerate() {
        let earlier = query.iter().take(index).any(|(earlier, _)| earlier == name);
        if earlier && name != "status" {
            return Err(super::object::twice(excerpt(name)));
        }
        match name.as_str() {
            "workflow" => workflow = Some(workflow_name("workflow", value)?),
            "status" => statuses.extend(statuses_of(value)?),
            "include_timed_out" => include_timed_out = flag(value)?,
            "limit" => page = limit(value)?,
            "cursor" => cursor = Some(value.clone()),
            unknown => {
                let known =
                    "unknown parameter; expected only workflow, status, include_timed_out, limit, cursor";
                return Err(Reject::field(excerpt(unknown), known));
            }
        }
    }
    if include_timed_out && statuses.contains(&ExecutionStatus::Failed) {
        statuses.push(ExecutionStatus::TimedOut);
    }
    statuses.sort_unstable();
    statuses.dedup();
    let workflow =
        workflow.ok_or_else(|| Reject::field("workflow", "required; expected the workflow's name"))?;
    Ok(ExecutionsQuery { workflow, statuses, limit: page, cursor })
}

fn statuses_of(value: &str) -> Result<Vec<ExecutionStatus>, Reject> {
    let status = |name: &str| {
        ExecutionStatus::parse(name.trim()).ok_or_else(|| {
            let known: Vec<_> = ExecutionStatus::ALL.iter().map(|status| status.as_str()).collect();
            let problem = format!("expected one or more of {}, found `{}`", known.join(", "), excerpt(name));
            Reject::field("status", problem)
        })
    };
    value.split(',').map(status).collect()
}

#[cfg(test)]
mod tests;
