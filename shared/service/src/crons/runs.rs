//! The tasks and executions of a cron's runs: started, stopped and read.

use std::collections::BTreeMap;

use tickover_core::cron::Cron;
use tickover_core::cron::command::StartResult;
use tickover_core::cron::run::{Occurrence, Stop, Target};
use tickover_core::id::{ExecutionId, TaskId};
use tickover_core::time::Timestamp;

use super::request::{RunRequest, Stored};
use super::{DescribedCron, DescribedRun};
use crate::error::ServiceError;
use crate::service::Service;

/// The status of a run's task or execution, and when it ended.
#[derive(Clone, Copy)]
struct RunStatus {
    status: &'static str,
    is_open: bool,
    ended_at: Option<Timestamp>,
}

impl Service {
    /// Creates the task or execution of a run, or finds it. An error is temporary.
    pub(super) async fn start_run(
        &self,
        record: &Cron,
        request: &Stored,
        occurrence: &Occurrence,
    ) -> Result<StartResult, ServiceError> {
        // It learns of the run's end, to start the next one.
        let told = record.plan.overlap.waits().then(|| record.id.clone());
        let made = match request.run(&record.target, record.run_id(occurrence)) {
            Ok(RunRequest::Task(mut task, _)) => {
                task.flow.cron = told;
                self.schedule(*task).await.map(|_| ())
            }
            Ok(RunRequest::Execution(mut start, _)) => {
                start.flow.cron = told;
                self.start(*start).await.map(|_| ())
            }
            Err(reject) => Err(reject.into()),
        };
        match made {
            Ok(()) => Ok(StartResult::Started),
            Err(ServiceError::Rejected(reject)) => {
                let run = record.run_id(occurrence);
                let remedy =
                    "the cron lists the run with its code; replace the cron with a request that is accepted";
                tracing::error!(cron = %record.id, %run, code = reject.code(), remedy, "a run was refused");
                Ok(StartResult::Refused { code: reject.code() })
            }
            Err(error) => Err(error),
        }
    }

    /// Stops a run. A run that has ended or was deleted needs no stop.
    pub(super) async fn stop_run(
        &self,
        record: &Cron,
        occurrence: &Occurrence,
        how: Stop,
    ) -> Result<(), ServiceError> {
        let id = record.run_id(occurrence);
        // Ids are checked when the cron is created: a run whose id isn't valid was never started.
        let stopped = match &record.target {
            Target::Task { .. } => {
                let Ok(id) = TaskId::parse(id) else { return Ok(()) };
                self.cancel(&id, how == Stop::Terminate).await.map(|_| ())
            }
            Target::Execution { .. } => {
                let Ok(id) = ExecutionId::parse(id) else { return Ok(()) };
                match how {
                    Stop::Cancel => self.cancel_execution(&id).await.map(|_| ()),
                    Stop::Terminate => self.terminate(&id).await.map(|_| ()),
                }
            }
        };
        match stopped {
            Ok(()) | Err(ServiceError::Rejected(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Which of a cron's open runs have ended. A run that was deleted has ended.
    pub(super) async fn ended_runs(&self, record: &Cron) -> Result<Vec<Occurrence>, ServiceError> {
        let open: Vec<Occurrence> = record.open_runs().collect();
        if open.is_empty() {
            return Ok(open);
        }
        let run_statuses = self.run_statuses(record, &open).await?;
        let is_open = |run: &Occurrence| run_statuses.get(run).is_some_and(|run_status| run_status.is_open);
        Ok(open.into_iter().filter(|run| !is_open(run)).collect())
    }

    /// The runs in a cron's record, the last so many of them with their status.
    pub(super) async fn describe_runs(
        &self,
        record: &Cron,
        last: usize,
    ) -> Result<Vec<DescribedRun>, ServiceError> {
        let all: Vec<Occurrence> = record.runs.iter().map(|run| run.occurrence).collect();
        let asked = &all[all.len().saturating_sub(last)..];
        let run_statuses = self.run_statuses(record, asked).await?;
        let described = |run: DescribedRun| {
            let found = run_statuses.get(&run.occurrence);
            let ended_at = found.and_then(|found| found.ended_at);
            DescribedRun { status: found.map(|found| found.status), ended_at, ..run }
        };
        Ok(DescribedCron::inline(record.clone()).runs.into_iter().map(described).collect())
    }

    async fn run_statuses(
        &self,
        record: &Cron,
        runs: &[Occurrence],
    ) -> Result<BTreeMap<Occurrence, RunStatus>, ServiceError> {
        let mut by_id = BTreeMap::new();
        if runs.is_empty() {
            return Ok(BTreeMap::new());
        }
        let ids: Vec<String> = runs.iter().map(|run| record.run_id(run)).collect();
        match &record.target {
            Target::Task { .. } => {
                let ids: Vec<TaskId> = ids.iter().filter_map(|id| TaskId::parse(id).ok()).collect();
                let tasks = self.load_each(&ids).await?.0;
                let now = self.now();
                for task in tasks.into_iter().filter(|task| !task.is_gone(now)) {
                    let status = task.status();
                    let ended_at = task.ended().map(|ended| ended.ended_at);
                    let run_status =
                        RunStatus { status: status.as_str(), is_open: status.is_live(), ended_at };
                    by_id.insert(task.id.to_string(), run_status);
                }
            }
            Target::Execution { .. } => {
                let ids: Vec<ExecutionId> = ids.iter().filter_map(|id| ExecutionId::parse(id).ok()).collect();
                let found = self.executions_of(&ids).await?.0;
                let now = self.now();
                for execution in found.into_iter().filter(|execution| !execution.is_gone(now)) {
                    let status = execution.status();
                    let ended_at = execution.closed().map(|closed| closed.ended_at);
                    let run_status =
                        RunStatus { status: status.as_str(), is_open: status.is_live(), ended_at };
                    by_id.insert(execution.id.to_string(), run_status);
                }
            }
        }
        let of = |run: &Occurrence| by_id.get(&record.run_id(run)).map(|run_status| (*run, *run_status));
        Ok(runs.iter().filter_map(of).collect())
    }
}
