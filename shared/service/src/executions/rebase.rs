//! A turn's report, decided again because others have written meanwhile.
//!
//! The answer to the first try may have been lost, and another write may have followed it: then its entries are in the
//! journal already, and must not be there twice. A wait may have ended without an event that somebody had sent in time. And
//! the next run also takes the events that have arrived since.

use tickover_core::execution::Execution;
use tickover_core::execution::command::{Command, Ending};
use tickover_core::execution::journal::{Happened, pending_events};
use tickover_core::id::LeaseId;

use crate::error::ServiceError;
use crate::service::Service;

impl Service {
    /// The command to decide on the record `current`, after it was first decided on the record `seen`, which its turn
    /// had; `None` if the command stays as it is.
    pub(crate) async fn rebased(
        &self,
        command: &Command,
        seen: &Execution,
        current: &Execution,
    ) -> Result<Option<Command>, ServiceError> {
        let seen = (seen.run == current.run).then(|| seen.entries());
        self.rebased_since(command, seen, current).await
    }

    /// The same, of a turn that had seen this many entries of the run's journal; `None` if it had another run.
    pub(super) async fn rebased_since(
        &self,
        command: &Command,
        seen: Option<usize>,
        current: &Execution,
    ) -> Result<Option<Command>, ServiceError> {
        let mut command = command.clone();
        let (lease, entries, ending) = match &mut command {
            Command::Record(record) => (record.lease, &mut record.entries, None),
            Command::Suspend(suspend) => (suspend.lease, &mut suspend.entries, None),
            Command::Heartbeat { lease, entries, .. } => (*lease, entries, None),
            Command::Close(close) => (close.lease, &mut close.entries, Some(&mut close.ending)),
            Command::Start(_)
            | Command::Bounce(_)
            | Command::StartTurn(_)
            | Command::Release { .. }
            | Command::SendEvent(_)
            | Command::ClearEvents { .. }
            | Command::Cancel
            | Command::Terminate
            | Command::Pause
            | Command::Resume
            | Command::Restart(_)
            | Command::RetryStep { .. }
            | Command::Finish(_)
            | Command::WaitInLine { .. }
            | Command::NoteProgress(_)
            | Command::Unpark
            | Command::Due(_)
            | Command::Timer { .. } => return Ok(None),
        };
        let carried = match ending {
            Some(Ending::ContinueAsNew { carried, .. } | Ending::FailedRun { carried, .. }) => Some(carried),
            Some(Ending::Outcome(_)) | None => None,
        };
        if !is_held(current, lease) || (entries.is_empty() && carried.is_none()) {
            return Ok(None);
        }
        let mut journal = self.journal_of(current).await?;
        entries.retain(|entry| !journal.contains(entry));
        if seen.is_some_and(|seen| self.rules.is_overtaken(entries, &journal, seen.min(journal.len()))) {
            // The turn looks at the journal again.
            return Err(ServiceError::Contended);
        }
        if let Some(carried) = carried {
            journal.extend(entries.iter().cloned());
            carried.retain(|entry| !matches!(entry.what, Happened::Event { .. }));
            carried.splice(0..0, pending_events(&journal).into_iter().cloned());
        }
        Ok(Some(command))
    }
}

fn is_held(execution: &Execution, lease: LeaseId) -> bool {
    execution.turn().is_some_and(|turn| turn.lease == lease)
}
