//! A call of the API, and its transport: over HTTP, or directly to the service.

use async_trait::async_trait;
use serde::Serialize;
use tickover_core::duration::Millis;
use tickover_core::id::{CronId, EventName, ExecutionId, OperationId, QueueName, StepName, TaskId, TaskKind};
use tickover_service::transact::Prepared;
use tickover_wire::request::pairs;

use super::ClientError;

/// Sends calls to the system.
#[async_trait]
pub(super) trait Transport: Send + Sync {
    /// The target of the calls, for people.
    fn place(&self) -> String;

    /// Sends a call and returns the body of the answer. If the answer is lost, an idempotent call is sent again.
    async fn send(&self, call: Call) -> Result<Vec<u8>, ClientError>;

    /// Returns the writes that start an execution. The body is that of [`Route::Start`].
    async fn prepare(&self, body: &str) -> Result<Prepared<ExecutionId>, ClientError>;

    /// Sends the hints of work that was prepared.
    async fn announce(&self, prepared: Prepared<ExecutionId>) -> Result<(), ClientError>;

    /// Returns after this long.
    async fn sleep(&self, span: Millis);
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) route: Route,
    /// Names and values.
    pub(super) query: Vec<(String, String)>,
    /// JSON; empty without one.
    pub(super) body: String,
    /// How long the system may wait before it answers.
    #[cfg_attr(not(feature = "client-local"), expect(dead_code, reason = "only HTTP needs a timeout"))]
    pub(super) wait: Millis,
    /// Whether the call is idempotent.
    #[cfg_attr(not(feature = "client-local"), expect(dead_code, reason = "only networks lose answers"))]
    pub(super) is_repeatable: bool,
    /// Whether it changes something.
    #[cfg_attr(not(feature = "direct"), expect(dead_code, reason = "a server sees to it"))]
    pub(super) changes: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Route {
    Health,

    Schedule,
    Task(TaskId),
    Tasks,
    CancelTask(TaskId),
    RetryTask(TaskId),

    Claim(QueueName),
    Heartbeat(TaskId),
    Complete(TaskId),
    Fail(TaskId),
    Release(TaskId),

    CreateCallback(TaskId),
    CompleteCallback(String),
    FailCallback(String),
    CallbackHeartbeat(String),

    Queues,
    Queue(QueueName),
    PauseQueue(QueueName),
    ResumeQueue(QueueName),
    Kinds(QueueName),
    Kind(QueueName, TaskKind),
    SetKind(QueueName, TaskKind),
    DeleteKind(QueueName, TaskKind),

    Start,
    Execution(ExecutionId),
    Executions,
    Workflows,
    Timeline(ExecutionId),
    Runs(ExecutionId),
    Export(ExecutionId),
    Cancel(ExecutionId),
    Terminate(ExecutionId),
    Pause(ExecutionId),
    Resume(ExecutionId),
    Restart(ExecutionId),
    Rerun(ExecutionId),
    RetryStep(ExecutionId, StepName),
    Events(ExecutionId),
    SendEvent(ExecutionId, EventName),
    ClearEvents(ExecutionId, EventName),

    CreateCron,
    ReplaceCron(CronId),
    Cron(CronId),
    Crons,
    PauseCron(CronId),
    ResumeCron(CronId),
    TriggerCron(CronId),
    DeleteCron(CronId),

    /// Of the key in this form: see [`tickover_core::id::FlowKey::to_path`].
    Limit(String),
    SetLimit(String),
    UnsetLimit(String),
    ResetRate(String),
    /// Of the holder with this text: see [`tickover_core::id::Owner`].
    ReleasePlace(String, String),

    StartOperation,
    Operation(OperationId),
    Operations,
    StopOperation(OperationId),
}

impl Call {
    /// A call that changes nothing.
    pub(super) const fn read(route: Route) -> Self {
        Self {
            route,
            query: vec![],
            body: String::new(),
            wait: Millis::ZERO,
            is_repeatable: true,
            changes: false,
        }
    }

    /// The same, with a query.
    pub(super) fn find(route: Route, query: &impl Serialize) -> Self {
        Self { query: pairs(query), ..Self::read(route) }
    }

    /// A call that changes something and needs only its path.
    pub(super) fn change(route: Route) -> Self {
        Self { body: "{}".to_owned(), is_repeatable: false, changes: true, ..Self::read(route) }
    }

    /// The same, with a body.
    pub(super) fn with(route: Route, body: &impl Serialize) -> Result<Self, ClientError> {
        Ok(Self { body: body_of(body)?, ..Self::change(route) })
    }

    /// The same, idempotent or not.
    pub(super) fn repeatable(self, is_repeatable: bool) -> Self {
        Self { is_repeatable, ..self }
    }

    /// The same, for which the system may wait this long before it answers.
    pub(super) fn wait(self, wait: Millis) -> Self {
        Self { wait, ..self }
    }
}

/// A request as JSON.
pub(super) fn body_of(request: &impl Serialize) -> Result<String, ClientError> {
    serde_json::to_string(request).map_err(|problem| ClientError::invalid("body", problem))
}
