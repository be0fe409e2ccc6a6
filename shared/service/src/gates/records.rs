//! The own records of those who have a place at a key, or wait for one.

use tickover_core::decision::Effect;
use tickover_core::duration::Millis;
use tickover_core::execution::message::TurnHint;
use tickover_core::execution::{self, Execution};
use tickover_core::flow::Paced;
use tickover_core::gate::{
    AskedLimit, CLOCKS, Hold, Holder, LEFT_BEHIND_AFTER, Waiter, Waiting, version_mark,
};
use tickover_core::id::{ExecutionId, GateId, Incarnation, Owner, TaskId};
use tickover_core::parked::Parked;
use tickover_core::task::hint::Hint;
use tickover_core::task::{self, State, Task};
use tickover_core::time::Timestamp;

use super::line::WRITTEN_WITHIN;
use crate::error::ServiceError;
use crate::service::Service;

/// So long after the end of its lease, a task that came from a line waits there again. Mostly its message has led a worker to
/// it by then.
const LOST_FOR: Millis = Millis::from_secs(30);

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

/// What the record of one that waits says of its item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It waits here, and can start.
    Ready,
    /// It waits here but can't start now, or it runs, or its record is being written.
    Away,
    /// It ran, and its worker was lost.
    Lost,
    /// It doesn't wait here any more.
    LeftOver,
}

/// A record, and the command by which it comes to a line once more: what was decided before can't be written any more.
pub(super) enum Fence {
    Task(Box<Task>, task::Command),
    Execution(Box<Execution>, execution::command::Command),
}

/// The part of a record that matters to a line.
struct Said<'a> {
    waiting: Waiting<'a>,
    version: u64,
    /// Whether it is here only because it came from here, and runs.
    runs: bool,
    ready_at: Option<Timestamp>,
}

impl Records {
    fn task(&self, id: &TaskId, incarnation: Incarnation) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == *id && task.incarnation == incarnation)
    }

    fn execution(&self, id: &ExecutionId, incarnation: Incarnation) -> Option<&Execution> {
        self.executions.iter().find(|one| one.id == *id && one.incarnation == incarnation)
    }

    /// The keys in whose lines these wait, and where their branches begin.
    pub(super) fn homes(&self) -> impl Iterator<Item = (GateId, String)> {
        let waiting = self.tasks.iter().map(Task::waiting);
        let waiting = waiting.chain(self.executions.iter().map(Execution::waiting));
        let items = waiting.filter_map(|one| one.item(Timestamp::EPOCH));
        items.map(|(gate, waiter)| (gate, waiter.branch.start()))
    }

    pub(super) fn add(&mut self, other: Self) {
        self.tasks.extend(other.tasks);
        self.executions.extend(other.executions);
        self.unreadable |= other.unreadable;
    }

    /// What the record of one that waits says of that.
    fn said(&self, waiter: &Waiter) -> Option<Said<'_>> {
        match &waiter.owner {
            Owner::Task(id) => self.task(id, waiter.incarnation).map(|one| Said {
                waiting: one.waiting(),
                version: one.version,
                runs: !one.waits_in_line(),
                // One whose start was put off can't come before that.
                ready_at: one.ready_at().map(|at| one.reserved().map_or(at, |start| at.max(start.start_at))),
            }),
            Owner::Execution(id) => self.execution(id, waiter.incarnation).map(|one| Said {
                waiting: one.waiting(),
                version: one.version,
                runs: false,
                ready_at: one.ready_at(),
            }),
        }
    }

    /// How one that waits stands. Its record may have been read by a clock that is behind the one by which it came.
    pub(super) fn standing(&self, waiter: &Waiter, now: Timestamp) -> Standing {
        // The item comes before the record.
        let may_be_written = now < waiter.written_at.plus(WRITTEN_WITHIN);
        match self.said(waiter) {
            Some(said) if said.waiting.position == Some(waiter.position) => match said.ready_at {
                Some(at) if said.runs && at.plus(LOST_FOR) <= now => Standing::Lost,
                Some(at) if !said.runs && at <= now.plus(CLOCKS) => Standing::Ready,
                Some(_) | None => Standing::Away,
            },
            Some(said) if said.version >= waiter.position.version => Standing::LeftOver,
            None if self.unreadable => Standing::Away,
            Some(_) | None if may_be_written => Standing::Away,
            Some(_) | None => Standing::LeftOver,
        }
    }

    /// The task of an item.
    pub(super) fn task_of(&self, waiter: &Waiter) -> Option<&Task> {
        self.task(waiter.owner.task()?, waiter.incarnation)
    }

    /// The limit that one that waits asks of this key, and the text of the key.
    pub(super) fn asked_limit(&self, waiter: &Waiter, gate: &GateId) -> Option<(AskedLimit, String)> {
        let Said { waiting, .. } = self.said(waiter)?;
        let here = waiting.gates.iter().find(|one| GateId::from(&one.key) == *gate)?;
        Some((waiting.asked_limit(gate)?, here.text.clone()))
    }

    /// The key by whose rate one that waits must start, if it has no start yet.
    pub(super) fn rate_of(&self, waiter: &Waiter) -> Option<&Paced> {
        let paced = match &waiter.owner {
            Owner::Task(id) => self.task(id, waiter.incarnation)?.paced(),
            Owner::Execution(id) => {
                self.execution(id, waiter.incarnation)?.admission.as_deref()?.paced.as_ref()
            }
        };
        paced.filter(|paced| paced.start.is_none())
    }

    /// Whether a place was left behind: what it was taken for has ended, or hasn't begun in time.
    pub(super) fn is_left_behind(&self, holder: &Holder, now: Timestamp) -> bool {
        let Hold::Taken { mark } = holder.hold else { return false };
        let is_late = now >= holder.since.plus(LEFT_BEHIND_AFTER);
        let is_over = match &holder.owner {
            Owner::Task(id) => {
                self.task(id, holder.incarnation).map(|task| is_over(task, is_before(mark, task), is_late))
            }
            Owner::Execution(id) => self.execution(id, holder.incarnation).map(|one| {
                let has_begun = one.admission.as_deref().is_some_and(|admission| admission.held.is_some());
                !one.owns_place(mark) || (is_late && !has_begun)
            }),
        };
        let is_known = match &holder.owner {
            Owner::Task(id) => self.tasks.iter().any(|task| task.id == *id),
            Owner::Execution(id) => self.executions.iter().any(|one| one.id == *id),
        };
        is_over.unwrap_or(is_known || !self.unreadable)
    }

    /// A command after which nobody can begin with a place that was left behind, if the record of its holder allows it still.
    pub(super) fn fence(&self, holder: &Holder, now: Timestamp) -> Option<Fence> {
        let Hold::Taken { mark } = holder.hold else { return None };
        match &holder.owner {
            Owner::Task(id) => {
                let task = self.task(id, holder.incarnation)?;
                let is_ready = task.ready_at().is_some_and(|at| at <= now) && task.parked != Parked::Paused;
                let is_free = task.running().is_none() || task.waits_in_line();
                let may_begin = is_free && is_ready && !is_before(mark, task);
                let command = task::Command::WaitInLine { seen_version: task.version };
                may_begin.then(|| Fence::Task(Box::new(task.clone()), command))
            }
            Owner::Execution(id) => {
                let execution = self.execution(id, holder.incarnation).filter(|one| one.owns_place(mark))?;
                let command = execution::command::Command::WaitInLine { seen_version: execution.version };
                Some(Fence::Execution(Box::new(execution.clone()), command))
            }
        }
    }

    /// The hints of those that have been called.
    pub(super) fn hints(&self, called: &[Waiter]) -> Vec<Effect> {
        let hint = |one: &Waiter| match &one.owner {
            Owner::Task(id) => self.task(id, one.incarnation).map(|task| Effect::Dispatch {
                hint: Box::new(Hint::of(task)),
                at: task.ready_at().unwrap_or(one.position.since),
            }),
            Owner::Execution(id) => self.execution(id, one.incarnation).map(|execution| Effect::Turn {
                queue: execution.queue.clone(),
                hint: TurnHint::of(execution),
                at: execution.ready_at().unwrap_or(one.position.since),
            }),
        };
        called.iter().filter_map(hint).collect()
    }
}

/// Whether a place is nobody's: no attempt has it, and none begins with it any more. `is_before` says that it was taken for an
/// earlier version of the task. A claim that is still under way is refused, or takes its place again.
fn is_over(task: &Task, is_before: bool, is_late: bool) -> bool {
    match &task.state {
        State::Ended(_) => true,
        // The worker of a lost attempt may count its lease by another clock.
        State::Running(_) => task.waits_in_line() && is_late,
        State::Pending(_) => is_before || is_late,
    }
}

/// Whether it was taken for an earlier version of the task.
fn is_before(mark: u32, task: &Task) -> bool {
    mark < version_mark(task.version)
}
