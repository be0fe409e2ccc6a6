//! Crons: made, changed, listed, and started from when they are due.
//!
//! Starting is in two steps, so that every run happens once: the core writes it down, and only then is the task or
//! execution made, under an id that comes from the cron and the occurrence. Whoever finds a run written down
//! makes it again, and finds it made.

mod drive;
mod report;
mod request;
mod runs;

use tickover_core::cron::plan::Plan;
use tickover_core::cron::run::{IdTemplate, Occurrence, RunState};
use tickover_core::cron::{Command, Cron, Reply};
use tickover_core::error::Reject;
use tickover_core::id::CronId;
use tickover_core::payload::Json;

use crate::error::ServiceError;
use crate::executions::StartRequest;
use crate::ports::Page;
use crate::service::Service;
use crate::tasks::schedule::ScheduleRequest;

pub(crate) use report::report;

/// A request for a cron, parsed.
#[derive(Clone, Debug)]
pub struct CronRequest {
    /// Its id; random when absent.
    pub id: Option<CronId>,
    /// What each of its runs is.
    pub work: CronWork,
    /// How the runs' ids are made; from the cron's own id when absent.
    pub template: Option<IdTemplate>,
    pub plan: Plan,
    /// Whether it begins paused; when it is replaced and nothing is said, it stays as it is.
    pub paused: Option<bool>,
}

/// What each run of a cron is: a request without an id, and the same as its caller wrote it. The input, labels
/// and memo are taken from there.
#[derive(Clone, Debug)]
pub enum CronWork {
    Task(Box<ScheduleRequest>, Json),
    Execution(Box<StartRequest>, Json),
}

/// A cron that exists now.
#[derive(Clone, Debug)]
pub struct MadeCron {
    pub record: Cron,
    pub existed: bool,
}

/// A cron with all that is known of it.
#[derive(Clone, Debug)]
pub struct DescribedCron {
    pub record: Cron,
    /// What each of its runs is, as its caller wrote it; absent in lists where it is stored apart.
    pub given: Option<Json>,
    /// Its last runs, in the order in which they came.
    pub runs: Vec<DescribedRun>,
}

/// A run of a cron.
#[derive(Clone, Debug)]
pub struct DescribedRun {
    pub occurrence: Occurrence,
    /// The id of its task or execution.
    pub id: String,
    /// What the cron knows of it.
    pub state: RunState,
    /// Where its task or execution stands; absent in lists, and where there is none.
    pub status: Option<&'static str>,
}

impl Service {
    /// Makes a cron, or finds the one that the same request made before.
    pub async fn create_cron(&self, request: CronRequest) -> Result<MadeCron, ServiceError> {
        let definition = self.define(request).await?;
        let id = definition.id.clone();
        self.make_cron(&id, &Command::Create(Box::new(definition))).await
    }

    /// Makes a cron, or makes an existing one what is asked for now. What it has started goes on.
    pub async fn replace_cron(&self, request: CronRequest) -> Result<MadeCron, ServiceError> {
        let definition = self.define(request).await?;
        let id = definition.id.clone();
        self.make_cron(&id, &Command::Replace(Box::new(definition))).await
    }

    async fn make_cron(&self, id: &CronId, command: &Command) -> Result<MadeCron, ServiceError> {
        let (record, reply) = self.ask_cron(id, command).await?;
        Ok(MadeCron { record, existed: reply == Reply::Made { existed: true } })
    }

    /// Starts no more runs by plan until it is resumed.
    pub async fn pause_cron(&self, id: &CronId) -> Result<Cron, ServiceError> {
        Ok(self.ask_cron(id, &Command::Pause).await?.0)
    }

    /// Goes on with the next occurrence.
    pub async fn resume_cron(&self, id: &CronId) -> Result<Cron, ServiceError> {
        Ok(self.ask_cron(id, &Command::Resume).await?.0)
    }

    /// Starts a run now, whatever the plan says: the cron, and the id of the run.
    pub async fn trigger_cron(&self, id: &CronId) -> Result<(Cron, String), ServiceError> {
        let (record, reply) = self.ask_cron(id, &Command::Trigger).await?;
        let Reply::Triggered(occurrence) = reply else { return Err(ServiceError::Contended) };
        let run = record.run_id(&occurrence);
        Ok((record, run))
    }

    /// Forgets a cron. What it has started is left alone.
    pub async fn delete_cron(&self, id: &CronId) -> Result<(), ServiceError> {
        self.ask_cron(id, &Command::Delete).await.map(|_| ())
    }

    /// A cron, what its runs are, and where the last of them stand.
    pub async fn describe_cron(&self, id: &CronId) -> Result<DescribedCron, ServiceError> {
        let record = self.load_cron(id).await?.filter(|record| !record.is_deleted());
        let record = record.ok_or(Reject::NoCron)?;
        let given = self.request_of(&record).await?.given;
        let runs = self.describe_runs(&record).await?;
        Ok(DescribedCron { given: Some(given), runs, record })
    }

    /// A page of crons, in the order in which they were made. Of each only what its record holds.
    pub async fn list_crons(
        &self,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DescribedCron>, ServiceError> {
        let page = self.with_retries(|| self.ports.store.crons(limit, cursor)).await?;
        let live = page.items.into_iter().filter(|record| !record.is_deleted());
        Ok(Page { items: live.map(DescribedCron::inline).collect(), next: page.next })
    }
}

impl DescribedCron {
    /// What the record says by itself.
    pub fn inline(record: Cron) -> Self {
        let runs = record.runs.iter().map(|run| DescribedRun {
            occurrence: run.occurrence,
            id: record.run_id(&run.occurrence),
            state: run.state.clone(),
            status: None,
        });
        Self { runs: runs.collect(), given: request::inline(&record), record }
    }
}
