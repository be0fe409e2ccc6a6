//! Reading tasks: one task with its payloads, or pages of many.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tickover_core::error::Reject;
use tickover_core::id::TaskId;
use tickover_core::payload::{Json, Payload};
use tickover_core::task::{Outcome, Status, Task};

use crate::cursor::{self, asked, continued};
use crate::error::ServiceError;
use crate::gates::WaitsAt;
use crate::ports::{Listing, Page, TaskFilter, TaskIndex};
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
    /// The key that holds it back, if it was asked for.
    pub waits_at: Option<WaitsAt>,
    /// Whether it waits in a queue that is paused, as far as that was looked up.
    pub in_paused_queue: bool,
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
        Self {
            task,
            input,
            labels,
            details,
            output,
            error_message: None,
            waits_at: None,
            in_paused_queue: false,
        }
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
struct Place {
    part: usize,
    at: Option<String>,
}

impl Place {
    fn decode(text: &str) -> Result<Self, Reject> {
        serde_json::from_str(text).map_err(|_| Reject::field("cursor", "expected one of an earlier answer"))
    }

    fn encode(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    const fn behind(part: usize) -> Self {
        Self { part: part + 1, at: None }
    }
}

impl Service {
    pub async fn describe(&self, id: &TaskId) -> Result<Described, ServiceError> {
        let Some(task) = self.load(id).await? else { return Err(Reject::NotFound.into()) };
        let waits_at = self.waits_at(&task).await?;
        let in_paused_queue = task.status() == Status::Pending && self.is_paused(&task.queue).await?;
        Ok(Described { waits_at, in_paused_queue, ..self.with_payloads(task).await? })
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
        Ok(Described { input, labels, details, output, error_message, ..Described::inline(task) })
    }

    /// Tasks that match a filter, a page at a time. Where a task is in the list doesn't depend on what changes: so a walk
    /// over the pages finds each task that fits from its begin to its end exactly once. A store with an index lists the
    /// latest scheduled first.
    ///
    /// Without one, live tasks are found through the due index and dead ones (failed, timed out) through the list index,
    /// at a cost in proportion to their number. Other tasks have no index, because it would cost every task a write: a
    /// query for them scans the whole table. So does a query for live and dead ones together, since a task may change
    /// from one to the other meanwhile.
    pub async fn list(
        &self,
        filter: &TaskFilter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Task>, ServiceError> {
        let at = cursor.map(|cursor| continued(filter, cursor)).transpose()?;
        let page = match self.ports.store.traits().tasks {
            Some(index) => self.indexed(index, filter, limit, at).await?,
            None => self.listed(filter, limit, at).await?,
        };
        Ok(Page { items: page.items, next: page.next.map(|next| asked(filter, next)) })
    }

    async fn indexed(
        &self,
        index: &dyn TaskIndex,
        filter: &TaskFilter,
        limit: usize,
        mut at: Option<String>,
    ) -> Result<Page<Task>, ServiceError> {
        let mut items = vec![];
        // The index knows only queues, statuses and instants.
        for _ in 0..PAGES_MAX {
            let page = index.find(filter, limit - items.len(), at.as_deref())?;
            items.extend(self.fitting(&page.items, filter).await?);
            at = page.next;
            if at.is_none() || items.len() >= limit {
                break;
            }
        }
        Ok(Page { items, next: at })
    }

    async fn listed(
        &self,
        filter: &TaskFilter,
        limit: usize,
        at: Option<String>,
    ) -> Result<Page<Task>, ServiceError> {
        let parts = self.parts(filter);
        let mut place = at.as_deref().map(Place::decode).transpose()?.unwrap_or_default();
        let mut items = Vec::new();
        let (mut looked_at, mut pages) = (0, 0);
        while let Some(listing) = parts.get(place.part) {
            let missing = limit - items.len();
            let wanted = match listing {
                // A page costs the whole shard, however short it is.
                Listing::Live { .. } => READ_AT_ONCE,
                // No more entries than tasks are still needed: an answer never has to stop inside a page.
                Listing::Dead | Listing::All => missing.min(READ_AT_ONCE),
            };
            let page =
                self.with_retries(|| self.ports.store.list(*listing, wanted, place.at.as_deref())).await?;
            looked_at += page.items.len();
            pages += 1;
            let mut found = self.fitting(&page.items, filter).await?;
            let surplus = found.len() > missing;
            found.truncate(missing);
            place = match (listing, found.last(), page.next) {
                (Listing::Live { shard }, Some(last), _) if surplus => {
                    let at = cursor::encode(&cursor::live(*shard), &cursor::live_position(last.id.clone()));
                    Place { part: place.part, at: Some(at) }
                }
                (_, _, Some(next)) => Place { part: place.part, at: Some(next) },
                (_, _, None) => Place::behind(place.part),
            };
            items.extend(found);
            if items.len() >= limit || looked_at >= ENTRIES_READ_MAX || pages >= PAGES_MAX {
                break;
            }
        }
        let more = place.part < parts.len();
        Ok(Page { items, next: more.then(|| place.encode()) })
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
        if !filter.fits_but_for_labels(task) || (filter.stuck && !self.is_held_back(task).await?) {
            return Ok(false);
        }
        let Some((name, value)) = &filter.label else { return Ok(true) };
        let labels = self.payload(task.labels.as_ref()).await?;
        let labels =
            labels.and_then(|json| serde_json::from_str::<BTreeMap<String, String>>(json.as_str()).ok());
        Ok(labels.is_some_and(|labels| labels.get(name) == Some(value)))
    }

    /// Whether a waiting task gets no worker before somebody acts. Each queue's record is read once in some seconds.
    pub(crate) async fn is_held_back(&self, task: &Task) -> Result<bool, ServiceError> {
        Ok(self.is_paused(&task.queue).await? || !self.unprovided(task).await?.is_empty())
    }

    /// The cheapest listings that contain all tasks of the filter, whatever happens to them meanwhile.
    fn parts(&self, filter: &TaskFilter) -> Vec<Listing> {
        let wants = |status: Status| filter.statuses.contains(&status);
        let dead = [Status::Failed, Status::TimedOut].into_iter().any(wants);
        let live = [Status::Pending, Status::Running].into_iter().any(wants);
        let unindexed = [Status::Completed, Status::Cancelled, Status::Skipped].into_iter().any(wants);
        match (live, dead, unindexed) {
            (true, false, false) => {
                (0..self.limits.due_shards).map(|shard| Listing::Live { shard }).collect()
            }
            (false, true, false) => vec![Listing::Dead],
            _ => vec![Listing::All],
        }
    }
}
