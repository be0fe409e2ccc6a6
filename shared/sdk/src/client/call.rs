//! A call of the API, and its transport: over HTTP, or directly to the service.

use async_trait::async_trait;
use serde::Serialize;
use tickover_core::duration::Millis;
use tickover_core::id::{
    CronId, EventName, ExecutionId, FlowKey, OperationId, QueueName, StepName, TaskId, TaskKind,
};
use tickover_service::transact::Prepared;
use tickover_wire::request::pairs;

use super::ClientError;

/// Sends calls to the system.
#[async_trait]
pub(super) trait Transport: Send + Sync {
    /// The target of the calls, for people.
    fn place(&self) -> String;

    /// Sends a call and returns the body of the answer. If the answer is lost, an idempotent call is sent again.
    async fn send(&self, call: Call<'_>) -> Result<Vec<u8>, ClientError>;

    /// Returns the writes that start an execution. The body is that of [`Route::Start`].
    async fn prepare(&self, body: &str) -> Result<Prepared<ExecutionId>, ClientError>;

    /// Sends the hints of work that was prepared.
    async fn announce(&self, prepared: Prepared<ExecutionId>) -> Result<(), ClientError>;

    /// Returns after this long.
    async fn sleep(&self, span: Millis);
}

#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) route: Route<'a>,
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
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Route<'a> {
    Health,

    Schedule,
    Task(&'a TaskId),
    Tasks,
    CancelTask(&'a TaskId),
    RetryTask(&'a TaskId),

    Claim(&'a QueueName),
    Heartbeat(&'a TaskId),
    Complete(&'a TaskId),
    Fail(&'a TaskId),
    Release(&'a TaskId),

    CreateCallback(&'a TaskId),
    CompleteCallback(&'a str),
    FailCallback(&'a str),
    CallbackHeartbeat(&'a str),

    Queues,
    Queue(&'a QueueName),
    PauseQueue(&'a QueueName),
    ResumeQueue(&'a QueueName),
    Kinds(&'a QueueName),
    Kind(&'a QueueName, &'a TaskKind),
    SetKind(&'a QueueName, &'a TaskKind),
    DeleteKind(&'a QueueName, &'a TaskKind),

    Start,
    Execution(&'a ExecutionId),
    Executions,
    Workflows,
    Timeline(&'a ExecutionId),
    Runs(&'a ExecutionId),
    Export(&'a ExecutionId),
    Cancel(&'a ExecutionId),
    Terminate(&'a ExecutionId),
    Pause(&'a ExecutionId),
    Resume(&'a ExecutionId),
    Restart(&'a ExecutionId),
    Rerun(&'a ExecutionId),
    RetryStep(&'a ExecutionId, &'a StepName),
    Events(&'a ExecutionId),
    SendEvent(&'a ExecutionId, &'a EventName),
    ClearEvents(&'a ExecutionId, &'a EventName),

    CreateCron,
    ReplaceCron(&'a CronId),
    Cron(&'a CronId),
    Crons,
    PauseCron(&'a CronId),
    ResumeCron(&'a CronId),
    TriggerCron(&'a CronId),
    DeleteCron(&'a CronId),

    Limit(&'a FlowKey),
    SetLimit(&'a FlowKey),
    UnsetLimit(&'a FlowKey),
    /// Of the holder with this text: see [`tickover_core::id::Owner`].
    ReleasePlace(&'a FlowKey, &'a str),

    StartOperation,
    Operation(&'a OperationId),
    Operations,
    StopOperation(&'a OperationId),
}

impl<'a> Call<'a> {
    /// A call that changes nothing.
    pub(super) const fn read(route: Route<'a>) -> Self {
        Self { route, query: vec![], body: String::new(), wait: Millis::ZERO, is_repeatable: true }
    }

    /// The same, with a query.
    pub(super) fn find(route: Route<'a>, query: &impl Serialize) -> Self {
        Self { query: pairs(query), ..Self::read(route) }
    }

    /// A call that changes something and needs only its path.
    pub(super) fn change(route: Route<'a>) -> Self {
        Self { body: "{}".to_owned(), is_repeatable: false, ..Self::read(route) }
    }

    /// The same, with a body.
    pub(super) fn with(route: Route<'a>, body: &impl Serialize) -> Result<Self, ClientError> {
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
