//! One shard of the due index, page by page.

use futures::future::join;
use futures::stream::{self, StreamExt as _};
use tickover_core::decision::DueReply;
use tickover_core::execution::due as of_execution;
use tickover_core::id::{ExecutionId, RecordId, TaskId};
use tickover_core::queue::QueueView;
use tickover_core::task::Task;
use tickover_core::task::command::Command;
use tickover_core::task::decision::Reply;
use tickover_core::task::due::asks_its_queue;
use tickover_core::time::Timestamp;

use super::{Job, TickReport};
use crate::drive::Known;
use crate::error::ServiceError;
use crate::executions::{CALLER_WAITS, Look};
use crate::metric;
use crate::ports::{DueEntry, DueRange, Page};
use crate::service::Service;
use crate::telemetry::field;

/// Entries of a page. A tick deals with one page of a shard itself before it hands the rest to others, who go on at
/// once.
pub(super) const PAGE: usize = 500;
/// Records read together, just before they are dealt with. In small lots two ticks at one shard seldom have the
/// same record in hands, so few of their writes fail.
const BATCH: usize = 25;
/// Records of a lot decided at once.
const RECORDS_AT_ONCE: usize = 16;

/// How far a shard is swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// A tick's share; the rest goes to others.
    Share,
    /// To the end, or until time is up: then the sweep with this token is followed by another.
    Whole {
        /// See [`tickover_core::tick::TickRecord::fanned`].
        token: Timestamp,
    },
}

impl Service {
    /// Deals with what is due in a shard, and hands over what comes next. Neither waits for the other.
    pub(super) async fn sweep_shard(&self, shard: u16, job: &Job) -> Result<TickReport, ServiceError> {
        if self.now() >= job.stop_at {
            return Ok(TickReport { out_of_time: true, ..TickReport::default() });
        }
        // One request for what is due and what comes next: mostly there is neither.
        let everything = DueRange::until(shard, job.slot_end);
        let Page { items, next } = self.with_retries(|| self.ports.store.due(everything, PAGE, None)).await?;
        let (due, ahead): (Vec<_>, Vec<_>) = items.into_iter().partition(|entry| entry.due_at <= job.until);
        // A full page may not even reach the instants to come, and they can't wait for the backlog before them.
        let is_all = next.is_none();
        // What is ahead ends the backlog.
        let cursor = next.filter(|_| ahead.is_empty());
        let (timers, report) =
            join(self.hand_to_timers(shard, ahead, is_all, job), self.process_pages(shard, due, cursor, job))
                .await;
        Ok(TickReport { timers: timers?, ..report? })
    }

    async fn process_pages(
        &self,
        shard: u16,
        mut due: Vec<DueEntry>,
        mut cursor: Option<String>,
        job: &Job,
    ) -> Result<TickReport, ServiceError> {
        let mut report = TickReport::default();
        loop {
            report = report.add(self.process_page(due, job).await?);
            // Time may be up inside the page, and then it isn't the page behind it that is to be gone on with.
            let is_done = !report.out_of_time && cursor.is_none();
            if is_done {
                return Ok(report);
            }
            report.out_of_time |= self.now() >= job.stop_at;
            if (report.out_of_time || job.reach == Reach::Share) && self.hand_shard_on(shard, job).await? {
                report.fanned_out += 1;
                report.out_of_time = false;
            }
            if report.out_of_time || report.fanned_out > 0 {
                return Ok(report);
            }
            // What was dealt with has left this part of the index; going on behind it reads nothing twice.
            let range = DueRange::until(shard, job.until);
            let page = self.with_retries(|| self.ports.store.due(range, PAGE, cursor.as_deref())).await?;
            (due, cursor) = (page.items, page.next);
        }
    }

    /// Deals with a page's entries. Where time is up before all of them are dealt with, the report says so.
    async fn process_page(&self, mut entries: Vec<DueEntry>, job: &Job) -> Result<TickReport, ServiceError> {
        let mut report = TickReport::default();
        let mut lots: Vec<&mut [DueEntry]> = entries.chunks_mut(BATCH).collect();
        self.shuffle(&mut lots);
        for lot in lots {
            if self.now() >= job.stop_at {
                report.out_of_time = true;
                break;
            }
            let (mut tasks, mut others) = (Vec::new(), Vec::new());
            for entry in lot.iter() {
                match &entry.record {
                    RecordId::Task(id) => tasks.push(id.clone()),
                    other @ (RecordId::Execution(_) | RecordId::Cron(_) | RecordId::Queue(_)) => {
                        others.push(other.clone());
                    }
                }
            }
            if !tasks.is_empty() {
                report = report.add(self.process_batch(&tasks, job).await?);
            }
            if !others.is_empty() {
                report = report.add(self.process_others(others, job).await);
            }
        }
        Ok(report)
    }

    /// Records that aren't tasks. There are few of them beside those, so each is read by itself.
    async fn process_others(&self, records: Vec<RecordId>, job: &Job) -> TickReport {
        stream::iter(records)
            .map(|record| self.process_other(record, job))
            .buffer_unordered(RECORDS_AT_ONCE)
            .fold(TickReport::default(), |total, one| async move { total.add(one) })
            .await
    }

    async fn process_other(&self, record: RecordId, job: &Job) -> TickReport {
        let mut report = TickReport::default();
        if self.now() >= job.stop_at {
            report.out_of_time = true;
            return report;
        }
        report.looked_at = 1;
        let settled = match &record {
            RecordId::Execution(id) => Box::pin(self.process_execution(id, job)).await,
            RecordId::Cron(id) => Box::pin(self.process_cron(id)).await,
            RecordId::Queue(name) => Box::pin(self.restart_walks(name, job.stop_at)).await,
            RecordId::Task(_) => Ok(DueReply::Nothing),
        };
        match settled {
            Ok(reply) => report.count(reply),
            Err(error) => {
                tracing::warn!(%record, %error, "not dealt with; still due");
                report.failed = 1;
            }
        }
        report
    }

    async fn process_execution(&self, id: &ExecutionId, job: &Job) -> Result<DueReply, ServiceError> {
        let Some(execution) = self.load_execution(id).await? else { return Ok(DueReply::Nothing) };
        let view = if of_execution::asks_its_queue(&execution, self.now(), &self.limits) {
            self.view(&execution.queue, job).await?
        } else {
            QueueView::default()
        };
        let known = Known::Record(Box::new(execution));
        // Others wait for the end of this page.
        let stop_at = job.stop_at.min(self.now().plus(CALLER_WAITS));
        self.look_at_execution(id, known, Look::Tick(view), stop_at).await
    }

    async fn process_batch(&self, ids: &[TaskId], job: &Job) -> Result<TickReport, ServiceError> {
        let (mut tasks, unreadable) = self.load_each(ids).await?;
        // Earliest first, and in no order of the store's own.
        tasks.sort_by_cached_key(|task| (task.due.map(|due| due.at), task.id.clone()));
        let settled = stream::iter(tasks)
            .map(|task| self.process_one(task, job))
            .buffer_unordered(RECORDS_AT_ONCE)
            .fold(TickReport::default(), |total, one| async move { total.add(one) })
            .await;
        Ok(settled.add(TickReport { failed: unreadable, ..TickReport::default() }))
    }

    async fn process_one(&self, task: Task, job: &Job) -> TickReport {
        let mut report = TickReport::default();
        if self.now() >= job.stop_at {
            report.out_of_time = true;
            return report;
        }
        report.looked_at = 1;
        match self.process_due(task, job).await {
            Ok(reply) => report.count(reply),
            Err((id, error)) => {
                tracing::warn!({ field::TASK_ID } = %id, %error, "not dealt with; still due");
                report.failed = 1;
            }
        }
        report
    }

    async fn process_due(&self, task: Task, job: &Job) -> Result<DueReply, (TaskId, ServiceError)> {
        let (id, queue) = (task.id.clone(), task.queue.clone());
        // Only whether a hint was lost depends on the queue.
        let may_be_lost = asks_its_queue(&task, self.now(), &self.limits);
        let view = if may_be_lost {
            self.view(&queue, job).await.map_err(|error| (id.clone(), error))?
        } else {
            QueueView::default()
        };
        let decision = self.drive(&id, Known::Record(Box::new(task)), &Command::Due(view)).await;
        // Where there is none, it has gone meanwhile.
        let Ok((_, Reply::Due(reply))) = decision.map_err(|error| (id, error))?.outcome else {
            return Ok(DueReply::Nothing);
        };
        if may_be_lost && reply == DueReply::Dispatched {
            metric::hint_repeated(&queue);
        }
        Ok(reply)
    }
}
