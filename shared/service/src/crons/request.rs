//! The work of a cron's runs: from a request to the text in its record, and back for every run.
//!
//! The text has the request as its caller wrote it, which is what callers read, and beside it the parsed request. Each
//! payload is stored once.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tickover_core::cron::Cron;
use tickover_core::cron::command::Definition;
use tickover_core::cron::run::{IdTemplate, Occurrence, Target};
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution;
use tickover_core::execution::ExecutionTimeouts;
use tickover_core::execution::command::StartPolicy;
use tickover_core::flow::FlowRequest;
use tickover_core::id::{CronId, ExecutionId, QueueName, TaskId};
use tickover_core::kind::Policy;
use tickover_core::lane::Lane;
use tickover_core::payload::{Json, Payload};
use tickover_core::retry::RetryPolicy;
use tickover_core::task;
use tickover_core::task::command::Start;
use tickover_core::timeout::Timeouts;

use super::{CronRequest, CronWork};
use crate::canonical::canonical;
use crate::error::ServiceError;
use crate::executions::StartRequest;
use crate::service::Service;
use crate::tasks::schedule::{Asked, ScheduleRequest, digest};

#[derive(Serialize, Deserialize)]
struct Document<T> {
    #[serde(rename = "g")]
    given: T,
    #[serde(rename = "p", default)]
    parsed: Parsed,
}

/// The parsed request, without payloads and without the fields of the record's target.
#[derive(Default, Serialize, Deserialize)]
struct Parsed {
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    queue: Option<QueueName>,
    #[serde(rename = "r", default, skip_serializing_if = "is_default")]
    retry: RetryPolicy,
    #[serde(rename = "t", default, skip_serializing_if = "is_default")]
    timeouts: Timeouts,
    #[serde(rename = "e", default, skip_serializing_if = "is_default")]
    execution: ExecutionTimeouts,
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    on_failure: Option<Millis>,
    #[serde(rename = "d", default, skip_serializing_if = "is_default")]
    delay: Millis,
    #[serde(rename = "l", default, skip_serializing_if = "is_default")]
    flow: FlowRequest,
    /// Of an execution.
    #[serde(rename = "o", default, skip_serializing_if = "Lane::is_plain")]
    lane: Lane,
}

/// The payloads of a request.
#[derive(Deserialize)]
struct Payloads {
    #[serde(default, deserialize_with = "present")]
    input: Option<Box<RawValue>>,
    #[serde(default)]
    labels: Option<Box<RawValue>>,
    #[serde(default)]
    memo: Option<Box<RawValue>>,
    /// The other fields of which only their presence matters.
    #[expect(clippy::zero_sized_map_values, reason = "serde flattens into maps only")]
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

impl Payloads {
    /// What the request for a task gave and what it left open.
    fn asked(&self) -> Asked {
        let has = |name: &str| self.others.contains_key(name);
        let named = [
            (Policy::Retry, has("retry") || has("retries")),
            (Policy::Concurrency, has("concurrency")),
            (Policy::Priority, has("priority")),
            (Policy::Requires, has("requires")),
        ];
        let given = named.into_iter().filter_map(|(policy, given)| given.then_some(policy)).collect();
        Asked { any_queue: !has("queue"), given, ..Asked::default() }
    }
}

/// A stored request.
pub(super) struct Stored {
    /// As its caller wrote it.
    pub(super) given: Json,
    parsed: Parsed,
}

/// The request for a run, and its id.
pub(super) enum RunRequest {
    Task(Box<ScheduleRequest>, TaskId),
    Execution(Box<StartRequest>, ExecutionId),
}

impl Service {
    /// Checks a request, and turns it into the definition that the core decides on.
    pub(super) async fn define(&self, request: CronRequest) -> Result<Definition, ServiceError> {
        let (target, given, parsed) = match &request.work {
            CronWork::Task(task, given) => (of_task(task), given, parsed_task(task)?),
            CronWork::Execution(start, given) => {
                (Target::Execution { workflow: start.workflow.clone() }, given, parsed_execution(start))
            }
        };
        // Policies always serialise; if one didn't, it would only equal another that doesn't.
        let plan = serde_json::to_string(&request.plan).unwrap_or_default();
        let template = request.template.as_ref().map_or("", |template| template.as_str());
        let begins = request.paused.map_or("", |is_paused| if is_paused { "paused" } else { "active" });
        let fingerprint = digest(&[&canonical(given.as_str()), &plan, template, begins]);
        let id = match request.id {
            Some(id) => id,
            // Random, as the id of an execution.
            None => {
                CronId::parse(self.new_execution_id().to_string()).map_err(|error| error.refused("id"))?
            }
        };
        let document = document(given, parsed)?;
        self.check_runs(&id, &target, request.template.as_ref(), &document)?;
        match &request.work {
            CronWork::Task(task, _) => self.open_queue(&task.queue).await?,
            CronWork::Execution(start, _) => drop(self.queue_for(start).await?),
        }
        Ok(Definition {
            id,
            incarnation: self.new_incarnation(),
            target,
            template: request.template,
            request: document,
            plan: request.plan,
            paused: request.paused,
            fingerprint,
            blob_id: self.new_blob_id(),
        })
    }

    /// Refuses a request if every run would be refused. A run is made from the stored text, and passes the same checks
    /// and the same decision as when it is started.
    fn check_runs(
        &self,
        id: &CronId,
        target: &Target,
        template: Option<&IdTemplate>,
        document: &Json,
    ) -> Result<(), ServiceError> {
        let template = template.cloned().unwrap_or_else(|| IdTemplate::of(id));
        template.check(target).map_err(Reject::from)?;
        let now = self.now();
        let stored = read(document).ok_or_else(unwritable)?;
        match stored.run(target, template.expand(&Occurrence { at: now, manual: true }))? {
            RunRequest::Task(task, id) => {
                self.check_schedule(&task)?;
                let schedule = self.schedule_command(&task, id, None);
                self.decide(None, &task::Command::Schedule(schedule), now).outcome?;
            }
            RunRequest::Execution(start, id) => {
                self.check_start(&start)?;
                let queue = start.queue.clone();
                let start = execution::Command::Start(self.start_of(*start, queue, id, None));
                self.decide(None, &start, now).outcome?;
            }
        }
        Ok(())
    }

    pub(super) async fn request_of(&self, record: &Cron) -> Result<Stored, ServiceError> {
        let corrupt = |what: &str| ServiceError::Corrupt { reason: format!("cron {}: {what}", record.id) };
        let text = match &record.request {
            Payload::Inline(text) => text.clone(),
            Payload::Blob(at) => {
                let body = self.with_retries(|| self.ports.store.blob(&at.id)).await?;
                body.ok_or_else(|| corrupt("its request is gone"))?
            }
        };
        read(&text).ok_or_else(|| corrupt("its request isn't of its own format"))
    }
}

impl Stored {
    /// The request for one run.
    pub(super) fn run(&self, target: &Target, id: String) -> Result<RunRequest, Reject> {
        let payloads: Payloads = serde_json::from_str(self.given.as_str())
            .map_err(|_| Reject::field("task", "expected an object"))?;
        let asked = payloads.asked();
        let input = payloads.input.map(Json::from);
        let labels = payloads.labels.map_or(Ok(None), |raw| labels(&raw))?;
        match target {
            Target::Task { queue, kind } => {
                let id = TaskId::parse(id).map_err(|error| error.refused("id"))?;
                let task = ScheduleRequest {
                    id: Some(id.clone()),
                    idempotency_key: None,
                    queue: queue.clone(),
                    kind: kind.clone(),
                    input,
                    labels,
                    retry: self.parsed.retry.clone(),
                    timeouts: self.parsed.timeouts,
                    flow: self.parsed.flow.clone(),
                    start: Start::After(self.parsed.delay),
                    // Each run starts its own trace, if its worker traces.
                    trace: None,
                    asked,
                };
                Ok(RunRequest::Task(Box::new(task), id))
            }
            Target::Execution { workflow } => {
                let queue = self.parsed.queue.clone().ok_or(Reject::field("queue", "required"))?;
                let id = ExecutionId::parse(id).map_err(|error| error.refused("id"))?;
                let start = StartRequest {
                    id: Some(id.clone()),
                    input,
                    labels,
                    memo: payloads.memo.map(Json::from),
                    timeouts: self.parsed.execution,
                    on_failure: self.parsed.on_failure,
                    delay: self.parsed.delay,
                    lane: self.parsed.lane,
                    flow: Box::new(self.parsed.flow.clone()),
                    policy: StartPolicy::UseExisting,
                    any_queue: asked.any_queue,
                    ..StartRequest::new(workflow.clone(), queue)
                };
                Ok(RunRequest::Execution(Box::new(start), id))
            }
        }
    }
}

/// The request as its caller wrote it, if it is in the record.
pub(super) fn inline(record: &Cron) -> Option<Json> {
    match &record.request {
        Payload::Inline(text) => read(text).map(|stored| stored.given),
        Payload::Blob(_) => None,
    }
}

fn of_task(task: &ScheduleRequest) -> Target {
    Target::Task { queue: task.queue.clone(), kind: task.kind.clone() }
}

fn parsed_task(task: &ScheduleRequest) -> Result<Parsed, Reject> {
    let Start::After(delay) = task.start else {
        return Err(Reject::field(
            "task.run_at",
            "not allowed: every run has its own instant; expected delay",
        ));
    };
    let (retry, flow) = (task.retry.clone(), task.flow.clone());
    Ok(Parsed { retry, timeouts: task.timeouts, flow, delay, ..Parsed::default() })
}

fn parsed_execution(start: &StartRequest) -> Parsed {
    Parsed {
        queue: Some(start.queue.clone()),
        execution: start.timeouts,
        on_failure: start.on_failure,
        lane: start.lane,
        flow: (*start.flow).clone(),
        delay: start.delay,
        ..Parsed::default()
    }
}

fn unwritable() -> Reject {
    Reject::field("body", "expected what can be stored as JSON")
}

fn document(given: &Json, parsed: Parsed) -> Result<Json, Reject> {
    let given: &RawValue = serde_json::from_str(given.as_str()).map_err(|_| unwritable())?;
    serde_json::to_string(&Document { given, parsed }).ok().and_then(Json::parse).ok_or_else(unwritable)
}

fn read(text: &Json) -> Option<Stored> {
    let Document { given, parsed } = serde_json::from_str::<Document<Box<RawValue>>>(text.as_str()).ok()?;
    Some(Stored { given: given.into(), parsed })
}

/// Labels as in a request for the run itself, in the order of their names and without white space; `None` instead of an
/// empty object.
fn labels(raw: &RawValue) -> Result<Option<Json>, Reject> {
    let read: Result<Option<BTreeMap<String, String>>, _> = serde_json::from_str(raw.get());
    let read = read.map_err(|_| Reject::field("labels", "expected an object of strings"))?;
    let labels = read.filter(|labels| !labels.is_empty());
    Ok(labels.and_then(|labels| Json::parse(serde_json::to_string(&labels).ok()?)))
}

/// A value that is present, `null` included.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(value).map(Some)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn the_stored_text_has_the_request_verbatim_and_beside_it_only_what_was_made_of_it() {
        let given = json(r#"{"queue": "q", "kind":"k", "input": {"n": 1.50}, "retry":"fixed(2, 3s)"}"#);
        let parsed = Parsed {
            retry: RetryPolicy::fixed(2, Millis::from_secs(3)),
            delay: Millis::from_secs(5),
            ..Parsed::default()
        };
        let text = document(&given, parsed).unwrap();
        // The format that is in tables.
        let expected = format!(r#"{{"g":{},"p":{{"r":{{"n":3,"d":3000}},"d":5000}}}}"#, given.as_str());
        assert_eq!(text.as_str(), expected);
        let stored = read(&text).unwrap();
        assert_eq!((stored.given, stored.parsed.delay), (given, Millis::from_secs(5)));
    }

    #[test]
    fn an_input_of_null_is_an_input_and_no_labels_are_none() {
        let payloads = |text: &str| serde_json::from_str::<Payloads>(text).unwrap();
        assert_eq!(payloads(r#"{"input": null}"#).input.unwrap().get(), "null");
        assert!(payloads("{}").input.is_none());
        for text in ["{}", " { } ", "null"] {
            assert_eq!(labels(serde_json::from_str(text).unwrap()).unwrap(), None, "{text}");
        }
        let some: &RawValue = serde_json::from_str(r#"{"team": "a",  "area": "b"}"#).unwrap();
        assert_eq!(labels(some).unwrap(), Some(json(r#"{"area":"b","team":"a"}"#)));
    }
}
