//! What follows the outcome: steps and children that are still open are ended, parts are given their time, and the
//! record is closed for good. All of it can be done again from the start, by anybody.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tickover_core::decision::{DueReply, Write};
use tickover_core::error::Reject;
use tickover_core::execution::command::ExecutionCommand;
use tickover_core::execution::decision::ExecutionReply;
use tickover_core::execution::journal::{Entry, Happened, open_steps};
use tickover_core::execution::{Execution, ExecutionOutcome, ParentClosePolicy};
use tickover_core::id::{BlobId, ExecutionId, StepName};
use tickover_core::payload::{BlobRef, Payload};
use tickover_core::time::Timestamp;

use super::drive::KnownExecution;
use crate::error::ServiceError;
use crate::service::Service;
use crate::telemetry::field;

impl Service {
    /// A look at an execution for what has become due. One that is closing is seen to its end.
    pub(crate) async fn look_at_execution(
        &self,
        id: &ExecutionId,
        known: KnownExecution,
        command: &ExecutionCommand,
    ) -> Result<DueReply, ServiceError> {
        match self.drive_execution(id, known, command).await?.outcome {
            Ok(ExecutionReply::Due(reply)) => Ok(reply),
            // Gone meanwhile, or the index was behind.
            Ok(_) | Err(_) => Ok(DueReply::Nothing),
        }
    }

    /// Sees a closing execution to its end. What it leaves open may close other executions in turn.
    pub(crate) fn finish<'a>(
        &'a self,
        execution: &'a Execution,
    ) -> BoxFuture<'a, Result<Execution, ServiceError>> {
        self.end_what_is_left(execution).boxed()
    }

    async fn end_what_is_left(&self, execution: &Execution) -> Result<Execution, ServiceError> {
        let Some(closed) = execution.closed() else { return Ok(execution.clone()) };
        let journal = self.journal_of(execution).await?;
        let mut remote: Vec<StepName> = Vec::new();
        for entry in open_steps(&journal) {
            match &entry.what {
                Happened::Child { execution: child, policy, .. } => self.end_child(child, *policy).await?,
                Happened::Remote { name } => remote.push(name.clone()),
                Happened::Attempt { .. }
                | Happened::Step { .. }
                | Happened::Reopened { .. }
                | Happened::Captured { .. }
                | Happened::Until { .. }
                | Happened::Event { .. }
                | Happened::Waited { .. }
                | Happened::Drained { .. }
                | Happened::Patches { .. }
                | Happened::Note { .. } => {}
            }
        }
        self.cancel_remote(execution, &remote).await?;
        let expires_at = closed.expires_at;
        self.expire_parts(execution, &journal, expires_at).await?;
        if execution.sealed.is_some() || execution.run > 1 {
            let (id, incarnation) = (&execution.id, execution.incarnation);
            self.patiently(|| self.ports.store.expire_segments(id, incarnation, expires_at)).await?;
        }
        let known = KnownExecution::Record(Box::new(execution.clone()));
        let driven = self.drive_execution(&execution.id, known, &ExecutionCommand::Finish).await?;
        Ok(driven.answer()?.0)
    }

    /// Gives the items that a record and its journal point to another time to live.
    pub(super) async fn expire_parts(
        &self,
        execution: &Execution,
        journal: &[Entry],
        expires_at: Timestamp,
    ) -> Result<(), ServiceError> {
        let parts: Vec<BlobRef> = blobs(execution, journal)
            .filter(|blob| blob.expires_at != expires_at)
            .map(|blob| BlobRef { expires_at, ..blob.clone() })
            .collect();
        for at in parts {
            let writes = [Write::ExtendBlob { at }];
            self.patiently(|| self.ports.store.commit(&writes)).await?;
        }
        Ok(())
    }

    /// Lets go of what a run has left behind that was followed by another one, except for what that one carries on.
    /// If that fails, it is kept for longer than need be, which does no harm.
    pub(super) async fn let_run_go(&self, left: &Execution, carried: &[BlobId]) {
        if left.sealed.is_none() {
            return;
        }
        let expires_at = self.now().plus(self.limits.retention);
        let let_go = async {
            let journal = self.journal_of(left).await?;
            // The record's own part is the decision's to let go of.
            let sealed = journal.len().saturating_sub(left.journal.len());
            let is_carried = |blob: &BlobRef| carried.contains(&blob.id);
            let left_behind =
                |entry: &&Entry| !entry.payload().and_then(Payload::blob).is_some_and(is_carried);
            let entries: Vec<Entry> = journal.iter().take(sealed).filter(left_behind).cloned().collect();
            let gone = Execution { input: None, details: None, journal: vec![], ..left.clone() };
            self.expire_parts(&gone, &entries, expires_at).await
        };
        if let Err(error) = let_go.await {
            tracing::debug!({ field::EXECUTION_ID } = %left.id, %error, "parts of an earlier run are kept");
        }
    }

    pub(super) async fn end_child(
        &self,
        child: &ExecutionId,
        policy: ParentClosePolicy,
    ) -> Result<(), ServiceError> {
        let ended = match policy {
            ParentClosePolicy::Abandon => return Ok(()),
            ParentClosePolicy::RequestCancel => self.cancel_execution(child).await,
            ParentClosePolicy::Terminate => self.terminate(child).await,
        };
        match ended {
            Ok(_) | Err(ServiceError::Rejected(Reject::NoExecution | Reject::ExecutionClosed { .. })) => {
                Ok(())
            }
            Err(error) => {
                tracing::debug!({ field::EXECUTION_ID } = %child, %error, "child not ended yet");
                Err(error)
            }
        }
    }
}

/// All items of their own that a record and its journal point to.
fn blobs<'a>(execution: &'a Execution, journal: &'a [Entry]) -> impl Iterator<Item = &'a BlobRef> {
    let output = execution.closed().and_then(|closed| match &closed.outcome {
        ExecutionOutcome::Completed { output } => output.as_ref(),
        ExecutionOutcome::Failed { .. }
        | ExecutionOutcome::TimedOut { .. }
        | ExecutionOutcome::Cancelled { .. } => None,
    });
    let own = [execution.input.as_ref(), execution.details.as_ref(), output];
    own.into_iter().flatten().chain(journal.iter().filter_map(Entry::payload)).filter_map(Payload::blob)
}
