//! Crons: created, changed, listed, and started when they are due.
//!
//! A run starts in two steps, so that it starts exactly once: the core records the run, and only then its task or
//! execution is created, under an id from the cron and the occurrence. A process that finds a recorded run starts it
//! again, and finds that it exists.

mod drive;
mod report;
mod request;
mod runs;
#[cfg(test)]
mod tests;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tickover_core::cron::plan::Plan;
use tickover_core::cron::run::{IdTemplate, Occurrence, RunState};
use tickover_core::cron::{Command, Cron, Reply};
use tickover_core::error::Reject;
use tickover_core::id::CronId;
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;

use crate::error::ServiceError;
use crate::executions::StartRequest;
use crate::ports::Page;
use crate::service::Service;
use crate::tasks::schedule::ScheduleRequest;

pub(crate) use report::report;

/// Of how many runs of each cron a list has the statuses: the last one may be open, and then the one before has ended.
pub const LISTED: usize = 2;
/// How many of its next occurrences the description of a cron has.
pub const UPCOMING: usize = 10;
/// Of how many crons the runs are read at the same time.
const AT_ONCE: usize = 8;

/// A parsed request for a cron.
#[derive(Clone, Debug)]
pub struct CronRequest {
    /// Its id; random when absent.
    pub id: Option<CronId>,
    /// The work of each of its runs.
    pub work: CronWork,
    /// How the runs' ids are made; from the cron's own id when absent.
    pub template: Option<IdTemplate>,
    pub plan: Plan,
    /// Whether it starts paused; when a cron is replaced and this is absent, its state stays as it is.
    pub paused: Option<bool>,
}

/// The work of each run of a cron: a request without an id, and the request as its caller wrote it. The input, labels
/// and memo are taken from the latter.
#[derive(Clone, Debug)]
pub enum CronWork {
    Task(Box<ScheduleRequest>, Json),
    Execution(Box<StartRequest>, Json),
}

/// A cron that exists now, new or found.
#[derive(Clone, Debug)]
pub struct CreatedCron {
    pub record: Cron,
    pub existed: bool,
}

/// A cron with its request and its last runs.
#[derive(Clone, Debug)]
pub struct DescribedCron {
    pub record: Cron,
    /// The work of its runs, as its caller wrote it; absent in lists if it has an item of its own.
    pub given: Option<Json>,
    /// Its last runs, oldest first.
    pub runs: Vec<DescribedRun>,
    /// Its next planned occurrences, where one cron is described.
    pub upcoming: Vec<Timestamp>,
}

#[derive(Clone, Debug)]
pub struct DescribedRun {
    pub occurrence: Occurrence,
    /// The id of its task or execution.
    pub id: String,
    /// Its state by the cron's record.
    pub state: RunState,
    /// The status of its task or execution. Absent if there is none; lists have it for the last [`LISTED`] runs.
    pub status: Option<&'static str>,
    /// When that ended, likewise.
    pub ended_at: Option<Timestamp>,
}

impl Service {
    /// Creates a cron, or finds the cron that the same request created before.
    pub async fn create_cron(&self, request: CronRequest) -> Result<CreatedCron, ServiceError> {
        let definition = self.define(request).await?;
        let id = definition.id.clone();
        self.apply_definition(&id, Command::Create(Box::new(definition))).await
    }

    /// Creates a cron, or replaces an existing one. Runs that it has started continue.
    pub async fn replace_cron(&self, request: CronRequest) -> Result<CreatedCron, ServiceError> {
        let definition = self.define(request).await?;
        let id = definition.id.clone();
        self.apply_definition(&id, Command::Replace(Box::new(definition))).await
    }

    async fn apply_definition(&self, id: &CronId, command: Command) -> Result<CreatedCron, ServiceError> {
        let (record, reply) = self.command_cron(id, command).await?;
        Ok(CreatedCron { record, existed: reply == Reply::Created { existed: true } })
    }

    /// Starts no more runs by plan until the cron is resumed.
    pub async fn pause_cron(&self, id: &CronId) -> Result<Cron, ServiceError> {
        Ok(self.command_cron(id, Command::Pause).await?.0)
    }

    /// Continues with the next occurrence.
    pub async fn resume_cron(&self, id: &CronId) -> Result<Cron, ServiceError> {
        Ok(self.command_cron(id, Command::Resume).await?.0)
    }

    /// Starts a run now, whatever the plan says. Returns the cron and the id of the run.
    pub async fn trigger_cron(&self, id: &CronId) -> Result<(Cron, String), ServiceError> {
        let (record, reply) = match self.command_cron(id, Command::Trigger).await {
            // It looks at its runs at its next occurrence, if it has one: until then, those that have ended count as open.
            Err(ServiceError::Rejected(Reject::LimitExceeded { .. })) => {
                self.process_cron(id, self.now()).await?;
                self.command_cron(id, Command::Trigger).await?
            }
            triggered => triggered?,
        };
        let Reply::Triggered(occurrence) = reply else { return Err(ServiceError::Contended) };
        let run = record.run_id(&occurrence);
        Ok((record, run))
    }

    /// Deletes a cron. Runs that it has started continue.
    pub async fn delete_cron(&self, id: &CronId) -> Result<(), ServiceError> {
        self.command_cron(id, Command::Delete).await.map(|_| ())
    }

    /// A cron, the work of its runs, and the status of its last runs.
    pub async fn describe_cron(&self, id: &CronId) -> Result<DescribedCron, ServiceError> {
        let record = self.load_cron(id).await?.filter(|record| !record.is_deleted());
        let record = record.ok_or(Reject::NoCron)?;
        let given = self.request_of(&record).await?.given;
        let runs = self.describe_runs(&record, record.runs.len()).await?;
        Ok(DescribedCron { given: Some(given), runs, upcoming: record.upcoming(UPCOMING), record })
    }

    /// A page of crons, in the order of their creation: the data of their records, and the statuses of the last runs of
    /// each, which cost at most [`LISTED`] reads a cron.
    pub async fn list_crons(
        &self,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<DescribedCron>, ServiceError> {
        let page = self.with_retries(|| self.ports.store.crons(limit, cursor)).await?;
        let live = page.items.into_iter().filter(|record| !record.is_deleted());
        let described = live.map(async |record| {
            let runs = self.describe_runs(&record, LISTED).await?;
            Ok::<_, ServiceError>(DescribedCron { runs, ..DescribedCron::inline(record) })
        });
        let items = stream::iter(described).buffered(AT_ONCE).try_collect().await?;
        Ok(Page { items, next: page.next })
    }
}

impl DescribedCron {
    /// Only the data of the record.
    pub fn inline(record: Cron) -> Self {
        let runs = record.runs.iter().map(|run| DescribedRun {
            occurrence: run.occurrence,
            id: record.run_id(&run.occurrence),
            state: run.state.clone(),
            status: None,
            ended_at: None,
        });
        Self { runs: runs.collect(), given: request::inline(&record), upcoming: vec![], record }
    }
}
