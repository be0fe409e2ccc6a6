//! The parked work of paused queues. When a function receives a message of a paused queue, it deletes the message and
//! marks the record as parked. Otherwise a million waiting messages would be received, and sent again, for as long as
//! the pause lasts.
//!
//! Resuming the queue walks the due index, one message for each shard, and sends the hint of each parked record. The
//! queue's record lists the walks that aren't done, in the same write that resumes the queue. So a walk may be lost at
//! any moment: the tick starts it again. A walk with errors sends a fresh message with the position that it has
//! reached.

use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use tickover_core::decision::DueReply;
use tickover_core::duration::Millis;
use tickover_core::execution;
use tickover_core::id::{ExecutionId, QueueName, RecordId, TaskId};
use tickover_core::queue::QueueRecord;
use tickover_core::task::{self, Task};
use tickover_core::time::Timestamp;
use tickover_core::timer::{Resume, Wake};

use crate::drive::Known;
use crate::error::ServiceError;
use crate::ports::{DueEntry, DueRange, Outgoing, StoreError};
use crate::service::Service;
use crate::telemetry::field;
use crate::tick::outgoing;
use crate::timers::{FireError, Fired};
use crate::warn_unless_logged;

/// For 5 seconds other processes may not know that the queue is resumed, and park what they receive: the walk starts
/// when they have stopped.
const BEGINS_AFTER: Millis = Millis::from_secs(10);
/// How long a walk lasts within its call, where there is no timers queue to send a message to.
const OWN_WALK: Millis = Millis::from_secs(20);
/// How long a walk waits if the store didn't answer.
const AGAIN_AFTER_SECS: u64 = 15;
/// Walks that wait come back spread over this many seconds, because all of them write the same record in the end.
const SPREAD_SECS: u16 = 16;
/// Entries of a page: as many records as one call reads.
const PAGE: usize = 100;
/// Records that are decided at the same time.
const RECORDS_AT_ONCE: usize = 16;
/// The ends of the due index.
const FIRST: Timestamp = Timestamp::from_millis(i64::MIN);
const LAST: Timestamp = Timestamp::from_millis(i64::MAX);

/// How a walk over a shard ended.
enum Walked {
    /// It reached the end, or nothing is left to do.
    Done,
    /// Its time was up.
    TimeUp,
}

impl Service {
    /// Records on the queue's record, before any hint is deleted, that a resume must look for parked records. Returns
    /// `false` if the queue isn't paused any more: then no hint may be deleted.
    pub(crate) async fn note_parked(&self, queue: &QueueName) -> Result<bool, ServiceError> {
        if !self.record(queue).await?.is_some_and(|record| record.parked) {
            let noted = |record: &QueueRecord| {
                (record.paused && !record.parked).then(|| QueueRecord { parked: true, ..record.clone() })
            };
            self.write_queue(queue, noted).await?;
        }
        self.is_paused(queue).await
    }

    /// Resumes a queue, and sends the hints of all parked records. The tick sends those that can't be sent now.
    pub(crate) async fn resume_queue(&self, queue: &QueueName) -> Result<(), ServiceError> {
        let (now, shards) = (self.now(), self.limits.due_shards);
        let by = || self.by.as_deref().cloned();
        let resumed = |record: &QueueRecord| match record.resume(now, shards) {
            Some(resumed) => Some(QueueRecord { by: by(), ..resumed }),
            None => record.restart_walks(now),
        };
        if let Some(record) = self.write_queue(queue, resumed).await? {
            self.send_walks(&record, now, BEGINS_AFTER, now.plus(OWN_WALK)).await;
            let looked = self.look_at_lines_of(queue, now.plus(OWN_WALK)).boxed().await;
            if let Err(error) = looked {
                warn_unless_logged!(error; { field::QUEUE_NAME } = %queue, %error, "not every line is looked at; a tick will do it");
            }
        }
        Ok(())
    }

    /// The tick found a queue with unfinished walks: starts the lost ones again.
    pub(crate) async fn restart_walks(
        &self,
        queue: &QueueName,
        stop_at: Timestamp,
    ) -> Result<DueReply, ServiceError> {
        let now = self.now();
        let Some(record) = self.write_queue(queue, |record| record.restart_walks(now)).await? else {
            return Ok(DueReply::Nothing);
        };
        self.send_walks(&record, now, Millis::ZERO, stop_at).await;
        Ok(DueReply::Rearmed)
    }

    /// Sends the messages of the walks that start now. Without a timers queue, it walks itself while there is time.
    async fn send_walks(&self, record: &QueueRecord, now: Timestamp, after: Millis, stop_at: Timestamp) {
        let Some(resuming) = &record.resuming else { return };
        let begin = resuming.walks.iter().filter(|(_, walk)| walk.noted_at == now);
        let resumes = begin.map(|(shard, walk)| Resume {
            queue: record.name.clone(),
            shard: *shard,
            since: Some(resuming.since),
            from: walk.from,
        });
        if self.has_timers() {
            let messages: Vec<Outgoing> =
                resumes.filter_map(|resume| outgoing(&Wake::Resume(resume), after)).collect();
            // A walk whose message isn't sent makes no progress, so the tick sends it again.
            self.send(&QueueName::timers(), &messages).await;
            return;
        }
        for resume in resumes {
            if let Err(error) = self.continue_walk(resume, stop_at).await {
                warn_unless_logged!(error; { field::QUEUE_NAME } = %record.name, %error, "not every parked record has its hint");
            }
        }
    }

    /// Walks a shard for a queue that was resumed.
    pub(crate) async fn fire_resume(&self, resume: Resume, stop_at: Timestamp) -> Result<Fired, FireError> {
        if resume.shard == 0 && resume.from.is_none() {
            // Processes that didn't know of the end of the pause may have put aside whom the resume had called.
            let looked = self.look_at_lines_of(&resume.queue, stop_at).boxed().await;
            if let Err(error) = looked {
                warn_unless_logged!(error; { field::QUEUE_NAME } = %resume.queue, %error, "not every line is looked at; a tick will do it");
            }
        }
        let Some((rest, after)) = self.continue_walk(resume, stop_at).await? else {
            return Ok(Fired::Spent);
        };
        // Replaces the message by a fresh one, whose receive count starts at zero.
        let messages: Vec<Outgoing> = outgoing(&Wake::Resume(rest), after).into_iter().collect();
        let sent = self.send(&QueueName::timers(), &messages).await;
        if sent == messages.len() { Ok(Fired::SentOn) } else { Err(FireError::NotSentOn) }
    }

    /// Walks a shard while there is time. Returns the rest of the walk, and how long it should wait.
    async fn continue_walk(
        &self,
        resume: Resume,
        stop_at: Timestamp,
    ) -> Result<Option<(Resume, Millis)>, ServiceError> {
        let mut place = resume.from;
        let after = match self.walk(&resume, &mut place, stop_at).await {
            Ok(Walked::Done) => return Ok(None),
            Ok(Walked::TimeUp) => Millis::ZERO,
            Err(error) if error.is_retryable() => {
                warn_unless_logged!(error; { field::QUEUE_NAME } = %resume.queue, %error, "a walk waits and then continues");
                Millis::from_secs(AGAIN_AFTER_SECS + u64::from(resume.shard % SPREAD_SECS))
            }
            Err(error) => return Err(error),
        };
        let rest = Resume { from: place, ..resume };
        self.note_position(&rest).await;
        Ok(Some((rest, after)))
    }

    /// Records the position of a walk. If that fails, the tick may start the walk again from an earlier position.
    async fn note_position(&self, rest: &Resume) {
        let Some(since) = rest.since else { return };
        let now = self.now();
        let noted = |record: &QueueRecord| record.note_walk(since, rest.shard, rest.from, now);
        if let Err(error) = self.write_queue(&rest.queue, noted).await {
            tracing::debug!({ field::QUEUE_NAME } = %rest.queue, %error, "position of a walk not recorded");
        }
    }

    /// `place` is the position that the walk has reached, also if it fails.
    async fn walk(
        &self,
        resume: &Resume,
        place: &mut Option<Timestamp>,
        stop_at: Timestamp,
    ) -> Result<Walked, ServiceError> {
        let range = DueRange { shard: resume.shard, from: place.unwrap_or(FIRST), until: LAST };
        let mut cursor: Option<String> = None;
        let mut record = self.fresh_record(&resume.queue).await?;
        loop {
            if !has_more(record.as_ref(), resume, *place) {
                return Ok(Walked::Done);
            }
            // The first page is always processed, so that a walk proceeds however little time each message has.
            if cursor.is_some() && self.now() >= stop_at {
                return Ok(Walked::TimeUp);
            }
            let page = self.with_retries(|| self.ports.store.due(range, PAGE, cursor.as_deref())).await?;
            let last = page.items.last().map(|entry| entry.due_at);
            self.unpark_page(&resume.queue, page.items).await?;
            *place = last.max(*place);
            cursor = page.next;
            if cursor.is_none() {
                // If this write fails, only the write has to be repeated.
                *place = Some(LAST);
                self.note_walked(resume).await?;
                return Ok(Walked::Done);
            }
            record = self.record(&resume.queue).await?;
        }
    }

    async fn note_walked(&self, resume: &Resume) -> Result<(), ServiceError> {
        let Some(since) = resume.since else { return Ok(()) };
        self.write_queue(&resume.queue, |record| record.finish_walk(since, resume.shard)).await.map(drop)
    }

    async fn unpark_page(&self, queue: &QueueName, entries: Vec<DueEntry>) -> Result<(), ServiceError> {
        let (mut tasks, mut executions) = (Vec::new(), Vec::new());
        for entry in entries {
            match entry.record {
                RecordId::Task(id) => tasks.push(id),
                RecordId::Execution(id) => executions.push(id),
                RecordId::Cron(_)
                | RecordId::Queue(_)
                | RecordId::Operation(_)
                | RecordId::Gate(_)
                | RecordId::Tick
                | RecordId::Key(_) => {}
            }
        }
        self.unpark_tasks(queue, &tasks).await?;
        self.unpark_executions(queue, &executions).await
    }

    async fn unpark_tasks(&self, queue: &QueueName, ids: &[TaskId]) -> Result<(), ServiceError> {
        if ids.is_empty() {
            return Ok(());
        }
        let (tasks, _) = self.load_each(ids).await?;
        let parked = tasks.into_iter().filter(|task| task.parked.is_paused() && task.queue == *queue);
        let driven: Vec<_> = stream::iter(parked)
            .map(|task: Task| async move {
                let id = task.id.clone();
                self.drive_unpublished(&id, Known::Record(Box::new(task)), &task::Command::Unpark).await
            })
            .buffer_unordered(RECORDS_AT_ONCE)
            .collect()
            .await;
        let (mut effects, mut trouble) = (Vec::new(), None);
        for one in driven {
            match one {
                Ok(one) => effects.extend(one.effects),
                Err(error) if error.is_retryable() => trouble = Some(error),
                // A record that always fails must not block all records after it.
                Err(error) => tracing::error!(%error, "a parked task left alone"),
            }
        }
        // All together, because one request sends ten messages.
        self.publish(effects).await;
        trouble.map_or(Ok(()), Err)
    }

    async fn unpark_executions(&self, queue: &QueueName, ids: &[ExecutionId]) -> Result<(), ServiceError> {
        let unparked = stream::iter(ids.to_vec())
            .map(|id| async move { self.unpark_execution(queue, &id).await })
            .buffer_unordered(RECORDS_AT_ONCE)
            .collect::<Vec<_>>();
        unparked.await.into_iter().collect()
    }

    async fn unpark_execution(&self, queue: &QueueName, id: &ExecutionId) -> Result<(), ServiceError> {
        let execution = match self.with_retries(|| self.ports.store.execution(id)).await {
            Ok(Some(execution)) if execution.parked.is_paused() && execution.queue == *queue => execution,
            Ok(_) => return Ok(()),
            Err(error @ StoreError::Corrupt { .. }) => {
                tracing::error!({ field::EXECUTION_ID } = %id, %error, "record left alone");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let known = Known::Record(Box::new(execution));
        match Box::pin(self.drive_execution(id, known, &execution::Command::Unpark)).await {
            Err(error) if error.is_retryable() => Err(error),
            Err(error) => {
                tracing::error!({ field::EXECUTION_ID } = %id, %error, "a parked execution left alone");
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }
}

/// Whether a walk at this position has anything left to do: the queue is still resumed by the same write, and no later
/// position is recorded.
fn has_more(record: Option<&QueueRecord>, resume: &Resume, place: Option<Timestamp>) -> bool {
    match resume.since {
        Some(since) => {
            record.and_then(|record| record.walk(since, resume.shard)).is_some_and(|walk| walk.from <= place)
        }
        // Nothing is recorded of the walks of older builds.
        None => record.is_none_or(|record| !record.paused),
    }
}

#[cfg(test)]
mod tests;
