//! The tick: everything that is due now, shard by shard, earliest first, until nothing is left or time is up.
//!
//! It never reads the clock to know what is due: that instant is given. Overlapping, repeated and missed ticks
//! are harmless, because each record is decided on under its own condition.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures::stream::{self, StreamExt as _};
use tickover_core::command::Command;
use tickover_core::decision::{DueReply, Reply};
use tickover_core::due::DueKind;
use tickover_core::id::{QueueName, TaskId};
use tickover_core::queue::QueueView;
use tickover_core::task::{State, Task};
use tickover_core::time::Timestamp;

use crate::drive::Known;
use crate::error::ServiceError;
use crate::ports::{DueEntry, Page, StoreError};
use crate::service::Service;
use crate::telemetry::field;

/// Entries of a page: as many as one batch read takes.
const PAGE: usize = 100;
/// Shards swept at once.
const SHARDS_AT_ONCE: usize = 4;
/// Records of a page decided at once.
const RECORDS_AT_ONCE: usize = 16;

/// What a tick did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct TickReport {
    /// Records looked at.
    pub looked_at: u64,
    /// Those whose deadline or timeout had passed.
    pub timed_out: u64,
    /// Those whose hint was sent.
    pub dispatched: u64,
    /// Those that were looked at too early.
    pub rearmed: u64,
    /// Those that could not be dealt with; they stay due, and the log says why.
    pub failed: u64,
    /// Whether time was up before everything was done.
    pub out_of_time: bool,
}

impl TickReport {
    fn add(mut self, other: Self) -> Self {
        self.looked_at += other.looked_at;
        self.timed_out += other.timed_out;
        self.dispatched += other.dispatched;
        self.rearmed += other.rearmed;
        self.failed += other.failed;
        self.out_of_time |= other.out_of_time;
        self
    }
}

/// What this tick knows of queues, looked up once each.
type Views = Mutex<HashMap<QueueName, QueueView>>;

impl Service {
    /// Sweeps everything due at or before `until`. Starts nothing new after `stop_at`, by the service's clock.
    pub async fn tick(&self, until: Timestamp, stop_at: Timestamp) -> Result<TickReport, ServiceError> {
        let views = Views::default();
        // Each minute begins elsewhere: when time is up early, it isn't always up for the same shards.
        let shards = self.limits.due_shards.max(1);
        let first =
            u16::try_from(until.as_millis().div_euclid(60_000).rem_euclid(i64::from(shards))).unwrap_or(0);
        let reports: Vec<Result<TickReport, ServiceError>> = stream::iter(0..shards)
            .map(|number| (first + number) % shards)
            .map(|shard| self.sweep(shard, until, stop_at, &views))
            .buffer_unordered(SHARDS_AT_ONCE)
            .collect()
            .await;
        // One shard's trouble must not hide what the others did, but it is reported.
        let mut total = TickReport::default();
        let mut trouble = None;
        for report in reports {
            match report {
                Ok(report) => total = total.add(report),
                Err(error) => trouble = Some(error),
            }
        }
        trouble.map_or(Ok(total), Err)
    }

    async fn sweep(
        &self,
        shard: u16,
        until: Timestamp,
        stop_at: Timestamp,
        views: &Views,
    ) -> Result<TickReport, ServiceError> {
        let mut report = TickReport::default();
        let mut cursor: Option<String> = None;
        loop {
            if self.now() >= stop_at {
                report.out_of_time = true;
                return Ok(report);
            }
            let page = self.patiently(|| self.ports.store.due(shard, until, PAGE, cursor.as_deref())).await?;
            let Page { items, next } = page;
            report = report.add(self.settle_page(&items, stop_at, views).await?);
            // What was dealt with has left this part of the index; going on behind it reads nothing twice.
            cursor = next;
            if cursor.is_none() {
                return Ok(report);
            }
        }
    }

    async fn settle_page(
        &self,
        entries: &[DueEntry],
        stop_at: Timestamp,
        views: &Views,
    ) -> Result<TickReport, ServiceError> {
        if entries.is_empty() {
            return Ok(TickReport::default());
        }
        let kinds: HashMap<_, _> = entries.iter().map(|entry| (entry.task.clone(), entry.kind)).collect();
        let (mut tasks, unreadable) = self.read_page(entries).await?;
        tasks.sort_by_key(|task| task.due.map(|due| due.at));
        let settled = stream::iter(tasks)
            .map(|task| {
                let kind = kinds.get(&task.id).copied().unwrap_or(DueKind::Instant);
                self.settle_one(task, kind, stop_at, views)
            })
            .buffer_unordered(RECORDS_AT_ONCE)
            .fold(TickReport::default(), |total, one| async move { total.add(one) })
            .await;
        Ok(settled.add(TickReport { failed: unreadable, ..TickReport::default() }))
    }

    /// Reads a page's records. One that can't be read doesn't keep the others from being dealt with.
    async fn read_page(&self, entries: &[DueEntry]) -> Result<(Vec<Task>, u64), ServiceError> {
        let ids: Vec<TaskId> = entries.iter().map(|entry| entry.task.clone()).collect();
        match self.patiently(|| self.ports.store.tasks(&ids)).await {
            Ok(tasks) => return Ok((tasks, 0)),
            Err(StoreError::Corrupt { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let (mut tasks, mut unreadable) = (Vec::new(), 0);
        for id in &ids {
            match self.patiently(|| self.ports.store.task(id)).await {
                Ok(task) => tasks.extend(task),
                Err(error @ StoreError::Corrupt { .. }) => {
                    tracing::error!({ field::TASK_ID } = %id, %error, "record left alone");
                    unreadable += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok((tasks, unreadable))
    }

    async fn settle_one(&self, task: Task, kind: DueKind, stop_at: Timestamp, views: &Views) -> TickReport {
        let mut report = TickReport::default();
        if self.now() >= stop_at {
            report.out_of_time = true;
            return report;
        }
        report.looked_at = 1;
        match self.settle_due(task, kind, views).await {
            Ok(DueReply::TimedOut) => report.timed_out = 1,
            Ok(DueReply::Dispatched) => report.dispatched = 1,
            Ok(DueReply::Rearmed) => report.rearmed = 1,
            Ok(DueReply::Nothing) => {}
            Err((id, error)) => {
                tracing::warn!({ field::TASK_ID } = %id, %error, "not dealt with; still due");
                report.failed = 1;
            }
        }
        report
    }

    async fn settle_due(
        &self,
        task: Task,
        kind: DueKind,
        views: &Views,
    ) -> Result<DueReply, (TaskId, ServiceError)> {
        let id = task.id.clone();
        let view = match kind {
            // Only whether a hint was lost depends on the queue.
            DueKind::Instant | DueKind::Start => QueueView::default(),
            DueKind::Backstop | DueKind::Recheck => match self.view(&task.queue, views).await {
                Ok(view) => view,
                Err(error) => return Err((id, error)),
            },
        };
        let driven = self.drive(&id, Known::Record(Box::new(task)), &Command::Due(view)).await;
        match driven.map(|driven| driven.outcome) {
            Ok(Ok(Reply::Due(reply))) => Ok(reply),
            // Gone meanwhile, or the index was behind.
            Ok(Ok(_) | Err(_)) => Ok(DueReply::Nothing),
            Err(error) => Err((id, error)),
        }
    }

    async fn view(&self, queue: &QueueName, views: &Views) -> Result<QueueView, ServiceError> {
        if let Some(view) = views.lock().unwrap_or_else(PoisonError::into_inner).get(queue) {
            return Ok(*view);
        }
        let looks_empty = self.ports.queue.depth(queue).await?.is_empty();
        let watermark = self.record(queue).await?.and_then(|record| record.watermark);
        let view = QueueView { looks_empty, watermark };
        views.lock().unwrap_or_else(PoisonError::into_inner).insert(queue.clone(), view);
        Ok(view)
    }

    /// Sends every live task's hint again: for a queue that forgets when its process ends.
    pub async fn hint_all(&self) -> Result<u64, ServiceError> {
        let mut sent = 0;
        for shard in 0..self.limits.due_shards {
            let mut cursor: Option<String> = None;
            loop {
                let everything = Timestamp::from_millis(i64::MAX);
                let page = self
                    .patiently(|| self.ports.store.due(shard, everything, PAGE, cursor.as_deref()))
                    .await?;
                let (tasks, _) = self.read_page(&page.items).await?;
                for task in &tasks {
                    // The table may know a task whose queue's own record was never written.
                    self.ports.queue.open(&task.queue).await?;
                }
                let effects: Vec<_> = tasks.iter().filter_map(rehint).collect();
                sent += u64::try_from(effects.len()).unwrap_or(u64::MAX);
                self.publish(effects).await;
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(sent)
    }
}

/// The hint that stands for the message a live task would have in a queue that lasts.
fn rehint(task: &Task) -> Option<tickover_core::decision::Effect> {
    let at = match &task.state {
        State::Pending(pending) if pending.hint_later => return None,
        State::Pending(pending) => pending.available_at,
        State::Running(running) => running.lease_expires_at,
        State::Ended(_) => return None,
    };
    Some(tickover_core::decision::Effect::Dispatch {
        hint: Box::new(tickover_core::hint::Hint::of(task)),
        at,
    })
}
