//! The ends of remote steps and children that no turn has recorded yet, for the timeline.
//!
//! A run reads many ends together, when its code can go on. Until then their records show them. Nothing is written here.

use std::collections::BTreeMap;

use tickover_core::execution::Execution;
use tickover_core::execution::journal::{Entry, Happened, StepOutcome, is_own_child, open_steps};
use tickover_core::id::{ExecutionId, StepName, TaskId};
use tickover_core::natural;
use tickover_core::time::Timestamp;
use tickover_core::timeout::Expired;

use super::outcome::{as_recorded, child_as_recorded};
use super::remote_id;
use crate::error::ServiceError;
use crate::service::Service;

/// Most records that are read for one timeline.
const READ_MAX: usize = 100;

/// What the records of a run's open steps and children say.
#[derive(Clone, Debug, Default)]
pub struct UnrecordedEnds {
    /// The ends, each as the entry that the next turn will record, in their order.
    pub entries: Vec<Entry>,
    /// How many open steps and children weren't read, because there are too many.
    pub unread: usize,
}

impl Service {
    /// The ends of a run's open steps and children that its journal doesn't have: all, or those before an instant.
    pub async fn unrecorded_ends(
        &self,
        execution: &Execution,
        journal: &[Entry],
        before: Option<Timestamp>,
    ) -> Result<UnrecordedEnds, ServiceError> {
        let mut open: Vec<(&StepName, Option<&ExecutionId>)> = open_steps(journal)
            .into_iter()
            .filter_map(|entry| match &entry.what {
                Happened::Remote { name } => Some((name, None)),
                Happened::Child { name, execution, .. } => Some((name, Some(execution))),
                Happened::Attempt { .. }
                | Happened::Step { .. }
                | Happened::Reopened { .. }
                | Happened::Captured { .. }
                | Happened::Until { .. }
                | Happened::Fired { .. }
                | Happened::Event { .. }
                | Happened::Waited { .. }
                | Happened::EventsCleared { .. }
                | Happened::Patches { .. }
                | Happened::Note { .. } => None,
            })
            .collect();
        open.sort_by(|(one, _), (other, _)| natural::compare(one.as_str(), other.as_str()));
        // The sort is stable: of one name, this run's comes before the child of an earlier run.
        open.dedup_by_key(|(name, _)| *name);
        let unread = open.len().saturating_sub(READ_MAX);
        open.truncate(READ_MAX);
        let steps = open.iter().filter(|(_, child)| child.is_none()).map(|(name, _)| *name).collect();
        let children = open.iter().filter_map(|(name, child)| Some((*name, (*child)?))).collect();
        let mut ends = self.ends_of_steps(execution, steps).await?;
        ends.extend(self.ends_of_children(execution, children).await?);
        ends.retain(|(ended_at, ..)| before.is_none_or(|before| *ended_at < before));
        ends.sort_by_key(|(ended_at, ..)| *ended_at);
        let entry = |(at, name, outcome, expired)| {
            let (attempts, errors) = (None, vec![]);
            Entry { at, what: Happened::Step { name, outcome, attempts, expired, errors } }
        };
        Ok(UnrecordedEnds { entries: ends.into_iter().map(entry).collect(), unread })
    }

    async fn ends_of_steps(
        &self,
        execution: &Execution,
        names: Vec<&StepName>,
    ) -> Result<Ends, ServiceError> {
        let by_id: BTreeMap<TaskId, &StepName> =
            names.into_iter().map(|name| (remote_id(execution, name), name)).collect();
        if by_id.is_empty() {
            return Ok(Ends::new());
        }
        let ids: Vec<TaskId> = by_id.keys().cloned().collect();
        let (tasks, _unreadable) = self.load_each(&ids).await?;
        let now = self.now();
        let end = |task: &tickover_core::task::Task| {
            let (ended, name) = (task.ended()?, by_id.get(&task.id)?);
            Some((ended.ended_at, (*name).clone(), as_recorded(task, &ended.outcome), task.expired()))
        };
        Ok(tasks.iter().filter(|task| !task.is_gone(now)).filter_map(end).collect())
    }

    async fn ends_of_children(
        &self,
        parent: &Execution,
        children: Vec<(&StepName, &ExecutionId)>,
    ) -> Result<Ends, ServiceError> {
        if children.is_empty() {
            return Ok(Ends::new());
        }
        let ids: Vec<ExecutionId> = children.iter().map(|(_, id)| (*id).clone()).collect();
        let (found, _unreadable) = self.executions_of(&ids).await?;
        let now = self.now();
        let end = |(name, id): (&StepName, &ExecutionId)| {
            let child = found.iter().find(|child| child.id == *id && !child.is_gone(now))?;
            // If a child was deleted, another execution may have its id now.
            let is_it = !is_own_child(name) || child.parent.as_ref().is_some_and(|of| of.is_or_was(parent));
            let closed = child.closed().filter(|_| is_it)?;
            Some((closed.ended_at, name.clone(), child_as_recorded(&closed.outcome), child.expired()))
        };
        Ok(children.into_iter().filter_map(end).collect())
    }
}

/// Ends with their instants, their names and the time limits that caused them.
type Ends = Vec<(Timestamp, StepName, StepOutcome, Option<Expired>)>;
