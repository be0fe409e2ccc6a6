//! Sweeps one shard of the due index, page by page.

use futures::future::join3;
use futures::stream::{self, StreamExt as _};
use tickover_core::decision::DueReply;
use tickover_core::execution::due as of_execution;
use tickover_core::id::{ExecutionId, RecordId, TaskId};
use tickover_core::queue::QueueView;
use tickover_core::task::Task;
use tickover_core::task::command::Command;
use tickover_core::task::decision::Reply;
use tickover_core::task::due::needs_queue_view;
use tickover_core::time::Timestamp;

use super::{Job, TickReport};
use crate::drive::Known;
use crate::error::ServiceError;
use crate::executions::{CALLER_WAITS, DueCause};
use crate::metric;
use crate::ports::{DueEntry, DueRange, Page};
use crate::service::Service;
use crate::telemetry::field;
use crate::warn_unless_logged;

/// Entries of a page. A tick processes one page of a shard itself, and passes the rest to another call, which starts at
/// once.
pub(super) const PAGE: usize = 500;
/// Records that are read together, just before they are processed. In small batches two ticks at one shard seldom
/// process the same record, so few of their writes fail.
const BATCH: usize = 25;
/// Records of a batch that are decided at the same time.
const RECORDS_AT_ONCE: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// A tick's share; the rest goes to another call.
    Share,
    /// To the end, or until time is up: then another sweep follows the sweep with this token.
    Whole {
        /// See [`tickover_core::tick::TickRecord::fanned`].
        token: Timestamp,
    },
}

impl Service {
    /// Processes what is due in a shard, and hands over what comes next, both at the same time.
    pub(super) async fn sweep_shard(&self, shard: u16, job: &Job) -> Result<TickReport, ServiceError> {
        if self.now() >= job.stop_at {
            return Ok(TickReport { out_of_time: true, ..TickReport::default() });
        }
        // One query for what is due and what comes next: mostly both are empty.
        let everything = DueRange::until(shard, job.slot_end);
        let Page { items, next } = self.with_retries(|| self.ports.store.due(everything, PAGE, None)).await?;
        let (due, ahead): (Vec<_>, Vec<_>) = items.into_iter().partition(|entry| entry.due_at <= job.until);
        // A full page may not even reach the future instants, and they can't wait for the backlog before them.
        let is_all = next.is_none();
        // A future entry ends the backlog.
        let cursor = next.filter(|_| ahead.is_empty());
        let (timers, sleeps, report) = join3(
            self.send_timers(shard, ahead, is_all, job),
            self.wake_sleepers(shard, job),
            self.process_pages(shard, due, cursor, job),
        )
        .await;
        let report = report?;
        Ok(TickReport { timers: timers?, dispatched: report.dispatched + sleeps?, ..report })
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
            // If time was up inside the page, the rest of this page comes first, not the next page.
            let is_done = !report.out_of_time && cursor.is_none();
            if is_done {
                return Ok(report);
            }
            report.out_of_time |= self.now() >= job.stop_at;
            if (report.out_of_time || job.reach == Reach::Share) && self.pass_shard_on(shard, job).await? {
                report.fanned_out += 1;
                report.out_of_time = false;
            }
            if report.out_of_time || report.fanned_out > 0 {
                return Ok(report);
            }
            // Processed records have left this part of the index; to continue behind them reads nothing twice.
            let range = DueRange::until(shard, job.until);
            let page = self.with_retries(|| self.ports.store.due(range, PAGE, cursor.as_deref())).await?;
            (due, cursor) = (page.items, page.next);
        }
    }

    /// Processes a page's entries. If time is up before all of them are processed, the report says so.
    async fn process_page(&self, mut entries: Vec<DueEntry>, job: &Job) -> Result<TickReport, ServiceError> {
        let mut report = TickReport::default();
        // Instants come first. They need the store alone, and must not wait until a queue has answered.
        entries.sort_by_key(|entry| !entry.kind.is_timed());
        let last = entries.partition_point(|entry| entry.kind.is_timed());
        let (instants, others) = entries.split_at_mut(last);
        let [mut instants, mut others] =
            [instants, others].map(|part| part.chunks_mut(BATCH).collect::<Vec<_>>());
        self.shuffle(&mut instants);
        self.shuffle(&mut others);
        for batch in instants.into_iter().chain(others) {
            if self.now() >= job.stop_at {
                report.out_of_time = true;
                break;
            }
            let (mut tasks, mut others) = (Vec::new(), Vec::new());
            for entry in batch.iter() {
                match TaskId::try_from(entry.record.clone()) {
                    Ok(id) => tasks.push(id),
                    Err(other) => others.push(other),
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

    /// Processes records that aren't tasks. They are few beside the tasks, so each is read on its own.
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
        let result = match &record {
            RecordId::Execution(id) => Box::pin(self.process_execution(id, job)).await,
            RecordId::Cron(id) => Box::pin(self.process_cron(id, job.stop_at)).await,
            RecordId::Queue(name) => Box::pin(self.restart_walks(name, job.stop_at)).await,
            RecordId::Operation(id) => Box::pin(self.take_over_operation(id, job.stop_at)).await,
            RecordId::Task(_) | RecordId::Gate(_) | RecordId::Tick | RecordId::Key(_) => {
                Ok(DueReply::Nothing)
            }
        };
        match result {
            Ok(reply) => report.count(reply),
            Err(error) => {
                warn_unless_logged!(error; %record, %error, "not processed; still due");
                report.failed = 1;
            }
        }
        report
    }

    async fn process_execution(&self, id: &ExecutionId, job: &Job) -> Result<DueReply, ServiceError> {
        let Some(execution) = self.load_execution(id).await? else { return Ok(DueReply::Nothing) };
        let view = if of_execution::needs_queue_view(&execution, self.now(), &self.limits) {
            self.view(&execution.queue, execution.lane().priority, job).await?
        } else {
            QueueView::default()
        };
        let known = Known::Record(Box::new(execution));
        // Other records wait for the end of this page.
        let stop_at = job.stop_at.min(self.now().plus(CALLER_WAITS));
        self.process_due_execution(id, known, DueCause::Tick(view), stop_at).await
    }

    async fn process_batch(&self, ids: &[TaskId], job: &Job) -> Result<TickReport, ServiceError> {
        let (mut tasks, unreadable) = self.load_each(ids).await?;
        // Earliest first, and not in the store's order.
        tasks.sort_by_cached_key(|task| (task.due.map(|due| due.at), task.id.clone()));
        let result = stream::iter(tasks)
            .map(|task| self.process_one(task, job))
            .buffer_unordered(RECORDS_AT_ONCE)
            .fold(TickReport::default(), |total, one| async move { total.add(one) })
            .await;
        Ok(result.add(TickReport { failed: unreadable, ..TickReport::default() }))
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
                warn_unless_logged!(error; { field::TASK_ID } = %id, %error, "not processed; still due");
                report.failed = 1;
            }
        }
        report
    }

    async fn process_due(&self, task: Task, job: &Job) -> Result<DueReply, (TaskId, ServiceError)> {
        let (id, queue, class) = (task.id.clone(), task.queue.clone(), task.lane().priority);
        // The state of the queue matters only for a lost hint.
        let may_be_lost = needs_queue_view(&task, self.now(), &self.limits);
        let view = if may_be_lost {
            self.view(&queue, class, job).await.map_err(|error| (id.clone(), error))?
        } else {
            QueueView::default()
        };
        let decision = self.drive(&id, Known::Record(Box::new(task)), &Command::Due(view)).await;
        // If there is no task, it was deleted meanwhile.
        let Ok((_, Reply::Due(reply))) = decision.map_err(|error| (id, error))?.outcome else {
            return Ok(DueReply::Nothing);
        };
        if may_be_lost && reply == DueReply::Dispatched {
            metric::hint_repeated(&queue);
        }
        Ok(reply)
    }
}
