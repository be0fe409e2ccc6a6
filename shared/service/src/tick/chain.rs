//! A shard's backlog, passed from one invocation to the next until nothing is left of it.
//!
//! The ticks' record has the token of the shard's only active sweep. The token is written before its message is sent,
//! and only a message with the latest token continues. So a repeated message, or a tick that runs meanwhile, doesn't
//! start a second sweep.

use tickover_core::decision::{Condition, Write};
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;
use tickover_core::timer::{Sweep, Wake};

use super::sweep::Reach;
use super::{Job, TickReport, outgoing};
use crate::error::ServiceError;
use crate::ports::StoreError;
use crate::service::Service;
use crate::warn_unless_logged;

/// How often the write of the record is tried again because another process wrote it meanwhile.
const TRIES: u32 = 8;

/// How often and how soon the record is read again that may be older than the message: for a second or so.
const READS: u32 = 5;
const READ_AGAIN: Millis = Millis::new(50);

impl Service {
    /// Continues the sweep of a shard that another call started, until nothing is left in it. Returns `None` if a newer
    /// sweep has the shard.
    pub(crate) async fn continue_sweep(
        &self,
        sweep: Sweep,
        stop_at: Timestamp,
    ) -> Result<Option<TickReport>, ServiceError> {
        let shard = sweep.shard;
        let token = match sweep.since {
            Some(token) if self.has_shard(shard, token).await? => Some(token),
            Some(_) => None,
            None => self.replace_token(shard, None).await?,
        };
        let Some(token) = token else { return Ok(None) };
        let until = self.now();
        let job = Job::new(until, until, stop_at, Reach::Whole { token });
        let report = self.sweep_shard(shard, &job).await?;
        if !report.out_of_time && report.fanned_out == 0 {
            self.end_sweep(shard, token, None).await;
        }
        Ok(Some(report))
    }

    /// Whether a sweep has the shard. The read may be from before the write of its token: then it is repeated for a while.
    async fn has_shard(&self, shard: u16, token: Timestamp) -> Result<bool, ServiceError> {
        for tries in 0..READS {
            let noted = self.with_retries(|| self.ports.store.tick_record()).await?;
            if noted.is_some_and(|noted| noted.is_swept_by(shard, token)) {
                return Ok(true);
            }
            self.back_off(tries, READ_AGAIN).await;
        }
        Ok(false)
    }

    /// Sends the rest of a shard's backlog on by message. Returns `false` if there is no timers queue, or if another
    /// sweep of the shard is active.
    pub(super) async fn pass_shard_on(&self, shard: u16, job: &Job) -> Result<bool, ServiceError> {
        if !self.has_timers() {
            return Ok(false);
        }
        let held = match job.reach {
            Reach::Share => None,
            Reach::Whole { token } => Some(token),
        };
        let Some(token) = self.replace_token(shard, held).await? else {
            // Another sweep has the rest. A tick has time left and continues; a sweep that was replaced ends.
            return Ok(held.is_some());
        };
        let message = outgoing(&Wake::Sweep(Sweep { shard, since: Some(token) }), Millis::ZERO);
        let messages: Vec<_> = message.into_iter().collect();
        if self.send(&QueueName::timers(), &messages).await > 0 {
            return Ok(true);
        }
        self.end_sweep(shard, token, held).await;
        Ok(false)
    }

    /// Replaces the token of a shard's sweep by a new one. Returns `None` if another sweep has the shard.
    async fn replace_token(
        &self,
        shard: u16,
        held: Option<Timestamp>,
    ) -> Result<Option<Timestamp>, ServiceError> {
        for tries in 0..TRIES {
            let noted = self.with_retries(|| self.ports.store.tick_record()).await?;
            let noted = noted.unwrap_or_else(|| TickRecord::new(self.new_nonce()));
            let Some((after, token)) = noted.pass_on(shard, held, self.now()) else { return Ok(None) };
            match self.put_tick(after).await {
                Ok(()) => return Ok(Some(token)),
                Err(StoreError::Conflict { .. }) => self.back_off(tries, Millis::new(10)).await,
                Err(error) => return Err(error.into()),
            }
        }
        Err(ServiceError::Contended)
    }

    /// Records that a sweep has ended, or, with `to`, that the sweep before it continues. If the write fails, other
    /// calls don't sweep the shard for a few minutes.
    async fn end_sweep(&self, shard: u16, token: Timestamp, to: Option<Timestamp>) {
        for tries in 0..TRIES {
            let written = async {
                let noted = self.with_retries(|| self.ports.store.tick_record()).await?;
                let after = noted.and_then(|noted| noted.finish_sweep(shard, token, to, self.now()));
                match after {
                    Some(after) => self.put_tick(after).await,
                    None => Ok(()),
                }
            };
            match written.await {
                Ok(()) => return,
                Err(StoreError::Conflict { .. }) => self.back_off(tries, Millis::new(10)).await,
                Err(error) => {
                    return warn_unless_logged!(error; shard, %error, "the end of a sweep isn't recorded");
                }
            }
        }
        tracing::warn!(shard, "the end of a sweep isn't recorded: others were faster");
    }

    /// Writes the next version of the ticks' record.
    pub(super) async fn put_tick(&self, after: TickRecord) -> Result<(), StoreError> {
        let record = TickRecord { version: after.version + 1, nonce: self.new_nonce(), ..after };
        let writes = [Write::put(record, Condition::Follows)];
        self.with_retries(|| self.ports.store.commit(&writes)).await
    }
}

#[cfg(test)]
mod tests;
