//! What an operator looks at first: how many records wait, run, are late, need somebody and have failed, and the queues.
//!
//! A store with indexes counts all that are open. Any other reads a part of them, and a count says whether there may be more.

mod failures;

pub use failures::{FailedWork, FailureGroup, Failures};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use tickover_core::duration::Millis;
use tickover_core::execution::{Execution, ExecutionState, ExecutionStatus};
use tickover_core::id::{QueueName, WorkflowName};
use tickover_core::task::{State, Status};
use tickover_core::time::Timestamp;

use crate::error::ServiceError;
use crate::ports::{ExecutionFilter, Listed, Period, TaskCount, TaskFilter, TaskIndex};
use crate::queues::workers::QueueWorkers;
use crate::service::Service;

/// A record that no worker has taken for so long is late.
const LATE_AFTER: Millis = Millis::from_secs(60);
/// The most open tasks that are read where the store doesn't count them.
const TASKS_READ_MAX: usize = 2_000;
/// The most waiting tasks that are read to find those that nobody may take, where the store counts the others.
const HELD_READ_MAX: usize = 500;
/// The most executions that are read of a list to find open ones.
const EXECUTIONS_READ_MAX: usize = 1_000;
/// The most workflows whose lists are read where there is no list of all executions.
const WORKFLOWS_READ_MAX: usize = 20;
/// How many of the latest executions of each of those are read.
const OF_WORKFLOW_READ_MAX: usize = 100;
/// The most failed tasks, and the most failed executions, that are read where the store has no index.
const FAILED_READ_MAX: usize = 500;
/// How many records are read at once.
const PAGE: usize = 100;
/// An overview is used again for as many times the time that it took to make: so however many look at it, making it takes
/// a tenth of a process's time at most.
const USED_FOR: u64 = 10;

/// How many records there are, or how many were found among those that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub count: u64,
    /// Whether there may be more.
    pub more: bool,
}

impl Count {
    fn add(&mut self, is_one: bool) {
        self.count += u64::from(is_one);
    }
}

/// How many tasks are open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskNumbers {
    pub pending: Count,
    pub running: Count,
    /// Those that a worker could have had a minute ago.
    pub late: Count,
    /// Those that get no worker before somebody acts.
    pub stuck: Count,
}

/// How many executions are open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionNumbers {
    pub open: Count,
    /// Those whose turn a worker could have had a minute ago.
    pub late: Count,
    /// Those that are paused, or that the last worker couldn't continue.
    pub stuck: Count,
    /// Whether only executions of workflows that workers have announced are among them.
    pub announced_only: bool,
}

/// A queue with its workers and its oldest task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueNumbers {
    pub of: QueueWorkers,
    /// Since when its oldest waiting task could have been claimed.
    pub oldest_at: Option<Timestamp>,
    /// How many tasks and executions of it workers have: by its messages, or by their records if those are more.
    pub running: u64,
}

/// What an operator looks at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    /// When it was made.
    pub at: Timestamp,
    pub tasks: TaskNumbers,
    pub executions: ExecutionNumbers,
    /// All that is kept and has failed or timed out.
    pub failed: Count,
    /// The same by what failed and why, the largest group first; at most 200 of them.
    pub failures: Vec<FailureGroup>,
    /// All queues, by name.
    pub queues: Vec<QueueNumbers>,
}

/// The last overview, and until when it is used.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<Option<(Overview, Timestamp)>>);

impl Kept {
    fn fresh(&self, now: Timestamp) -> Option<Overview> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // If the clock was set back, it is from the future.
        kept.as_ref().filter(|(made, until)| made.at <= now && now < *until).map(|(made, _)| made.clone())
    }

    fn keep(&self, made: &Overview, until: Timestamp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((made.clone(), until));
    }
}

/// What is found of open records: the numbers, and what is known of each queue.
#[derive(Default)]
struct Open {
    tasks: TaskNumbers,
    executions: ExecutionNumbers,
    running: BTreeMap<QueueName, u64>,
    /// Of the tasks that were read.
    oldest: BTreeMap<QueueName, Timestamp>,
}

impl Service {
    /// The overview, as it is now or was a moment ago.
    pub async fn overview(&self) -> Result<Overview, ServiceError> {
        let at = self.now();
        if let Some(kept) = self.overview.fresh(at) {
            return Ok(kept);
        }
        let queues = self.list_workers().await?;
        let mut open = Open::default();
        let index = self.ports.store.traits().tasks;
        match index {
            Some(index) => self.count_tasks(index, at, &queues, &mut open).await?,
            None => self.read_tasks(at, &mut open).await?,
        }
        self.open_executions(at, &queues, &mut open).await?;
        let Failures { count: failed, groups: failures, .. } =
            self.failures_among(Period::default(), FAILED_READ_MAX).await?;
        let mut numbers = Vec::with_capacity(queues.len());
        for of in queues {
            let name = &of.queue.name;
            let oldest_at = match index {
                Some(index) => index.oldest(name, at)?,
                None => open.oldest.get(name).copied(),
            };
            let running = open.running.get(name).copied().unwrap_or_default().max(of.queue.depth.in_flight);
            numbers.push(QueueNumbers { of, oldest_at, running });
        }
        let Open { tasks, executions, .. } = open;
        let made = Overview { at, tasks, executions, failed, failures, queues: numbers };
        let now = self.now();
        let took = now.since(at);
        self.overview.keep(&made, now.plus(took.saturating_mul(USED_FOR)));
        Ok(made)
    }

    /// By the store's index. What waits in a paused queue is counted by it too; what requires something is read.
    async fn count_tasks(
        &self,
        index: &dyn TaskIndex,
        now: Timestamp,
        queues: &[QueueWorkers],
        open: &mut Open,
    ) -> Result<(), ServiceError> {
        let mut held = 0;
        for TaskCount { queue, pending, running, late } in index.counts(now.minus(LATE_AFTER))? {
            open.tasks.pending.count += pending;
            open.tasks.running.count += running;
            open.tasks.late.count += late;
            if queues.iter().any(|of| of.queue.name == queue && of.queue.paused) {
                held += pending;
            }
            *open.running.entry(queue).or_default() += running;
        }
        let page = self.list(&of_status(&[Status::Pending]), HELD_READ_MAX, None).await?;
        open.tasks.stuck = Count { count: held, more: page.next.is_some() };
        for task in &page.items {
            let is_stuck = !self.is_paused(&task.queue).await? && !self.unprovided(task).await?.is_empty();
            open.tasks.stuck.add(is_stuck);
        }
        Ok(())
    }

    /// By one walk over the open tasks.
    async fn read_tasks(&self, now: Timestamp, open: &mut Open) -> Result<(), ServiceError> {
        let page = self.list(&of_status(&[Status::Pending, Status::Running]), TASKS_READ_MAX, None).await?;
        for task in &page.items {
            match &task.state {
                State::Pending(pending) => {
                    let ready_at = pending.available_at;
                    open.tasks.pending.add(true);
                    open.tasks.late.add(task.hint_at().is_some_and(|at| is_late(at, now)));
                    open.tasks.stuck.add(self.is_held_back(task).await?);
                    if ready_at <= now {
                        let oldest = open.oldest.entry(task.queue.clone()).or_insert(ready_at);
                        *oldest = ready_at.min(*oldest);
                    }
                }
                State::Running(_) => {
                    open.tasks.running.add(true);
                    *open.running.entry(task.queue.clone()).or_default() += 1;
                }
                State::Ended(_) => {}
            }
        }
        if page.next.is_some() {
            let TaskNumbers { pending, running, late, stuck } = &mut open.tasks;
            for count in [pending, running, late, stuck] {
                count.more = true;
            }
        }
        Ok(())
    }

    /// By the lists there are: the index, the list of all executions, or those of the workflows that workers have announced.
    async fn open_executions(
        &self,
        now: Timestamp,
        queues: &[QueueWorkers],
        open: &mut Open,
    ) -> Result<(), ServiceError> {
        let statuses: Vec<_> = ExecutionStatus::ALL.into_iter().filter(|status| status.is_live()).collect();
        let filter = ExecutionFilter { statuses, ..ExecutionFilter::default() };
        let traits = self.ports.store.traits();
        let has_all =
            traits.executions.is_some() || traits.lists.is_some_and(|lists| lists.longest() == Listed::All);
        let mut paused = 0;
        let mut add = |execution: &Execution| {
            paused += u64::from(execution.paused);
            open.execution(execution, now);
        };
        let more = if has_all {
            self.latest(&filter, EXECUTIONS_READ_MAX, &mut add).await?
        } else {
            self.latest_announced(&filter, queues, &mut add).await?
        };
        let numbers = &mut open.executions;
        numbers.announced_only = !has_all;
        for count in [&mut numbers.open, &mut numbers.late, &mut numbers.stuck] {
            count.more = more;
        }
        if let Some(index) = traits.executions {
            let counted = index.counts()?;
            let of = |fits: fn(ExecutionStatus) -> bool| {
                counted.iter().filter(|one| fits(one.status)).map(|one| one.count).sum::<u64>()
            };
            numbers.open = Count { count: of(ExecutionStatus::is_live), more: false };
            // Those that are paused are all counted, beside those that are stuck and were read.
            numbers.stuck.count += of(|status| status == ExecutionStatus::Paused).saturating_sub(paused);
        }
        Ok(())
    }

    /// Calls with each execution of a list that fits, among so many of the latest. Returns whether the list has more.
    async fn latest(
        &self,
        filter: &ExecutionFilter,
        most: usize,
        each: &mut (impl FnMut(&Execution) + Send),
    ) -> Result<bool, ServiceError> {
        let now = self.now();
        let mut at = None;
        for _ in 0..most.div_ceil(PAGE) {
            let page = self.execution_ids(filter, PAGE, at.as_deref()).await?;
            // Records that only a newer build can read are left out, and logged.
            let (found, _unreadable) = self.executions_of(&page.items).await?;
            let fits = |one: &&Execution| !one.is_gone(now) && filter.fits_but_for_labels(one);
            found.iter().filter(fits).for_each(&mut *each);
            at = page.next;
            if at.is_none() {
                break;
            }
        }
        Ok(at.is_some())
    }

    /// The same for all workflows that workers have announced.
    async fn latest_announced(
        &self,
        filter: &ExecutionFilter,
        queues: &[QueueWorkers],
        each: &mut (impl FnMut(&Execution) + Send),
    ) -> Result<bool, ServiceError> {
        let names: BTreeSet<&WorkflowName> = queues.iter().flat_map(|of| &of.queue.workflows).collect();
        let mut more = names.len() > WORKFLOWS_READ_MAX;
        for workflow in names.into_iter().take(WORKFLOWS_READ_MAX) {
            let filter = ExecutionFilter { workflow: Some(workflow.clone()), ..filter.clone() };
            more |= self.latest(&filter, OF_WORKFLOW_READ_MAX, each).await?;
        }
        Ok(more)
    }
}

impl Open {
    fn execution(&mut self, execution: &Execution, now: Timestamp) {
        let numbers = &mut self.executions;
        numbers.open.add(true);
        numbers.stuck.add(execution.paused || execution.stuck.is_some());
        match &execution.state {
            ExecutionState::Pending(ready) => {
                numbers.late.add(!execution.paused && is_late(ready.available_at, now));
            }
            ExecutionState::Running(_) => {
                *self.running.entry(execution.queue.clone()).or_default() += 1;
            }
            ExecutionState::Waiting(_) | ExecutionState::Closing(_) | ExecutionState::Ended(_) => {}
        }
    }
}

fn of_status(statuses: &[Status]) -> TaskFilter {
    TaskFilter { statuses: statuses.to_vec(), ..TaskFilter::default() }
}

/// Whether a worker could have had it for too long.
fn is_late(ready_at: Timestamp, now: Timestamp) -> bool {
    ready_at <= now.minus(LATE_AFTER)
}
