//! The own records of those who have a place at a gate, or wait for one.

use tickover_core::decision::Effect;
use tickover_core::execution::message::TurnHint;
use tickover_core::execution::{Execution, ExecutionState};
use tickover_core::gate::{self, CLOCKS, Standing, Waiter};
use tickover_core::id::{ExecutionId, Incarnation, Owner, TaskId};
use tickover_core::task::hint::Hint;
use tickover_core::task::{State, Task};
use tickover_core::time::Timestamp;

use crate::error::ServiceError;
use crate::service::Service;

/// Records of tasks and executions.
#[derive(Default)]
pub(super) struct Records {
    tasks: Vec<Task>,
    executions: Vec<Execution>,
    /// Whether some can't be read: then a record that isn't here may exist.
    unreadable: bool,
}

impl Service {
    /// Reads the records of these owners.
    pub(super) async fn records_at_gate(
        &self,
        owners: impl Iterator<Item = &Owner>,
    ) -> Result<Records, ServiceError> {
        let (mut tasks, mut executions): (Vec<TaskId>, Vec<ExecutionId>) = (vec![], vec![]);
        for owner in owners {
            match owner {
                Owner::Task(id) => tasks.push(id.clone()),
                Owner::Execution(id) => executions.push(id.clone()),
            }
        }
        tasks.sort_unstable();
        tasks.dedup();
        executions.sort_unstable();
        executions.dedup();
        let mut records = Records::default();
        if !tasks.is_empty() {
            let (found, unreadable) = self.load_each(&tasks).await?;
            (records.tasks, records.unreadable) = (found, unreadable > 0);
        }
        if !executions.is_empty() {
            let (found, unreadable) = self.executions_of(&executions).await?;
            records.executions = found;
            records.unreadable |= unreadable > 0;
        }
        Ok(records)
    }
}

impl Records {
    fn task(&self, id: &TaskId, incarnation: Incarnation) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == *id && task.incarnation == incarnation)
    }

    fn execution(&self, id: &ExecutionId, incarnation: Incarnation) -> Option<&Execution> {
        self.executions.iter().find(|one| one.id == *id && one.incarnation == incarnation)
    }

    /// Whether one that waits can start. Its record may have been read by a clock that is behind the one by which it came.
    pub(super) fn standing(&self, waiter: &Waiter, now: Timestamp) -> Standing {
        let ready_at = match &waiter.owner {
            Owner::Task(id) => self.task(id, waiter.incarnation).and_then(task_ready_at),
            Owner::Execution(id) => self.execution(id, waiter.incarnation).and_then(turn_ready_at),
        };
        match ready_at {
            Some(at) if at <= now.plus(CLOCKS) => Standing::Ready,
            Some(_) | None => Standing::Gone,
        }
    }

    /// Whether a place with this mark was left behind. A task that is pending keeps its place until that ends by itself:
    /// its claim may be under way.
    pub(super) fn is_left_behind(&self, owner: &Owner, incarnation: Incarnation, mark: u32) -> bool {
        let is_over = match owner {
            Owner::Task(id) => self.task(id, incarnation).map(|task| is_over(task, mark)),
            Owner::Execution(id) => self.execution(id, incarnation).map(|one| !one.owns_place(mark)),
        };
        let is_known = match owner {
            Owner::Task(id) => self.tasks.iter().any(|task| task.id == *id),
            Owner::Execution(id) => self.executions.iter().any(|one| one.id == *id),
        };
        is_over.unwrap_or(is_known || !self.unreadable)
    }

    /// The hints of those that have been called.
    pub(super) fn hints(&self, called: &[Waiter]) -> Vec<Effect> {
        let hint = |one: &Waiter| match &one.owner {
            Owner::Task(id) => self.task(id, one.incarnation).map(|task| {
                let at = task_ready_at(task).unwrap_or(one.order.since);
                Effect::Dispatch { hint: Box::new(Hint::of(task)), at }
            }),
            Owner::Execution(id) => self.execution(id, one.incarnation).map(|execution| {
                let at = turn_ready_at(execution).unwrap_or(one.order.since);
                Effect::Turn { queue: execution.queue.clone(), hint: TurnHint::of(execution), at }
            }),
        };
        called.iter().filter_map(hint).collect()
    }
}

/// When a task's next attempt may start; `None` if it has ended.
fn task_ready_at(task: &Task) -> Option<Timestamp> {
    match &task.state {
        State::Pending(pending) => Some(pending.available_at),
        State::Running(running) => Some(running.lease_expires_at),
        State::Ended(_) => None,
    }
}

/// When an execution's next turn may start; `None` if none starts by itself. One that an operator has paused comes again
/// when it is resumed.
fn turn_ready_at(execution: &Execution) -> Option<Timestamp> {
    if execution.needs_operator() {
        return None;
    }
    match &execution.state {
        ExecutionState::Pending(ready) => Some(ready.available_at),
        ExecutionState::Running(turn) => Some(turn.lease_expires_at),
        ExecutionState::Waiting(waiting) => waiting.until,
        ExecutionState::Closing(_) | ExecutionState::Ended(_) => None,
    }
}

/// Whether the attempt with this mark has ended. A claim that is still under way was decided on an earlier version, and
/// will be refused.
fn is_over(task: &Task, mark: u32) -> bool {
    let is_past = task.history.iter().any(|past| past.lease.is_some_and(|lease| gate::mark(&lease) == mark));
    let runs = task.running().is_some();
    task.ended().is_some() || (is_past && !runs)
}
