//! Reading executions: one with its payloads, its result when it comes, or pages of many.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::future::{Either, select};
use serde::Deserialize;
use serde_json::value::RawValue;
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::journal::RunEnd;
use tickover_core::execution::values::Values;
use tickover_core::execution::{Execution, ExecutionOutcome};
use tickover_core::id::ExecutionId;
use tickover_core::limits::WAIT_MAX;
use tickover_core::payload::{Json, Payload};

use super::Run;
use crate::cursor::{asked, continued};
use crate::error::ServiceError;
use crate::gates::WaitsAt;
use crate::ports::{ExecutionFilter, ExecutionLists, Listed, Page, StoreError};
use crate::service::Service;
use crate::telemetry::field;
use crate::waits;

/// The wait before the second read of an execution that isn't closed yet; it doubles each time.
pub(super) const LOOK_AFTER: Millis = Millis::new(10);
/// The upper bound of that wait.
pub(super) const LOOK_AFTER_MAX: Millis = Millis::from_secs(1);
/// How many entries of a list are read at once.
const READ_AT_ONCE: usize = 100;
/// Why a list needs a workflow, where there is no list of all executions.
pub(crate) const ONE_WORKFLOW: &str = "expected a workflow: of all workflows, this system lists only executions that failed or timed \
                                       out; with TICKOVER_LISTS=all it lists all, for one write more for each execution";
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
    /// The values that its code has published.
    pub values: Values,
    /// The key that holds it back; only looked up for one execution.
    pub waits_at: Option<Box<WaitsAt>>,
    /// Whether its next turn waits for a queue that is paused, as far as that was looked up.
    pub in_paused_queue: bool,
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
        let values = json(execution.values.as_ref()).and_then(|json| Values::parse(&json));
        Self {
            execution,
            input,
            labels: labels.map(Json::from),
            memo: memo.map(Json::from),
            output,
            values: values.unwrap_or_default(),
            waits_at: None,
            in_paused_queue: false,
        }
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
            Some(execution) => {
                let waits_at = self.turn_waits_at(&execution).await?.map(Box::new);
                let in_paused_queue = self.is_held_by_queue(&execution).await?;
                let described = self.execution_with_payloads(execution).await?;
                Ok(Some(Described { waits_at, in_paused_queue, ..described }))
            }
            None => Ok(None),
        }
    }

    /// Whether no turn of an execution can start because its queue is paused; the answer may be a few seconds old.
    pub async fn is_held_by_queue(&self, execution: &Execution) -> Result<bool, ServiceError> {
        let may_start = execution.closed().is_none() && execution.turn().is_none();
        Ok(may_start && self.is_paused(&execution.queue).await?)
    }

    /// An execution with its payloads as it was at the end of a run, and how that ended; or as it is, if it is the
    /// current run. A payload of an earlier run that has an item of its own is left out once that is deleted.
    ///
    /// # Errors
    ///
    /// [`Reject`] for the field `run` if there is no such run, or it isn't kept any more.
    pub async fn execution_in_run(
        &self,
        id: &ExecutionId,
        run: u32,
    ) -> Result<Option<(Described, Option<RunEnd>)>, ServiceError> {
        let Some(execution) = self.load_execution(id).await? else { return Ok(None) };
        if execution.run == run {
            return Ok(self.execution(id).await?.map(|described| (described, None)));
        }
        let (record, Run { end, .. }) = self.run(execution, Some(run)).await?;
        let kept = async |payload: Option<&Payload>| match payload {
            Some(payload) => self.payload_if_kept(payload).await,
            None => Ok(None),
        };
        let (input, output) = (kept(record.input.as_ref()).await?, kept(output_of(&record)).await?);
        Ok(Some((Described { input, output, ..Described::inline(record) }, end)))
    }

    /// Loads the payloads of a record.
    pub async fn execution_with_payloads(&self, execution: Execution) -> Result<Described, ServiceError> {
        let (input, details, output, values) = futures::try_join!(
            self.payload(execution.input.as_ref()),
            self.payload(execution.details.as_ref()),
            self.payload(output_of(&execution)),
            self.values_of(&execution),
        )?;
        let details = match &details {
            Some(json) => serde_json::from_str(json.as_str()).map_err(|_| ServiceError::Corrupt {
                reason: format!("labels and memo of execution {} can't be read", execution.id),
            })?,
            None => Details::default(),
        };
        let (labels, memo) = (details.labels.map(Json::from), details.memo.map(Json::from));
        Ok(Described { input, labels, memo, output, values, ..Described::inline(execution) })
    }

    /// Reads an execution once it has its outcome, or after `wait` (at most 20 s), whichever comes first.
    pub async fn wait_for_execution(
        &self,
        id: &ExecutionId,
        wait: Millis,
    ) -> Result<Option<Described>, ServiceError> {
        let wait = wait.min(WAIT_MAX);
        let until = self.now().plus(wait);
        let mut pause = LOOK_AFTER;
        loop {
            // Before the read, or an end between the two would be missed.
            let ended = self.waiters.wait(id);
            let Some(execution) = self.load_execution(id).await? else { return Ok(None) };
            let left = self.left(until, wait);
            if execution.closed().is_some() || left.is_zero() || waits::are_over() {
                return Ok(Some(self.execution_with_payloads(execution).await?));
            }
            let pausing = pin!(self.wait_until(self.now().plus(pause.min(left))));
            if let Either::Left((Ok(ended), _)) = select(ended, pausing).await {
                return Ok(Some(self.execution_with_payloads(*ended).await?));
            }
            pause = pause.saturating_mul(2).min(LOOK_AFTER_MAX);
        }
    }

    /// Executions that fit a filter, latest start first, a page at a time.
    ///
    /// Without an index of executions of all workflows, each execution of a list is read: of that of failed ones, of the
    /// filter's workflow, or of all workflows, if the store has such a list.
    pub async fn executions(
        &self,
        filter: &ExecutionFilter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Execution>, ServiceError> {
        let mut items = Vec::new();
        let mut at = cursor.map(|cursor| continued(filter, cursor)).transpose()?;
        for _ in 0..PAGES_MAX {
            // No more entries than are still needed: an answer never has to stop inside a page.
            let wanted = (limit - items.len()).min(READ_AT_ONCE);
            let page = self.execution_ids(filter, wanted, at.as_deref()).await?;
            // Records that only a newer build can read are left out, and logged.
            let (found, _unreadable) = self.executions_of(&page.items).await?;
            // Latest first: those behind the last one have started earlier still.
            let is_over = found.last().is_some_and(|last| filter.started_from > Some(last.created_at));
            for execution in found {
                if !execution.is_gone(self.now()) && self.fits(&execution, filter).await? {
                    items.push(execution);
                }
            }
            at = page.next.filter(|_| !is_over);
            if at.is_none() || items.len() >= limit {
                break;
            }
        }
        Ok(Page { items, next: at.map(|at| asked(filter, at)) })
    }

    pub(crate) async fn execution_ids(
        &self,
        filter: &ExecutionFilter,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<ExecutionId>, ServiceError> {
        if let Some(index) = self.ports.store.traits().executions {
            return Ok(index.find(filter, limit, cursor)?);
        }
        let listed = filter.listed();
        // The list of failed ones is the shortest, also where there is a workflow.
        if let (None, _) | (_, Listed::Failed) = (&filter.workflow, listed)
            && let Some(lists) = self.execution_lists(filter)
        {
            return Ok(self.with_retries(|| lists.find(listed, limit, cursor)).await?);
        }
        let Some(workflow) = &filter.workflow else {
            return Err(Reject::field("workflow", ONE_WORKFLOW).into());
        };
        Ok(self.with_retries(|| self.ports.store.list_executions(workflow, limit, cursor)).await?)
    }

    /// The store's lists of executions of all workflows, if one of them has all that fit.
    pub(crate) fn execution_lists(&self, filter: &ExecutionFilter) -> Option<&dyn ExecutionLists> {
        self.ports.store.traits().lists.filter(|lists| lists.longest() >= filter.listed())
    }

    /// The executions with these ids that exist, in this order, and how many can't be read.
    pub(crate) async fn executions_of(
        &self,
        ids: &[ExecutionId],
    ) -> Result<(Vec<Execution>, u64), ServiceError> {
        let (mut found, mut unreadable) = (Vec::new(), 0);
        match self.with_retries(|| self.ports.store.executions(ids)).await {
            Ok(executions) => found = executions,
            Err(StoreError::Corrupt { .. }) => {
                for id in ids {
                    match self.with_retries(|| self.ports.store.execution(id)).await {
                        Ok(execution) => found.extend(execution),
                        Err(error @ StoreError::Corrupt { .. }) => {
                            tracing::error!({ field::EXECUTION_ID } = %id, %error, "record left alone");
                            unreadable += 1;
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            Err(error) => return Err(error.into()),
        }
        found.sort_by_cached_key(|execution| ids.iter().position(|id| *id == execution.id));
        Ok((found, unreadable))
    }

    pub(crate) async fn fits(
        &self,
        execution: &Execution,
        filter: &ExecutionFilter,
    ) -> Result<bool, ServiceError> {
        if !filter.fits_but_for_labels(execution) {
            return Ok(false);
        }
        let Some((name, value)) = &filter.label else { return Ok(true) };
        let details = self.payload(execution.details.as_ref()).await?;
        let labels = details.and_then(|json| serde_json::from_str::<Details>(json.as_str()).ok()?.labels);
        let labels =
            labels.and_then(|labels| serde_json::from_str::<BTreeMap<String, String>>(labels.get()).ok());
        Ok(labels.is_some_and(|labels| labels.get(name) == Some(value)))
    }
}
