//! The reports of workers: heartbeats, results, errors and releases.

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::id::TaskId;
use tickover_core::limits::{self, DETAILS_MAX};
use tickover_core::payload::{Json, cut_to_fit};
use tickover_core::task::command::{Command, Complete, Fail, Heartbeat, SignOfLife};
use tickover_core::task::decision::Reply;
use tickover_core::task::{Failure, Task};
use tickover_core::time::Timestamp;

use crate::claim::attempt_deadline;
use crate::drive::Known;
use crate::error::ServiceError;
use crate::lease::LeaseToken;
use crate::metric;
use crate::service::Service;
use crate::telemetry::field;

/// What a heartbeat says. By default that the worker and its work are alive, and nothing else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Beat {
    pub sign_of: SignOfLife,
    /// The attempt's progress, from 0 to 1. The next attempt gets it.
    pub progress: Option<f64>,
    /// Details of the progress, at most [`DETAILS_MAX`] bytes. The next attempt gets them.
    pub details: Option<Json>,
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// When the lease ends without another heartbeat.
    pub lease_expires_at: Timestamp,
    /// By when the work must give its next sign of life.
    pub heartbeat_at: Option<Timestamp>,
    /// By when the attempt must end.
    pub deadline_at: Option<Timestamp>,
    /// Whether the worker should cancel the task.
    pub cancel_requested: bool,
}

/// The answer to the report of a finished attempt.
#[derive(Clone, Debug)]
pub struct Closed {
    /// The current task.
    pub task: Task,
    /// Whether the same lease had closed its attempt before: the first report counts.
    pub duplicate: bool,
    /// The result that the lease's owner has just reported.
    pub output: Option<Json>,
}

impl Service {
    /// Records that the worker and its work are alive: extends the lease and restarts the heartbeat timeout.
    pub async fn heartbeat(
        &self,
        id: &TaskId,
        lease: &str,
        progress: Option<f64>,
    ) -> Result<Renewed, ServiceError> {
        self.beat(id, lease, Beat { progress, ..Beat::default() }).await
    }

    /// Records a heartbeat of the worker, of its work, or of both.
    pub async fn beat(&self, id: &TaskId, lease: &str, beat: Beat) -> Result<Renewed, ServiceError> {
        let extends_lease = beat.sign_of.extends_lease();
        let answer = self.renew(id, lease, beat).await;
        if extends_lease {
            metric::heartbeat(&answer);
        }
        answer
    }

    async fn renew(&self, id: &TaskId, lease: &str, beat: Beat) -> Result<Renewed, ServiceError> {
        let Beat { sign_of, progress, details } = beat;
        if progress.is_some_and(|progress| !(0.0..=1.0).contains(&progress)) {
            return Err(Reject::field("progress", "must be a number from 0 to 1").into());
        }
        if !sign_of.is_of_work() && (progress.is_some() || details.is_some()) {
            let reason = "can't be true beside `progress` or `details`: they are a sign of life of the work";
            return Err(Reject::field("worker_only", reason).into());
        }
        limits::check("details", details.as_ref().map_or(0, Json::len), DETAILS_MAX)?;
        limits::check("json_depth", details.as_ref().map_or(0, Json::depth), limits::JSON_DEPTH_MAX)?;
        let extends_lease = sign_of.extends_lease();
        let token = self.token(id, lease).await?;
        let task = self.reported(id, &token).await?;
        let places = if extends_lease { self.extend_places(&task, token.lease).await? } else { None };
        let (lease, blob_id) = (token.lease, self.new_blob_id());
        let command = Command::Heartbeat(Heartbeat { lease, sign_of, progress, details, blob_id, places });
        let (task, _) = self.drive(id, Known::Record(Box::new(task)), &command).await?.outcome?;
        let Some(running) = task.running() else { return Err(Reject::LeaseLost.into()) };
        self.see_worker(&task.queue, running.worker.as_ref());
        self.notifications.live_leases.renewed(running.lease, running.lease_expires_at, self.now());
        if extends_lease {
            self.extend_message(&task, &token, running.lease_length).await;
        }
        Ok(Renewed {
            lease_expires_at: running.lease_expires_at,
            heartbeat_at: running.heartbeat_at,
            deadline_at: attempt_deadline(&task),
            cancel_requested: running.cancel_requested || self.ask_orphan_to_stop(&task).await,
        })
    }

    pub async fn complete(
        &self,
        id: &TaskId,
        lease: &str,
        output: Option<Json>,
    ) -> Result<Closed, ServiceError> {
        let bytes = output.as_ref().map_or(0, Json::len);
        limits::check("output_bytes", bytes, self.limits.payload_bytes)?;
        let depth = output.as_ref().map_or(0, Json::depth);
        limits::check("json_depth", depth, limits::JSON_DEPTH_MAX)?;
        let token = self.token(id, lease).await?;
        let blob_id = self.new_blob_id();
        let command = Command::Complete(Complete { lease: token.lease, output: output.clone(), blob_id });
        self.close(id, &token, &command, output).await
    }

    /// Records an error; the task's policy decides whether there is a retry. A message that is longer than the limit of
    /// a payload is cut, as a code is: to refuse it would cost the task its attempt.
    pub async fn fail(
        &self,
        id: &TaskId,
        lease: &str,
        error: Failure,
        retryable: bool,
    ) -> Result<Closed, ServiceError> {
        let error = Failure::new(error.code, cut_to_fit(error.message, self.limits.payload_bytes));
        let token = self.token(id, lease).await?;
        let blob_id = self.new_blob_id();
        let command = Command::Fail(Fail { lease: token.lease, error, retryable, blob_id });
        self.close(id, &token, &command, None).await
    }

    /// Gives a task back without a result.
    pub async fn release(&self, id: &TaskId, lease: &str) -> Result<Closed, ServiceError> {
        let token = self.token(id, lease).await?;
        let command = Command::Release { lease: token.lease };
        self.close(id, &token, &command, None).await
    }

    /// Reads a token. A text that no claim ever returned is a lost lease, if the task exists.
    async fn token(&self, id: &TaskId, lease: &str) -> Result<LeaseToken, ServiceError> {
        match decode(lease) {
            Err(Reject::LeaseLost) if self.load(id).await?.is_none() => Err(Reject::NotFound.into()),
            token => Ok(token?),
        }
    }

    async fn close(
        &self,
        id: &TaskId,
        token: &LeaseToken,
        command: &Command,
        output: Option<Json>,
    ) -> Result<Closed, ServiceError> {
        let (task, reply) = self.report(id, token, command).await?;
        // Only now: if the worker had died before, the message would have brought the task to another worker.
        if let Some(receipt) = &token.receipt {
            self.delete_message(&task.queue, receipt).await;
        }
        let duplicate = matches!(reply, Reply::Closed { duplicate: true });
        Ok(Closed { task, duplicate, output: output.filter(|_| !duplicate) })
    }

    async fn report(
        &self,
        id: &TaskId,
        token: &LeaseToken,
        command: &Command,
    ) -> Result<(Task, Reply), ServiceError> {
        let task = self.reported(id, token).await?;
        Ok(self.drive(id, Known::Record(Box::new(task)), command).await?.outcome?)
    }

    /// The task that a report is about.
    async fn reported(&self, id: &TaskId, token: &LeaseToken) -> Result<Task, ServiceError> {
        let Some(task) = self.load(id).await? else { return Err(Reject::NotFound.into()) };
        if token.is_of(&task) { Ok(task) } else { Err(Reject::LeaseLost.into()) }
    }

    /// Keeps the message hidden for as long as the lease lasts.
    async fn extend_message(&self, task: &Task, token: &LeaseToken, length: Millis) {
        let Some(receipt) = &token.receipt else { return };
        if let Err(error) = self.ports.queue.change_visibility(&task.queue, receipt, length).await {
            // The message is visible earlier than needed; its receiver finds the lease alive.
            tracing::debug!({ field::TASK_ID } = %task.id, %error, "message not extended");
        }
    }
}

fn decode(lease: &str) -> Result<LeaseToken, Reject> {
    if lease.is_empty() {
        return Err(Reject::field("lease", "must be the token that the claim gave"));
    }
    LeaseToken::decode(lease).ok_or(Reject::LeaseLost)
}
