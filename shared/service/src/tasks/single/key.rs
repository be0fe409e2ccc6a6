//! The record of a key of which only one task is scheduled: who has it, and how it goes on to another task.

use tickover_core::command::Context;
use tickover_core::decision::{Condition, Write};
use tickover_core::duration::Millis;
use tickover_core::error::{Reject, TakenBy};
use tickover_core::flow::Flow;
use tickover_core::id::{Fingerprint, Incarnation, Owner, TaskId};
use tickover_core::limits::SPAN_MAX;
use tickover_core::queue::KeyRecord;
use tickover_core::retry::{MaxAttempts, RetryPolicy};
use tickover_core::task::command::{Schedule, Start};
use tickover_core::task::{Command, Reply, Task};
use tickover_core::time::Timestamp;
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

/// What the record of a key leads to: a task or an execution `T`, with an id `I`.
pub(crate) enum Holder<I, T> {
    /// Nothing holds it.
    Nobody,
    /// Another process is between its two writes.
    Coming,
    /// That process is late. It may have died, or it may still write what has this id and this incarnation.
    Unwritten(I, Incarnation),
    Written(Box<T>),
}

/// Whether a task was written only so that another one couldn't be.
pub(super) fn is_fence(task: &Task) -> bool {
    task.fingerprint == fence_mark()
}

fn fence_mark() -> Fingerprint {
    digest(&["fence"])
}

impl Service {
    pub(super) async fn holder(
        &self,
        stored: Option<&KeyRecord>,
    ) -> Result<Holder<TaskId, Task>, ServiceError> {
        let Some((key, id)) = stored.and_then(|key| Some((key, key.owner.task()?))) else {
            return Ok(Holder::Nobody);
        };
        let task = self.load(id).await?.filter(|task| task.incarnation == key.incarnation);
        Ok(self.holder_of(key, id, task, is_fence))
    }

    /// Who has a key that names this id. `found` is the record with this id and the key's incarnation.
    pub(crate) fn holder_of<I: Clone, T>(
        &self,
        key: &KeyRecord,
        id: &I,
        found: Option<T>,
        is_fence: impl Fn(&T) -> bool,
    ) -> Holder<I, T> {
        let age = self.now().since(key.created_at);
        // Later than this, it may have ended and its retention passed.
        let late_max = LATE_MAX.min(Millis::new(self.limits.retention.as_u64() / 2));
        match found {
            Some(found) if is_fence(&found) => Holder::Nobody,
            Some(found) => Holder::Written(Box::new(found)),
            None if age < GRACE => Holder::Coming,
            None if age < late_max => Holder::Unwritten(id.clone(), key.incarnation),
            None => Holder::Nobody,
        }
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
            flow: Flow::default(),
            start: Start::After(Millis::ZERO),
            fingerprint: fence_mark(),
            ..beside.clone()
        };
        let command = Command::Schedule(Box::new(fence));
        let decision = self.drive_unpublished(id, Known::Absent, &command).await?;
        match decision.outcome {
            Ok((task, _)) => Ok(is_fence(&task)),
            // Another task has this id, so the late process is refused anyway.
            Err(refusal) if matches!(refusal.reject, Reject::IdConflict { .. }) => Ok(true),
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
        let context = Context { now: self.now(), nonce: self.new_nonce(), limits: &self.limits, by: None };
        if !self.put_key(record_of(key, &schedule, &context), replaces).await? {
            return Ok(None);
        }
        let schedule = Box::pin(self.with_start(request, schedule)).await;
        let (id, own) = (schedule.id.clone(), schedule.fingerprint);
        let start = schedule.flow.paced.clone();
        let decision = self.drive_unpublished(&id, Known::Absent, &Command::Schedule(schedule)).await?;
        if !is_new(&decision) {
            Box::pin(self.give_unused_back(start.as_ref())).await;
        }
        let (task, reply) = decision.outcome?;
        if is_fence(&task) {
            // This process was so late that another one has taken the key.
            return Ok(None);
        }
        if task.fingerprint != own {
            let by = TakenBy::Key(task.id.clone());
            return Err(Reject::IdConflict { by, since: task.created_at }.into());
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
        let (before, condition) = (replaces.map(Into::into), Condition::SameOrAbsent);
        let write = [Write::Put { before, after: record.into(), condition }];
        match self.with_retries(|| self.ports.store.commit(&write)).await {
            Ok(()) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The record of a task's key.
pub(super) fn record_of(key: Fingerprint, schedule: &Schedule, context: &Context<'_>) -> KeyRecord {
    let starts_at = match schedule.start {
        Start::After(delay) => context.now.plus(delay),
        Start::At(instant) => instant.max(context.now),
    };
    key_record(key, (schedule.id.clone().into(), schedule.incarnation), starts_at, context)
}

/// The record of a key, which may be deleted a year after its work could have started.
pub(crate) fn key_record(
    key: Fingerprint,
    (owner, incarnation): (Owner, Incarnation),
    starts_at: Timestamp,
    context: &Context<'_>,
) -> KeyRecord {
    let (created_at, nonce, expires_at) = (context.now, context.nonce, starts_at.plus(SPAN_MAX));
    KeyRecord { key, owner, incarnation, created_at, nonce, expires_at }
}
