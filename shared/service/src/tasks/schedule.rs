//! Schedules tasks: one or many, with an id, an idempotency key or neither.

use futures::stream::{self, StreamExt as _};
use sha2::{Digest as _, Sha256};
use tickover_core::decision::Effect;
use tickover_core::duration::Millis;
use tickover_core::error::{Reject, TakenBy};
use tickover_core::flow::{FlowRequest, Paced};
use tickover_core::id::{Fingerprint, QueueName, TaskId, TaskKind};
use tickover_core::kind::{Policies, Policy};
use tickover_core::limits::{self, IDEMPOTENCY_KEY_MAX};
use tickover_core::payload::Json;
use tickover_core::queue::KeyRecord;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::{Key, Schedule, Start};
use tickover_core::task::{Command, Decision, Reply, Task};
use tickover_core::timeout::Timeouts;
use tickover_core::trace::TraceContext;

use super::single::{Single, WAIT};
use crate::canonical::canonical;
use crate::contention::Tries;
use crate::drive::{Known, Try};
use crate::error::{ServiceError, unknown_queue};
use crate::flow::recorded;
use crate::service::Service;

/// How many tasks of a batch are written at the same time.
const AT_ONCE: usize = 16;
/// From this size of the input on, a read is worth its price: it finds out whether the task exists already.
const LARGE_BYTES: usize = 1024;

/// A parsed request for a task.
#[derive(Clone, Debug)]
pub struct ScheduleRequest {
    /// Its id; random when absent.
    pub id: Option<TaskId>,
    /// Makes the request repeatable without an id.
    pub idempotency_key: Option<String>,
    pub queue: QueueName,
    pub kind: TaskKind,
    pub input: Option<Json>,
    /// Labels, a JSON object of strings.
    pub labels: Option<Json>,
    pub retry: RetryPolicy,
    pub timeouts: Timeouts,
    /// What its starts are limited or ordered by.
    pub flow: FlowRequest,
    pub start: Start,
    /// The trace that it belongs to; ignored where traces aren't carried.
    pub trace: Option<TraceContext>,
    /// What was given and what was left open.
    pub asked: Asked,
}

/// What of a request was given and what was left open. By default a policy is open if it is equal to its absence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Whether the caller named no queue. Then it is the queue whose workers provide what the task requires; if there is
    /// none, the one in the request.
    pub any_queue: bool,
    /// Policies that were given although they are equal to their absence: the defaults of the kind don't replace them.
    pub given: Vec<Policy>,
    /// The digest of the request as it was given, from when defaults were filled in; callers leave it out.
    pub fingerprint: Option<Fingerprint>,
    /// The start that was reserved by the request's rate; callers leave it out.
    pub start: Option<Paced>,
    /// Whether its task begins in the line of a limit; callers leave it out.
    pub in_line: bool,
}

/// A task that exists now, new or found.
#[derive(Clone, Debug)]
pub struct Scheduled {
    pub task: Task,
    /// Its input as given, also if the task existed before.
    pub input: Option<Json>,
    /// Its labels as given.
    pub labels: Option<Json>,
    pub existed: bool,
}

impl Service {
    /// Schedules a task, or finds the task that the same request created before.
    pub async fn schedule(&self, request: ScheduleRequest) -> Result<Scheduled, ServiceError> {
        let mut ready = [self.ready(request).await];
        self.send_to_lines(&mut ready).await;
        self.add_starts(&mut ready).await;
        let [request] = ready;
        let (scheduled, effects) = self.schedule_unpublished(request?).await?;
        self.publish(effects).await;
        Ok(scheduled)
    }

    /// Schedules many tasks: one result each, in order. Their hints are sent together.
    pub async fn schedule_batch(
        &self,
        requests: Vec<ScheduleRequest>,
    ) -> Result<Vec<Result<Scheduled, ServiceError>>, ServiceError> {
        limits::check("batch", requests.len(), self.limits.batch)?;
        let mut ready: Vec<_> =
            stream::iter(requests).map(|request| self.ready(request)).buffered(AT_ONCE).collect().await;
        self.send_to_lines(&mut ready).await;
        self.add_starts(&mut ready).await;
        let results: Vec<_> = stream::iter(ready)
            .map(|request| async { self.schedule_unpublished(request?).await })
            .buffered(AT_ONCE)
            .collect()
            .await;
        let mut hints = Vec::new();
        let answers = results
            .into_iter()
            .map(|result| {
                result.map(|(scheduled, effects)| {
                    hints.extend(effects);
                    scheduled
                })
            })
            .collect();
        self.publish(hints).await;
        Ok(answers)
    }

    /// The request, checked and completed.
    async fn ready(&self, request: ScheduleRequest) -> Result<ScheduleRequest, ServiceError> {
        self.check_schedule(&request)?;
        self.with_queue_and_defaults(request).await
    }

    /// Schedules the task of a request that is complete.
    async fn schedule_unpublished(
        &self,
        request: ScheduleRequest,
    ) -> Result<(Scheduled, Vec<Effect>), ServiceError> {
        if let Some(single) = Single::of(&request.flow) {
            return Box::pin(self.schedule_single(&request, single)).await;
        }
        let decision = match &request.idempotency_key {
            Some(key) => self.schedule_keyed(&request, digest(&["key", key])).await?,
            None => self.schedule_by_id(&request).await?,
        };
        if !is_new(&decision) {
            Box::pin(self.give_unused_back(request.asked.start.as_ref())).await;
        }
        let (task, reply) = decision.outcome?;
        let existed = reply == Reply::Scheduled { existed: true };
        let ScheduleRequest { input, labels, .. } = request;
        Ok((Scheduled { task, input, labels, existed }, decision.effects))
    }

    /// The request with its queue, and with the defaults of its kind. The queue exists then. A repeated request is
    /// compared by what was given: new defaults and new workers make no difference.
    pub(crate) async fn with_queue_and_defaults(
        &self,
        request: ScheduleRequest,
    ) -> Result<ScheduleRequest, ServiceError> {
        let fingerprint = Some(fingerprint(&request));
        let mut request = request;
        if request.asked.any_queue
            && let Some(queue) = self.queue_providing(&request.flow.requires).await
        {
            request.queue = queue;
        }
        self.open_queue(&request.queue).await?;
        let own = Policies { retry: request.retry, timeouts: request.timeouts, flow: request.flow };
        let Policies { retry, timeouts, flow } =
            self.with_defaults(&request.queue, &request.kind, own, &request.asked.given).await?;
        let asked = Asked { fingerprint, ..request.asked };
        Ok(ScheduleRequest { retry, timeouts, flow, asked, ..request })
    }

    pub(crate) fn check_schedule(&self, request: &ScheduleRequest) -> Result<(), Reject> {
        let length = |json: &Option<Json>| json.as_ref().map_or(0, Json::len);
        limits::check("input_bytes", length(&request.input), self.limits.payload_bytes)?;
        limits::check("labels_bytes", length(&request.labels), self.limits.labels_bytes)?;
        let depth = request.input.as_ref().map_or(0, Json::depth);
        limits::check("json_depth", depth, limits::JSON_DEPTH_MAX)?;
        check_single(request)?;
        if let Some(key) = &request.idempotency_key {
            if key.is_empty() {
                return Err(Reject::field("idempotency_key", "must not be empty"));
            }
            limits::check("idempotency_key_bytes", key.len(), IDEMPOTENCY_KEY_MAX)?;
        }
        Ok(())
    }

    async fn schedule_by_id(&self, request: &ScheduleRequest) -> Result<Box<Decision>, ServiceError> {
        let large = request.input.as_ref().map_or(0, Json::len) >= LARGE_BYTES;
        let (id, known) = match &request.id {
            // Without a read, a repeated request would write its whole input again before the conflict shows that the
            // task exists.
            Some(id) if large => (id.clone(), Known::Unread),
            Some(id) => (id.clone(), Known::Absent),
            None => (self.new_task_id(), Known::Absent),
        };
        let schedule = self.schedule_command(request, id.clone(), None);
        self.drive_unpublished(&id, known, &Command::Schedule(schedule)).await
    }

    /// The record of the key names its task; both are written together.
    async fn schedule_keyed(
        &self,
        request: &ScheduleRequest,
        digest: Fingerprint,
    ) -> Result<Box<Decision>, ServiceError> {
        let own_id = request.id.clone().unwrap_or_else(|| self.new_task_id());
        // One command for all tries: if the answer to a creation is lost, its incarnation identifies it.
        let first = self.schedule_command(request, own_id.clone(), Some(Key { digest, replaces: None }));
        let (mut tries, _turn) = (Tries::default(), self.turns.take(format!("key {digest}")).await);
        loop {
            let stored = self.with_retries(|| self.ports.store.key(&digest)).await?;
            let known = match &stored {
                Some(key) => self.keyed_task(key).await?,
                None => None,
            };
            let (schedule, task) = match known {
                Some(task) => {
                    if request.id.as_ref().is_some_and(|id| *id != task.id) {
                        let by = TakenBy::Key(task.id.clone());
                        return Err(Reject::IdConflict { by, since: task.created_at }.into());
                    }
                    (first.clone(), Some(task))
                }
                None => (with_replaced(first.clone(), stored), None),
            };
            let command = Command::Schedule(schedule);
            match self.attempt(task.as_ref(), &command).await? {
                Try::Done(decision) => return Ok(decision),
                // The key is free, but the id isn't: an earlier task has that id, with or without another key.
                Try::Conflict(Some(current)) if current.id == own_id && !current.is_gone(self.now()) => {
                    if let Try::Done(decision) = self.attempt(Some(&*current), &command).await? {
                        return Ok(decision);
                    }
                }
                Try::Conflict(_) => {}
            }
            self.once_more(&mut tries, WAIT).await?;
        }
    }

    /// The task of a key, while the key is valid: for a day, and as long as the task is open.
    pub(crate) async fn keyed_task(&self, key: &KeyRecord) -> Result<Option<Task>, ServiceError> {
        let Some(id) = key.owner.task() else { return Ok(None) };
        let task = self.load(id).await?.filter(|task| task.incarnation == key.incarnation);
        let young = self.now() < key.created_at.plus(self.limits.idempotency);
        Ok(task.filter(|task| young || task.status().is_live()))
    }

    pub(crate) fn schedule_command(
        &self,
        request: &ScheduleRequest,
        id: TaskId,
        key: Option<Key>,
    ) -> Box<Schedule> {
        Box::new(Schedule {
            id,
            incarnation: self.new_incarnation(),
            queue: request.queue.clone(),
            kind: request.kind.clone(),
            input: request.input.clone(),
            labels: request.labels.clone(),
            retry: request.retry.clone(),
            timeouts: request.timeouts,
            flow: recorded(&request.flow, request.asked.start.clone()),
            start: request.start,
            in_line: request.asked.in_line,
            fingerprint: fingerprint(request),
            key,
            parent: None,
            trace: self.carried(request.trace),
            blob_ids: [self.new_blob_id(), self.new_blob_id()],
        })
    }

    /// Makes sure that the queue exists, before anything is written for it.
    pub async fn open_queue(&self, queue: &QueueName) -> Result<(), ServiceError> {
        let by_name = self.ports.queue.traits().finds_by_name;
        if self.ports.queue.knows(queue) && !by_name {
            return Ok(());
        }
        if !self.ports.queue.open(queue).await? {
            return Err(unknown_queue(queue));
        }
        // Its record lists a queue that is found by its name: no other place has a list of those.
        if by_name && self.has_record(queue).await? {
            return Ok(());
        }
        self.remember_queue(queue).await
    }
}

/// Whether the decision has made a task.
pub(crate) fn is_new(decision: &Decision) -> bool {
    matches!(&decision.outcome, Ok((_, Reply::Scheduled { existed: false })))
}

/// Refuses what can't be together with a key of which only one task is scheduled.
fn check_single(request: &ScheduleRequest) -> Result<(), Reject> {
    let (unique, debounce) = (&request.flow.unique, &request.flow.debounce);
    if (unique.is_some() || debounce.is_some()) && request.idempotency_key.is_some() {
        let field = if unique.is_some() { "unique" } else { "debounce" };
        return Err(Reject::field(
            field,
            "not allowed with `idempotency_key`: the key itself makes it repeatable",
        ));
    }
    if debounce.is_none() {
        return Ok(());
    }
    if unique.is_some() {
        return Err(Reject::field("debounce", "not allowed with `unique`"));
    }
    if request.id.is_some() {
        return Err(Reject::field("debounce", "not allowed with `id`: several requests become one task"));
    }
    if request.start != Start::After(Millis::ZERO) {
        return Err(Reject::field(
            "debounce",
            "not allowed with `delay` or `run_at`: its `wait` is the delay",
        ));
    }
    Ok(())
}

pub(crate) fn with_replaced(mut schedule: Box<Schedule>, replaces: Option<KeyRecord>) -> Box<Schedule> {
    schedule.key = schedule.key.map(|key| Key { replaces, ..key });
    schedule
}

/// A digest of the request as it was given. The same JSON in another text makes no difference, everything else does.
pub(super) fn fingerprint(request: &ScheduleRequest) -> Fingerprint {
    if let Some(fingerprint) = request.asked.fingerprint {
        return fingerprint;
    }
    let text = |json: &Option<Json>| json.as_ref().map(|json| canonical(json.as_str())).unwrap_or_default();
    let start = match request.start {
        Start::After(delay) => format!("after {}", delay.as_u64()),
        Start::At(instant) => format!("at {}", instant.as_millis()),
    };
    // Policies always serialise; if one didn't, it would only equal another that doesn't.
    let retry = serde_json::to_string(&request.retry).unwrap_or_default();
    let timeouts = serde_json::to_string(&request.timeouts).unwrap_or_default();
    let queue = if request.asked.any_queue { "" } else { request.queue.as_str() };
    digest(&[
        queue,
        request.kind.as_str(),
        &text(&request.input),
        &text(&request.labels),
        &retry,
        &timeouts,
        &start,
        &crate::flow::text(&request.flow),
    ])
}

/// The first 128 bits of SHA-256 over the parts, each with its length before it.
pub(crate) fn digest(parts: &[&str]) -> Fingerprint {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    Fingerprint::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_digest_cannot_flow_into_each_other() {
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
    }
}
