//! Children: started once, taken over by a later run of the same parent, or run again.
//!
//! A child's record names its parent's run. What a later run makes of it depends on why there is one: a rerun and a retried
//! step are the same work, so a child that has completed is kept, and one that has failed goes on from its last results.
//! Any other run is new work, for which a child that has ended begins anew. In each case it has the id of the one before.

use tickover_core::execution::command::{Command, EndedChild, Rerun};
use tickover_core::execution::decision::Reply;
use tickover_core::execution::journal::{Entry, Happened, PAGE_WORKFLOW};
use tickover_core::execution::{Execution, ExecutionOutcome, required_expiry};
use tickover_core::id::ExecutionId;

use super::close::Share;
use super::drive::is_closing;
use super::kept::{is_failure, preserved, was_undone};
use super::operate::REOPENED_WITHIN;
use super::outcome::READ_MAX;
use super::{StartRequest, Started};
use crate::drive::{CONFLICT_WAIT, Known};
use crate::error::ServiceError;
use crate::service::Service;

impl Service {
    /// Starts a child, or finds the one that this run of its parent has started. One of an earlier run, or from before an
    /// operator had it run again, is taken over; if it has ended, it is kept or runs again.
    pub async fn start_child(
        &self,
        request: StartRequest,
        is_same_work: bool,
    ) -> Result<Started, ServiceError> {
        let stop_at = self.now().plus(REOPENED_WITHIN);
        let mut started = self.start(request.clone()).await?;
        let mut tries = 0;
        while let Some(child) = before(&request, &started.execution) {
            if self.now() >= stop_at {
                let reason = format!("the child {} can't be run again yet", child.id);
                return Err(ServiceError::unavailable(&reason));
            }
            let (id, queue) = (child.id.clone(), self.queue_for(&request).await?);
            let mut start = self.start_of(request.clone(), queue, id.clone(), None);
            if tries > 0 {
                self.back_off(tries, CONFLICT_WAIT).await;
            }
            tries += 1;
            let known = if is_closing(child) {
                // The process that closed it may have died.
                self.finish(child, stop_at, Share::InTime).await?;
                Known::Unread
            } else {
                start.ended = self.what_of(child, is_same_work).await?;
                Known::Record(Box::new(child.clone()))
            };
            let decision = self.drive_execution(&id, known, &Command::Start(start)).await?;
            let (mut execution, reply) = decision.outcome?;
            if reply == Reply::ExpiresTooSoon
                && let Some(to) = required_expiry(&execution, self.now(), &self.limits)
            {
                (execution, _) = self.extend_retention(execution, to, stop_at).await?;
            }
            started = Started { execution, existed: true };
        }
        Ok(started)
    }

    /// What becomes of a child that has ended.
    async fn what_of(&self, child: &Execution, is_same_work: bool) -> Result<EndedChild, ServiceError> {
        let seen_version = child.version;
        let anew = Rerun::default();
        if !is_same_work {
            return Ok(EndedChild::Again { seen_version, rerun: anew });
        }
        let completed =
            child.closed().is_some_and(|closed| matches!(closed.outcome, ExecutionOutcome::Completed { .. }));
        // A page completes with the items that failed.
        if completed && child.workflow.as_str() != PAGE_WORKFLOW {
            return Ok(EndedChild::Kept { seen_version });
        }
        let journal = self.journal_of(child).await?;
        if completed && !journal.iter().any(is_failure) {
            return Ok(EndedChild::Kept { seen_version });
        }
        let rerun = if was_undone(&journal) {
            anew
        } else {
            Rerun { preserved: preserved(&journal, &[], true, true), is_same_work: true, given: None }
        };
        Ok(EndedChild::Again { seen_version, rerun })
    }

    /// Those of a parent's children with these entries that are still open.
    pub async fn still_open(
        &self,
        parent: &Execution,
        children: Vec<Entry>,
    ) -> Result<Vec<Entry>, ServiceError> {
        let mut open = Vec::with_capacity(children.len());
        for children in children.chunks(READ_MAX) {
            let ids: Vec<ExecutionId> = children.iter().filter_map(child_of).cloned().collect();
            let (found, unreadable) = self.executions_of(&ids).await?;
            let is_open = |id: &ExecutionId| match found.iter().find(|child| child.id == *id) {
                Some(child) => {
                    let is_ours = child.parent.as_ref().is_some_and(|of| of.is_or_was(parent));
                    is_ours && child.closed().is_none()
                }
                None => unreadable > 0,
            };
            open.extend(children.iter().filter(|entry| child_of(entry).is_some_and(is_open)).cloned());
        }
        Ok(open)
    }
}

/// The child, if the parent started it before what the request is for, and if it hasn't been taken over.
fn before<'a>(request: &StartRequest, child: &'a Execution) -> Option<&'a Execution> {
    let (asked, known) = (request.parent.as_ref()?, child.parent.as_ref()?);
    asked.is_later_than(known).then_some(child)
}

pub(super) const fn child_of(entry: &Entry) -> Option<&ExecutionId> {
    match &entry.what {
        Happened::Child { execution, .. } => Some(execution),
        _ => None,
    }
}
