//! Work that starts with the caller's own writes: one transaction commits both, or neither.
//!
//! The caller gets the writes, commits them together with its own, and then announces the work. If it doesn't announce
//! it, no work is lost: the record is in the due index like any other, and the tick finds it.

use tickover_core::decision::{Decision, Effect, Write};
use tickover_core::error::{Reject, TakenBy};
use tickover_core::execution;
use tickover_core::flow::FlowRequest;
use tickover_core::id::{ExecutionId, TaskId};
use tickover_core::task;
use tickover_core::task::command::Key;
use tickover_core::time::Timestamp;

use crate::error::ServiceError;
use crate::executions::StartRequest;
use crate::service::Service;
use crate::tasks::schedule::{ScheduleRequest, digest, with_replaced};

/// Work that exists as soon as its writes are committed. Payloads that have items of their own are already written.
/// Until the commit nothing points to them; if there is no commit, they are deleted in time.
#[must_use = "the work starts only with the commit of its writes"]
#[derive(Clone, Debug)]
pub struct Prepared<Id> {
    pub id: Id,
    /// Whether it existed before. Then there are no writes, and the caller only has to announce it.
    pub existed: bool,
    /// The caller commits these together with its own, unchanged and soon. Each has its condition: if the id or the
    /// idempotency key is taken in the meantime, the whole transaction is refused and must be prepared again.
    pub writes: Vec<Write>,
    decided_at: Timestamp,
    effects: Vec<Effect>,
}

impl Service {
    /// Prepares the start of an execution without committing it. Reads the id first: if it is taken, the request's
    /// policy decides, as for a start.
    pub async fn prepare_start(&self, request: StartRequest) -> Result<Prepared<ExecutionId>, ServiceError> {
        self.check_start(&request)?;
        refuse_single(&request.flow)?;
        if request.event.is_some() {
            let problem =
                "not allowed in a transaction of your own: there it would only be sent if it starts";
            return Err(Reject::field("event", problem).into());
        }
        let queue = self.queue_for(&request).await?;
        let (id, record) = match &request.id {
            Some(id) => (id.clone(), self.load_execution(id).await?),
            None => (self.new_execution_id(), None),
        };
        let command = execution::Command::Start(self.start_of(request, queue, id.clone(), None));
        let decided_at = self.now();
        let Decision { new_items, writes, effects, outcome } =
            self.decide(record.as_ref(), &command, decided_at);
        let existed = outcome?.1 == execution::Reply::Started { existed: true };
        self.put_items(&new_items).await?;
        Ok(Prepared { id, existed, writes, decided_at, effects })
    }

    /// Prepares the scheduling of a task without committing it. Reads its id and its idempotency key first: a repeated
    /// request is answered with the task that it created before.
    pub async fn prepare_schedule(&self, request: ScheduleRequest) -> Result<Prepared<TaskId>, ServiceError> {
        self.check_schedule(&request)?;
        refuse_single(&request.flow)?;
        let request = self.with_queue_and_defaults(request).await?;
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
        let other = keyed.as_ref().filter(|task| request.id.as_ref().is_some_and(|id| *id != task.id));
        if let Some(task) = other {
            let by = TakenBy::Key(task.id.clone());
            return Err(Reject::IdConflict { by, since: task.created_at }.into());
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
        let Decision { new_items, writes, effects, outcome } =
            self.decide(record.as_ref(), &command, decided_at);
        let (task, reply) = outcome?;
        let existed = reply == task::Reply::Scheduled { existed: true };
        self.put_items(&new_items).await?;
        Ok(Prepared { id: task.id, existed, writes, decided_at, effects })
    }

    /// Sends the hints and timers of work whose writes are committed. Call this only after the commit: before it,
    /// workers would find no record and delete the hint.
    pub async fn announce<Id>(&self, prepared: Prepared<Id>) {
        self.notify(&prepared.writes, prepared.decided_at);
        self.publish(prepared.effects).await;
    }
}

/// A key of which there is one at a time is taken by a write of its own, before the work.
fn refuse_single(flow: &FlowRequest) -> Result<(), Reject> {
    let field = match (&flow.unique, &flow.debounce) {
        (Some(_), _) => "unique",
        (None, Some(_)) => "debounce",
        (None, None) => return Ok(()),
    };
    Err(Reject::field(field, "not allowed in a transaction of your own"))
}
