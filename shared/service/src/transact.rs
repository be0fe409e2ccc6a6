//! Work that begins with the caller's own writes: both are committed in one transaction, or neither is.
//!
//! The caller asks for the writes, commits them together with their own, and announces the work then. Without that
//! announcement nothing is lost: the record has its place in the due index like any other, and the tick finds it.

use tickover_core::decision::{Decision, Effect, Write};
use tickover_core::error::Reject;
use tickover_core::execution;
use tickover_core::id::{ExecutionId, TaskId};
use tickover_core::task;
use tickover_core::task::command::Key;
use tickover_core::time::Timestamp;

use crate::error::ServiceError;
use crate::executions::StartRequest;
use crate::service::Service;
use crate::tasks::schedule::{ScheduleRequest, digest, with_replaced};

/// Work that is there as soon as its writes are committed. Its payloads are written already where they have items of
/// their own; until the commit nothing points to them, and if there is none, they are deleted in time.
#[must_use = "the work begins only with the commit of its writes"]
#[derive(Clone, Debug)]
pub struct Prepared<Id> {
    pub id: Id,
    /// Whether it had been there before: then there is nothing to write, and announcing it is all that is left.
    pub existed: bool,
    /// To be committed together with the caller's own, unchanged and soon. Each has its condition: if the id, or the
    /// idempotency key, is taken in the meantime, the whole transaction is refused, and is to be prepared again.
    pub writes: Vec<Write>,
    decided_at: Timestamp,
    effects: Vec<Effect>,
}

impl Service {
    /// What starting an execution comes to, not yet committed. The id is looked for first: one that is taken is
    /// answered by the request's policy, as a start is.
    pub async fn prepare_start(&self, request: StartRequest) -> Result<Prepared<ExecutionId>, ServiceError> {
        self.check_start(&request)?;
        let queue = self.queue_for(&request).await?;
        let (id, record) = match &request.id {
            Some(id) => (id.clone(), self.load_execution(id).await?),
            None => (self.new_execution_id(), None),
        };
        let command = self.start_command(request, queue, id.clone());
        let decided_at = self.now();
        let Decision { parts, writes, effects, outcome } = self.decide(record.as_ref(), &command, decided_at);
        let existed = outcome?.1 == execution::Reply::Started { existed: true };
        self.put_parts(&parts).await?;
        Ok(Prepared { id, existed, writes, decided_at, effects })
    }

    /// What scheduling a task comes to, not yet committed. Its id and its idempotency key are looked for first: a
    /// request that has been carried out before is answered with what it made.
    pub async fn prepare_schedule(&self, request: ScheduleRequest) -> Result<Prepared<TaskId>, ServiceError> {
        self.check_schedule(&request)?;
        self.open_queue(&request.queue).await?;
        let own_id = request.id.clone().unwrap_or_else(|| self.new_task_id());
        let key = request.idempotency_key.as_ref().map(|key| digest(&["key", key]));
        let stored = match &key {
            Some(key) => self.with_retries(|| self.ports.store.key(key)).await?,
            None => None,
        };
        let keyed = match &stored {
            Some(stored) => self.keyed_task(stored).await?,
            None => None,
        };
        if keyed.as_ref().is_some_and(|task| request.id.as_ref().is_some_and(|id| *id != task.id)) {
            return Err(Reject::IdConflict.into());
        }
        let record = match (keyed, &request.id) {
            (Some(task), _) => Some(task),
            (None, Some(id)) => self.load(id).await?,
            (None, None) => None,
        };
        let key = key.map(|digest| Key { digest, replaces: None });
        let schedule = with_replaced(self.schedule_command(&request, own_id, key), stored);
        let command = task::Command::Schedule(schedule);
        let decided_at = self.now();
        let Decision { parts, writes, effects, outcome } = self.decide(record.as_ref(), &command, decided_at);
        let (task, reply) = outcome?;
        let existed = reply == task::Reply::Scheduled { existed: true };
        self.put_parts(&parts).await?;
        Ok(Prepared { id: task.id, existed, writes, decided_at, effects })
    }

    /// Sends the hints and timers of work whose writes are committed. Only after the commit: workers would find
    /// nothing before it, and throw the hint away.
    pub async fn announce<Id>(&self, prepared: Prepared<Id>) {
        self.notify(&prepared.writes, prepared.decided_at);
        self.publish(prepared.effects).await;
    }
}
