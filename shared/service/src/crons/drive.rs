//! The loop of a cron: decide, write, tell the timers, stop and start runs, say what became of them.

use tickover_core::command::Context;
use tickover_core::cron::command::{Command, StartResult};
use tickover_core::cron::decision::{Decision, Reply};
use tickover_core::cron::run::Occurrence;
use tickover_core::cron::{Cron, decide};
use tickover_core::decision::{DueReply, Effect, Write};
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::id::{CronId, RecordId};
use tickover_core::timer::Timer;

use super::tell;
use crate::error::ServiceError;
use crate::metric;
use crate::ports::StoreError;
use crate::service::Service;

/// Times a decision is taken again because others changed the record meanwhile.
const CONFLICTS_MAX: u32 = 10;
const CONFLICT_WAIT: Millis = Millis::new(4);
/// Looks at one cron before others have their turn. What is left stays due.
const LOOKS_MAX: u32 = 16;

/// A command carried out, but for what it wants started and stopped.
struct Driven {
    record: Option<Cron>,
    outcome: Result<Reply, Reject>,
    starts: Vec<Occurrence>,
    stops: Vec<(Occurrence, tickover_core::cron::run::Stop)>,
    wrote: bool,
}

impl Service {
    /// Carries out what somebody asked of a cron, and what it wants started.
    pub(super) async fn ask_cron(
        &self,
        id: &CronId,
        command: &Command,
    ) -> Result<(Cron, Reply), ServiceError> {
        for _ in 0..CONFLICTS_MAX {
            let driven = self.drive_cron(id, self.load_cron(id).await?, command).await?;
            let reply = driven.outcome.clone()?;
            let record = driven.record.clone().ok_or(Reject::NoCron)?;
            if driven.starts.is_empty() {
                return Ok((record, reply));
            }
            // The call has taken effect: whatever can't be started now, the tick starts.
            let confirmed = match self.carry_out(&record, &driven).await {
                Ok(confirmed) => confirmed,
                Err(error) if reply == Reply::StartFirst => return Err(error),
                Err(error) => {
                    tracing::warn!(cron = %id, %error, "run not started yet; still due");
                    None
                }
            };
            if reply != Reply::StartFirst {
                return Ok((confirmed.unwrap_or(record), reply));
            }
        }
        Err(ServiceError::Contended)
    }

    /// Deals with all that has come of a cron.
    pub(crate) async fn settle_cron(&self, id: &CronId) -> Result<DueReply, ServiceError> {
        let mut settled = DueReply::Nothing;
        let mut known = None;
        for _ in 0..LOOKS_MAX {
            let record = match known.take() {
                Some(record) => record,
                None => match self.load_cron(id).await? {
                    Some(record) => record,
                    None => return Ok(settled),
                },
            };
            let ended = self.ended_runs(&record).await?;
            let driven = self.drive_cron(id, Some(record), &Command::Due { ended }).await?;
            let (Some(record), Ok(Reply::Looked { mut again })) =
                (driven.record.clone(), driven.outcome.clone())
            else {
                return Ok(settled);
            };
            if driven.wrote && settled == DueReply::Nothing {
                settled = DueReply::Rearmed;
            }
            if !driven.starts.is_empty() {
                settled = DueReply::Dispatched;
            }
            if let Some(confirmed) = self.carry_out(&record, &driven).await? {
                again = confirmed.due.is_some_and(|due| due.at <= self.now());
                known = Some(confirmed);
            } else if !driven.stops.is_empty() {
                // What was stopped may have ended at once, and then the next run needn't wait for another look.
                again = driven.wrote;
            }
            if !again {
                break;
            }
        }
        Ok(settled)
    }

    /// A cron's record, deleted ones included.
    pub(super) async fn load_cron(&self, id: &CronId) -> Result<Option<Cron>, ServiceError> {
        Ok(self.patiently(|| self.ports.store.cron(id)).await?)
    }

    async fn drive_cron(
        &self,
        id: &CronId,
        mut record: Option<Cron>,
        command: &Command,
    ) -> Result<Driven, ServiceError> {
        for tries in 0..CONFLICTS_MAX {
            let context = Context { now: self.now(), nonce: self.new_nonce(), limits: &self.limits };
            let decision = decide(record.as_ref(), command, &context);
            if let Some(driven) = self.commit_cron(decision).await? {
                return Ok(driven);
            }
            self.back_off(tries, CONFLICT_WAIT).await;
            record = self.load_cron(id).await?;
        }
        Err(ServiceError::Contended)
    }

    /// Writes what was decided; `None` if others were first.
    async fn commit_cron(&self, decision: Decision) -> Result<Option<Driven>, ServiceError> {
        let Decision { blobs, write, timer_at, stops, starts, record, outcome } = decision;
        for blob in &blobs {
            self.patiently(|| self.ports.store.put_blob(&blob.at, &blob.body)).await?;
        }
        let wrote = write.is_some();
        if let Some(change) = write {
            if let Some(at) = &change.kept {
                let keep = [Write::ExtendBlob { at: at.clone() }];
                self.patiently(|| self.ports.store.commit(&keep)).await?;
            }
            let replaces = change.before.as_ref().map(|before| before.nonce);
            let put = [Write::PutCron { record: change.after.clone(), replaces }];
            match self.patiently(|| self.ports.store.commit(&put)).await {
                Ok(()) => {}
                Err(StoreError::Conflict { .. }) => {
                    metric::store_conflict();
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            }
            tell::tell(&change, self.now());
        }
        let timer = record.as_ref().zip(timer_at).map(|(record, at)| {
            let record = RecordId::Cron(record.id.clone());
            Effect::Timer(Timer { record, at, due_at: at })
        });
        self.publish(timer.into_iter().collect()).await;
        Ok(Some(Driven { record, outcome, starts, stops, wrote }))
    }

    /// Stops and starts runs, and says what became of those that were to be started: the cron as it stands
    /// after that, if there were any. One that can't be started for now fails the call, and stays written down.
    async fn carry_out(&self, record: &Cron, driven: &Driven) -> Result<Option<Cron>, ServiceError> {
        for (occurrence, stop) in &driven.stops {
            self.stop_run(record, occurrence, *stop).await?;
        }
        if driven.starts.is_empty() {
            return Ok(None);
        }
        let request = self.request_of(record).await?;
        let mut results: Vec<(Occurrence, StartResult)> = Vec::new();
        let mut trouble = None;
        for occurrence in &driven.starts {
            match self.start_run(record, &request, occurrence).await {
                Ok(result) => results.push((*occurrence, result)),
                Err(error) => trouble = Some(error),
            }
        }
        let command = Command::Started { results };
        let confirmed = self.drive_cron(&record.id, Some(record.clone()), &command).await?;
        trouble.map_or(Ok(confirmed.record), Err)
    }
}
