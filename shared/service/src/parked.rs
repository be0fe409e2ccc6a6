//! What waits in paused queues. A message of a paused queue that a function receives is deleted, and its record is marked
//! as parked: a million waiting messages would otherwise be received, and sent again, for as long as the pause lasts.
//! Resuming the queue walks the due index, a shard a message, and sends the hint of each parked record.

use futures::stream::{self, StreamExt as _};
use tickover_core::command::Command;
use tickover_core::duration::Millis;
use tickover_core::execution::command::ExecutionCommand;
use tickover_core::id::{ExecutionId, QueueName, RecordId, TaskId};
use tickover_core::queue::QueueRecord;
use tickover_core::task::Task;
use tickover_core::time::Timestamp;
use tickover_core::timer::{Resume, Wake};

use crate::drive::Known;
use crate::error::ServiceError;
use crate::executions::KnownExecution;
use crate::ports::{DueEntry, DueRange, Outgoing, StoreError};
use crate::service::Service;
use crate::telemetry::field;
use crate::tick::outgoing;
use crate::timers::{FireError, Fired};

/// Other processes believe for 5 seconds that the queue is still paused, and park what they receive: the walk begins
/// when they have stopped.
const BEGINS_AFTER: Millis = Millis::from_secs(10);
/// How long a walk goes on that nobody else can be sent.
const OWN_WALK: Millis = Millis::from_secs(20);
/// Entries of a page: as many records as are read with one call.
const PAGE: usize = 100;
/// Records decided at once.
const RECORDS_AT_ONCE: usize = 16;

/// How a walk over a shard ended.
enum Walked {
    /// At its end, or because the queue is paused again.
    Done,
    /// Because time was up, at this place.
    Until(Timestamp),
}

impl Service {
    /// Notes that hints of a queue that was paused a moment ago are about to be deleted. Whether it still is: whoever
    /// has resumed it meanwhile has sent nobody to look for them.
    pub(crate) async fn note_parked(&self, queue: &QueueName) -> Result<bool, ServiceError> {
        if !self.record(queue).await?.is_some_and(|record| record.parked) {
            let noted = |record: &QueueRecord| set(record, true).filter(|record| record.paused);
            self.write_queue(queue, noted).await?;
        }
        self.is_paused(queue).await
    }

    /// Has the hints sent of all that was parked while the queue was paused. Where that fails, resuming it again does it.
    pub(crate) async fn send_parked(&self, queue: &QueueName) -> Result<(), ServiceError> {
        if !self.record(queue).await?.is_some_and(|record| record.parked) {
            return Ok(());
        }
        let resumes = (0..self.limits.due_shards.max(1)).map(|shard| Resume {
            queue: queue.clone(),
            shard,
            from: None,
        });
        if self.has_timers() {
            let messages: Vec<Outgoing> =
                resumes.filter_map(|resume| outgoing(&Wake::Resume(resume), BEGINS_AFTER)).collect();
            if self.send(&QueueName::timers(), &messages).await < messages.len() {
                let reason = "not everything that waits could be told that the queue is resumed".to_owned();
                return Err(ServiceError::Unavailable { reason });
            }
        } else {
            let stop_at = self.now().plus(OWN_WALK);
            for resume in resumes {
                if let Walked::Until(_) = self.walk(&resume, stop_at).await? {
                    let reason = "not everything that waits has its message yet: resume again".to_owned();
                    return Err(ServiceError::Unavailable { reason });
                }
            }
        }
        self.write_queue(queue, |record| set(record, false)).await
    }

    /// Walks a shard for a queue that was resumed.
    pub(crate) async fn fire_resume(&self, resume: Resume, stop_at: Timestamp) -> Result<Fired, FireError> {
        match self.walk(&resume, stop_at).await? {
            Walked::Done => Ok(Fired::Spent),
            Walked::Until(place) => {
                let rest = Wake::Resume(Resume { from: Some(place), ..resume });
                let messages: Vec<Outgoing> = outgoing(&rest, Millis::ZERO).into_iter().collect();
                let sent = self.send(&QueueName::timers(), &messages).await;
                if sent == messages.len() { Ok(Fired::SentOn) } else { Err(FireError::NotSentOn) }
            }
        }
    }

    async fn walk(&self, resume: &Resume, stop_at: Timestamp) -> Result<Walked, ServiceError> {
        let from = resume.from.unwrap_or(Timestamp::from_millis(i64::MIN));
        let range = DueRange { shard: resume.shard, from, until: Timestamp::from_millis(i64::MAX) };
        let (mut cursor, mut reached): (Option<String>, _) = (None, from);
        loop {
            // What is left stays parked: the next resuming has to look for it.
            if self.is_paused(&resume.queue).await? && self.note_parked(&resume.queue).await? {
                return Ok(Walked::Done);
            }
            // The first page is always looked at, so that a walk goes on however little time each message has.
            if cursor.is_some() && self.now() >= stop_at {
                return Ok(Walked::Until(reached));
            }
            let page = self.patiently(|| self.ports.store.due(range, PAGE, cursor.as_deref())).await?;
            reached = page.items.last().map_or(reached, |entry| entry.due_at);
            self.unpark_page(&resume.queue, page.items).await?;
            cursor = page.next;
            if cursor.is_none() {
                return Ok(Walked::Done);
            }
        }
    }

    async fn unpark_page(&self, queue: &QueueName, entries: Vec<DueEntry>) -> Result<(), ServiceError> {
        let (mut tasks, mut executions) = (Vec::new(), Vec::new());
        for entry in entries {
            match entry.record {
                RecordId::Task(id) => tasks.push(id),
                RecordId::Execution(id) => executions.push(id),
                RecordId::Recurrence(_) => {}
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
        let parked = tasks.into_iter().filter(|task| task.parked && task.queue == *queue);
        let driven: Vec<_> = stream::iter(parked)
            .map(|task: Task| async move {
                let id = task.id.clone();
                self.drive_quietly(&id, Known::Record(Box::new(task)), &Command::Unpark).await
            })
            .buffer_unordered(RECORDS_AT_ONCE)
            .collect()
            .await;
        let (mut effects, mut trouble) = (Vec::new(), None);
        for one in driven {
            match one {
                Ok(one) => effects.extend(one.effects),
                Err(error) => trouble = Some(error),
            }
        }
        // All together, so that ten travel with one request.
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
        let execution = match self.patiently(|| self.ports.store.execution(id)).await {
            Ok(Some(execution)) if execution.parked && execution.queue == *queue => execution,
            Ok(_) => return Ok(()),
            Err(error @ StoreError::Corrupt { .. }) => {
                tracing::error!({ field::EXECUTION_ID } = %id, %error, "record left alone");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let known = KnownExecution::Record(Box::new(execution));
        Box::pin(self.drive_execution(id, known, &ExecutionCommand::Unpark)).await.map(drop)
    }
}

fn set(record: &QueueRecord, parked: bool) -> Option<QueueRecord> {
    (record.parked != parked).then(|| QueueRecord { parked, ..record.clone() })
}

#[cfg(test)]
mod tests;
