//! Claiming: from a queue's hints, or by id for workers that read the queue themselves.

mod hinted;
mod messages;

use tickover_core::command::{Claim, Command, HintedRecord};
use tickover_core::decision::{ClaimReply, Reply};
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::id::{LeaseId, QueueName, TaskId, WorkerName};
use tickover_core::payload::{Json, Payload};
use tickover_core::task::Task;
use tickover_core::time::{Timestamp, earliest};

use crate::drive::{Driven, Known};
use crate::error::{ServiceError, unknown_queue};
use crate::executions::Work;
use crate::lease::LeaseToken;
use crate::ports::StoreError;
use crate::service::Service;

pub(crate) use hinted::WHILE_PAUSED;

/// Batches of messages looked at in one call that doesn't wait, where all of them led to nothing.
const ROUNDS_MAX: usize = 10;
/// The last stretch before a start is waited out here, because SQS counts delays in whole seconds.
pub(crate) const WAITED_OUT: Millis = Millis::from_secs(1);
/// How often a paused queue is looked at again while a claim waits.
const PAUSE_CHECK: Millis = Millis::from_secs(1);

/// A request for work.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// For whom.
    pub worker: Option<WorkerName>,
    /// At most how many tasks, 1 to 10.
    pub max: usize,
    /// For how long without a heartbeat, 1 s to 12 h.
    pub lease: Millis,
    /// How long to wait for the first task, at most 20 s.
    pub wait: Millis,
}

/// A task in the caller's hands.
#[derive(Clone, Debug)]
pub struct ClaimedTask {
    /// Its record.
    pub task: Task,
    /// Its input.
    pub input: Option<Json>,
    /// The token to report with.
    pub token: String,
    /// Until when the caller counts as alive.
    pub lease_expires_at: Timestamp,
    /// By when the attempt must be done: the task's deadline or the attempt's own, whichever is sooner.
    pub deadline_at: Option<Timestamp>,
}

/// The instant by which a running attempt must be done.
pub(crate) fn attempt_deadline(task: &Task) -> Option<Timestamp> {
    earliest([task.deadline_at, task.running().and_then(|running| running.start_to_close_at)])
}

impl Service {
    /// Takes tasks from a queue, as many as there are up to `max`.
    pub async fn claim(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
    ) -> Result<Vec<ClaimedTask>, ServiceError> {
        let work = self.claim_work(queue, request, false).await?;
        let task = |work| match work {
            Work::Task(task) => Some(*task),
            Work::Turn(_) => None,
        };
        Ok(work.into_iter().filter_map(task).collect())
    }

    /// Takes work from a queue: tasks, and turns of executions if they are wanted.
    pub(crate) async fn claim_work(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
        turns: bool,
    ) -> Result<Vec<Work>, ServiceError> {
        if !self.ports.queue.knows(queue) {
            return Err(unknown_queue(queue));
        }
        let until = self.now().plus(request.wait);
        for round in 0.. {
            let left = until.since(self.now());
            if self.is_paused(queue).await? {
                if left.is_zero() {
                    break;
                }
                self.ports.clock.sleep_until(self.now().plus(left.min(PAUSE_CHECK))).await;
                continue;
            }
            let messages = self.ports.queue.receive(queue, request.max, request.lease, left).await?;
            let nothing = messages.is_empty();
            let (work, trouble) = self.work_messages(queue, &messages, request, turns).await;
            match trouble {
                _ if !work.is_empty() => return Ok(work),
                // Nothing to hand out, and not because there is nothing: the caller should know.
                Some(error) => return Err(error),
                None => {}
            }
            let out_of_time = until <= self.now();
            if out_of_time && (nothing || round + 1 >= ROUNDS_MAX) {
                break;
            }
        }
        Ok(vec![])
    }

    /// Takes a task by id: for workers that received its message themselves.
    pub async fn claim_by_id(
        &self,
        id: &TaskId,
        request: &ClaimRequest,
    ) -> Result<Option<ClaimedTask>, ServiceError> {
        let Some(task) = self.load(id).await? else { return Err(Reject::NotFound.into()) };
        if self.is_paused(&task.queue).await? {
            return Ok(None);
        }
        let (driven, reply) = self.take(task, None, request).await?;
        match (reply, driven) {
            (ClaimReply::Claimed, Driven { task: Some(task), .. }) => {
                let lease = task.running().map(|running| running.lease);
                let handed_over = self.hand_over(task, None).await;
                if let (Err(error), Some(lease)) = (&handed_over, lease) {
                    self.give_back(id, lease, error).await;
                }
                handed_over.map(Some)
            }
            (ClaimReply::Spent, Driven { task: Some(task), .. }) if task.ended().is_some() => {
                Err(Reject::AlreadyTerminal { status: task.status() }.into())
            }
            (
                ClaimReply::Claimed | ClaimReply::Held | ClaimReply::Early { .. } | ClaimReply::Spent,
                Driven { .. },
            ) => Ok(None),
        }
    }

    /// Tries to take the task, waiting out the last second before its start.
    async fn take(
        &self,
        task: Task,
        hint: Option<HintedRecord>,
        request: &ClaimRequest,
    ) -> Result<(Driven, ClaimReply), ServiceError> {
        let id = task.id.clone();
        let command = Command::Claim(Claim {
            lease: self.new_lease(),
            worker: request.worker.clone(),
            length: request.lease,
            hint,
        });
        let mut task = task;
        loop {
            if let Some(ended) = self.end_if_orphaned(&task).await? {
                return Ok((ended, ClaimReply::Spent));
            }
            let driven = self.drive(&id, Known::Record(Box::new(task)), &command).await?;
            let reply = match &driven.outcome {
                Ok(Reply::Claim(reply)) => *reply,
                Ok(_) | Err(_) => ClaimReply::Spent,
            };
            match (reply, driven.task) {
                (ClaimReply::Early { available_at }, Some(early))
                    if available_at.since(self.now()) <= WAITED_OUT =>
                {
                    self.ports.clock.sleep_until(available_at).await;
                    task = early;
                }
                (reply, task) => return Ok((Driven { task, ..driven }, reply)),
            }
        }
    }

    /// The caller gets the task with its input and the token to report with.
    async fn hand_over(&self, task: Task, receipt: Option<String>) -> Result<ClaimedTask, ServiceError> {
        let input = self.payload(task.input.as_ref()).await?;
        let Some(running) = task.running() else { return Err(ServiceError::Contended) };
        let token = LeaseToken { incarnation: task.incarnation, lease: running.lease, receipt }.encode();
        let (lease_expires_at, deadline_at) = (running.lease_expires_at, attempt_deadline(&task));
        let task = Task { trace: self.carried(task.trace), ..task };
        Ok(ClaimedTask { task, input, token, lease_expires_at, deadline_at })
    }

    /// Releases a task that was claimed and whose input couldn't be read for now, so that its lease needn't run
    /// out with nobody at work. Whether that was done: then it has a new message.
    async fn give_back(&self, id: &TaskId, lease: LeaseId, error: &ServiceError) -> bool {
        match error {
            ServiceError::Throttled | ServiceError::Unavailable { .. } => {}
            // Releasing it would only have it claimed again, for ever.
            ServiceError::Rejected(_) | ServiceError::Contended | ServiceError::Corrupt { .. } => {
                return false;
            }
        }
        let released = self.drive(id, Known::Unread, &Command::Release { lease }).await;
        released.is_ok_and(|driven| driven.outcome.is_ok())
    }

    /// A payload's text, wherever it lies.
    pub(crate) async fn payload(&self, payload: Option<&Payload>) -> Result<Option<Json>, ServiceError> {
        match payload {
            None => Ok(None),
            Some(Payload::Inline(json)) => Ok(Some(json.clone())),
            Some(Payload::Blob(at)) => {
                let json = self.patiently(|| self.ports.store.blob(&at.id)).await?;
                let missing = || StoreError::Corrupt { reason: "a payload is missing".to_owned() };
                Ok(Some(json.ok_or_else(missing)?))
            }
        }
    }
}
