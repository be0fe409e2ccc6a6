//! A call of the API, and the way it goes: over HTTP, or straight to the service.

use async_trait::async_trait;
use serde::Serialize;
use tickover_core::duration::Millis;
use tickover_core::id::{CronId, EventName, ExecutionId, QueueName, StepName, TaskId};
use tickover_service::transact::Prepared;
use tickover_wire::request::pairs;

use super::ClientError;

/// What carries calls to the system.
#[async_trait]
pub(super) trait Transport: Send + Sync {
    /// Where they go, for people.
    fn place(&self) -> String;

    /// Sends a call, and again where that does no harm and its answer doesn't come. Gives the answer's body.
    async fn send(&self, call: Call<'_>) -> Result<Vec<u8>, ClientError>;

    /// The writes that start an execution. The body is that of [`Route::Start`].
    async fn prepare(&self, body: &str) -> Result<Prepared<ExecutionId>, ClientError>;

    /// Sends the hints of work that was prepared.
    async fn announce(&self, prepared: Prepared<ExecutionId>) -> Result<(), ClientError>;

    /// Returns after this long.
    async fn sleep(&self, span: Millis);
}

/// A call.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) route: Route<'a>,
    /// Names and values.
    pub(super) query: Vec<(String, String)>,
    /// JSON; empty without one.
    pub(super) body: String,
    /// How long the system may wait before it answers.
    #[cfg_attr(not(feature = "client-http"), expect(dead_code, reason = "a network has to be told"))]
    pub(super) wait: Millis,
    /// Whether sending it twice is the same as sending it once.
    #[cfg_attr(not(feature = "client-http"), expect(dead_code, reason = "only networks lose answers"))]
    pub(super) is_repeatable: bool,
}

/// What is called.
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

    Queues,
    Queue(&'a QueueName),
    PauseQueue(&'a QueueName),
    ResumeQueue(&'a QueueName),

    Start,
    Execution(&'a ExecutionId),
    Executions,
    Timeline(&'a ExecutionId),
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

    /// A call that changes something and needs no more than its address.
    pub(super) fn change(route: Route<'a>) -> Self {
        Self { body: "{}".to_owned(), is_repeatable: false, ..Self::read(route) }
    }

    /// The same, with a body.
    pub(super) fn with(route: Route<'a>, body: &impl Serialize) -> Result<Self, ClientError> {
        Ok(Self { body: body_of(body)?, ..Self::change(route) })
    }

    /// The same, where sending it twice may be the same as sending it once.
    pub(super) fn repeatable(self, is_repeatable: bool) -> Self {
        Self { is_repeatable, ..self }
    }

    /// The same, which the system may answer so much later.
    pub(super) fn wait(self, wait: Millis) -> Self {
        Self { wait, ..self }
    }
}

/// A request as JSON.
pub(super) fn body_of(request: &impl Serialize) -> Result<String, ClientError> {
    serde_json::to_string(request).map_err(|problem| ClientError::invalid("body", problem))
}
