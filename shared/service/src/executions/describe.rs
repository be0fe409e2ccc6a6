//! Reading executions: one with its payloads, its result when it comes, or pages of many.

use std::pin::pin;

use futures::future::{Either, select};
use serde::Deserialize;
use serde_json::value::RawValue;
use tickover_core::duration::Millis;
use tickover_core::execution::{Execution, ExecutionOutcome, ExecutionStatus};
use tickover_core::id::{ExecutionId, WorkflowName};
use tickover_core::limits::WAIT_MAX;
use tickover_core::payload::{Json, Payload};

use crate::error::ServiceError;
use crate::ports::Page;
use crate::service::Service;

/// The wait before the second read of an execution that isn't closed yet; it doubles each time.
const LOOK_AFTER: Millis = Millis::new(10);
/// The upper bound of that wait.
const LOOK_AFTER_MAX: Millis = Millis::from_secs(1);
/// How many entries of a list are read at once.
const READ_AT_ONCE: usize = 100;
/// How many pages of the store are read for one answer at most.
const PAGES_MAX: usize = 30;

/// An execution with its payloads.
#[derive(Clone, Debug)]
pub struct Described {
    pub execution: Execution,
    pub input: Option<Json>,
    pub labels: Option<Json>,
    pub memo: Option<Json>,
    pub output: Option<Json>,
}

impl Described {
    /// The record with its inline payloads; payloads in items of their own are left out.
    pub fn inline(execution: Execution) -> Self {
        let json = |payload: Option<&Payload>| match payload {
            Some(Payload::Inline(json)) => Some(json.clone()),
            Some(Payload::Blob(_)) | None => None,
        };
        let (input, output) = (json(execution.input.as_ref()), json(output_of(&execution)));
        let details = json(execution.details.as_ref());
        let details = details.and_then(|json| serde_json::from_str(json.as_str()).ok());
        let Details { labels, memo } = details.unwrap_or_default();
        Self { execution, input, labels: labels.map(Json::from), memo: memo.map(Json::from), output }
    }
}

fn output_of(execution: &Execution) -> Option<&Payload> {
    match &execution.closed()?.outcome {
        ExecutionOutcome::Completed { output } => output.as_ref(),
        ExecutionOutcome::Failed { .. }
        | ExecutionOutcome::TimedOut { .. }
        | ExecutionOutcome::Cancelled { .. } => None,
    }
}

#[derive(Default, Deserialize)]
struct Details {
    labels: Option<Box<RawValue>>,
    memo: Option<Box<RawValue>>,
}

impl Service {
    pub async fn execution(&self, id: &ExecutionId) -> Result<Option<Described>, ServiceError> {
        match self.load_execution(id).await? {
            Some(execution) => Ok(Some(self.execution_with_payloads(execution).await?)),
            None => Ok(None),
        }
    }

    /// Loads the payloads of a record.
    pub async fn execution_with_payloads(&self, execution: Execution) -> Result<Described, ServiceError> {
        let (input, details, output) = futures::try_join!(
            self.payload(execution.input.as_ref()),
            self.payload(execution.details.as_ref()),
            self.payload(output_of(&execution)),
        )?;
        let details = match &details {
            Some(json) => serde_json::from_str(json.as_str()).map_err(|_| ServiceError::Corrupt {
                reason: format!("labels and memo of execution {} can't be read", execution.id),
            })?,
            None => Details::default(),
        };
        let (labels, memo) = (details.labels.map(Json::from), details.memo.map(Json::from));
        Ok(Described { execution, input, labels, memo, output })
    }

    /// Reads an execution once it has its outcome, or after `wait` (at most 20 s), whichever comes first.
    pub async fn wait_for_execution(
        &self,
        id: &ExecutionId,
        wait: Millis,
    ) -> Result<Option<Described>, ServiceError> {
        let until = self.now().plus(wait.min(WAIT_MAX));
        let mut pause = LOOK_AFTER;
        loop {
            // Before the read, or an end between the two would be missed.
            let ended = self.waiters.wait(id);
            let Some(execution) = self.load_execution(id).await? else { return Ok(None) };
            let left = until.since(self.now());
            if execution.closed().is_some() || left.is_zero() {
                return Ok(Some(self.execution_with_payloads(execution).await?));
            }
            let pausing = pin!(self.ports.clock.sleep_until(self.now().plus(pause.min(left))));
            if let Either::Left((Ok(ended), _)) = select(ended, pausing).await {
                return Ok(Some(self.execution_with_payloads(*ended).await?));
            }
            pause = pause.saturating_mul(2).min(LOOK_AFTER_MAX);
        }
    }

    /// Executions of a workflow with any of these statuses (any status when empty), latest first.
    pub async fn executions(
        &self,
        workflow: &WorkflowName,
        statuses: &[ExecutionStatus],
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Execution>, ServiceError> {
        let mut items = Vec::new();
        let mut cursor = cursor.map(str::to_owned);
        for _ in 0..PAGES_MAX {
            // No more entries than are still needed: an answer never has to stop inside a page.
            let wanted = (limit - items.len()).min(READ_AT_ONCE);
            let page = self
                .with_retries(|| self.ports.store.list_executions(workflow, wanted, cursor.as_deref()))
                .await?;
            let mut found = self.with_retries(|| self.ports.store.executions(&page.items)).await?;
            found.sort_by_cached_key(|execution| page.items.iter().position(|id| *id == execution.id));
            let now = self.now();
            found.retain(|execution| {
                !execution.is_gone(now) && (statuses.is_empty() || statuses.contains(&execution.status()))
            });
            items.extend(found);
            cursor = page.next;
            if cursor.is_none() || items.len() >= limit {
                break;
            }
        }
        Ok(Page { items, next: cursor })
    }
}
