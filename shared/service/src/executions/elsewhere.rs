//! Turns whose worker is in another process and calls over the network.
//!
//! Such a worker is trusted with nothing but its own turn. A call has the execution's id, the fence of the turn, and what
//! the worker has seen. The record is read here, and what the worker writes is checked before the core decides on it.

mod check;

pub use check::check_flow;

use std::collections::{BTreeMap, BTreeSet};

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::execution::command::{Cleanup, Close, Command, Ending, Record, ReleaseReason, Suspend};
use tickover_core::execution::journal::{Entry, Happened, open_steps};
use tickover_core::execution::replay::Replay;
use tickover_core::id::{BlobId, EventName, ExecutionId, StepName};
use tickover_core::payload::{Json, Payload};
use tickover_core::time::Timestamp;

use super::children::child_of;
use super::{EndedStep, StartedTurn, StartedWork, Suspended, ToStart};
use crate::callbacks::Callback;
use crate::error::ServiceError;
use crate::lease::LeaseToken;
use crate::service::Service;

/// Most payloads that a call of a turn reads.
pub const PAYLOADS_MAX: usize = 100;

/// What a worker had seen when it decided what to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The version of the record.
    pub version: u64,
    /// How many entries the run's journal had.
    pub entries: usize,
}

/// What a turn's worker writes. The lease in it doesn't count: that of the call does.
#[derive(Clone, Debug)]
pub enum TurnWrite {
    /// New entries. The turn continues.
    Record(Record),
    /// The same, and the lease is extended. It may bring published values, too.
    Heartbeat(Vec<Entry>, Option<Payload>),
    Suspend(Suspend),
    Close(Close),
    Release {
        after: Millis,
        reason: ReleaseReason,
        cleanup: Option<Cleanup>,
    },
}

impl TurnWrite {
    /// The children that the turn says it has started.
    fn children(&self) -> Vec<ExecutionId> {
        let entries = match self {
            Self::Record(record) => &record.entries,
            Self::Heartbeat(entries, _) => entries,
            Self::Suspend(suspend) => &suspend.entries,
            Self::Close(close) => &close.entries,
            Self::Release { .. } => return vec![],
        };
        entries.iter().filter_map(child_of).cloned().collect()
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct TurnWritten {
    pub execution: Execution,
    /// The run's journal, if a turn that was to be suspended continues.
    pub journal: Option<Vec<Entry>>,
}

/// What a claim brings with a turn, so that its worker needn't ask for it.
#[derive(Clone, Debug, Default)]
pub struct Brought {
    /// The outcomes of the run's open steps and children that have ended. `None` if they couldn't be read.
    pub outcomes: Option<Vec<NamedEnd>>,
    /// The large payloads that the journal points to, as many as fit.
    pub payloads: BTreeMap<BlobId, Json>,
}

/// The end of a step or child, with its name.
pub type NamedEnd = (StepName, EndedStep);

impl Service {
    /// The record of an execution whose turn has this fence.
    ///
    /// # Errors
    ///
    /// [`Reject::NoExecution`], and [`Reject::TurnLost`] if the fence isn't that of its turn.
    pub async fn turn_elsewhere(
        &self,
        id: &ExecutionId,
        token: &LeaseToken,
    ) -> Result<Execution, ServiceError> {
        let Some(execution) = self.load_execution(id).await? else { return Err(Reject::NoExecution.into()) };
        let is_its = execution.incarnation == token.incarnation
            && execution.turn().is_some_and(|turn| turn.lease == token.lease);
        if is_its { Ok(execution) } else { Err(Reject::TurnLost.into()) }
    }

    /// Writes what a turn has done.
    ///
    /// # Errors
    ///
    /// As [`Self::turn_elsewhere`]. [`Reject::InvalidRequest`] for entries that a turn doesn't write, or that begin behind
    /// the journal's end; [`Reject::LimitExceeded`]; [`ServiceError::Contended`] if others have written before what it
    /// writes, and it must look at the journal again.
    pub async fn write_turn(
        &self,
        id: &ExecutionId,
        token: &LeaseToken,
        seen: Seen,
        write: TurnWrite,
    ) -> Result<TurnWritten, ServiceError> {
        self.check_write(&write)?;
        let children = write.children();
        let written = self.write_checked(id, token, seen, write).await;
        if let Err(ServiceError::Rejected(Reject::TurnLost)) = &written
            && let Err(error) = self.end_unrecorded_of(id, token, children).await
        {
            tracing::debug!({ crate::telemetry::field::EXECUTION_ID } = %id, %error, "started children weren't ended");
        }
        written
    }

    /// Ends children that a lost turn has started, if the execution has ended: its close didn't know of them.
    async fn end_unrecorded_of(
        &self,
        id: &ExecutionId,
        token: &LeaseToken,
        children: Vec<ExecutionId>,
    ) -> Result<(), ServiceError> {
        if children.is_empty() {
            return Ok(());
        }
        let ended = self
            .load_execution(id)
            .await?
            .filter(|execution| execution.incarnation == token.incarnation && execution.closed().is_some());
        let Some(execution) = ended else { return Ok(()) };
        self.end_unrecorded(&execution, children).await
    }

    async fn write_checked(
        &self,
        id: &ExecutionId,
        token: &LeaseToken,
        seen: Seen,
        write: TurnWrite,
    ) -> Result<TurnWritten, ServiceError> {
        let execution = self.turn_elsewhere(id, token).await?;
        if seen.version > execution.version || seen.entries > execution.entries() {
            return Err(Reject::field("seen", "must be what an answer about this turn had").into());
        }
        let lease = token.lease;
        let command = match write {
            TurnWrite::Record(record) => Command::Record(Record { lease, ..record }),
            TurnWrite::Heartbeat(entries, values) => Command::Heartbeat { lease, entries, values },
            TurnWrite::Suspend(suspend) => Command::Suspend(Suspend { lease, ..suspend }),
            TurnWrite::Close(close) => Command::Close(Close { lease, ..close }),
            TurnWrite::Release { after, reason, cleanup } => {
                Command::Release { lease, after, reason, cleanup }
            }
        };
        self.check_children(&execution, command.entries()).await?;
        let brings_entries = !command.entries().is_empty();
        let command = self.rebased_elsewhere(command, seen, &execution).await?;
        if let Command::Record(record) = &command
            && brings_entries
            && record.entries.is_empty()
            && record.values.as_ref().is_none_or(|values| execution.values.as_ref() == Some(values))
        {
            // The answer to the first call was lost.
            return Ok(TurnWritten { execution, journal: None });
        }
        let receipt = token.receipt.as_deref();
        let mut journal = None;
        let (written, is_over) = match command {
            Command::Record(record) => (self.record_progress(&execution, record).await?, false),
            Command::Heartbeat { lease, entries, values } => {
                (self.heartbeat_turn(&execution, lease, (entries, values), receipt).await?, false)
            }
            Command::Suspend(suspend) => match self.suspend_turn(&execution, suspend).await? {
                Suspended::Done(written) => (*written, true),
                Suspended::Continue(written, entries) => {
                    journal = Some(entries);
                    (*written, false)
                }
            },
            Command::Close(close) => (self.close_turn(&execution, close).await?, true),
            Command::Release { lease, after, reason, cleanup } => {
                self.release_turn(&execution, lease, after, reason, cleanup).await?;
                (execution, true)
            }
            other => {
                return Err(ServiceError::Corrupt { reason: format!("not a turn's command: {other:?}") });
            }
        };
        if let (true, Some(receipt)) = (is_over, receipt) {
            self.done_with(&written.queue, receipt).await;
        }
        Ok(TurnWritten { execution: written, journal })
    }

    /// The command to decide on a record that may be newer than the one that the worker has seen, with what the next run
    /// begins with.
    async fn rebased_elsewhere(
        &self,
        command: Command,
        seen: Seen,
        current: &Execution,
    ) -> Result<Command, ServiceError> {
        let mut command = command;
        if seen.version != current.version
            && let Some(rebased) = self.rebased_since(&command, Some(seen.entries), current).await?
        {
            command = rebased;
        }
        if let Command::Close(close) = &mut command
            && let Ending::ContinueAsNew { carried, .. } | Ending::FailedRun { carried, .. } =
                &mut close.ending
        {
            let mut journal = self.journal_of(current).await?;
            journal.extend(close.entries.iter().cloned());
            let replay = Replay::new(&journal, &self.limits);
            *carried = replay.free_events();
            carried.extend(self.still_open(current, replay.left_to_next()).await?);
        }
        Ok(command)
    }

    /// The entries of a turn's journal in this range, and its record.
    pub async fn journal_elsewhere(
        &self,
        id: &ExecutionId,
        token: &LeaseToken,
        from: usize,
    ) -> Result<(Execution, Vec<Entry>), ServiceError> {
        let execution = self.turn_elsewhere(id, token).await?;
        let mut journal = self.journal_of(&execution).await?;
        if from > journal.len() {
            return Err(Reject::field("from", "is behind the journal's end").into());
        }
        let entries = journal.split_off(from);
        Ok((execution, entries))
    }

    /// Starts what a turn asks for.
    pub async fn start_elsewhere(
        &self,
        id: &ExecutionId,
        token: &LeaseToken,
        work: ToStart,
    ) -> Result<StartedWork, ServiceError> {
        self.check_work(&work)?;
        let execution = self.turn_elsewhere(id, token).await?;
        Ok(self.start_work(&execution, work).await)
    }

    /// Payloads that are in items of their own, by the ids that a journal has. Those that don't exist are left out.
    ///
    /// # Errors
    ///
    /// [`Reject::LimitExceeded`] for more than 100.
    pub async fn payloads_elsewhere(
        &self,
        id: &ExecutionId,
        token: &LeaseToken,
        ids: &[BlobId],
    ) -> Result<BTreeMap<BlobId, Json>, ServiceError> {
        tickover_core::limits::check("payloads", ids.len(), PAYLOADS_MAX)?;
        self.turn_elsewhere(id, token).await?;
        self.blobs(ids).await
    }

    async fn blobs(&self, ids: &[BlobId]) -> Result<BTreeMap<BlobId, Json>, ServiceError> {
        let reads = ids.iter().map(|id| async move {
            Ok::<_, ServiceError>((*id, self.with_retries(|| self.ports.store.blob(id)).await?))
        });
        let read = futures::future::try_join_all(reads).await?;
        Ok(read.into_iter().filter_map(|(id, json)| Some((id, json?))).collect())
    }

    /// Stores a large payload of a turn.
    pub async fn store_elsewhere(
        &self,
        id: &ExecutionId,
        token: &LeaseToken,
        json: Json,
    ) -> Result<Payload, ServiceError> {
        tickover_core::limits::check("json_depth", json.depth(), tickover_core::limits::JSON_DEPTH_MAX)?;
        self.turn_elsewhere(id, token).await?;
        self.store_payload(json).await
    }

    /// The token of a callback that a turn waits for.
    pub async fn callback_elsewhere(
        &self,
        id: &ExecutionId,
        token: &LeaseToken,
        event: EventName,
        expires_at: Timestamp,
    ) -> Result<Callback, ServiceError> {
        let execution = self.turn_elsewhere(id, token).await?;
        self.renew_callback_secrets().await;
        self.callback_of_wait(id, execution.incarnation, event, expires_at).await
    }

    /// What the worker of this turn will ask for first, as far as it fits into so many bytes. If it can't be read, the
    /// worker asks for it itself.
    pub async fn brought_with(&self, turn: &StartedTurn, bytes: usize) -> Brought {
        let execution = &turn.execution;
        let (mut remote, mut children) = (vec![], vec![]);
        for entry in open_steps(&turn.journal) {
            match &entry.what {
                Happened::Remote { name } => remote.push(name.clone()),
                Happened::Child { name, execution, left: false, .. } => {
                    children.push((name.clone(), execution.clone()));
                }
                _ => {}
            }
        }
        let outcomes = match self.outcomes(execution, &remote, children).await {
            Ok(outcomes) => outcomes,
            Err(error) => {
                tracing::debug!({ crate::telemetry::field::EXECUTION_ID } = %execution.id, %error, "outcomes not read");
                return Brought::default();
            }
        };
        let stored = turn.journal.iter().filter_map(Entry::payload).chain(execution.values.as_ref());
        let ended = outcomes.iter().filter_map(|(_, ended)| ended.outcome.payload());
        let mut left = bytes;
        let fitting: BTreeSet<BlobId> = stored
            .chain(ended)
            .filter_map(|payload| {
                left = left.checked_sub(payload.bytes()).filter(|_| payload.blob().is_some())?;
                payload.blob().map(|blob| blob.id)
            })
            .collect();
        let payloads = self.blobs(&fitting.into_iter().collect::<Vec<_>>()).await.unwrap_or_default();
        Brought { outcomes: Some(outcomes), payloads }
    }
}
