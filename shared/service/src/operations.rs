//! Operations on many tasks or executions at once: recorded, carried out page by page, watched and stopped.
//!
//! A message starts one, and continues it when the time of its process is up. If that message or the process is lost,
//! the tick finds the operation by its due slot.

mod act;
mod find;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use tickover_core::decision::{Condition, DueReply, Write};
use tickover_core::duration::Millis;
use tickover_core::error::{Reject, TakenBy};
use tickover_core::id::{EventName, ExecutionId, Fingerprint, OperationId, QueueName, TaskId};
use tickover_core::limits::{self, ERROR_BYTES};
use tickover_core::operation::{Action, Counts, HowEnded, NewOperation, Operation, Target};
use tickover_core::payload::{Json, cut_to_fit};
use tickover_core::task::Status;
use tickover_core::time::Timestamp;
use tickover_core::timer::{Timer, Wake};

use crate::canonical::canonical;
use crate::contention::Tries;
use crate::error::ServiceError;
use crate::executions::ONE_WORKFLOW;
use crate::ports::{ExecutionFilter, Page, StoreError, TaskFilter};
use crate::service::Service;
use crate::tasks::schedule::digest;
use crate::tick::outgoing;
use crate::warn_unless_logged;

/// Most ids that an operation can list.
pub const IDS_MAX: usize = 1_000;
/// The shortest bound of the wait before the write of a record is tried again because another process wrote it meanwhile.
const WAIT: Millis = Millis::new(10);
/// How long the call that starts an operation carries it out itself, where there is no timers queue.
const OWN_TIME: Millis = Millis::from_secs(20);

/// On which records an operation works.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// Executions that fit a filter; if ids are listed, only these.
    Executions { filter: ExecutionFilter, ids: Vec<ExecutionId> },
    /// Tasks, likewise.
    Tasks { filter: TaskFilter, ids: Vec<TaskId> },
}

impl Selection {
    /// The path of a field of it in requests; of the selection itself if the field is empty.
    fn field(&self, field: &str) -> String {
        let of = match self {
            Self::Executions { .. } => "executions",
            Self::Tasks { .. } => "tasks",
        };
        if field.is_empty() { of.to_owned() } else { format!("{of}.{field}") }
    }

    /// Whether it says which statuses its records have.
    fn names_statuses(&self) -> bool {
        match self {
            Self::Executions { filter, .. } => !filter.statuses.is_empty(),
            Self::Tasks { filter, .. } => !filter.statuses.is_empty(),
        }
    }

    /// The kind of its records.
    pub const fn target(&self) -> Target {
        match self {
            Self::Executions { .. } => Target::Executions,
            Self::Tasks { .. } => Target::Tasks,
        }
    }
}

/// The event that an operation sends. Its id is that of the operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventToSend {
    pub name: EventName,
    pub payload: Option<Json>,
}

/// What the record of an operation points to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Details {
    pub selection: Selection,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventToSend>,
}

/// A request for an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationRequest {
    /// A random one if absent.
    pub id: Option<OperationId>,
    pub action: Action,
    /// Whether it only counts.
    pub dry_run: bool,
    /// How many records the caller has counted; for its progress only.
    pub total: Option<u64>,
    pub details: Details,
}

/// An operation with what its record points to.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedOperation {
    pub operation: Operation,
    pub details: Details,
    /// Whether it had been started before, by a call with the same id and request.
    pub existing: bool,
}

/// What was done of a page.
enum Done {
    /// All of it.
    Whole { counts: Counts, next: Option<String> },
    /// The operation is stopped: this is what a process had changed that was lost within the page.
    Cut { changed: u64 },
}

/// A digest of a request. The same payload in another text makes no difference.
fn fingerprint(request: &OperationRequest) -> Fingerprint {
    let mut details = request.details.clone();
    if let Some(event) = &mut details.event {
        event.payload = event.payload.as_ref().and_then(|json| Json::parse(canonical(json.as_str())));
    }
    let how = format!("{:?} {}", request.action, request.dry_run);
    // Details always serialise; if some didn't, they would only equal others that don't.
    digest(&[&how, &serde_json::to_string(&details).unwrap_or_default()])
}

impl Service {
    /// Records an operation, and begins to carry it out.
    ///
    /// The same id with the same request returns the operation that was started before.
    pub async fn start_operation(
        &self,
        mut request: OperationRequest,
    ) -> Result<DescribedOperation, ServiceError> {
        self.check_operation(&request)?;
        request.details.selection.set_statuses(request.action);
        request.details.selection.list_once();
        self.check_lists(&request.details.selection)?;
        let unserialisable = || ServiceError::Corrupt { reason: "a request can't be serialised".to_owned() };
        let text = serde_json::to_string(&request.details).map_err(|_| unserialisable())?;
        let fingerprint = fingerprint(&request);
        let id = request.id.unwrap_or_else(|| self.new_operation_id());
        let (mut payload, mut tries) = (None, Tries::default());
        loop {
            let stored = self.with_retries(|| self.ports.store.operation(&id)).await?;
            if let Some(operation) = stored.as_ref().filter(|stored| !stored.is_gone(self.now())) {
                if operation.fingerprint != fingerprint {
                    let since = operation.created_at;
                    return Err(Reject::IdConflict { by: TakenBy::Operation, since }.into());
                }
                let (operation, details) = (operation.clone(), request.details);
                return Ok(DescribedOperation { operation, details, existing: true });
            }
            if payload.is_none() {
                payload =
                    Some(self.store_payload(Json::parse(text.clone()).ok_or_else(unserialisable)?).await?);
            }
            let Some(details) = payload.clone() else { continue };
            let (action, dry_run, target) =
                (request.action, request.dry_run, request.details.selection.target());
            let by = self.caller();
            let new = NewOperation { id: id.clone(), fingerprint, action, target, dry_run, details, by };
            let (nonce, now, shards) = (self.new_nonce(), self.now(), self.limits.due_shards);
            let operation = Operation::new(new, stored.as_ref(), nonce, now, shards);
            let operation = Operation { total: request.total, reason: self.reason(), ..operation };
            let writes = [Write::put(operation.clone(), Condition::Follows)];
            match self.with_retries(|| self.ports.store.commit(&writes)).await {
                Ok(()) => {
                    tracing::info!(operation = %id, ?action, ?target, dry_run, "operation recorded");
                    self.begin(&operation).await;
                    return Ok(DescribedOperation { operation, details: request.details, existing: false });
                }
                Err(StoreError::Conflict { .. }) => self.once_more(&mut tries, WAIT).await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// An operation with its counts so far.
    pub async fn operation(&self, id: &OperationId) -> Result<DescribedOperation, ServiceError> {
        let operation = self.load_operation(id).await?.ok_or(Reject::NoOperation)?;
        let details = self.details_of(&operation).await?;
        Ok(DescribedOperation { operation, details, existing: true })
    }

    /// Operations, latest first, a page at a time.
    pub async fn operations(
        &self,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Operation>, ServiceError> {
        let mut page = self.with_retries(|| self.ports.store.operations(limit, cursor)).await?;
        page.items.retain(|operation| !operation.is_gone(self.now()));
        Ok(page)
    }

    /// Stops an operation: the page that is under way is its last one. It is over once that page is counted, by the process
    /// that has it, or, if that is lost, by the next one. Returns whether that changed anything.
    pub async fn stop_operation(&self, id: &OperationId) -> Result<(DescribedOperation, bool), ServiceError> {
        let now = self.now();
        let stopped = self.write_operation(id, |operation| operation.stopped(self.caller(), now)).await?;
        let (operation, changed) = stopped.ok_or(Reject::NoOperation)?;
        let details = self.details_of(&operation).await?;
        Ok((DescribedOperation { operation, details, existing: true }, changed))
    }

    /// Lets an operation that was stopped, or that failed, go on with its next page. Returns whether that changed anything:
    /// not if it isn't over, or has completed.
    pub async fn resume_operation(
        &self,
        id: &OperationId,
    ) -> Result<(DescribedOperation, bool), ServiceError> {
        let (now, shards) = (self.now(), self.limits.due_shards);
        let resumed = self.write_operation(id, |operation| operation.resumed(now, shards)).await?;
        let (operation, changed) = resumed.ok_or(Reject::NoOperation)?;
        let details = self.details_of(&operation).await?;
        if changed {
            tracing::info!(operation = %id, "operation resumed");
            self.begin(&operation).await;
        }
        Ok((DescribedOperation { operation, details, existing: true }, changed))
    }

    /// The tick found an operation whose process may be lost: continues it.
    pub(crate) async fn take_over_operation(
        &self,
        id: &OperationId,
        stop_at: Timestamp,
    ) -> Result<DueReply, ServiceError> {
        let now = self.now();
        match self.write_operation(id, |operation| operation.take_over(now)).await? {
            Some((operation, true)) if self.has_timers() => {
                self.send_on(&operation).await;
                Ok(DueReply::Dispatched)
            }
            Some((_, true)) => self.carry_out_operation(id, stop_at).await,
            Some((_, false)) | None => Ok(DueReply::Nothing),
        }
    }

    /// Begins an operation that is recorded. If that fails, the tick begins it.
    async fn begin(&self, operation: &Operation) {
        if self.has_timers() {
            return self.send_on(operation).await;
        }
        let stop_at = self.now().plus(OWN_TIME);
        if let Err(error) = Box::pin(self.carry_out_operation(&operation.id, stop_at)).await {
            warn_unless_logged!(error; operation = %operation.id, %error, "not carried out yet; the tick does it");
        }
    }

    /// Sends the message with which an operation is continued. If it is lost, the tick continues it.
    async fn send_on(&self, operation: &Operation) {
        let Some(due) = operation.due else { return };
        let record = tickover_core::id::RecordId::Operation(operation.id.clone());
        let timer = Timer { record, at: self.now(), due_at: due.at };
        let messages: Vec<_> = outgoing(&Wake::Timer(timer), Millis::ZERO).into_iter().collect();
        self.send(&QueueName::timers(), &messages).await;
    }

    /// Carries out an operation page by page until its end, or until time is up: then another message continues it.
    pub(crate) async fn carry_out_operation(
        &self,
        id: &OperationId,
        stop_at: Timestamp,
    ) -> Result<DueReply, ServiceError> {
        let Some(mut operation) = self.load_operation(id).await? else { return Ok(DueReply::Nothing) };
        let details = match self.details_of(&operation).await {
            Ok(details) => details,
            Err(error) => return self.give_up(&operation, error).await,
        };
        while !operation.is_over() {
            if self.now() >= stop_at {
                if self.has_timers() {
                    self.send_on(&operation).await;
                }
                return Ok(DueReply::Waiting);
            }
            let done = match self.carry_out_operation_page(&operation, &details).await {
                Ok(done) => done,
                Err(error) => return self.give_up(&operation, error).await,
            };
            let (pages, now) = (operation.pages, self.now());
            let note = |stored: &Operation| match &done {
                Done::Whole { counts, next } => stored.note_page(pages, counts.clone(), next.clone(), now),
                Done::Cut { changed } => stored.note_cut_page(pages, *changed, now),
            };
            match self.write_operation(id, note).await? {
                Some((noted, true)) => operation = noted,
                // Another process carries it out.
                Some((_, false)) | None => return Ok(DueReply::Nothing),
            }
        }
        tracing::info!(operation = %id, changed = operation.counts.changed, "operation ended");
        Ok(DueReply::Dispatched)
    }

    async fn carry_out_operation_page(
        &self,
        operation: &Operation,
        details: &Details,
    ) -> Result<Done, ServiceError> {
        let found = self.find_page(operation, &details.selection).await?;
        if operation.stop.is_some() {
            return Ok(Done::Cut { changed: found.records.changed_by(operation) });
        }
        let mut counts = found.counts();
        if !operation.dry_run {
            self.act_on(found.records, operation, details, &mut counts).await?;
        }
        Ok(Done::Whole { counts, next: found.next })
    }

    /// After an error: one that passes by itself is returned, so that the page is tried again; with any other, the
    /// operation ends.
    async fn give_up(&self, operation: &Operation, error: ServiceError) -> Result<DueReply, ServiceError> {
        if error.is_retryable() {
            return Err(error);
        }
        tracing::error!(operation = %operation.id, %error, "operation given up");
        let (how, now) =
            (HowEnded::Failed { message: cut_to_fit(error.to_string(), ERROR_BYTES) }, self.now());
        self.write_operation(&operation.id, |stored| stored.ended(how.clone(), now)).await?;
        Ok(DueReply::Dispatched)
    }

    async fn load_operation(&self, id: &OperationId) -> Result<Option<Operation>, ServiceError> {
        let operation = self.with_retries(|| self.ports.store.operation(id)).await?;
        Ok(operation.filter(|operation| !operation.is_gone(self.now())))
    }

    async fn details_of(&self, operation: &Operation) -> Result<Details, ServiceError> {
        let json = self.open(&operation.details).await?;
        serde_json::from_str(json.as_str()).map_err(|_| ServiceError::Corrupt {
            reason: format!("what operation {} is about can't be read", operation.id),
        })
    }

    /// Changes an operation's record. Returns the record and whether it was changed; `None` if there is none.
    async fn write_operation(
        &self,
        id: &OperationId,
        change: impl Fn(&Operation) -> Option<Operation>,
    ) -> Result<Option<(Operation, bool)>, ServiceError> {
        let mut tries = Tries::default();
        loop {
            let Some(current) = self.load_operation(id).await? else { return Ok(None) };
            let Some(changed) = change(&current) else { return Ok(Some((current, false))) };
            let record = Operation { version: current.version + 1, nonce: self.new_nonce(), ..changed };
            let writes = [Write::put(record.clone(), Condition::Follows)];
            match self.with_retries(|| self.ports.store.commit(&writes)).await {
                Ok(()) => return Ok(Some((record, true))),
                Err(StoreError::Conflict { .. }) => self.once_more(&mut tries, WAIT).await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Refuses what can't be carried out.
    fn check_operation(&self, request: &OperationRequest) -> Result<(), ServiceError> {
        let OperationRequest { action, details: Details { selection, event }, .. } = request;
        match (selection.target(), action) {
            (Target::Executions, _) | (Target::Tasks, Action::Retry | Action::Cancel | Action::Terminate) => {
            }
            (Target::Tasks, Action::RetryStep | Action::Restart | Action::SendEvent) => {
                return Err(Reject::field(
                    "action",
                    "expected \"retry\", \"cancel\" or \"terminate\" for tasks",
                )
                .into());
            }
        }
        match (action, event) {
            (Action::SendEvent, Some(event)) => {
                let payload = event.payload.as_ref();
                limits::check("payload_bytes", payload.map_or(0, Json::len), self.limits.payload_bytes)?;
                limits::check("json_depth", payload.map_or(0, Json::depth), limits::JSON_DEPTH_MAX)?;
            }
            (Action::SendEvent, None) => return Err(Reject::field("event", "is needed to send one").into()),
            (_, Some(_)) => {
                return Err(Reject::field("event", "is only for the action \"send_event\"").into());
            }
            (_, None) => {}
        }
        let (ids, is_all) = match selection {
            Selection::Executions { filter, ids } => (ids.len(), *filter == ExecutionFilter::default()),
            Selection::Tasks { filter, ids } => (ids.len(), *filter == TaskFilter::default()),
        };
        limits::check("ids", ids, IDS_MAX)?;
        if ids == 0 && is_all {
            return Err(Reject::field(selection.field(""), "expected ids, or at least one condition").into());
        }
        selection.check_statuses(*action)
    }

    /// Refuses what this store has no list of.
    fn check_lists(&self, selection: &Selection) -> Result<(), ServiceError> {
        let store = &self.ports.store;
        match selection {
            Selection::Executions { filter, ids } => {
                let has_list = store.traits().executions.is_some() || self.execution_lists(filter).is_some();
                if ids.is_empty() && filter.workflow.is_none() && !has_list {
                    return Err(Reject::field(selection.field("workflow"), ONE_WORKFLOW).into());
                }
            }
            Selection::Tasks { filter, ids } => {
                let has_list =
                    store.traits().tasks.is_some() || !filter.statuses.contains(&Status::Cancelled);
                if ids.is_empty() && !has_list {
                    let expected = "expected ids for cancelled tasks: this store has no list of them";
                    return Err(Reject::field(selection.field("status"), expected).into());
                }
            }
        }
        Ok(())
    }
}
