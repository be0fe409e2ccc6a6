//! Operations on many executions or tasks.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use serde::Serialize;
use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionStatus;
use tickover_core::id::{EventName, ExecutionId, OperationId, TaskId, TaskKind, WorkflowName};
use tickover_core::operation::Action;
use tickover_core::task::Status;
use tickover_core::time::Timestamp;
use tickover_wire::answer::{OperationStatus, OperationView};
use tickover_wire::request::{ExecutionSelection, OperationEvent, OperationRequest, TaskSelection};
use tickover_wire::{FailureCode, Instant, Label, Word};

use super::request::{payload, random_id};
use super::start::queue_name;
use super::{Client, ClientError};

/// The pause before the second look at an operation; it doubles each time.
const LOOK_AFTER: Millis = Millis::new(50);
/// The upper bound of that pause.
const LOOK_AFTER_MAX: Millis = Millis::from_secs(2);

/// Does the same with many executions. Awaiting it records the operation.
#[must_use = "nothing is done before it is awaited"]
#[derive(Debug)]
pub struct OnExecutions {
    client: Client,
    request: Result<OperationRequest, ClientError>,
}

/// Does the same with many tasks. Awaiting it records the operation.
#[must_use = "nothing is done before it is awaited"]
#[derive(Debug)]
pub struct OnTasks {
    client: Client,
    request: Result<OperationRequest, ClientError>,
}

/// An operation that was recorded.
#[derive(Clone, Debug)]
pub struct OperationHandle {
    client: Client,
    id: OperationId,
}

fn request(action: Action) -> OperationRequest {
    OperationRequest {
        id: None,
        action: action.into(),
        executions: None,
        tasks: None,
        event: None,
        dry_run: None,
        total: None,
    }
}

/// Changes a request that has no error yet.
fn change(
    request: Result<OperationRequest, ClientError>,
    change: impl FnOnce(&mut OperationRequest) -> Result<(), ClientError>,
) -> Result<OperationRequest, ClientError> {
    let mut request = request?;
    change(&mut request)?;
    Ok(request)
}

fn id_of(id: impl Into<String>) -> Result<OperationId, ClientError> {
    OperationId::parse(id).map_err(|problem| ClientError::invalid("id", problem))
}

/// What both kinds of operations have.
macro_rules! operation {
    ($name:ident, $records:ident, $selection:ty) => {
        impl $name {
            pub(super) fn new(client: Client, action: Action) -> Self {
                let selection = <$selection>::default();
                let request = OperationRequest { $records: Some(selection), ..request(action) };
                Self { client, request: Ok(request) }
            }

            fn select(self, set: impl FnOnce(&mut $selection) -> Result<(), ClientError>) -> Self {
                let request = change(self.request, |request| set(request.$records.get_or_insert_default()));
                Self { request, ..self }
            }

            /// The operation's id, random by default. A call with the id of an operation returns that operation.
            pub fn id(self, id: impl Into<String>) -> Self {
                let request = change(self.request, |request| {
                    request.id = Some(id_of(id)?);
                    Ok(())
                });
                Self { request, ..self }
            }

            /// Only counts: nothing is changed.
            pub fn dry_run(self) -> Self {
                let request = change(self.request, |request| {
                    request.dry_run = Some(true);
                    Ok(())
                });
                Self { request, ..self }
            }

            /// How many records there are, if a dry run has counted them: the operation's `total`.
            pub fn total(self, count: u64) -> Self {
                let request = change(self.request, |request| {
                    request.total = Some(count);
                    Ok(())
                });
                Self { request, ..self }
            }

            /// Only records with this label. It replaces the label of an earlier call.
            pub fn label(self, name: impl Into<String>, value: impl Into<String>) -> Self {
                self.select(|selection| {
                    selection.label = Some(Label { name: name.into(), value: value.into() });
                    Ok(())
                })
            }

            /// Only records that have failed with an error of this code.
            pub fn error_code(self, code: impl Into<String>) -> Self {
                self.select(|selection| {
                    selection.error = Some(FailureCode(code.into()));
                    Ok(())
                })
            }
        }

        impl IntoFuture for $name {
            type Output = Result<OperationHandle, ClientError>;
            type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(async move {
                    let mut request = self.request?;
                    if request.id.is_none() {
                        request.id = Some(id_of(random_id())?);
                    }
                    let answer = self.client.api.start_operation(&request).await?;
                    Ok(OperationHandle { client: self.client, id: answer.operation.id })
                })
            }
        }
    };
}

operation!(OnExecutions, executions, ExecutionSelection);
operation!(OnTasks, tasks, TaskSelection);

impl OnExecutions {
    /// Only executions of this workflow. A deployment on AWS needs it, or ids, unless the action is for those that failed,
    /// or the deployment lists all executions (`TICKOVER_LISTS=all`).
    pub fn workflow(self, workflow: impl Into<String>) -> Self {
        self.select(|selection| {
            let workflow = WorkflowName::parse(workflow);
            let workflow = workflow.map_err(|problem| ClientError::invalid("workflow", problem))?;
            selection.workflow = Some(workflow);
            Ok(())
        })
    }

    /// Only this execution. Further calls add more, at most 1,000.
    pub fn only(self, id: impl Into<String>) -> Self {
        self.select(|selection| {
            let id = ExecutionId::parse(id).map_err(|problem| ClientError::invalid("ids", problem))?;
            selection.ids.get_or_insert_default().push(id);
            Ok(())
        })
    }

    /// Only executions with this status. Further calls add more statuses.
    pub fn status(self, status: ExecutionStatus) -> Self {
        self.select(|selection| {
            selection.status.get_or_insert_default().push(Word(status));
            Ok(())
        })
    }

    /// Only executions that were started at this instant or later.
    pub fn started_from(self, instant: Timestamp) -> Self {
        self.select(|selection| {
            selection.started_from = Some(Instant(instant));
            Ok(())
        })
    }

    /// Only executions that were started before this instant.
    pub fn started_before(self, instant: Timestamp) -> Self {
        self.select(|selection| {
            selection.started_before = Some(Instant(instant));
            Ok(())
        })
    }

    /// Only executions that ended at this instant or later.
    pub fn ended_from(self, instant: Timestamp) -> Self {
        self.select(|selection| {
            selection.ended_from = Some(Instant(instant));
            Ok(())
        })
    }

    /// Only executions that ended before this instant.
    pub fn ended_before(self, instant: Timestamp) -> Self {
        self.select(|selection| {
            selection.ended_before = Some(Instant(instant));
            Ok(())
        })
    }

    /// The event to send. Each execution takes it once, however often the operation is repeated.
    pub(super) fn event(self, name: &str, value: &(impl Serialize + ?Sized)) -> Self {
        let request = change(self.request, |request| {
            let name = EventName::parse(name).map_err(|problem| ClientError::invalid("event", problem))?;
            request.event = Some(OperationEvent { name, payload: Some(payload("payload", value)?) });
            Ok(())
        });
        Self { request, ..self }
    }
}

impl OnTasks {
    /// Only tasks of this queue.
    pub fn queue(self, queue: impl Into<String>) -> Self {
        self.select(|selection| {
            selection.queue = Some(queue_name(queue)?);
            Ok(())
        })
    }

    /// Only tasks of this kind.
    pub fn kind(self, kind: impl Into<String>) -> Self {
        self.select(|selection| {
            let kind = TaskKind::parse(kind).map_err(|problem| ClientError::invalid("kind", problem))?;
            selection.kind = Some(kind);
            Ok(())
        })
    }

    /// Only this task. Further calls add more, at most 1,000.
    pub fn only(self, id: impl Into<String>) -> Self {
        self.select(|selection| {
            let id = TaskId::parse(id).map_err(|problem| ClientError::invalid("ids", problem))?;
            selection.ids.get_or_insert_default().push(id);
            Ok(())
        })
    }

    /// Only tasks with this status. Further calls add more statuses.
    pub fn status(self, status: Status) -> Self {
        self.select(|selection| {
            selection.status.get_or_insert_default().push(Word(status));
            Ok(())
        })
    }

    /// Only tasks that were scheduled at this instant or later.
    pub fn created_from(self, instant: Timestamp) -> Self {
        self.select(|selection| {
            selection.created_from = Some(Instant(instant));
            Ok(())
        })
    }

    /// Only tasks that were scheduled before this instant.
    pub fn created_before(self, instant: Timestamp) -> Self {
        self.select(|selection| {
            selection.created_before = Some(Instant(instant));
            Ok(())
        })
    }

    /// Only tasks that ended at this instant or later.
    pub fn ended_from(self, instant: Timestamp) -> Self {
        self.select(|selection| {
            selection.ended_from = Some(Instant(instant));
            Ok(())
        })
    }

    /// Only tasks that ended before this instant.
    pub fn ended_before(self, instant: Timestamp) -> Self {
        self.select(|selection| {
            selection.ended_before = Some(Instant(instant));
            Ok(())
        })
    }
}

impl OperationHandle {
    pub(super) fn new(client: Client, id: impl Into<String>) -> Result<Self, ClientError> {
        Ok(Self { client, id: id_of(id)? })
    }

    /// Its id.
    pub const fn id(&self) -> &OperationId {
        &self.id
    }

    /// What it does, and how far it has come.
    pub async fn describe(&self) -> Result<OperationView, ClientError> {
        Ok(self.client.api.operation(&self.id).await?.operation)
    }

    /// Returns once it is over, with its counts.
    pub async fn ended(&self) -> Result<OperationView, ClientError> {
        let mut pause = LOOK_AFTER;
        loop {
            let operation = self.describe().await?;
            match operation.status.known() {
                Some(OperationStatus::Running | OperationStatus::Stopping) => {}
                Some(OperationStatus::Completed | OperationStatus::Stopped | OperationStatus::Failed)
                | None => {
                    return Ok(operation);
                }
            }
            self.client.api.sleep(pause).await;
            pause = pause.saturating_mul(2).min(LOOK_AFTER_MAX);
        }
    }

    /// Stops it: the page that is under way is its last one, and nothing is undone. It is over once that page is counted,
    /// see [`Self::ended`]. Returns whether that changed anything.
    pub async fn stop(&self) -> Result<bool, ClientError> {
        Ok(self.client.api.stop_operation(&self.id).await?.changed)
    }

    /// Lets it go on after a stop or a failure. Returns whether that changed anything.
    pub async fn resume(&self) -> Result<bool, ClientError> {
        Ok(self.client.api.resume_operation(&self.id).await?.changed)
    }
}
