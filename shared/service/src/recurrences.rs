//! Recurring schedules: made, changed, listed, and started from when they are due.
//!
//! Starting is in two steps, so that every run happens once: the core writes it down, and only then is the task or
//! execution made, under an id that comes from the schedule and the occurrence. Whoever finds a run written down
//! makes it again, and finds it made.

mod drive;
mod request;
mod runs;
mod tell;

use tickover_core::error::Reject;
use tickover_core::id::RecurrenceId;
use tickover_core::payload::Json;
use tickover_core::recurrence::Recurrence;
use tickover_core::recurrence::command::Command;
use tickover_core::recurrence::decision::Reply;
use tickover_core::recurrence::plan::Plan;
use tickover_core::recurrence::run::{IdTemplate, Occurrence, RunState};

use crate::error::ServiceError;
use crate::executions::StartRequest;
use crate::ports::Page;
use crate::schedule::ScheduleRequest;
use crate::service::Service;

/// A request for a schedule, parsed.
#[derive(Clone, Debug)]
pub struct RecurrenceRequest {
    /// Its id; random when absent.
    pub id: Option<RecurrenceId>,
    /// What each of its runs is.
    pub work: RecurringWork,
    /// How the runs' ids are made; from the schedule's own id when absent.
    pub template: Option<IdTemplate>,
    /// When, and how.
    pub plan: Plan,
    /// Whether it begins paused; when it is replaced and nothing is said, it stays as it is.
    pub paused: Option<bool>,
}

/// What each run of a schedule is: a request without an id, and the same as its caller wrote it. The input, labels
/// and memo are taken from there.
#[derive(Clone, Debug)]
pub enum RecurringWork {
    /// A task.
    Task(Box<ScheduleRequest>, Json),
    /// An execution.
    Execution(Box<StartRequest>, Json),
}

/// A schedule that exists now.
#[derive(Clone, Debug)]
pub struct MadeRecurrence {
    /// Its record.
    pub record: Recurrence,
    /// Whether it had existed before.
    pub existed: bool,
}

/// A schedule with all that is known of it.
#[derive(Clone, Debug)]
pub struct DescribedRecurrence {
    /// Its record.
    pub record: Recurrence,
    /// What each of its runs is, as its caller wrote it; absent in lists where it is stored apart.
    pub given: Option<Json>,
    /// Its last runs, in the order in which they came.
    pub runs: Vec<DescribedRun>,
}

/// A run of a schedule.
#[derive(Clone, Debug)]
pub struct DescribedRun {
    /// Which.
    pub occurrence: Occurrence,
    /// The id of its task or execution.
    pub id: String,
    /// What the schedule knows of it.
    pub state: RunState,
    /// Where its task or execution stands; absent in lists, and where there is none.
    pub status: Option<&'static str>,
}

impl Service {
    /// Makes a schedule, or finds the one that the same request made before.
    pub async fn create_recurrence(
        &self,
        request: RecurrenceRequest,
    ) -> Result<MadeRecurrence, ServiceError> {
        let definition = self.define(request).await?;
        let id = definition.id.clone();
        self.make_recurrence(&id, &Command::Create(Box::new(definition))).await
    }

    /// Makes a schedule, or makes an existing one what is asked for now. What it has started goes on.
    pub async fn replace_recurrence(
        &self,
        request: RecurrenceRequest,
    ) -> Result<MadeRecurrence, ServiceError> {
        let definition = self.define(request).await?;
        let id = definition.id.clone();
        self.make_recurrence(&id, &Command::Replace(Box::new(definition))).await
    }

    async fn make_recurrence(
        &self,
        id: &RecurrenceId,
        command: &Command,
    ) -> Result<MadeRecurrence, ServiceError> {
        let (record, reply) = self.ask_recurrence(id, command).await?;
        Ok(MadeRecurrence { record, existed: reply == Reply::Made { existed: true } })
    }

    /// Starts no more runs by plan until it is resumed.
    pub async fn pause_recurrence(&self, id: &RecurrenceId) -> Result<Recurrence, ServiceError> {
        Ok(self.ask_recurrence(id, &Command::Pause).await?.0)
    }

    /// Goes on with the next occurrence.
    pub async fn resume_recurrence(&self, id: &RecurrenceId) -> Result<Recurrence, ServiceError> {
        Ok(self.ask_recurrence(id, &Command::Resume).await?.0)
    }

    /// Starts a run now, whatever the plan says: the schedule, and the id of the run.
    pub async fn trigger_recurrence(&self, id: &RecurrenceId) -> Result<(Recurrence, String), ServiceError> {
        let (record, reply) = self.ask_recurrence(id, &Command::Trigger).await?;
        match reply {
            Reply::Triggered(occurrence) => {
                let run = record.run_id(&occurrence);
                Ok((record, run))
            }
            Reply::Made { .. } | Reply::Done | Reply::StartFirst | Reply::Looked { .. } => {
                Err(ServiceError::Contended)
            }
        }
    }

    /// Forgets a schedule. What it has started is left alone.
    pub async fn delete_recurrence(&self, id: &RecurrenceId) -> Result<(), ServiceError> {
        self.ask_recurrence(id, &Command::Delete).await.map(|_| ())
    }

    /// A schedule, what its runs are, and where the last of them stand.
    pub async fn describe_recurrence(&self, id: &RecurrenceId) -> Result<DescribedRecurrence, ServiceError> {
        let record = self.load_recurrence(id).await?.filter(|record| !record.is_deleted());
        let record = record.ok_or(Reject::NoSchedule)?;
        let given = self.request_of(&record).await?.given;
        let runs = self.describe_runs(&record).await?;
        Ok(DescribedRecurrence { given: Some(given), runs, record })
    }

    /// A page of schedules, in the order in which they were made. Of each only what its record holds.
    pub async fn list_recurrences(
        &self,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DescribedRecurrence>, ServiceError> {
        let page = self.patiently(|| self.ports.store.recurrences(limit, cursor)).await?;
        let live = page.items.into_iter().filter(|record| !record.is_deleted());
        Ok(Page { items: live.map(DescribedRecurrence::inline).collect(), next: page.next })
    }
}

impl DescribedRecurrence {
    /// What the record says by itself.
    pub fn inline(record: Recurrence) -> Self {
        let runs = record.runs.iter().map(|run| DescribedRun {
            occurrence: run.occurrence,
            id: record.run_id(&run.occurrence),
            state: run.state.clone(),
            status: None,
        });
        Self { runs: runs.collect(), given: request::inline(&record), record }
    }
}
