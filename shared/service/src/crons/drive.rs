//! What happens around the loop for crons: recorded runs are stopped and started, and the results are recorded as well.

use tickover_core::cron::command::StartResult;
use tickover_core::cron::run::Occurrence;
use tickover_core::cron::{Command, Cron, Reply};
use tickover_core::decision::DueReply;
use tickover_core::duration::Millis;
use tickover_core::id::CronId;
use tickover_core::time::Timestamp;

use crate::contention::Tries;
use crate::drive::{CONFLICT_WAIT, Known};
use crate::error::ServiceError;
use crate::service::Service;
use crate::warn_unless_logged;

/// How often one cron is processed before others have their turn. What is left stays due.
const PASSES_MAX: u32 = 16;
/// How long one look at all crons may take. After that, each has one pass.
const PLANNED_WITHIN: Millis = Millis::from_secs(30);
/// Crons that are read in one call.
const PAGE: usize = 100;

impl Service {
    /// Carries out a command on a cron, and starts the runs that follow from it.
    pub(super) async fn command_cron(
        &self,
        id: &CronId,
        command: Command,
    ) -> Result<(Cron, Reply), ServiceError> {
        let (command, mut tries) = (self.operated(command), Tries::default());
        loop {
            let (record, reply) = self.drive(id, Known::Unread, &command).await?.outcome?;
            let starts = match reply {
                // Nothing was recorded by this call.
                Reply::Created { .. } => false,
                Reply::Done | Reply::Triggered(_) | Reply::StartFirst => {
                    record.starting_runs().next().is_some()
                }
            };
            if !starts {
                return Ok((record, reply));
            }
            // The command has taken effect: the tick starts runs that can't be started now.
            let confirmed = match self.carry_out(&record).await {
                Ok(confirmed) => confirmed,
                Err(error) if reply == Reply::StartFirst => return Err(error),
                Err(error) => {
                    warn_unless_logged!(error; cron = %id, %error, "run not started yet; still due");
                    None
                }
            };
            if reply != Reply::StartFirst {
                return Ok((confirmed.unwrap_or(record), reply));
            }
            self.once_more_soon(&mut tries, CONFLICT_WAIT).await?;
        }
    }

    /// Processes what is due for a cron until `stop_at`. What is left stays due.
    pub(crate) async fn process_cron(
        &self,
        id: &CronId,
        stop_at: Timestamp,
    ) -> Result<DueReply, ServiceError> {
        let mut result = DueReply::Nothing;
        let mut known = None;
        for _ in 0..PASSES_MAX {
            let record = match known.take() {
                Some(record) => record,
                None => match self.load_cron(id).await? {
                    Some(record) => record,
                    None => return Ok(result),
                },
            };
            let ended = self.ended_runs(&record).await?;
            let decision = self.drive(id, Known::Record(Box::new(record)), &Command::Due { ended }).await?;
            let wrote = !decision.writes.is_empty();
            // If there is no record, it was deleted meanwhile.
            let Ok((record, _)) = decision.outcome else { return Ok(result) };
            if wrote && result == DueReply::Nothing {
                result = DueReply::Rearmed;
            }
            let again = if let Some(confirmed) = self.carry_out(&record).await? {
                result = DueReply::Dispatched;
                let is_due = confirmed.is_due(self.now());
                known = Some(confirmed);
                is_due
            } else {
                // A stopped run may have ended at once, and then the next run needn't wait for another pass.
                wrote && (record.is_due(self.now()) || record.stopping_runs().next().is_some())
            };
            if !again || self.now() >= stop_at {
                break;
            }
        }
        Ok(result)
    }

    /// Looks at each cron that has a next occurrence: if the clock was set back since it was planned, it is planned anew.
    pub async fn plan_crons_anew(&self) -> Result<(), ServiceError> {
        let stop_at = self.now().plus(PLANNED_WITHIN);
        let mut cursor: Option<String> = None;
        loop {
            let page = self.with_retries(|| self.ports.store.crons(PAGE, cursor.as_deref())).await?;
            let ids = page.items.iter().filter(|cron| cron.next().is_some()).map(|cron| cron.id.clone());
            for id in ids.collect::<Vec<_>>() {
                self.process_cron(&id, stop_at).await?;
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    /// A cron's record, deleted crons included.
    pub(super) async fn load_cron(&self, id: &CronId) -> Result<Option<Cron>, ServiceError> {
        Ok(self.with_retries(|| self.ports.store.cron(id)).await?)
    }

    /// Stops and starts the runs that the record lists for that, and records the results of the starts. Returns the
    /// cron after that, or `None` if no run had to start. A run that can't be started for now fails the call, and stays
    /// recorded.
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
