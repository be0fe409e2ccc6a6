//! Messages of those that need a place at a key where none is free: many of them come to its line by one look.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use tickover_core::decision::Effect;
use tickover_core::execution::{self, Execution, Parent};
use tickover_core::id::{ExecutionId, Incarnation, Owner};
use tickover_core::task::decision::{ClaimReply, Reply};
use tickover_core::task::{Command, Task};

use super::dead::Hinted;
use crate::drive::Known;
use crate::error::ServiceError;
use crate::service::Service;

impl Service {
    /// Puts those in the line that could start now and need a place where none is free. Returns them. All others are
    /// processed as usual, also those for which this fails.
    pub(super) async fn line_up(&self, records: &Hinted) -> BTreeSet<(Owner, Incarnation)> {
        let now = self.now();
        let may_come = |task: &&Task| {
            task.running().is_none() && task.parked.is_no() && task.ready_at().is_some_and(|at| at <= now)
        };
        let mut tasks: Vec<&Task> = records.tasks.values().filter(may_come).collect();
        let executions = records.executions.values().filter(|one| one.may_need_places(now));
        let mut executions: Vec<&Execution> = executions.collect();
        let needed = tasks.iter().flat_map(|task| task.gates());
        let gates = self.read_gates(needed.chain(executions.iter().flat_map(|one| one.gates()))).await;
        tasks.retain(|task| gates.lack_place(task.gates(), now));
        executions.retain(|one| gates.lack_place(one.gates(), now));
        let parents = tasks.iter().filter_map(|task| task.parent.as_ref());
        let parents = parents.chain(executions.iter().filter_map(|one| one.parent.as_ref()));
        let Ok(parents) = self.parents_of(parents).await else { return BTreeSet::new() };
        // What its end or its pause means for one of them, its own message finds out.
        let goes_on = |parent: Option<&Parent>| {
            parent.is_none_or(|parent| Self::runs_on(parent, parents.get(&parent.execution)))
        };
        let tasks = tasks.into_iter().filter(|task| goes_on(task.parent.as_ref()));
        let executions = executions.into_iter().filter(|one| goes_on(one.parent.as_ref()));
        let (of_tasks, of_executions) = futures::join!(
            join_all(tasks.map(|task| self.line_up_task(task))),
            join_all(executions.map(|one| self.line_up_execution(one))),
        );
        let (mut lined_up, mut effects) = (BTreeSet::new(), vec![]);
        for (one, mut of_one) in of_tasks.into_iter().chain(of_executions).flatten() {
            effects.append(&mut of_one);
            lined_up.extend(one);
        }
        self.publish(effects).await;
        lined_up
    }

    async fn line_up_task(&self, task: &Task) -> Option<LinedUp> {
        let command = Command::WaitInLine { seen_version: task.version };
        let known = Known::Record(Box::new(task.clone()));
        let decision = self.drive_unpublished(&task.id, known, &command).await.ok()?;
        let waits = matches!(decision.outcome, Ok((_, Reply::Claim(ClaimReply::Parked))));
        Some((waits.then(|| (task.id.clone().into(), task.incarnation)), decision.effects))
    }

    async fn line_up_execution(&self, one: &Execution) -> Option<LinedUp> {
        let command = execution::Command::WaitInLine { seen_version: one.version };
        let known = Known::Record(Box::new(one.clone()));
        let decision = self.drive_unpublished(&one.id, known, &command).await.ok()?;
        let waits = matches!(decision.outcome, Ok((_, execution::Reply::Changed { changed: true })));
        Some((waits.then(|| (one.id.clone().into(), one.incarnation)), decision.effects))
    }

    /// The executions of these parents.
    async fn parents_of(
        &self,
        parents: impl Iterator<Item = &Parent>,
    ) -> Result<BTreeMap<ExecutionId, Execution>, ServiceError> {
        let ids: BTreeSet<ExecutionId> = parents.map(|parent| parent.execution.clone()).collect();
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let ids: Vec<ExecutionId> = ids.into_iter().collect();
        let (found, _) = self.executions_of(&ids).await?;
        Ok(found.into_iter().map(|one| (one.id.clone(), one)).collect())
    }
}

/// One that waits in the line now, if it does, and what follows from the write.
type LinedUp = (Option<(Owner, Incarnation)>, Vec<Effect>);
