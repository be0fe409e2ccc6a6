//! Keys of which only one task is scheduled at a time: unique keys, and bursts of which only the last request runs.
//!
//! A record of the key names its task. It is written before the task, by a write of its own: a transaction would cost
//! twice as much. Whoever finds it reads the task, so nothing has to be freed when the task ends. A process that needs
//! long between the two writes checks that the key is still its own before anybody gets a hint of its task.

use tickover_core::command::Context;
use tickover_core::decision::{Effect, Write};
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::flow::{Debounce, OnConflict, Unique, UniqueWindow};
use tickover_core::id::{Fingerprint, Incarnation, TaskId};
use tickover_core::limits::SPAN_MAX;
use tickover_core::queue::KeyRecord;
use tickover_core::task::command::{Bounce, Schedule, Start};
use tickover_core::task::{Command, Reply, State, Task};

use super::schedule::{ScheduleRequest, Scheduled, digest, fingerprint, is_new};
use crate::drive::Known;
use crate::error::ServiceError;
use crate::ports::StoreError;
use crate::service::Service;

/// How often a request is tried again because another request with its key was faster.
const TRIES: u32 = 12;
const WAIT: Millis = Millis::new(10);
/// How long a key is left to a process that hasn't written its task yet.
const GRACE: Millis = Millis::from_secs(10);
/// A process that took longer than this between the two writes checks that the key is still its own.
const SLOW: Millis = Millis::from_secs(3);

/// A key that may be taken.
enum Taken {
    /// No record has it.
    New,
    /// Its task lets it go.
    From(KeyRecord),
    /// Its task was never written, as far as is known.
    Abandoned(KeyRecord),
}

impl Taken {
    fn replaces(&self) -> Option<KeyRecord> {
        match self {
            Self::New => None,
            Self::From(record) | Self::Abandoned(record) => Some(record.clone()),
        }
    }
}

/// What the record of a key leads to.
enum Holder {
    /// Nothing holds it.
    Nobody,
    /// Another process is between its two writes.
    Coming,
    Task(Box<Task>),
}

type Placed = (Scheduled, Vec<Effect>);

impl Service {
    /// Schedules a task unless another one has its unique key.
    pub(super) async fn schedule_unique(
        &self,
        request: &ScheduleRequest,
        unique: &Unique,
    ) -> Result<Placed, ServiceError> {
        if let Some(id) = &request.id
            && let Some(task) = self.load(id).await?
        {
            // Perhaps the same request, repeated after the key went on to another task.
            return self.repeated(request, task).await;
        }
        let key = digest(&["unique", unique.key.as_str()]);
        let schedule = self.single_command(request);
        for tries in 0..TRIES {
            let stored = self.with_retries(|| self.ports.store.key(&key)).await?;
            let let_go = stored.clone().map_or(Taken::New, Taken::From);
            let mut free = None;
            match self.holder(stored.as_ref()).await? {
                Holder::Nobody => free = Some(stored.map_or(Taken::New, Taken::Abandoned)),
                Holder::Coming => {}
                Holder::Task(task) if task.incarnation == schedule.incarnation => {
                    return Ok(placed(request, *task, false, vec![]));
                }
                Holder::Task(task) if !self.keeps(&task, unique.window) => free = Some(let_go),
                Holder::Task(task) => match unique.on_conflict {
                    OnConflict::Existing => return self.existing(*task).await,
                    OnConflict::Refuse => return Err(Reject::NotUnique { task: task.id.clone() }.into()),
                    OnConflict::Replace => {
                        self.end_replaced(&task.id).await?;
                        free = Some(let_go);
                    }
                },
            }
            if let Some(taken) = free
                && let Some(placed) = self.place(request, &schedule, key, taken).await?
            {
                return Ok(placed);
            }
            self.back_off(tries, WAIT).await;
        }
        Err(ServiceError::Contended)
    }

    /// Schedules the first task of a burst, or puts the request in the place of the one that waits.
    pub(super) async fn schedule_debounced(
        &self,
        request: &ScheduleRequest,
        debounce: &Debounce,
    ) -> Result<Placed, ServiceError> {
        let key = digest(&["debounce", debounce.key.as_str()]);
        let mut schedule = self.single_command(request);
        schedule.start = Start::After(debounce.wait);
        let bounce = Command::Bounce(Box::new(Bounce {
            input: request.input.clone(),
            labels: request.labels.clone(),
            fingerprint: fingerprint(request),
            wait: debounce.wait,
            at_most: debounce.at_most,
            blob_ids: [self.new_blob_id(), self.new_blob_id()],
        }));
        for tries in 0..TRIES {
            let stored = self.with_retries(|| self.ports.store.key(&key)).await?;
            let let_go = stored.clone().map_or(Taken::New, Taken::From);
            let mut free = None;
            match self.holder(stored.as_ref()).await? {
                Holder::Nobody => free = Some(stored.map_or(Taken::New, Taken::Abandoned)),
                Holder::Coming => {}
                Holder::Task(task) if task.incarnation == schedule.incarnation => {
                    return Ok(placed(request, *task, false, vec![]));
                }
                Holder::Task(task) => {
                    let id = task.id.clone();
                    let decision = self.drive_unpublished(&id, Known::Record(task), &bounce).await?;
                    match decision.outcome {
                        Ok((task, Reply::Bounced { taken: true })) => {
                            return Ok(placed(request, task, true, decision.effects));
                        }
                        // A worker has it: a new burst begins.
                        Ok(_) | Err(_) => free = Some(let_go),
                    }
                    self.publish(decision.effects).await;
                }
            }
            if let Some(taken) = free
                && let Some(placed) = self.place(request, &schedule, key, taken).await?
            {
                return Ok(placed);
            }
            self.back_off(tries, WAIT).await;
        }
        Err(ServiceError::Contended)
    }

    /// One command for all tries: if the answer to a creation is lost, its incarnation identifies it.
    fn single_command(&self, request: &ScheduleRequest) -> Box<Schedule> {
        let id = request.id.clone().unwrap_or_else(|| self.new_task_id());
        self.schedule_command(request, id, None)
    }

    async fn holder(&self, stored: Option<&KeyRecord>) -> Result<Holder, ServiceError> {
        let Some(key) = stored else { return Ok(Holder::Nobody) };
        let task = self.load(&key.task).await?.filter(|task| task.incarnation == key.incarnation);
        Ok(match task {
            Some(task) => Holder::Task(Box::new(task)),
            None if self.now() < key.created_at.plus(GRACE) => Holder::Coming,
            None => Holder::Nobody,
        })
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

    /// Takes the key, and then schedules the task. `None` if another request was faster.
    async fn place(
        &self,
        request: &ScheduleRequest,
        schedule: &Schedule,
        key: Fingerprint,
        taken: Taken,
    ) -> Result<Option<Placed>, ServiceError> {
        let began_at = self.now();
        let context = Context { now: began_at, nonce: self.new_nonce(), limits: &self.limits };
        let record = record_of(key, schedule, &context);
        if !self.put_key(&record, taken.replaces()).await? || self.gave_back(&record, taken).await? {
            return Ok(None);
        }
        let schedule = Box::new(Box::pin(self.with_start(request, schedule)).await);
        let (id, incarnation) = (schedule.id.clone(), schedule.incarnation);
        let start = schedule.flow.paced.as_ref().and_then(|paced| paced.start);
        let decision = self.drive_unpublished(&id, Known::Absent, &Command::Schedule(schedule)).await?;
        if !is_new(&decision) {
            Box::pin(self.give_unused_back(request.flow.rate.as_ref(), start)).await;
        }
        let (task, reply) = decision.outcome?;
        if self.now().since(began_at) > SLOW && !self.is_still_of(key, incarnation).await? {
            self.end_replaced(&task.id).await?;
            return Ok(None);
        }
        let existed = reply == Reply::Scheduled { existed: true };
        Ok(Some(placed(request, task, existed, decision.effects)))
    }

    /// Writes the record of a key; `false` if another process was faster.
    async fn put_key(&self, record: &KeyRecord, replaces: Option<KeyRecord>) -> Result<bool, ServiceError> {
        let write = [Write::PutKey { record: record.clone(), replaces }];
        match self.with_retries(|| self.ports.store.commit(&write)).await {
            Ok(()) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a key back that was thought to be abandoned, if its task was written just before the key was taken. If it
    /// is written after that, its process finds that the key isn't its own any more.
    async fn gave_back(&self, own: &KeyRecord, taken: Taken) -> Result<bool, ServiceError> {
        let Taken::Abandoned(before) = taken else { return Ok(false) };
        match self.holder(Some(&before)).await? {
            Holder::Task(task) if task.status().is_live() => {}
            Holder::Task(_) | Holder::Coming | Holder::Nobody => return Ok(false),
        }
        let again = KeyRecord { nonce: self.new_nonce(), ..before };
        self.put_key(&again, Some(own.clone())).await?;
        Ok(true)
    }

    async fn is_still_of(&self, key: Fingerprint, incarnation: Incarnation) -> Result<bool, ServiceError> {
        let stored = self.with_retries(|| self.ports.store.key(&key)).await?;
        Ok(stored.is_some_and(|stored| stored.incarnation == incarnation))
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

/// The record of a key, which may be deleted a year after its task could have started.
fn record_of(key: Fingerprint, schedule: &Schedule, context: &Context<'_>) -> KeyRecord {
    let starts_at = match schedule.start {
        Start::After(delay) => context.now.plus(delay),
        Start::At(instant) => instant.max(context.now),
    };
    KeyRecord {
        key,
        task: schedule.id.clone(),
        incarnation: schedule.incarnation,
        created_at: context.now,
        nonce: context.nonce,
        expires_at: starts_at.plus(SPAN_MAX),
    }
}

fn placed(request: &ScheduleRequest, task: Task, existed: bool, effects: Vec<Effect>) -> Placed {
    let (input, labels) = (request.input.clone(), request.labels.clone());
    (Scheduled { task, input, labels, existed }, effects)
}

#[cfg(test)]
mod tests;
