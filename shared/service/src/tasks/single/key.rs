//! The record of a key of which only one task is scheduled: who has it, and how it goes on to another task.

use tickover_core::command::Context;
use tickover_core::decision::Write;
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::flow::FlowRequest;
use tickover_core::id::{Fingerprint, Incarnation, TaskId};
use tickover_core::limits::{Limits, SPAN_MAX};
use tickover_core::queue::KeyRecord;
use tickover_core::retry::{MaxAttempts, RetryPolicy};
use tickover_core::task::command::{Schedule, Start};
use tickover_core::task::{Command, Reply, Task};
use tickover_core::timeout::Timeouts;

use super::{Placed, placed};
use crate::drive::Known;
use crate::error::ServiceError;
use crate::ports::StoreError;
use crate::service::Service;
use crate::tasks::schedule::{ScheduleRequest, digest, is_new};

/// How long a key is left to a process that hasn't written its task yet.
pub(crate) const GRACE: Millis = Millis::from_secs(2);
/// A write of the task that began before this can't arrive any more: the table refuses signatures of that age.
const LATE_MAX: Millis = Millis::from_secs(3_600);

/// What the record of a key leads to.
pub(super) enum Holder {
    /// Nothing holds it.
    Nobody,
    /// Another process is between its two writes.
    Coming,
    /// That process is late. It may have died, or it may still write its task.
    Unwritten {
        task: TaskId,
        incarnation: Incarnation,
    },
    Task(Box<Task>),
}

/// How long after its key was taken a late process may still write its work, and that can't have ended and been deleted.
pub(crate) fn late_max(limits: &Limits) -> Millis {
    LATE_MAX.min(Millis::new(limits.retention.as_u64() / 2))
}

/// Whether a task was written only so that another one couldn't be.
pub(super) fn is_fence(task: &Task) -> bool {
    task.fingerprint == fence_mark()
}

fn fence_mark() -> Fingerprint {
    digest(&["fence"])
}

impl Service {
    pub(super) async fn holder(&self, stored: Option<&KeyRecord>) -> Result<Holder, ServiceError> {
        let Some(key) = stored else { return Ok(Holder::Nobody) };
        let Some(id) = key.owner.task() else { return Ok(Holder::Nobody) };
        let task = self.load(id).await?.filter(|task| task.incarnation == key.incarnation);
        let age = self.now().since(key.created_at);
        Ok(match task {
            Some(task) if is_fence(&task) => Holder::Nobody,
            Some(task) => Holder::Task(Box::new(task)),
            None if age < GRACE => Holder::Coming,
            // Later than this, its task may have ended and its retention passed.
            None if age < late_max(&self.limits) => {
                Holder::Unwritten { task: id.clone(), incarnation: key.incarnation }
            }
            None => Holder::Nobody,
        })
    }

    /// Makes sure that the key's task isn't written beside this one. `None` if it has been written after all.
    pub(super) async fn take_over(
        &self,
        (task, incarnation): (TaskId, Incarnation),
        schedule: Box<Schedule>,
    ) -> Result<Option<Box<Schedule>>, ServiceError> {
        if task == schedule.id {
            // The same request, repeated: of the two creations, the second finds the first one's task.
            return Ok(Some(Box::new(Schedule { incarnation, ..*schedule })));
        }
        Ok(self.fence(&task, incarnation, &schedule).await?.then_some(schedule))
    }

    /// Writes an ended task under the id of one that a late process may still write, which is then refused. Returns
    /// whether that one doesn't exist.
    async fn fence(
        &self,
        id: &TaskId,
        incarnation: Incarnation,
        beside: &Schedule,
    ) -> Result<bool, ServiceError> {
        let fence = Schedule {
            id: id.clone(),
            incarnation,
            input: None,
            labels: None,
            retry: RetryPolicy { max_attempts: MaxAttempts::Skip, ..RetryPolicy::none() },
            timeouts: Timeouts::default(),
            flow: crate::flow::recorded(&FlowRequest::default(), None),
            start: Start::After(Millis::ZERO),
            fingerprint: fence_mark(),
            ..beside.clone()
        };
        let command = Command::Schedule(Box::new(fence));
        let decision = self.drive_unpublished(id, Known::Absent, &command).await?;
        match decision.outcome {
            Ok((task, _)) => Ok(is_fence(&task)),
            // Another task has this id, so the late process is refused anyway.
            Err(refusal) if refusal.reject == Reject::IdConflict => Ok(true),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Takes the key, and then schedules the task. `None` if another request was faster.
    pub(super) async fn place(
        &self,
        request: &ScheduleRequest,
        schedule: Box<Schedule>,
        key: Fingerprint,
        replaces: Option<KeyRecord>,
    ) -> Result<Option<Placed>, ServiceError> {
        let context = Context { now: self.now(), nonce: self.new_nonce(), limits: &self.limits };
        if !self.put_key(record_of(key, &schedule, &context), replaces).await? {
            return Ok(None);
        }
        let schedule = Box::pin(self.with_start(request, schedule)).await;
        let (id, own) = (schedule.id.clone(), schedule.fingerprint);
        let start = schedule.flow.paced.as_ref().and_then(|paced| paced.start);
        let decision = self.drive_unpublished(&id, Known::Absent, &Command::Schedule(schedule)).await?;
        if !is_new(&decision) {
            Box::pin(self.give_unused_back(request.flow.rate.as_ref(), start)).await;
        }
        let (task, reply) = decision.outcome?;
        if is_fence(&task) {
            // This process was so late that another one has taken the key.
            return Ok(None);
        }
        if task.fingerprint != own {
            return Err(Reject::IdConflict.into());
        }
        let existed = reply == Reply::Scheduled { existed: true };
        Ok(Some(placed(request, task, existed, decision.effects)))
    }

    /// Writes the record of a key; `false` if another process was faster.
    pub(crate) async fn put_key(
        &self,
        record: KeyRecord,
        replaces: Option<KeyRecord>,
    ) -> Result<bool, ServiceError> {
        let write = [Write::PutKey { record, replaces }];
        match self.with_retries(|| self.ports.store.commit(&write)).await {
            Ok(()) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The record of a key, which may be deleted a year after its task could have started.
pub(super) fn record_of(key: Fingerprint, schedule: &Schedule, context: &Context<'_>) -> KeyRecord {
    let starts_at = match schedule.start {
        Start::After(delay) => context.now.plus(delay),
        Start::At(instant) => instant.max(context.now),
    };
    KeyRecord {
        key,
        owner: schedule.id.clone().into(),
        incarnation: schedule.incarnation,
        created_at: context.now,
        nonce: context.nonce,
        expires_at: starts_at.plus(SPAN_MAX),
    }
}
