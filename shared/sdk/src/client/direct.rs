//! The calls, made on the service itself.

use async_trait::async_trait;
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::{Execution, ExecutionOutcome};
use tickover_core::id::{CronId, EventName, ExecutionId, TaskId};
use tickover_core::payload::{Json, Payload};
use tickover_core::task::Task;
use tickover_service::crons::{CronRequest, DescribedCron};
use tickover_service::executions::StartRequest;
use tickover_service::operate::CancelReply;
use tickover_service::ports::TaskFilter;
use tickover_service::schedule::ScheduleRequest;
use tickover_service::transact::Prepared;
use tickover_service::{Service, ServiceError, describe};

use super::calls::{Again, Calls, End, Hold, List, NewEvent};
use super::{
    ClientError, CronDescription, Crons, Description, Ended, Event, EventSent, Executions, TaskDescription,
    Tasks, TimelineEntry,
};

/// A client without a network.
pub(super) struct Direct {
    service: Service,
}

impl Direct {
    pub(super) const fn new(service: Service) -> Self {
        Self { service }
    }

    /// What a task's record says itself; payloads that lie elsewhere are left out.
    fn of_task(&self, task: Task) -> TaskDescription {
        TaskDescription::of(describe::Described::inline(task), self.service.now())
    }
}

#[async_trait]
impl Calls for Direct {
    fn place(&self) -> String {
        "direct".to_owned()
    }

    async fn start(&self, request: StartRequest) -> Result<Description, ClientError> {
        let started = self.service.start(request).await?;
        Ok(of_record(&started.execution))
    }

    async fn prepare(&self, request: StartRequest) -> Result<Prepared<ExecutionId>, ClientError> {
        Ok(self.service.prepare_start(request).await?)
    }

    async fn announce(&self, prepared: Prepared<ExecutionId>) -> Result<(), ClientError> {
        self.service.announce(prepared).await;
        Ok(())
    }

    async fn describe(&self, id: &ExecutionId, wait: Millis) -> Result<Description, ClientError> {
        let described = if wait.is_zero() {
            self.service.execution(id).await?
        } else {
            self.service.wait_for_execution(id, wait).await?
        };
        let missing = || ServiceError::Rejected(Reject::NoExecution);
        Ok(Description::of(described.ok_or_else(missing)?))
    }

    async fn list(&self, list: &List) -> Result<Executions, ClientError> {
        let List { workflow, statuses, limit, cursor } = list;
        let page = self.service.executions(workflow, statuses, *limit, cursor.as_deref()).await?;
        let executions = page.items.iter().map(of_record).collect();
        Ok(Executions { executions, cursor: page.next })
    }

    async fn send_event(&self, id: &ExecutionId, event: NewEvent) -> Result<EventSent, ClientError> {
        let offered = self.service.send_event(id, event.name, event.id, event.payload).await?;
        Ok(EventSent { duplicate: offered.duplicate, pending: offered.pending })
    }

    async fn events(&self, id: &ExecutionId) -> Result<Vec<Event>, ClientError> {
        let events = self.service.events(id).await?;
        Ok(events
            .into_iter()
            .map(|event| Event {
                name: event.name.to_string(),
                id: event.id.map(|id| id.to_string()),
                payload: event.payload,
                offered_at: event.offered_at,
            })
            .collect())
    }

    async fn clear_events(&self, id: &ExecutionId, name: &EventName) -> Result<u32, ClientError> {
        Ok(self.service.clear_events(id, name.clone()).await?)
    }

    async fn end(&self, id: &ExecutionId, how: End) -> Result<Ended, ClientError> {
        let (_, reply) = match how {
            End::Cancel => self.service.cancel_execution(id).await?,
            End::Terminate => self.service.terminate(id).await?,
        };
        Ok(ended(reply))
    }

    async fn hold(&self, id: &ExecutionId, hold: Hold) -> Result<bool, ClientError> {
        let (_, changed) = match hold {
            Hold::Pause => self.service.pause(id).await?,
            Hold::Resume => self.service.resume(id).await?,
        };
        Ok(changed)
    }

    async fn begin_again(&self, id: &ExecutionId, again: &Again) -> Result<Description, ClientError> {
        let execution = match again {
            Again::Restart => self.service.restart(id).await?,
            Again::Rerun { steps, preserve } => self.service.rerun(id, steps, *preserve).await?,
            Again::RetryStep { name } => self.service.retry_step(id, name.clone()).await?,
        };
        Ok(of_record(&execution))
    }

    #[cfg(feature = "timeline")]
    async fn timeline(&self, id: &ExecutionId) -> Result<Vec<TimelineEntry>, ClientError> {
        let missing = || ServiceError::Rejected(Reject::NoExecution);
        let described = self.service.execution(id).await?.ok_or_else(missing)?;
        let journal = self.service.journal_of(&described.execution).await?;
        let entries = tickover_api::view::timeline(&described, &journal, self.service.now());
        // In the form in which everybody else hears it.
        let read = serde_json::to_vec(&entries).and_then(|json| serde_json::from_slice(&json));
        read.map_err(|error| ClientError::Unreadable { reason: error.to_string() })
    }

    #[cfg(not(feature = "timeline"))]
    async fn timeline(&self, _: &ExecutionId) -> Result<Vec<TimelineEntry>, ClientError> {
        Err(ClientError::invalid("timeline", "without a network, this needs the feature `timeline`"))
    }

    async fn schedule(&self, task: ScheduleRequest) -> Result<TaskId, ClientError> {
        Ok(self.service.schedule(task).await?.task.id)
    }

    async fn task(&self, id: &TaskId) -> Result<TaskDescription, ClientError> {
        Ok(TaskDescription::of(self.service.describe(id).await?, self.service.now()))
    }

    async fn tasks(
        &self,
        filter: &TaskFilter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Tasks, ClientError> {
        let page = self.service.list(filter, limit, cursor).await?;
        let tasks = page.items.into_iter().map(|task| self.of_task(task)).collect();
        Ok(Tasks { tasks, cursor: page.next })
    }

    async fn cancel_task(&self, id: &TaskId, force: bool) -> Result<Ended, ClientError> {
        Ok(ended(self.service.cancel(id, force).await?.1))
    }

    async fn retry_task(&self, id: &TaskId) -> Result<TaskDescription, ClientError> {
        Ok(self.of_task(self.service.retry(id).await?))
    }

    async fn define(&self, request: CronRequest, replace: bool) -> Result<CronDescription, ClientError> {
        let made = if replace {
            self.service.replace_cron(request).await?
        } else {
            self.service.create_cron(request).await?
        };
        Ok(DescribedCron::inline(made.record).into())
    }

    async fn cron(&self, id: &CronId) -> Result<CronDescription, ClientError> {
        Ok(self.service.describe_cron(id).await?.into())
    }

    async fn crons(&self, limit: usize, cursor: Option<&str>) -> Result<Crons, ClientError> {
        let page = self.service.list_crons(limit, cursor).await?;
        let crons = page.items.into_iter().map(CronDescription::from).collect();
        Ok(Crons { crons, cursor: page.next })
    }

    async fn hold_cron(&self, id: &CronId, hold: Hold) -> Result<CronDescription, ClientError> {
        let record = match hold {
            Hold::Pause => self.service.pause_cron(id).await?,
            Hold::Resume => self.service.resume_cron(id).await?,
        };
        Ok(DescribedCron::inline(record).into())
    }

    async fn trigger(&self, id: &CronId) -> Result<String, ClientError> {
        Ok(self.service.trigger_cron(id).await?.1)
    }

    async fn delete_cron(&self, id: &CronId) -> Result<(), ClientError> {
        Ok(self.service.delete_cron(id).await?)
    }

    async fn sleep(&self, span: Millis) {
        self.service.clock().sleep_until(self.service.now().plus(span)).await;
    }
}

const fn ended(reply: CancelReply) -> Ended {
    match reply {
        CancelReply::Cancelled => Ended::Now,
        CancelReply::Requested => Ended::Requested,
        CancelReply::AlreadyFinished => Ended::Before,
    }
}

fn of_record(execution: &Execution) -> Description {
    Description::of_record(execution, output(execution).as_ref())
}

/// A result that lies in the record itself.
fn output(execution: &Execution) -> Option<Json> {
    match &execution.closed()?.outcome {
        ExecutionOutcome::Completed { output: Some(Payload::Inline(json)) } => Some(json.clone()),
        ExecutionOutcome::Completed { output: Some(Payload::Blob(_)) | None }
        | ExecutionOutcome::Failed { .. }
        | ExecutionOutcome::TimedOut { .. }
        | ExecutionOutcome::Cancelled { .. } => None,
    }
}
