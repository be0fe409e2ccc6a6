//! Keys of which only one task is scheduled at a time: unique keys, and bursts of which only the last request runs.
//!
//! A record of the key names its task. It is written before the task, by a write of its own: a transaction would cost
//! twice as much. Whoever finds it reads the task, so nothing has to be freed when the task ends.

mod key;

use tickover_core::decision::Effect;
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::flow::{Debounce, FlowRequest, OnConflict, Unique, UniqueWindow};
use tickover_core::id::{Fingerprint, TaskId};
use tickover_core::task::command::{Bounce, Schedule, Start};
use tickover_core::task::{Command, Reply, State, Task};

#[cfg(test)]
pub(crate) use self::key::GRACE;
use self::key::is_fence;
pub(crate) use self::key::{Holder, key_record};
use super::schedule::{ScheduleRequest, Scheduled, digest, fingerprint};
use crate::contention::Tries;
use crate::drive::Known;
use crate::error::ServiceError;
use crate::service::Service;

/// The shortest bound of the wait for another request with the key that was faster, or is on its way.
pub(crate) const WAIT: Millis = Millis::new(10);

type Placed = (Scheduled, Vec<Effect>);

/// What a request says of its key.
#[derive(Clone, Copy)]
pub(crate) enum Single<'a> {
    Unique(&'a Unique),
    Debounce(&'a Debounce),
}

impl<'a> Single<'a> {
    pub(crate) fn of(flow: &'a FlowRequest) -> Option<Self> {
        let debounce = || flow.debounce.as_ref().map(Self::Debounce);
        flow.unique.as_ref().map(Self::Unique).or_else(debounce)
    }

    /// The digest by which the key is stored, for tasks or executions.
    pub(crate) fn digest(self, kind: &str) -> Fingerprint {
        match self {
            Self::Unique(unique) => digest(&["unique", kind, unique.key.as_str()]),
            Self::Debounce(debounce) => digest(&["debounce", kind, debounce.key.as_str()]),
        }
    }

    const fn start(self, request: &ScheduleRequest) -> Start {
        match self {
            Self::Unique(_) => request.start,
            Self::Debounce(debounce) => Start::After(debounce.wait),
        }
    }
}

/// What comes of a request whose key has a task.
enum Met {
    Answer(Box<Placed>),
    /// The task has let the key go.
    LetGo,
}

impl Service {
    /// Schedules a task, or finds out what the task that has its key says to the request.
    pub(super) async fn schedule_single(
        &self,
        request: &ScheduleRequest,
        single: Single<'_>,
    ) -> Result<Placed, ServiceError> {
        if let Some(id) = &request.id
            && let Some(task) = self.load(id).await?.filter(|task| !is_fence(task))
        {
            // Perhaps the same request, repeated after the key went on to another task.
            return self.repeated(request, task).await;
        }
        let key = single.digest("task");
        let (mut tries, _turn) = (Tries::default(), self.turns.take(format!("key {key}")).await);
        loop {
            let stored = self.with_retries(|| self.ports.store.key(&key)).await?;
            let schedule = self.single_command(request, single);
            let free = match self.holder(stored.as_ref()).await? {
                Holder::Nobody => Some(schedule),
                Holder::Coming => None,
                Holder::Unwritten(task, incarnation) => self.take_over((task, incarnation), schedule).await?,
                Holder::Written(task) => match self.meet(request, single, *task).await? {
                    Met::Answer(placed) => return Ok(*placed),
                    Met::LetGo => Some(schedule),
                },
            };
            if let Some(schedule) = free
                && let Some(placed) = self.place(request, schedule, key, stored).await?
            {
                return Ok(placed);
            }
            self.once_more(&mut tries, WAIT).await?;
        }
    }

    fn single_command(&self, request: &ScheduleRequest, single: Single<'_>) -> Box<Schedule> {
        let id = request.id.clone().unwrap_or_else(|| self.new_task_id());
        let mut schedule = self.schedule_command(request, id, None);
        schedule.start = single.start(request);
        schedule
    }

    async fn meet(
        &self,
        request: &ScheduleRequest,
        single: Single<'_>,
        task: Task,
    ) -> Result<Met, ServiceError> {
        match single {
            Single::Unique(unique) if !self.keeps(&task, unique.window) => Ok(Met::LetGo),
            Single::Unique(unique) => match unique.on_conflict {
                OnConflict::Existing => Ok(Met::Answer(Box::new(self.existing(task).await?))),
                OnConflict::Refuse => Err(Reject::NotUnique { by: task.id.into() }.into()),
                OnConflict::Replace => {
                    self.end_replaced(&task.id).await?;
                    Ok(Met::LetGo)
                }
            },
            Single::Debounce(debounce) => self.bounce(request, debounce, task).await,
        }
    }

    /// Whether a task keeps its key from another one that asks for this window.
    fn keeps(&self, task: &Task, window: UniqueWindow) -> bool {
        match window {
            UniqueWindow::Open => task.status().is_live(),
            UniqueWindow::Waiting => {
                let is_new = task.attempt == 0 && task.history.is_empty();
                is_new && matches!(task.state, State::Pending(_))
            }
            UniqueWindow::For(span) => self.now() < task.created_at.plus(span),
        }
    }

    async fn end_replaced(&self, id: &TaskId) -> Result<(), ServiceError> {
        match Box::pin(self.cancel(id, true)).await {
            Ok(_) | Err(ServiceError::Rejected(Reject::AlreadyTerminal { .. } | Reject::NotFound)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Puts the request in the place of the one that waits, unless a worker has had that: then a new burst begins.
    async fn bounce(
        &self,
        request: &ScheduleRequest,
        debounce: &Debounce,
        task: Task,
    ) -> Result<Met, ServiceError> {
        let bounce = Command::Bounce(Box::new(Bounce {
            input: request.input.clone(),
            labels: request.labels.clone(),
            fingerprint: fingerprint(request),
            wait: debounce.wait,
            at_most: debounce.at_most,
            blob_ids: [self.new_blob_id(), self.new_blob_id()],
        }));
        let id = task.id.clone();
        let decision = self.drive_unpublished(&id, Known::Record(Box::new(task)), &bounce).await?;
        let Ok((task, Reply::Bounced { taken: true })) = decision.outcome else {
            self.publish(decision.effects).await;
            return Ok(Met::LetGo);
        };
        Ok(Met::Answer(Box::new(placed(request, task, true, decision.effects))))
    }

    /// The answer with the id's task, or a conflict if it is another request's.
    async fn repeated(&self, request: &ScheduleRequest, task: Task) -> Result<Placed, ServiceError> {
        let id = task.id.clone();
        let command = Command::Schedule(self.schedule_command(request, id.clone(), None));
        let decision = self.drive_unpublished(&id, Known::Record(Box::new(task)), &command).await?;
        let (task, reply) = decision.outcome?;
        Ok(placed(request, task, reply == Reply::Scheduled { existed: true }, decision.effects))
    }

    /// The answer with another request's task.
    async fn existing(&self, task: Task) -> Result<Placed, ServiceError> {
        let input = self.payload(task.input.as_ref()).await?;
        let labels = self.payload(task.labels.as_ref()).await?;
        Ok((Scheduled { task, input, labels, existed: true }, vec![]))
    }
}

fn placed(request: &ScheduleRequest, task: Task, existed: bool, effects: Vec<Effect>) -> Placed {
    let (input, labels) = (request.input.clone(), request.labels.clone());
    (Scheduled { task, input, labels, existed }, effects)
}

#[cfg(test)]
mod tests;
