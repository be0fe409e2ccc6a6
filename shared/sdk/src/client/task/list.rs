//! Lists of tasks.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use tickover_core::task::Status;
use tickover_wire::Cursor;
use tickover_wire::answer::ListAnswer as Tasks;
use tickover_wire::request::{Statuses, TasksQuery};

use crate::client::list::LIMIT_DEFAULT;
use crate::client::request::page;
use crate::client::start::queue_name;
use crate::client::{Client, ClientError};

/// A page of a list. Awaiting it makes the call.
///
/// An index finds tasks that are live, failed or timed out. A list without a status, or with another status, reads all
/// tasks.
#[must_use = "no call is made before it is awaited"]
#[derive(Debug)]
pub struct ListTasks {
    client: Client,
    queue: Option<String>,
    statuses: Vec<Status>,
    limit: usize,
    cursor: Option<String>,
}

impl ListTasks {
    pub(in crate::client) const fn new(client: Client) -> Self {
        Self { client, queue: None, statuses: vec![], limit: LIMIT_DEFAULT, cursor: None }
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
            let Self { client, queue, statuses, limit, cursor } = self;
            let query = TasksQuery {
                queue: queue.map(queue_name).transpose()?,
                status: (!statuses.is_empty()).then_some(Statuses(statuses)),
                include_timed_out: None,
                limit: Some(page(limit)?),
                cursor: cursor.map(Cursor),
            };
            client.api.tasks(&query).await
        })
    }
}
