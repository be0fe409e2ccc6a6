//! What is around the loop for crons: runs that are written down are stopped and started, and what became of them is
//! written down as well.

use tickover_core::cron::command::StartResult;
use tickover_core::cron::run::Occurrence;
use tickover_core::cron::{Command, Cron, Reply};
use tickover_core::decision::DueReply;
use tickover_core::id::CronId;

use crate::drive::{CONFLICTS_MAX, Known};
use crate::error::ServiceError;
use crate::service::Service;

/// Looks at one cron before others have their turn. What is left stays due.
const LOOKS_MAX: u32 = 16;

impl Service {
    /// Carries out what somebody asked of a cron, and what it wants started.
    pub(super) async fn ask_cron(
        &self,
        id: &CronId,
        command: &Command,
    ) -> Result<(Cron, Reply), ServiceError> {
        for _ in 0..CONFLICTS_MAX {
            let (record, reply) = self.drive(id, Known::Unread, command).await?.outcome?;
            let starts = match reply {
                // Nothing of it was written down just now.
                Reply::Made { .. } => false,
                Reply::Done | Reply::Triggered(_) | Reply::StartFirst => {
                    record.starting_runs().next().is_some()
                }
            };
            if !starts {
                return Ok((record, reply));
            }
            // The call has taken effect: whatever can't be started now, the tick starts.
            let confirmed = match self.carry_out(&record).await {
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
    pub(crate) async fn process_cron(&self, id: &CronId) -> Result<DueReply, ServiceError> {
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
            let decision = self.drive(id, Known::Record(Box::new(record)), &Command::Due { ended }).await?;
            let wrote = !decision.writes.is_empty();
            // Where there is none, it was deleted meanwhile.
            let Ok((record, _)) = decision.outcome else { return Ok(settled) };
            if wrote && settled == DueReply::Nothing {
                settled = DueReply::Rearmed;
            }
            let again = if let Some(confirmed) = self.carry_out(&record).await? {
                settled = DueReply::Dispatched;
                let is_due = confirmed.is_due(self.now());
                known = Some(confirmed);
                is_due
            } else {
                // What was stopped may have ended at once, and then the next run needn't wait for another look.
                wrote && (record.is_due(self.now()) || record.stopping_runs().next().is_some())
            };
            if !again {
                break;
            }
        }
        Ok(settled)
    }

    /// A cron's record, deleted ones included.
    pub(super) async fn load_cron(&self, id: &CronId) -> Result<Option<Cron>, ServiceError> {
        Ok(self.with_retries(|| self.ports.store.cron(id)).await?)
    }

    /// Stops and starts the runs that are written down for that, and says what became of those that were to be started:
    /// the cron as it stands after that, if there were any. One that can't be started for now fails the call, and stays
    /// written down.
    async fn carry_out(&self, record: &Cron) -> Result<Option<Cron>, ServiceError> {
        for (occurrence, stop) in record.stopping_runs() {
            self.stop_run(record, &occurrence, stop).await?;
        }
        let starts: Vec<Occurrence> = record.starting_runs().collect();
        if starts.is_empty() {
            return Ok(None);
        }
        let request = self.request_of(record).await?;
        let mut results: Vec<(Occurrence, StartResult)> = Vec::new();
        let mut trouble = None;
        for occurrence in starts {
            match self.start_run(record, &request, &occurrence).await {
                Ok(result) => results.push((occurrence, result)),
                Err(error) => trouble = Some(error),
            }
        }
        let (known, command) = (Known::Record(Box::new(record.clone())), Command::Started { results });
        let confirmed = self.drive(&record.id, known, &command).await?.outcome;
        trouble.map_or(Ok(confirmed.ok().map(|(confirmed, _)| confirmed)), Err)
    }
}
