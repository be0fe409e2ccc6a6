//! How many executions there are of each workflow and status.

use std::collections::BTreeMap;

use tickover_core::execution::ExecutionStatus;
use tickover_core::id::WorkflowName;
use tickover_core::time::Timestamp;

use crate::error::ServiceError;
use crate::ports::{ExecutionCount, ExecutionLists, Listed};
use crate::service::Service;

/// The most executions that are read to count them: the latest. A list of all executions has no counts, because each
/// change of a status would cost a write more.
pub const COUNTED_MAX: usize = 1_000;
/// The executions that are read at once.
const PAGE: usize = 100;

/// How many executions there are, by workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionCounts {
    pub counts: Vec<ExecutionCount>,
    /// When they were counted. A list may be some seconds behind.
    pub at: Timestamp,
    /// How many executions were read, at most [`COUNTED_MAX`]; `None` if the store counts by itself.
    pub read: Option<u64>,
    /// Whether all executions that the store lists are counted.
    pub is_complete: bool,
}

impl Service {
    /// How many executions there are of each workflow and status. A store with an index counts all of them; one with a
    /// list of all of them reads the latest [`COUNTED_MAX`]. `None` if the store has neither.
    pub async fn count_executions(&self) -> Result<Option<ExecutionCounts>, ServiceError> {
        let at = self.now();
        if let Some(index) = self.ports.store.traits().executions {
            let counts = index.counts()?;
            return Ok(Some(ExecutionCounts { counts, at, read: None, is_complete: true }));
        }
        let lists = self.ports.store.traits().lists.filter(|lists| lists.longest() == Listed::All);
        match lists {
            Some(lists) => Ok(Some(self.count_listed(lists, at).await?)),
            None => Ok(None),
        }
    }

    async fn count_listed(
        &self,
        lists: &dyn ExecutionLists,
        at: Timestamp,
    ) -> Result<ExecutionCounts, ServiceError> {
        let mut counts: BTreeMap<(WorkflowName, ExecutionStatus), u64> = BTreeMap::new();
        let (mut read, mut unreadable, mut cursor) = (0, 0, None);
        while read < COUNTED_MAX {
            let limit = PAGE.min(COUNTED_MAX - read);
            let page = self.with_retries(|| lists.find(Listed::All, limit, cursor.as_deref())).await?;
            let (executions, bad) = self.executions_of(&page.items).await?;
            read += page.items.len();
            unreadable += bad;
            for execution in executions {
                *counts.entry((execution.workflow.clone(), execution.status())).or_default() += 1;
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let count = |((workflow, status), count)| ExecutionCount { workflow, status, count };
        Ok(ExecutionCounts {
            counts: counts.into_iter().map(count).collect(),
            at,
            read: Some(u64::try_from(read).unwrap_or(u64::MAX)),
            is_complete: cursor.is_none() && unreadable == 0,
        })
    }
}
