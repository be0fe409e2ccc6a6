//! The records of an operation, a page at a time.

use std::collections::BTreeSet;

use tickover_core::error::Reject;
use tickover_core::execution::{Execution, ExecutionStatus};
use tickover_core::operation::{Action, Counts, Operation, PAGE};
use tickover_core::task::{Status, Task};

use super::Selection;
use crate::error::ServiceError;
use crate::ports::Page;
use crate::service::Service;

/// The code of the error for a record that can't be read.
pub(super) const UNREADABLE: &str = "internal";

/// Records of one kind.
pub(super) enum Records {
    Executions(Vec<Execution>),
    Tasks(Vec<Task>),
}

/// A page of an operation's records.
pub(super) struct Found {
    pub(super) records: Records,
    /// How many listed ids have no record.
    pub(super) missing: usize,
    /// How many listed ids have a record that can't be read.
    pub(super) unreadable: u64,
    /// The cursor of the next page; absent at the end.
    pub(super) next: Option<String>,
}

impl Records {
    /// How many this page of the operation has changed already, before its process was cut off.
    pub(super) fn changed_by(&self, operation: &Operation) -> u64 {
        let changed = match self {
            Self::Executions(all) => all.iter().filter(|one| operation.has_changed_execution(one)).count(),
            Self::Tasks(all) => all.iter().filter(|one| operation.has_changed_task(one)).count(),
        };
        u64::try_from(changed).unwrap_or(u64::MAX)
    }
}

impl Found {
    /// The counts before anything is done.
    pub(super) fn counts(&self) -> Counts {
        let found = match &self.records {
            Records::Executions(executions) => executions.len(),
            Records::Tasks(tasks) => tasks.len(),
        };
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let mut counts = Counts { matched: count(found), ..Counts::default() };
        if self.unreadable > 0 {
            counts.refused.insert(UNREADABLE.to_owned(), self.unreadable);
        }
        if self.missing > 0 {
            counts.refused.insert(Reject::NotFound.code().to_owned(), count(self.missing));
        }
        counts
    }
}

impl Selection {
    /// Without listed ids and statuses, an action is for the statuses in which it can do something.
    pub(super) fn set_statuses(&mut self, action: Action) {
        match self {
            Self::Executions { filter, ids } if ids.is_empty() && filter.statuses.is_empty() => {
                filter.statuses = match action {
                    Action::Retry | Action::RetryStep | Action::Restart => {
                        vec![ExecutionStatus::Failed, ExecutionStatus::TimedOut]
                    }
                    Action::Cancel | Action::Terminate | Action::SendEvent => open_statuses(),
                };
            }
            Self::Tasks { filter, ids } if ids.is_empty() && filter.statuses.is_empty() => {
                filter.statuses = match action {
                    Action::Retry | Action::RetryStep | Action::Restart => {
                        vec![Status::Failed, Status::TimedOut]
                    }
                    Action::Cancel | Action::Terminate | Action::SendEvent => {
                        vec![Status::Pending, Status::Running]
                    }
                };
            }
            Self::Executions { .. } | Self::Tasks { .. } => {}
        }
    }

    /// Leaves out ids that are listed before.
    pub(super) fn list_once(&mut self) {
        match self {
            Self::Executions { ids, .. } => leave_repeated_out(ids),
            Self::Tasks { ids, .. } => leave_repeated_out(ids),
        }
    }

    /// Refuses statuses in which the action can do nothing.
    pub(super) fn check_statuses(&self, action: Action) -> Result<(), ServiceError> {
        let wants_open = match action {
            Action::Retry | Action::RetryStep | Action::Restart => false,
            Action::Cancel | Action::Terminate | Action::SendEvent => true,
        };
        let misfit = match self {
            Self::Executions { filter, .. } => {
                let open = open_statuses();
                let misfit = filter.statuses.iter().find(|status| open.contains(status) != wants_open);
                misfit.map(|status| status.as_str())
            }
            Self::Tasks { filter, .. } => {
                let fits = |status: Status| {
                    let is_good = matches!(status, Status::Completed | Status::Skipped);
                    status.is_live() == wants_open && !is_good
                };
                filter.statuses.iter().find(|status| !fits(**status)).map(|status| status.as_str())
            }
        };
        let Some(status) = misfit else { return Ok(()) };
        let expected = "expected only statuses in which this action can do something";
        Err(Reject::instead_of(self.field("status"), expected, format!("{status:?}")).into())
    }
}

fn leave_repeated_out<I: Clone + Ord>(ids: &mut Vec<I>) {
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(id.clone()));
}

/// The statuses of executions without an outcome.
fn open_statuses() -> Vec<ExecutionStatus> {
    ExecutionStatus::ALL.into_iter().filter(|status| status.is_live()).collect()
}

impl Service {
    /// The next page of an operation's records.
    pub(super) async fn find_page(
        &self,
        operation: &Operation,
        selection: &Selection,
    ) -> Result<Found, ServiceError> {
        let cursor = operation.cursor.as_deref();
        let now = self.now();
        match selection {
            Selection::Executions { filter, ids } if ids.is_empty() => {
                let Page { items, next } = self.executions(filter, PAGE, cursor).await?;
                Ok(Found { records: Records::Executions(items), missing: 0, unreadable: 0, next })
            }
            Selection::Tasks { filter, ids } if ids.is_empty() => {
                let Page { items, next } = self.list(filter, PAGE, cursor).await?;
                Ok(Found { records: Records::Tasks(items), missing: 0, unreadable: 0, next })
            }
            Selection::Executions { filter, ids } => {
                let (part, next) = part_of(ids, operation.pages);
                let (mut found, unreadable) = self.executions_of(part).await?;
                found.retain(|execution| !execution.is_gone(now));
                let missing = missing_of(part, found.len(), unreadable);
                let mut fitting = Vec::with_capacity(found.len());
                for execution in found {
                    if self.fits(&execution, filter).await? {
                        fitting.push(execution);
                    }
                }
                Ok(Found { records: Records::Executions(fitting), missing, unreadable, next })
            }
            Selection::Tasks { filter, ids } => {
                let (part, next) = part_of(ids, operation.pages);
                let (mut found, unreadable) = self.load_each(part).await?;
                found.retain(|task| !task.is_gone(now));
                let missing = missing_of(part, found.len(), unreadable);
                let mut fitting = Vec::with_capacity(found.len());
                for task in found {
                    if self.task_fits(&task, filter).await? {
                        fitting.push(task);
                    }
                }
                Ok(Found { records: Records::Tasks(fitting), missing, unreadable, next })
            }
        }
    }
}

/// How many of these ids have no record.
fn missing_of<I>(ids: &[I], found: usize, unreadable: u64) -> usize {
    ids.len().saturating_sub(found).saturating_sub(usize::try_from(unreadable).unwrap_or(usize::MAX))
}

/// The ids of a page, and the cursor of the next one.
fn part_of<I>(ids: &[I], pages: u64) -> (&[I], Option<String>) {
    let start = usize::try_from(pages).unwrap_or(usize::MAX).saturating_mul(PAGE).min(ids.len());
    let end = ids.len().min(start + PAGE);
    (&ids[start..end], (end < ids.len()).then(|| end.to_string()))
}
