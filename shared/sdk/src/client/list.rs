//! Lists of executions.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use tickover_core::execution::ExecutionStatus;
use tickover_core::id::{ExecutionId, WorkflowName};
use tickover_core::time::Timestamp;
use tickover_wire::answer::ExecutionsAnswer as Executions;
use tickover_wire::request::{ExecutionsQuery, Statuses};
use tickover_wire::{Cursor, FailureCode, Instant, Label};

use super::request::page;
use super::{Client, ClientError};

/// The default number of records on a page.
pub(super) const LIMIT_DEFAULT: usize = 50;

/// A page of a list. Awaiting it makes the call.
#[must_use = "no call is made before it is awaited"]
#[derive(Debug)]
pub struct ListExecutions {
    client: Client,
    workflow: Option<String>,
    statuses: Vec<ExecutionStatus>,
    label: Option<Label>,
    error: Option<FailureCode>,
    started_from: Option<Timestamp>,
    started_before: Option<Timestamp>,
    ended_from: Option<Timestamp>,
    ended_before: Option<Timestamp>,
    stuck: bool,
    id_prefix: Option<String>,
    limit: usize,
    cursor: Option<String>,
}

impl ListExecutions {
    pub(super) const fn new(client: Client, workflow: Option<String>) -> Self {
        Self {
            client,
            workflow,
            statuses: vec![],
            label: None,
            error: None,
            started_from: None,
            started_before: None,
            ended_from: None,
            ended_before: None,
            stuck: false,
            id_prefix: None,
            limit: LIMIT_DEFAULT,
            cursor: None,
        }
    }

    /// Only executions with this status. Further calls add more statuses.
    pub fn status(mut self, status: ExecutionStatus) -> Self {
        self.statuses.push(status);
        self
    }

    /// Only executions with this label. It replaces the label of an earlier call.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.label = Some(Label { name: name.into(), value: value.into() });
        self
    }

    /// Only executions that have failed with an error of this code.
    pub fn error_code(mut self, code: impl Into<String>) -> Self {
        self.error = Some(FailureCode(code.into()));
        self
    }

    /// Only executions that were started at this instant or later.
    pub const fn started_from(mut self, instant: Timestamp) -> Self {
        self.started_from = Some(instant);
        self
    }

    /// Only executions that were started before this instant.
    pub const fn started_before(mut self, instant: Timestamp) -> Self {
        self.started_before = Some(instant);
        self
    }

    /// Only executions that ended at this instant or later.
    pub const fn ended_from(mut self, instant: Timestamp) -> Self {
        self.ended_from = Some(instant);
        self
    }

    /// Only executions that ended before this instant.
    pub const fn ended_before(mut self, instant: Timestamp) -> Self {
        self.ended_before = Some(instant);
        self
    }

    /// Only executions that may need an operator: they are paused, or no worker can continue them.
    pub const fn stuck(mut self) -> Self {
        self.stuck = true;
        self
    }

    /// Only executions whose id begins with this.
    pub fn id_prefix(mut self, text: impl Into<String>) -> Self {
        self.id_prefix = Some(text.into());
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
            let Self {
                client,
                workflow,
                statuses,
                label,
                error,
                started_from,
                started_before,
                ended_from,
                ended_before,
                stuck,
                id_prefix,
                limit,
                cursor,
            } = self;
            let workflow = workflow.map(WorkflowName::parse).transpose();
            let id_prefix = id_prefix.map(ExecutionId::parse).transpose();
            let query = ExecutionsQuery {
                workflow: workflow.map_err(|problem| ClientError::invalid("workflow", problem))?,
                status: (!statuses.is_empty()).then_some(Statuses(statuses)),
                include_timed_out: None,
                label,
                error,
                started_from: started_from.map(Instant::from),
                started_before: started_before.map(Instant::from),
                ended_from: ended_from.map(Instant::from),
                ended_before: ended_before.map(Instant::from),
                stuck: stuck.then_some(true),
                id_prefix: id_prefix.map_err(|problem| ClientError::invalid("id_prefix", problem))?,
                limit: Some(page(limit)?),
                cursor: cursor.map(Cursor),
            };
            client.api.executions(&query).await
        })
    }
}
