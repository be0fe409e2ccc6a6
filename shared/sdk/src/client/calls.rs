//! What a client asks of the system, however it gets there.

use async_trait::async_trait;
use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionStatus;
use tickover_core::id::{CronId, EventId, EventName, ExecutionId, StepName, TaskId, WorkflowName};
use tickover_core::payload::Json;
use tickover_service::crons::CronRequest;
use tickover_service::executions::StartRequest;
use tickover_service::ports::TaskFilter;
use tickover_service::schedule::ScheduleRequest;
use tickover_service::transact::Prepared;

use super::{
    ClientError, CronDescription, Crons, Description, Ended, Event, EventSent, Executions, TaskDescription,
    Tasks, TimelineEntry,
};

/// The calls. Each is sent once, or as often as is safe.
#[async_trait]
pub(super) trait Calls: Send + Sync {
    /// Where they go, for people.
    fn place(&self) -> String;

    async fn start(&self, request: StartRequest) -> Result<Description, ClientError>;

    async fn prepare(&self, request: StartRequest) -> Result<Prepared<ExecutionId>, ClientError>;

    async fn announce(&self, prepared: Prepared<ExecutionId>) -> Result<(), ClientError>;

    /// As it stands once it has ended, or after this long.
    async fn describe(&self, id: &ExecutionId, wait: Millis) -> Result<Description, ClientError>;

    async fn list(&self, list: &List) -> Result<Executions, ClientError>;

    async fn send_event(&self, id: &ExecutionId, event: NewEvent) -> Result<EventSent, ClientError>;

    async fn events(&self, id: &ExecutionId) -> Result<Vec<Event>, ClientError>;

    async fn clear_events(&self, id: &ExecutionId, name: &EventName) -> Result<u32, ClientError>;

    async fn end(&self, id: &ExecutionId, how: End) -> Result<Ended, ClientError>;

    /// Whether it changed anything.
    async fn hold(&self, id: &ExecutionId, hold: Hold) -> Result<bool, ClientError>;

    async fn begin_again(&self, id: &ExecutionId, again: &Again) -> Result<Description, ClientError>;

    async fn timeline(&self, id: &ExecutionId) -> Result<Vec<TimelineEntry>, ClientError>;

    async fn schedule(&self, task: ScheduleRequest) -> Result<TaskId, ClientError>;

    async fn task(&self, id: &TaskId) -> Result<TaskDescription, ClientError>;

    async fn tasks(
        &self,
        filter: &TaskFilter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Tasks, ClientError>;

    async fn cancel_task(&self, id: &TaskId, force: bool) -> Result<Ended, ClientError>;

    async fn retry_task(&self, id: &TaskId) -> Result<TaskDescription, ClientError>;

    async fn define(&self, request: CronRequest, replace: bool) -> Result<CronDescription, ClientError>;

    async fn cron(&self, id: &CronId) -> Result<CronDescription, ClientError>;

    async fn crons(&self, limit: usize, cursor: Option<&str>) -> Result<Crons, ClientError>;

    async fn hold_cron(&self, id: &CronId, hold: Hold) -> Result<CronDescription, ClientError>;

    /// The id of the run that was started.
    async fn trigger(&self, id: &CronId) -> Result<String, ClientError>;

    async fn delete_cron(&self, id: &CronId) -> Result<(), ClientError>;

    /// Returns after this long.
    async fn sleep(&self, span: Millis);
}

/// Which executions.
#[derive(Clone, Debug)]
pub(super) struct List {
    pub(super) workflow: WorkflowName,
    pub(super) statuses: Vec<ExecutionStatus>,
    pub(super) limit: usize,
    pub(super) cursor: Option<String>,
}

/// An event to offer.
#[derive(Clone, Debug)]
pub(super) struct NewEvent {
    pub(super) name: EventName,
    pub(super) id: Option<EventId>,
    pub(super) payload: Option<Json>,
}

/// How an execution is ended from outside.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Cancel,
    Terminate,
}

/// Whether an execution or a cron may go on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hold {
    Pause,
    Resume,
}

/// How an execution that has ended runs again.
#[derive(Clone, Debug)]
pub(super) enum Again {
    Restart,
    Rerun { steps: Vec<StepName>, preserve: bool },
    RetryStep { name: StepName },
}
