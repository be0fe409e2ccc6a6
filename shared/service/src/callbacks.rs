//! Callbacks: tokens with which somebody without credentials ends one wait of an execution, or reports on one attempt of
//! a task.
//!
//! A token names what it is for and until when, and is signed with a secret of the deployment. Nothing is stored for it.

mod sealed;
mod secret;
mod token;
mod wait;

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::id::{EventName, ExecutionId, Incarnation, LeaseId, TaskId};
use tickover_core::payload::Json;
use tickover_core::task::{Failure, Running, Task};
use tickover_core::time::Timestamp;

use crate::claim::attempt_deadline;
use crate::error::ServiceError;
use crate::lease::LeaseToken;
use crate::service::Service;

pub(crate) use secret::Settings;
pub use secret::{SECRET_MIN, SecretKeeper, Secrets};
pub use token::{Secret, Target};

/// Longest name of a callback, in characters: with the number of the run before it, it must be a valid event name.
pub const CALLBACK_NAME_MAX: usize = 40;
/// How the names of callbacks' events begin. Nobody can send such events without a token.
const RESERVED: &str = "tickover.cb.";
/// How long the token of an attempt without a deadline is valid.
const ATTEMPT_VALID: Millis = Millis::from_secs(30 * 86_400);

/// What somebody with a token reports.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// The result.
    Complete(Option<Json>),
    /// An error. A task's retry policy decides what follows, a workflow's code gets the error.
    Fail { error: Failure, retryable: bool },
    /// It is alive.
    Heartbeat,
}

/// A token, and until when it is valid.
#[derive(Clone, PartialEq, Eq)]
pub struct Callback {
    /// A secret: whoever has it can report.
    pub token: String,
    /// The address of its calls, if the deployment says where callers without credentials reach the API.
    pub url: Option<String>,
    pub expires_at: Timestamp,
}

impl std::fmt::Debug for Callback {
    /// Without the token, so that no log shows it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Callback").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// The event that a callback of a run sends. No other run waits for it but one that repeats its work. `None` if the name is empty or too long, or
/// has other characters than an event's name may have.
pub fn event_of(run: u32, name: &str) -> Option<EventName> {
    if name.is_empty() || name.len() > CALLBACK_NAME_MAX {
        return None;
    }
    EventName::parse(format!("{}{name}", prefix(run))).ok()
}

fn prefix(run: u32) -> String {
    format!("{RESERVED}{run}.")
}

/// The name of the callback that sends an event, if only one does.
pub fn callback_of(event: &EventName) -> Option<&str> {
    event.as_str().strip_prefix(RESERVED)?.split_once('.').map(|(_, name)| name)
}

/// Whether events of this name are sent with tokens only.
pub(crate) fn is_reserved(event: &EventName) -> bool {
    event.as_str().starts_with(RESERVED)
}

impl Service {
    /// The same service with these secrets, and the address at which callers without credentials reach the API.
    #[must_use]
    pub fn with_callbacks(self, secrets: Secrets, url: Option<&str>) -> Self {
        Self { callbacks: std::sync::Arc::new(Settings::new(secrets, url)), ..self }
    }

    /// The token with which a wait of this run ends. The same target and instant give the same token, as long as the
    /// secret that signs is the same. See [`Service::renew_callback_secrets`].
    ///
    /// # Errors
    ///
    /// [`Reject::CallbacksOff`] without a secret.
    pub async fn callback_of_wait(
        &self,
        execution: &ExecutionId,
        incarnation: Incarnation,
        event: EventName,
        expires_at: Timestamp,
    ) -> Result<Callback, ServiceError> {
        let target = Target::Wait { execution: execution.clone(), incarnation, event };
        self.callback(&self.known_secrets().await?, &target, expires_at)
    }

    /// A token for the attempt that has this lease. It is valid until the attempt's deadline, for 30 days at most.
    ///
    /// # Errors
    ///
    /// As [`Service::complete`] for the lease, and [`Reject::CallbacksOff`] without a secret.
    pub async fn callback_of_attempt(&self, id: &TaskId, lease: &str) -> Result<Callback, ServiceError> {
        let token = LeaseToken::decode(lease).ok_or(Reject::LeaseLost)?;
        let Some(task) = self.load(id).await? else { return Err(Reject::NotFound.into()) };
        if !token.is_of(&task) || !is_held(&task, token.incarnation, token.lease) {
            return Err(Reject::LeaseLost.into());
        }
        let latest = self.now().plus(ATTEMPT_VALID);
        let expires_at = attempt_deadline(&task).map_or(latest, |deadline| deadline.min(latest));
        let target = Target::Attempt { task: id.clone(), incarnation: token.incarnation, lease: token.lease };
        self.callback(&self.fresh_secrets().await?, &target, expires_at)
    }

    fn callback(
        &self,
        secrets: &[Secret],
        target: &Target,
        expires_at: Timestamp,
    ) -> Result<Callback, ServiceError> {
        let token = secrets.first().ok_or(Reject::CallbacksOff)?.sign(target, expires_at);
        let url = self.callbacks.url.as_ref().map(|base| format!("{base}/v1/callbacks/{token}"));
        Ok(Callback { token, url, expires_at })
    }

    /// Carries out what somebody with a token reports.
    ///
    /// # Errors
    ///
    /// [`Reject::UnknownCallback`] whatever is wrong with the token: forged, expired, used, of an earlier run, of another
    /// deployment. The record is read only if the signature is right. Only a token whose wait or attempt is still open gets
    /// other refusals, of a result that is too large.
    pub async fn call_back(&self, token: &str, report: Report) -> Result<(), ServiceError> {
        let secrets = self.fresh_secrets().await?;
        let target = Secret::verified_by_one(&secrets, token, self.now()).ok_or(Reject::UnknownCallback)?;
        let done = match target {
            Target::Wait { execution, incarnation, event } => {
                self.end_wait(&execution, incarnation, event, report).await
            }
            Target::Attempt { task, incarnation, lease } => {
                self.report_attempt(&task, incarnation, lease, report).await
            }
        };
        match done {
            Ok(true) => Ok(()),
            Err(ServiceError::Rejected(
                reject @ (Reject::LimitExceeded { .. } | Reject::InvalidRequest { .. }),
            )) => Err(reject.into()),
            Ok(false) | Err(ServiceError::Rejected(_)) => Err(Reject::UnknownCallback.into()),
            Err(error) => Err(error),
        }
    }

    async fn report_attempt(
        &self,
        id: &TaskId,
        incarnation: Incarnation,
        lease: LeaseId,
        report: Report,
    ) -> Result<bool, ServiceError> {
        let Some(task) = self.load(id).await?.filter(|task| is_held(task, incarnation, lease)) else {
            return Ok(false);
        };
        let lease = LeaseToken { incarnation, lease, receipt: None }.encode();
        match report {
            Report::Complete(output) => Ok(!self.complete(id, &lease, output).await?.duplicate),
            Report::Fail { error, retryable } => {
                Ok(!self.fail(id, &lease, error, retryable).await?.duplicate)
            }
            Report::Heartbeat if is_fresh(&task, self.now()) => Ok(true),
            Report::Heartbeat => self.heartbeat(id, &lease, None).await.map(|_| true),
        }
    }
}

/// How soon after the last heartbeat another one is answered without a write, so that somebody with a token can't cause
/// writes without a bound: a tenth of the time that a heartbeat gives, but a second at least and half of it at most.
fn heartbeat_pause(gives: Millis) -> Millis {
    let ms = gives.as_u64();
    Millis::new((ms / 10).max(1_000).min(ms / 2))
}

/// Whether an attempt has just begun or had a heartbeat.
fn is_fresh(task: &Task, now: Timestamp) -> bool {
    let Some(Running { lease_length, lease_expires_at, heartbeat_at, .. }) = task.running() else {
        return false;
    };
    let within =
        |gives: Millis, until: Timestamp| until.since(now) > gives.saturating_sub(heartbeat_pause(gives));
    let heartbeat = task.timeouts.heartbeat.map(|timeout| timeout.after);
    within(*lease_length, *lease_expires_at)
        && heartbeat.zip(*heartbeat_at).is_none_or(|(gives, until)| within(gives, until))
}

/// Whether the task's running attempt has this lease.
fn is_held(task: &Task, incarnation: Incarnation, lease: LeaseId) -> bool {
    task.incarnation == incarnation && task.running().is_some_and(|running| running.lease == lease)
}

#[cfg(test)]
mod tests;
