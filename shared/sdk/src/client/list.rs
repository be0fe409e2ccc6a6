//! Lists of executions.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use tickover_core::execution::ExecutionStatus;
use tickover_core::id::WorkflowName;
use tickover_wire::Cursor;
use tickover_wire::answer::ExecutionsAnswer as Executions;
use tickover_wire::request::{ExecutionsQuery, Statuses};

use super::request::page;
use super::{Client, ClientError};

/// The default number of records on a page.
pub(super) const LIMIT_DEFAULT: usize = 50;

/// A page of a list. Awaiting it makes the call.
#[must_use = "no call is made before it is awaited"]
#[derive(Debug)]
pub struct ListExecutions {
    client: Client,
    workflow: String,
    statuses: Vec<ExecutionStatus>,
    limit: usize,
    cursor: Option<String>,
}

impl ListExecutions {
    pub(super) const fn new(client: Client, workflow: String) -> Self {
        Self { client, workflow, statuses: vec![], limit: LIMIT_DEFAULT, cursor: None }
    }

    /// Only executions with this status. Further calls add more statuses.
    pub fn status(mut self, status: ExecutionStatus) -> Self {
        self.statuses.push(status);
        self
    }

    /// The number of executions on the page, at most: 1 to 500, 50 by default.
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

impl IntoFuture for ListExecutions {
    type Output = Result<Executions, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { client, workflow, statuses, limit, cursor } = self;
            let workflow = WorkflowName::parse(workflow);
            let query = ExecutionsQuery {
                workflow: workflow.map_err(|problem| ClientError::invalid("workflow", problem))?,
                status: (!statuses.is_empty()).then_some(Statuses(statuses)),
                include_timed_out: None,
                limit: Some(page(limit)?),
                cursor: cursor.map(Cursor),
            };
            client.api.executions(&query).await
        })
    }
}
