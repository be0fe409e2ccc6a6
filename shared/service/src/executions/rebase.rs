//! A turn's report, decided again because others have written meanwhile.
//!
//! The answer to the first try may have been lost on its way, and then another write came over it: what it brought is
//! in the journal already, and must not be there twice. What a wait took may have been thrown away. And the
//! next run takes along the events that have come since.

use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::execution::command::{Command, Ending};
use tickover_core::execution::journal::{Entry, Happened, pending_events};
use tickover_core::id::{EventName, LeaseId};

use crate::error::ServiceError;
use crate::service::Service;

impl Service {
    /// The command as it is to be decided on over this record, after it was decided on over the one that its turn had
    /// seen; nothing where it stays as it is.
    pub(crate) async fn rebased(
        &self,
        command: &Command,
        seen: &Execution,
        current: &Execution,
    ) -> Result<Option<Command>, ServiceError> {
        let mut command = command.clone();
        let (lease, entries, ending) = match &mut command {
            Command::Record(record) => (record.lease, &mut record.entries, None),
            Command::Suspend(suspend) => (suspend.lease, &mut suspend.entries, None),
            Command::Close(close) => (close.lease, &mut close.entries, Some(&mut close.ending)),
            Command::Start(_)
            | Command::StartTurn(_)
            | Command::Heartbeat { .. }
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
            | Command::NoteProgress(_)
            | Command::Unpark
            | Command::Due(_)
            | Command::Timer { .. } => return Ok(None),
        };
        let events = match ending {
            Some(Ending::ContinueAsNew { events, .. }) => Some(events),
            Some(Ending::Outcome(_)) | None => None,
        };
        if !is_held(current, lease) || (entries.is_empty() && events.is_none()) {
            return Ok(None);
        }
        let mut journal = self.journal_of(current).await?;
        entries.retain(|entry| !journal.contains(entry));
        if seen.run == current.run
            && takes_what_is_gone(entries, &journal[entries_of(seen).min(journal.len())..])
        {
            // Another turn goes on from what is there now.
            return Err(Reject::TurnLost.into());
        }
        if let Some(events) = events {
            journal.extend(entries.iter().cloned());
            let pending: Vec<Entry> = pending_events(&journal).into_iter().cloned().collect();
            *events = pending;
        }
        Ok(Some(command))
    }
}

/// How many entries a run's journal had.
fn entries_of(execution: &Execution) -> usize {
    let sealed = execution.sealed.map_or(0, |sealed| sealed.entries);
    usize::try_from(sealed).unwrap_or(usize::MAX).saturating_add(execution.journal.len())
}

/// Whether a wait took an event that may have been thrown away meanwhile.
fn takes_what_is_gone(entries: &[Entry], since: &[Entry]) -> bool {
    let is_gone = |of: &EventName| {
        since.iter().any(|entry| matches!(&entry.what, Happened::EventsCleared { name, .. } if name == of))
    };
    entries
        .iter()
        .any(|entry| matches!(&entry.what, Happened::Waited { event: Some(name), .. } if is_gone(name)))
}

fn is_held(execution: &Execution, lease: LeaseId) -> bool {
    execution.turn().is_some_and(|turn| turn.lease == lease)
}
