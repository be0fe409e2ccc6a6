//! A shard's backlog, handed from one invocation to the next until nothing is left of it.
//!
//! The ticks' record holds the token of the one sweep of a shard that goes on. It is written before the message that
//! carries it is sent, and only a message with the latest token is obeyed. So a message that comes twice, and a tick that
//! comes meanwhile, don't become a second sweep.

use tickover_core::decision::Write;
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

/// Times the record is written anew because another one wrote it meanwhile.
const TRIES: u32 = 8;

impl Service {
    /// Goes on with another call's sweep of a shard, until nothing is left in it. `None` if a newer sweep has the shard.
    pub(crate) async fn go_on_sweeping(
        &self,
        sweep: Sweep,
        stop_at: Timestamp,
    ) -> Result<Option<TickReport>, ServiceError> {
        let shard = sweep.shard;
        let token = match sweep.since {
            Some(token) => {
                let noted = self.with_retries(|| self.ports.store.tick_record()).await?;
                noted.filter(|noted| noted.is_swept_by(shard, token)).map(|_| token)
            }
            None => self.take_shard(shard, None).await?,
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

    /// Sends what is left of a shard's backlog on by message. `false` if there is no queue of timers, or if another
    /// sweep of the shard goes on already.
    pub(super) async fn hand_shard_on(&self, shard: u16, job: &Job) -> Result<bool, ServiceError> {
        if !self.has_timers() {
            return Ok(false);
        }
        let held = match job.reach {
            Reach::Share => None,
            Reach::Whole { token } => Some(token),
        };
        let Some(token) = self.take_shard(shard, held).await? else {
            // The rest is another sweep's. A tick has time left and goes on; a sweep that was overtaken ends.
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

    /// Writes a new token of a shard's sweep, in place of the one that is held. `None` if another sweep has it.
    async fn take_shard(
        &self,
        shard: u16,
        held: Option<Timestamp>,
    ) -> Result<Option<Timestamp>, ServiceError> {
        for tries in 0..TRIES {
            let noted = self.with_retries(|| self.ports.store.tick_record()).await?;
            let noted = noted.unwrap_or_else(|| TickRecord::new(self.new_nonce()));
            let Some((after, token)) = noted.handed_on(shard, held, self.now()) else { return Ok(None) };
            match self.put_tick(after).await {
                Ok(()) => return Ok(Some(token)),
                Err(StoreError::Conflict { .. }) => self.back_off(tries, Millis::new(10)).await,
                Err(error) => return Err(error.into()),
            }
        }
        Err(ServiceError::Contended)
    }

    /// Notes that a sweep has come to its end, or that the one before it goes on. If it can't be noted, the shard is
    /// left alone for a few minutes by those who would hand it out again.
    async fn end_sweep(&self, shard: u16, token: Timestamp, to: Option<Timestamp>) {
        for tries in 0..TRIES {
            let written = async {
                let noted = self.with_retries(|| self.ports.store.tick_record()).await?;
                let after = noted.and_then(|noted| noted.given_back(shard, token, to, self.now()));
                match after {
                    Some(after) => self.put_tick(after).await,
                    None => Ok(()),
                }
            };
            match written.await {
                Ok(()) => return,
                Err(StoreError::Conflict { .. }) => self.back_off(tries, Millis::new(10)).await,
                Err(error) => return tracing::warn!(shard, %error, "the end of a sweep isn't noted"),
            }
        }
        tracing::warn!(shard, "the end of a sweep isn't noted: others were faster");
    }

    /// Writes the ticks' record as its next version.
    pub(super) async fn put_tick(&self, after: TickRecord) -> Result<(), StoreError> {
        let record = TickRecord { version: after.version + 1, nonce: self.new_nonce(), ..after };
        let writes = [Write::PutTick { record }];
        self.with_retries(|| self.ports.store.commit(&writes)).await
    }
}
