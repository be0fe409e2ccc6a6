//! Earlier runs of an execution: what their last segments say about them.
//!
//! The record knows only its current run. The segments of a run are found by its number. Those of refused writes are
//! among them, some of which may say that they end the run.

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tickover_core::error::Reject;
use tickover_core::execution::journal::{Entry, RunEnd, Segment, SegmentKey};
use tickover_core::execution::{Execution, Parent};
use tickover_core::id::ExecutionId;

use super::retention::chain;
use crate::error::ServiceError;
use crate::ports::Page;
use crate::service::Service;

/// How many runs are read at the same time.
const AT_ONCE: usize = 8;
/// What a request for a run needs.
const KEPT_RUN: &str = "expected the number of a run that is still kept";

/// A run of an execution, and its journal.
#[derive(Clone, Debug)]
pub struct Run {
    /// How it ended, if another run followed.
    pub end: Option<RunEnd>,
    pub journal: Vec<Entry>,
}

impl Service {
    /// A run of an execution; without a number, the current one. Of an earlier run, the record is as it was at that
    /// run's end. It is kept for as long as the execution's results would have been kept if it had ended then.
    pub async fn run(
        &self,
        execution: Execution,
        run: Option<u32>,
    ) -> Result<(Execution, Run), ServiceError> {
        match run.filter(|run| *run != execution.run) {
            None => {
                let journal = self.journal_of(&execution).await?;
                Ok((execution, Run { end: None, journal }))
            }
            Some(number) => {
                let run = self.earlier_run(&execution, number).await?;
                let run = run.ok_or_else(|| Reject::field("run", KEPT_RUN))?;
                let record = run.end.as_ref().map_or(execution, |end| end.record.clone());
                Ok((record, run))
            }
        }
    }

    /// The earlier runs of an execution that are still kept, latest first, a page at a time. The cursor is the number
    /// of the next run.
    pub async fn earlier_runs(
        &self,
        id: &ExecutionId,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<(Execution, Page<RunEnd>), ServiceError> {
        let Some(execution) = self.load_execution(id).await? else { return Err(Reject::NoExecution.into()) };
        let last = match cursor {
            None => execution.run.saturating_sub(1),
            Some(cursor) => {
                cursor.parse().map_err(|_| Reject::field("cursor", "expected the cursor of a page"))?
            }
        };
        let last = last.min(execution.run.saturating_sub(1));
        let first = last.saturating_sub(u32::try_from(limit).unwrap_or(u32::MAX)).saturating_add(1);
        let runs = stream::iter((first..=last).rev()).map(|run| self.earlier_run(&execution, run));
        let runs: Vec<Option<Run>> = runs.buffered(AT_ONCE).try_collect().await?;
        let read = runs.len();
        // Earlier ones have expired as well.
        let items: Vec<RunEnd> = runs.into_iter().map_while(|run| run?.end).collect();
        let next = (first > 1 && items.len() == read).then(|| (first - 1).to_string());
        Ok((execution, Page { items, next }))
    }

    /// Whether this run of a parent was followed by another one without an end of the execution: it continued as new, or
    /// was retried. If the run isn't kept any more, the answer is no.
    pub(super) async fn has_continued(&self, parent: &Parent) -> Result<bool, ServiceError> {
        let found = self.load_execution(&parent.execution).await?;
        let Some(execution) = found.filter(|found| found.incarnation == parent.incarnation) else {
            return Ok(false);
        };
        let run = self.earlier_run(&execution, parent.run).await?;
        Ok(run.and_then(|run| run.end).is_some_and(|end| end.continued_at.or(end.retried_at).is_some()))
    }

    /// An earlier run of the execution; `None` if it isn't kept any more.
    pub(super) async fn earlier_run(
        &self,
        execution: &Execution,
        run: u32,
    ) -> Result<Option<Run>, ServiceError> {
        if run >= execution.run {
            return Ok(None);
        }
        let (id, incarnation) = (&execution.id, execution.incarnation);
        let segments = self.with_retries(|| self.ports.store.segments(id, incarnation, run, 0)).await?;
        let Some(end) = last_end(&segments).cloned() else { return Ok(None) };
        let Ok(chain) = chain(&end.record, None, segments) else { return Ok(None) };
        let journal = chain.into_iter().flat_map(|(_, segment)| segment.entries).collect();
        Ok(Some(Run { end: Some(end), journal }))
    }
}

/// How a run ended. A write that was based on a later version of the record than another has seen the run go on, so that
/// other write was refused. Writes that were based on the same version say the same of the run.
fn last_end(segments: &[(SegmentKey, Segment)]) -> Option<&RunEnd> {
    let ends = segments.iter().filter_map(|(_, segment)| segment.end.as_deref());
    ends.max_by_key(|end| end.record.version)
}
