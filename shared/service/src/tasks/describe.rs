//! Reading tasks: one task with its payloads, or pages of many.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use tickover_core::error::Reject;
use tickover_core::id::TaskId;
use tickover_core::payload::{Json, Payload};
use tickover_core::task::{Outcome, Status, Task};

use crate::error::ServiceError;
use crate::gates::WaitsAt;
use crate::ports::{Listing, Page, TaskFilter};
use crate::service::Service;

/// How many entries of a list are read at once.
const READ_AT_ONCE: usize = 100;
/// How many entries are read for one answer at most, however few of them match.
const ENTRIES_READ_MAX: usize = 2_000;
/// How many pages of the store are read for one answer at most: with small pages, the call could last longer than the
/// caller's timeout.
const PAGES_MAX: usize = 30;

/// A task with its payloads.
#[derive(Clone, Debug)]
pub struct Described {
    pub task: Task,
    pub input: Option<Json>,
    pub labels: Option<Json>,
    /// The last details of its progress.
    pub details: Option<Json>,
    pub output: Option<Json>,
    /// The message of its last error as a JSON string, where the record has only its beginning.
    pub error_message: Option<Json>,
    /// The gate that holds it back, if it was asked for.
    pub waits_at: Option<WaitsAt>,
}

impl Described {
    /// The record with its inline payloads; payloads in items of their own are left out.
    pub fn inline(task: Task) -> Self {
        let json = |payload: Option<&Payload>| match payload {
            Some(Payload::Inline(json)) => Some(json.clone()),
            Some(Payload::Blob(_)) | None => None,
        };
        let (input, labels) = (json(task.input.as_ref()), json(task.labels.as_ref()));
        let (details, output) = (json(task.details.as_ref()), json(output(&task)));
        Self { task, input, labels, details, output, error_message: None, waits_at: None }
    }
}

fn output(task: &Task) -> Option<&Payload> {
    match &task.ended()?.outcome {
        Outcome::Completed { output } => output.as_ref(),
        Outcome::Failed { .. } | Outcome::TimedOut { .. } | Outcome::Cancelled { .. } | Outcome::Skipped => {
            None
        }
    }
}

/// Where a list continues: the index of the listing, and the store's own cursor in it.
#[derive(Default, Serialize, Deserialize)]
struct Cursor {
    part: usize,
    at: Option<String>,
}

impl Cursor {
    fn decode(text: &str) -> Result<Self, Reject> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).ok_or_else(|| {
            Reject::field("cursor", "expected the cursor of an earlier answer to the same question")
        })
    }

    fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }
}

impl Service {
    pub async fn describe(&self, id: &TaskId) -> Result<Described, ServiceError> {
        let Some(task) = self.load(id).await? else { return Err(Reject::NotFound.into()) };
        let waits_at = self.waits_at(&task).await?;
        Ok(Described { waits_at, ..self.with_payloads(task).await? })
    }

    /// Loads the payloads of a record.
    pub async fn with_payloads(&self, task: Task) -> Result<Described, ServiceError> {
        let message = task.ended().and_then(|ended| match &ended.outcome {
            Outcome::Failed { message, .. } => message.clone().map(Payload::Blob),
            Outcome::Completed { .. }
            | Outcome::TimedOut { .. }
            | Outcome::Cancelled { .. }
            | Outcome::Skipped => None,
        });
        let (input, labels, details, output, error_message) = futures::try_join!(
            self.payload(task.input.as_ref()),
            self.payload(task.labels.as_ref()),
            self.payload(task.details.as_ref()),
            self.payload(output(&task)),
            self.payload(message.as_ref()),
        )?;
        Ok(Described { task, input, labels, details, output, error_message, waits_at: None })
    }

    /// Tasks that match a filter, a page at a time.
    ///
    /// Live tasks are found through the due index and dead ones (failed, timed out) through the list index, at a cost
    /// in proportion to their number. Other tasks have no index, because it would cost every task a write: a query for
    /// them scans the whole table.
    pub async fn list(
        &self,
        filter: &TaskFilter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Task>, ServiceError> {
        if let Some(index) = self.ports.store.task_index() {
            let mut page = index.find(filter, limit, cursor)?;
            let mut items = self.fitting(&page.items, filter).await?;
            // The index knows queues and statuses alone.
            for _ in 1..PAGES_MAX {
                let Some(next) = page.next.as_deref().filter(|_| items.len() < limit) else { break };
                page = index.find(filter, limit - items.len(), Some(next))?;
                items.extend(self.fitting(&page.items, filter).await?);
            }
            return Ok(Page { items, next: page.next });
        }
        let parts = self.parts(filter);
        let mut cursor = cursor.map(Cursor::decode).transpose()?.unwrap_or_default();
        let mut items = Vec::new();
        let (mut looked_at, mut pages) = (0, 0);
        while let Some(listing) = parts.get(cursor.part) {
            // No more entries than tasks are still needed: an answer never has to stop inside a page.
            let wanted = (limit - items.len()).min(READ_AT_ONCE);
            let page =
                self.with_retries(|| self.ports.store.list(*listing, wanted, cursor.at.as_deref())).await?;
            looked_at += page.items.len();
            pages += 1;
            items.extend(self.fitting(&page.items, filter).await?);
            cursor = match page.next {
                Some(next) => Cursor { part: cursor.part, at: Some(next) },
                None => Cursor { part: cursor.part + 1, at: None },
            };
            if items.len() >= limit || looked_at >= ENTRIES_READ_MAX || pages >= PAGES_MAX {
                break;
            }
        }
        let more = cursor.part < parts.len();
        Ok(Page { items, next: more.then(|| cursor.encode()) })
    }

    async fn fitting(&self, ids: &[TaskId], filter: &TaskFilter) -> Result<Vec<Task>, ServiceError> {
        if ids.is_empty() {
            return Ok(vec![]);
        }
        let now = self.now();
        // Records that only a newer build can read are left out, and logged.
        let (mut tasks, _unreadable) = self.load_each(ids).await?;
        // In the order of the list, not of the answer.
        tasks.sort_by_cached_key(|task| ids.iter().position(|id| *id == task.id));
        let mut fitting = Vec::with_capacity(tasks.len());
        for task in tasks {
            if !task.is_gone(now) && self.task_fits(&task, filter).await? {
                fitting.push(task);
            }
        }
        Ok(fitting)
    }

    pub(crate) async fn task_fits(&self, task: &Task, filter: &TaskFilter) -> Result<bool, ServiceError> {
        if !filter.fits_but_for_labels(task) {
            return Ok(false);
        }
        let Some((name, value)) = &filter.label else { return Ok(true) };
        let labels = self.payload(task.labels.as_ref()).await?;
        let labels =
            labels.and_then(|json| serde_json::from_str::<BTreeMap<String, String>>(json.as_str()).ok());
        Ok(labels.is_some_and(|labels| labels.get(name) == Some(value)))
    }

    /// The cheapest listings that contain all tasks of the filter.
    fn parts(&self, filter: &TaskFilter) -> Vec<Listing> {
        let wants = |status: Status| filter.statuses.contains(&status);
        let dead = [Status::Failed, Status::TimedOut];
        let unindexed = [Status::Completed, Status::Cancelled, Status::Skipped];
        if filter.statuses.is_empty() || unindexed.into_iter().any(wants) {
            return vec![Listing::All];
        }
        let live = [Status::Pending, Status::Running].into_iter().any(wants);
        let shards = if live { self.limits.due_shards } else { 0 };
        let mut parts: Vec<_> = (0..shards).map(|shard| Listing::Live { shard }).collect();
        if dead.into_iter().any(wants) {
            parts.push(Listing::Dead);
        }
        parts
    }
}
