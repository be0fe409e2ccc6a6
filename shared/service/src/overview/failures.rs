//! What has failed, in groups: by what it was and why.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use tickover_core::duration::Millis;
use tickover_core::execution::{Execution, ExecutionOutcome, ExecutionStatus};
use tickover_core::id::{TaskKind, WorkflowName};
use tickover_core::limits::PAGE_MAX;
use tickover_core::task::{Outcome, Status, Task};
use tickover_core::time::Timestamp;

use super::{Count, of_status};
use crate::error::ServiceError;
use crate::ports::ExecutionFilter;
use crate::service::Service;

/// The most failures of each list that are grouped where the store has an index.
const INDEXED_READ_MAX: usize = 20_000;
/// The same where it has none, and each of them is paid for.
const LISTED_READ_MAX: usize = 500;
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
    pub count: u64,
    /// How many of them failed within the last hour.
    pub lately: u64,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
    /// The message of the last of them, as its record has it.
    pub message: Option<String>,
}

/// A failure, as its group counts it.
struct Failed<'a> {
    at: Timestamp,
    step: Option<&'a str>,
    message: Option<&'a str>,
}

#[derive(Default)]
struct Groups(BTreeMap<(FailedWork, Option<String>), FailureGroup>);

impl Groups {
    fn add(&mut self, of: FailedWork, code: Option<&str>, failed: &Failed<'_>, now: Timestamp) {
        let key = (of, code.map(str::to_owned));
        let group = self.0.entry(key).or_insert_with_key(|(of, code)| FailureGroup {
            of: of.clone(),
            code: code.clone(),
            steps: BTreeSet::new(),
            count: 0,
            lately: 0,
            first_at: failed.at,
            last_at: Timestamp::from_millis(i64::MIN),
            message: None,
        });
        group.count += 1;
        group.lately += u64::from(failed.at > now.minus(LATELY));
        group.first_at = group.first_at.min(failed.at);
        if failed.at > group.last_at {
            group.last_at = failed.at;
            group.message = failed.message.map(str::to_owned);
        }
        if let Some(step) = failed.step.map(of_fan_out)
            && group.steps.len() < STEPS_MAX
        {
            group.steps.insert(step);
        }
    }

    fn task(&mut self, task: &Task, now: Timestamp) {
        let Some(ended) = task.ended() else { return };
        let (Outcome::Failed { error, .. } | Outcome::TimedOut { error, .. }) = &ended.outcome else {
            return;
        };
        let failed = Failed { at: ended.ended_at, step: None, message: Some(&error.message) };
        self.add(FailedWork::Task(task.kind.clone()), Some(&error.code), &failed, now);
    }

    fn execution(&mut self, execution: &Execution, now: Timestamp) {
        let Some(closed) = execution.closed() else { return };
        let (code, step, message) = match &closed.outcome {
            ExecutionOutcome::Failed { error, step, .. } => {
                (Some(error.code.as_str()), step.as_deref(), Some(error.message.as_str()))
            }
            ExecutionOutcome::TimedOut { .. } => (None, None, None),
            ExecutionOutcome::Completed { .. } | ExecutionOutcome::Cancelled { .. } => return,
        };
        let failed = Failed { at: closed.ended_at, step, message };
        self.add(FailedWork::Execution(execution.workflow.clone()), code, &failed, now);
    }
}

impl Service {
    /// All that has failed in groups, the largest first, and how many there are.
    pub(super) async fn failures(&self, now: Timestamp) -> Result<(Vec<FailureGroup>, Count), ServiceError> {
        let traits = self.ports.store.traits();
        let most = |is_indexed: bool| if is_indexed { INDEXED_READ_MAX } else { LISTED_READ_MAX };
        let mut groups = Groups::default();
        let filter = of_status(&[Status::Failed, Status::TimedOut]);
        let (mut read, mut at) = (0, None);
        while read < most(traits.tasks.is_some()) {
            let page = self.list(&filter, PAGE_MAX, at.as_deref()).await?;
            page.items.iter().for_each(|task| groups.task(task, now));
            read += page.items.len();
            at = page.next;
            if at.is_none() {
                break;
            }
        }
        let statuses = vec![ExecutionStatus::Failed, ExecutionStatus::TimedOut];
        let filter = ExecutionFilter { statuses, ..ExecutionFilter::default() };
        let mut add = |execution: &Execution| groups.execution(execution, now);
        let more = self.latest(&filter, most(traits.executions.is_some()), &mut add).await?;
        let mut groups: Vec<FailureGroup> = groups.0.into_values().collect();
        groups.sort_by_key(|group| Reverse(group.count));
        let count = groups.iter().map(|group| group.count).sum();
        Ok((groups, Count { count, more: more || at.is_some() }))
    }
}

/// A step's name; that of an item of a fan-out without its number.
fn of_fan_out(step: &str) -> String {
    match step.strip_suffix(']').and_then(|step| step.rsplit_once('[')) {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => format!("{name}[…]"),
        _ => step.to_owned(),
    }
}
