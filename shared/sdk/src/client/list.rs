//! Lists of executions.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use tickover_core::execution::ExecutionStatus;
use tickover_core::id::WorkflowName;

use super::calls::List;
use super::request::page;
use super::{Client, ClientError, Description};

/// Executions of a page unless something else is asked for.
pub(super) const LIMIT_DEFAULT: usize = 50;

/// A page of a list that is asked for when it is awaited.
#[must_use = "nothing is asked before it is awaited"]
#[derive(Debug)]
pub struct ListExecutions {
    client: Client,
    workflow: String,
    statuses: Vec<ExecutionStatus>,
    limit: usize,
    cursor: Option<String>,
}

/// A page of a list. It may have fewer entries than asked for, even none, and still not be the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executions {
    /// The executions, latest first.
    pub executions: Vec<Description>,
    /// Where the next page begins; absent at the end.
    pub cursor: Option<String>,
}

impl ListExecutions {
    pub(super) const fn new(client: Client, workflow: String) -> Self {
        Self { client, workflow, statuses: vec![], limit: LIMIT_DEFAULT, cursor: None }
    }

    /// Only those in this state, or in another one that is named as well.
    pub fn status(mut self, status: ExecutionStatus) -> Self {
        self.statuses.push(status);
        self
    }

    /// At most so many: 1 to 500, 50 by default.
    pub const fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// From where an earlier page ended.
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
            let workflow = workflow.map_err(|problem| ClientError::invalid("workflow", problem))?;
            client.calls.list(&List { workflow, statuses, limit: page(limit)?, cursor }).await
        })
    }
}
