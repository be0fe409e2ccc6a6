//! What has failed, in groups: by what it was and why.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use tickover_core::duration::Millis;
use tickover_core::execution::{Execution, ExecutionOutcome, ExecutionStatus};
use tickover_core::id::{ExecutionId, TaskId, TaskKind, WorkflowName};
use tickover_core::limits::PAGE_MAX;
use tickover_core::task::{Outcome, Status, Task};
use tickover_core::time::Timestamp;

use super::{Count, PAGE, of_status};
use crate::error::ServiceError;
use crate::ports::{ExecutionFilter, Failed, Period};
use crate::service::Service;

/// The most failures of each list that are read where the store has no index, and each of them is paid for.
const READ_MAX: usize = 5_000;
/// The most groups that are returned.
const GROUPS_MAX: usize = 200;
/// How many steps of a group are named.
const STEPS_MAX: usize = 10;
/// The time whose failures are counted by themselves.
const LATELY: Millis = Millis::from_secs(3_600);

/// What has failed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailedWork {
    Task(TaskKind),
    Execution(WorkflowName),
}

/// What has failed in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureGroup {
    pub of: FailedWork,
    /// The code of their error. `None` for executions whose deadline passed, which have none.
    pub code: Option<String>,
    /// The steps because of which executions failed, some of them. Those of a fan-out are one: `label[…]`.
    pub steps: BTreeSet<String>,
    /// How many failed in the period.
    pub count: u64,
    /// How many of the group failed within the last hour.
    pub lately: u64,
    /// When the first of the group failed, in the period or before.
    pub first_at: Timestamp,
    pub last_at: Timestamp,
    /// The message of the last of them, as its record has it.
    pub message: Option<String>,
}

/// What has failed in a period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    pub count: Count,
    /// The largest groups that have failures in the period, the largest first.
    pub groups: Vec<FailureGroup>,
    /// Whether there are more groups.
    pub more_groups: bool,
    /// How many of each list were read at most, if there is a list without an index.
    pub read_max: Option<usize>,
}

/// What a group is of: whether executions, their work, and the code of their error.
type Key = (bool, String, Option<String>);

/// What is counted of a group, and the last of it.
struct Counted {
    steps: BTreeSet<String>,
    count: u64,
    lately: u64,
    first_at: Timestamp,
    last_at: Timestamp,
    last: String,
    message: Option<String>,
}

struct Groups {
    period: Period,
    now: Timestamp,
    of: BTreeMap<Key, Counted>,
}

impl Groups {
    fn add(&mut self, of_execution: bool, failed: &Failed<'_>, message: Option<&str>) {
        let Failed { id, of, code, ref step, at } = *failed;
        let key = (of_execution, of.to_owned(), code.map(str::to_owned));
        let group = self.of.entry(key).or_insert_with(|| Counted {
            steps: BTreeSet::new(),
            count: 0,
            lately: 0,
            first_at: at,
            last_at: Timestamp::from_millis(i64::MIN),
            last: String::new(),
            message: None,
        });
        let counts = self.period.has(Some(at));
        group.count += u64::from(counts);
        group.lately += u64::from(at > self.now.minus(LATELY));
        group.first_at = group.first_at.min(at);
        if at > group.last_at {
            group.last_at = at;
            id.clone_into(&mut group.last);
            group.message = message.map(str::to_owned);
        }
        if let Some(step) = step
            && group.steps.len() < STEPS_MAX
            && !group.steps.contains(step.as_ref())
        {
            group.steps.insert(step.clone().into_owned());
        }
    }

    fn task(&mut self, task: &Task) {
        if let Some(failed) = Failed::of_task(task) {
            self.add(false, &failed, message_of_task(task));
        }
    }

    fn execution(&mut self, execution: &Execution) {
        if let Some(failed) = Failed::of_execution(execution) {
            self.add(true, &failed, message_of_execution(execution));
        }
    }

    /// The largest groups with failures in the period, how many failures these and all others have, and whether there are
    /// others.
    fn largest(self) -> (Vec<(Key, Counted)>, u64, bool) {
        let mut groups: Vec<_> = self.of.into_iter().filter(|(_, group)| group.count > 0).collect();
        groups.sort_by_key(|(_, group)| Reverse(group.count));
        let count = groups.iter().map(|(_, group)| group.count).sum();
        let more = groups.len() > GROUPS_MAX;
        groups.truncate(GROUPS_MAX);
        (groups, count, more)
    }
}

fn message_of_task(task: &Task) -> Option<&str> {
    match &task.ended()?.outcome {
        Outcome::Failed { error, .. } | Outcome::TimedOut { error, .. } => Some(&error.message),
        Outcome::Completed { .. } | Outcome::Cancelled { .. } | Outcome::Skipped => None,
    }
}

fn message_of_execution(execution: &Execution) -> Option<&str> {
    match &execution.closed()?.outcome {
        ExecutionOutcome::Failed { error, .. } => Some(&error.message),
        ExecutionOutcome::Completed { .. }
        | ExecutionOutcome::TimedOut { .. }
        | ExecutionOutcome::Cancelled { .. } => None,
    }
}

impl Service {
    /// What has failed in a period, of all that is kept, in groups. A store with an index counts all; of any other at most
    /// 5,000 tasks and 5,000 executions are read, those that were scheduled or started last.
    pub async fn failures(&self, period: Period) -> Result<Failures, ServiceError> {
        self.failures_among(period, READ_MAX).await
    }

    /// The same of so many tasks and executions at most, where there is no index.
    pub(super) async fn failures_among(
        &self,
        period: Period,
        read_max: usize,
    ) -> Result<Failures, ServiceError> {
        let traits = self.ports.store.traits();
        let mut groups = Groups { period, now: self.now(), of: BTreeMap::new() };
        let more_tasks = if let Some(index) = traits.tasks {
            index.failed(&mut |failed| groups.add(false, &failed, None))?;
            false
        } else {
            self.read_failed_tasks(read_max, &mut groups).await?
        };
        let more_executions = if let Some(index) = traits.executions {
            index.failed(&mut |failed| groups.add(true, &failed, None))?;
            false
        } else {
            let statuses = vec![ExecutionStatus::Failed, ExecutionStatus::TimedOut];
            let filter = ExecutionFilter { statuses, ..ExecutionFilter::default() };
            self.latest(&filter, read_max, &mut |execution| groups.execution(execution)).await?
        };
        let (mut largest, count, more_groups) = groups.largest();
        self.tell(&mut largest).await?;
        let groups = largest.into_iter().filter_map(named).collect();
        let is_indexed = traits.tasks.is_some() && traits.executions.is_some();
        Ok(Failures {
            count: Count { count, more: more_tasks || more_executions },
            groups,
            more_groups,
            read_max: (!is_indexed).then_some(read_max),
        })
    }

    /// Returns whether there are more.
    async fn read_failed_tasks(&self, most: usize, groups: &mut Groups) -> Result<bool, ServiceError> {
        let filter = of_status(&[Status::Failed, Status::TimedOut]);
        let (mut read, mut at) = (0, None);
        while read < most {
            let page = self.list(&filter, PAGE_MAX.min(most - read), at.as_deref()).await?;
            page.items.iter().for_each(|task| groups.task(task));
            read += page.items.len();
            at = page.next;
            if at.is_none() {
                break;
            }
        }
        Ok(at.is_some())
    }

    /// Reads the messages of groups that an index has counted.
    async fn tell(&self, groups: &mut [(Key, Counted)]) -> Result<(), ServiceError> {
        let last = |of_execution: bool| {
            let of =
                groups.iter().filter(move |((of, ..), group)| *of == of_execution && group.message.is_none());
            of.map(|(_, group)| group.last.as_str())
        };
        let tasks: Vec<TaskId> = last(false).filter_map(|id| TaskId::parse(id).ok()).collect();
        let executions: Vec<ExecutionId> = last(true).filter_map(|id| ExecutionId::parse(id).ok()).collect();
        let mut messages: BTreeMap<(bool, String), String> = BTreeMap::new();
        // Records that only a newer build can read are left out, and logged.
        for ids in tasks.chunks(PAGE) {
            let (found, _unreadable) = self.load_each(ids).await?;
            let told = |task: &Task| Some(((false, task.id.to_string()), message_of_task(task)?.to_owned()));
            messages.extend(found.iter().filter_map(told));
        }
        for ids in executions.chunks(PAGE) {
            let (found, _unreadable) = self.executions_of(ids).await?;
            let told = |execution: &Execution| {
                Some(((true, execution.id.to_string()), message_of_execution(execution)?.to_owned()))
            };
            messages.extend(found.iter().filter_map(told));
        }
        for ((of_execution, ..), group) in groups {
            let known = messages.get(&(*of_execution, std::mem::take(&mut group.last)));
            group.message = group.message.take().or_else(|| known.cloned());
        }
        Ok(())
    }
}

/// The group, unless its name is one that this build doesn't take.
fn named(((of_execution, of, code), group): (Key, Counted)) -> Option<FailureGroup> {
    let of = if of_execution {
        FailedWork::Execution(WorkflowName::parse(of).ok()?)
    } else {
        FailedWork::Task(TaskKind::parse(of).ok()?)
    };
    let Counted { steps, count, lately, first_at, last_at, message, .. } = group;
    Some(FailureGroup { of, code, steps, count, lately, first_at, last_at, message })
}
