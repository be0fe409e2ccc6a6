//! Lists of tasks.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use tickover_core::id::{TaskId, TaskKind};
use tickover_core::task::Status;
use tickover_core::time::Timestamp;
use tickover_wire::answer::ListAnswer as Tasks;
use tickover_wire::request::{Statuses, TasksQuery};
use tickover_wire::{Cursor, FailureCode, Instant, Label};

use crate::client::list::LIMIT_DEFAULT;
use crate::client::request::page;
use crate::client::start::queue_name;
use crate::client::{Client, ClientError};

/// A page of a list. Awaiting it makes the call.
///
/// An index finds tasks that are live, failed or timed out. A list without a status, or with another status, reads all
/// tasks. Whatever else is asked for is looked for among the tasks that it reads.
#[must_use = "no call is made before it is awaited"]
#[derive(Debug)]
pub struct ListTasks {
    client: Client,
    queue: Option<String>,
    statuses: Vec<Status>,
    kind: Option<String>,
    label: Option<Label>,
    error: Option<FailureCode>,
    created_from: Option<Timestamp>,
    created_before: Option<Timestamp>,
    ended_from: Option<Timestamp>,
    ended_before: Option<Timestamp>,
    stuck: bool,
    id_prefix: Option<String>,
    limit: usize,
    cursor: Option<String>,
}

impl ListTasks {
    pub(in crate::client) const fn new(client: Client) -> Self {
        Self {
            client,
            queue: None,
            statuses: vec![],
            kind: None,
            label: None,
            error: None,
            created_from: None,
            created_before: None,
            ended_from: None,
            ended_before: None,
            stuck: false,
            id_prefix: None,
            limit: LIMIT_DEFAULT,
            cursor: None,
        }
    }

    /// Only tasks of this queue.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = Some(queue.into());
        self
    }

    /// Only tasks with this status. Further calls add more statuses.
    pub fn status(mut self, status: Status) -> Self {
        self.statuses.push(status);
        self
    }

    /// Only tasks of this kind.
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Only tasks with this label. It replaces the label of an earlier call.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.label = Some(Label { name: name.into(), value: value.into() });
        self
    }

    /// Only tasks that have failed or timed out with an error of this code.
    pub fn error_code(mut self, code: impl Into<String>) -> Self {
        self.error = Some(FailureCode(code.into()));
        self
    }

    /// Only tasks that were scheduled at this instant or later.
    pub const fn created_from(mut self, instant: Timestamp) -> Self {
        self.created_from = Some(instant);
        self
    }

    /// Only tasks that were scheduled before this instant.
    pub const fn created_before(mut self, instant: Timestamp) -> Self {
        self.created_before = Some(instant);
        self
    }

    /// Only tasks that ended at this instant or later.
    pub const fn ended_from(mut self, instant: Timestamp) -> Self {
        self.ended_from = Some(instant);
        self
    }

    /// Only tasks that ended before this instant.
    pub const fn ended_before(mut self, instant: Timestamp) -> Self {
        self.ended_before = Some(instant);
        self
    }

    /// Only tasks that wait and get no worker before somebody acts: their queue is paused, or none of its workers has
    /// said that it provides what they require.
    pub const fn stuck(mut self) -> Self {
        self.stuck = true;
        self
    }

    /// Only tasks whose id begins with this.
    pub fn id_prefix(mut self, text: impl Into<String>) -> Self {
        self.id_prefix = Some(text.into());
        self
    }

    /// The number of tasks on the page, at most: 1 to 500, 50 by default.
    pub const fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Starts where an earlier page ended: the `cursor` of its answer.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }
}

impl IntoFuture for ListTasks {
    type Output = Result<Tasks, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self {
                client,
                queue,
                statuses,
                kind,
                label,
                error,
                created_from,
                created_before,
                ended_from,
                ended_before,
                stuck,
                id_prefix,
                limit,
                cursor,
            } = self;
            let kind = kind.map(TaskKind::parse).transpose();
            let id_prefix = id_prefix.map(TaskId::parse).transpose();
            let query = TasksQuery {
                queue: queue.map(queue_name).transpose()?,
                status: (!statuses.is_empty()).then_some(Statuses(statuses)),
                include_timed_out: None,
                kind: kind.map_err(|problem| ClientError::invalid("kind", problem))?,
                label,
                error,
                created_from: created_from.map(Instant::from),
                created_before: created_before.map(Instant::from),
                ended_from: ended_from.map(Instant::from),
                ended_before: ended_before.map(Instant::from),
                stuck: stuck.then_some(true),
                id_prefix: id_prefix.map_err(|problem| ClientError::invalid("id_prefix", problem))?,
                limit: Some(page(limit)?),
                cursor: cursor.map(Cursor),
            };
            client.api.tasks(&query).await
        })
    }
}
