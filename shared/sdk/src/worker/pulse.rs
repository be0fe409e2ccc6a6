//! What keeps an attempt of a task alive: the worker extends its lease by a timer, and passes on what its code reports.
//!
//! Both are heartbeats, of the worker and of the work. One call says both if both are due. Work that is silent for the
//! heartbeat timeout is ended here too, as the server ends its attempt.

use std::pin::pin;

use futures::future::{Either, select};
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::payload::Json;
use tickover_core::task::command::SignOfLife;
use tickover_core::time::{Timestamp, earliest};
use tickover_service::ServiceError;
use tickover_service::claim::ClaimedTask;
use tickover_service::tasks::work::{self, Renewed};
use tickover_service::telemetry::{execution_of, field, step_of};
use tickover_service::warn_unless_logged;
use tokio::sync::watch;

use super::Worker;
use super::task::Ran;
use crate::keeper::{Extend, Keeper};
use crate::step::{Beat, StepInfo};

/// The shortest time between two reports of a step without a heartbeat timeout. Each is a write.
const REPORT_INTERVAL: Millis = Millis::from_secs(10);

/// The two clocks of a running attempt, and the reports of its code.
pub(super) struct Pulse {
    beats: watch::Receiver<Beat>,
    /// The last report that was sent.
    sent: Beat,
    /// Details that the record had no space for.
    refused: Option<Json>,
    /// When the lease ends.
    lease_ends_at: Timestamp,
    /// By when the code must report.
    silent_at: Option<Timestamp>,
    /// The shortest time between two reports.
    interval: Millis,
    has_timeout: bool,
    /// From when on the next report may be sent.
    reports_at: Timestamp,
    pub(super) keeper: Keeper,
}

impl Pulse {
    pub(super) fn new(worker: &Worker, claimed: &ClaimedTask, info: &StepInfo) -> Self {
        let now = worker.service.now();
        let silent_at = claimed.task.running().and_then(|running| running.heartbeat_at);
        let timeout = claimed.task.timeouts.heartbeat.map(|timeout| timeout.after);
        let interval = timeout.map_or(REPORT_INTERVAL, |after| Millis::new((after.as_u64() / 3).max(1)));
        let first_at = now.plus(interval);
        Self {
            beats: info.progress_sender.listen(),
            sent: Beat::default(),
            refused: None,
            lease_ends_at: claimed.lease_expires_at,
            silent_at,
            interval,
            has_timeout: timeout.is_some(),
            // The attempt may have begun long after its claim.
            reports_at: silent_at.map_or(first_at, |at| first_at.min(at.minus(interval))),
            // Before the code is polled, which may block its thread.
            keeper: worker.keep_lease(claimed),
        }
    }

    /// What the code has reported and the server doesn't know. A report without new values tells the server nothing if
    /// the step has no heartbeat timeout.
    fn unsent(&mut self) -> Option<Beat> {
        let last = self.beats.borrow_and_update().clone();
        let is_news = last.number != self.sent.number && (self.has_timeout || self.brings_values(&last));
        is_news.then_some(last)
    }

    /// The values that the code has reported and the server doesn't know.
    pub(super) fn unsent_values(&self) -> Option<Beat> {
        let last = self.beats.borrow().clone();
        self.brings_values(&last).then(|| self.sendable(last))
    }

    fn brings_values(&self, beat: &Beat) -> bool {
        beat.progress != self.sent.progress || beat.details != self.sent.details
    }

    /// The report without details that were refused.
    fn sendable(&self, beat: Beat) -> Beat {
        let details = beat.details.filter(|details| Some(details) != self.refused.as_ref());
        Beat { details, ..beat }
    }

    /// Notes the answer to a heartbeat.
    fn note(&mut self, sent: Option<Beat>, renewed: &Renewed, now: Timestamp) {
        (self.lease_ends_at, self.silent_at) = (renewed.lease_expires_at, renewed.heartbeat_at);
        if let Some(sent) = sent {
            (self.sent, self.reports_at) = (sent, now.plus(self.interval));
        }
    }

    /// Whether the attempt is over without a call: its code is silent, or nothing can extend its lease.
    fn is_over(&self, claimed: &ClaimedTask, extends: bool, now: Timestamp) -> bool {
        let id = &claimed.task.id;
        let is_silent = self.silent_at.is_some_and(|at| at <= now);
        if is_silent {
            tracing::warn!(
                { field::TASK_ID } = %id, kind = %claimed.task.kind,
                "the step's code has given no sign of life within its heartbeat timeout: the attempt is ended"
            );
        }
        is_silent || (!extends && self.lease_ends_at <= now)
    }
}

impl Worker {
    /// Keeps an attempt alive for as long as this is polled. It returns when the attempt is over, or when a cancellation
    /// was requested.
    pub(super) async fn keep_alive(&self, claimed: &ClaimedTask, pulse: &mut Pulse) -> Ran {
        let (clock, interval) = (self.service.clock(), self.settings.heartbeat_interval());
        let of = claimed.task.parent.as_ref();
        let mut renews_at = interval.map(|interval| self.service.now().plus(interval));
        loop {
            pulse.keeper.note(Some(pulse.lease_ends_at), claimed.deadline_at);
            pulse.lease_ends_at = pulse.keeper.ends_at().unwrap_or(pulse.lease_ends_at);
            let unsent = pulse.unsent();
            let reports_at = unsent.is_some().then_some(pulse.reports_at);
            let wakes_at = earliest([Some(pulse.lease_ends_at), pulse.silent_at, renews_at, reports_at]);
            let wakes_at = wakes_at.unwrap_or(pulse.lease_ends_at);
            let mut beats = pulse.beats.clone();
            let news = async {
                // A report that waits to be sent needs no wake-up.
                if unsent.is_some() || beats.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            if let Either::Right(_) = select(pin!(clock.sleep_until(wakes_at)), pin!(news)).await {
                continue;
            }
            let now = self.service.now();
            if pulse.is_over(claimed, interval.is_some(), now) {
                return Ran::Lost;
            }
            match self.send_beat(claimed, pulse, unsent).await {
                Ok(renewed) => {
                    renews_at = interval.map(|interval| self.service.now().plus(interval));
                    if renewed.cancel_requested {
                        return Ran::Cancelled;
                    }
                }
                Err(ServiceError::Rejected(reject)) => {
                    tracing::info!({ field::TASK_ID } = %claimed.task.id, { field::EXECUTION_ID } = execution_of(of), { field::STEP_NAME } = step_of(of), %reject, "attempt given up");
                    return Ran::Lost;
                }
                Err(error) => {
                    let id = &claimed.task.id;
                    warn_unless_logged!(error; { field::TASK_ID } = %id, { field::EXECUTION_ID } = execution_of(of), { field::STEP_NAME } = step_of(of), %error, "heartbeat failed");
                    if pulse.lease_ends_at <= now {
                        return Ran::Lost;
                    }
                    let pace = interval.map_or(pulse.interval, |interval| interval.min(pulse.interval));
                    let soon = Millis::new((pace.min(REPORT_INTERVAL).as_u64() / 4).max(1));
                    let soon = self.service.now().plus(soon);
                    (renews_at, pulse.reports_at) = (interval.map(|_| soon), soon);
                }
            }
        }
    }

    /// From now on, the lease is also extended while the code blocks its thread.
    fn keep_lease(&self, claimed: &ClaimedTask) -> Keeper {
        let interval = self.settings.heartbeat_interval().filter(|_| Keeper::is_possible());
        let (Some(interval), Some(running)) = (interval, claimed.task.running()) else {
            return Keeper::default();
        };
        let (service, id, token) = (self.service.clone(), claimed.task.id.clone(), claimed.token.clone());
        let extend: Extend = Box::new(move || {
            let (service, id, token) = (service.clone(), id.clone(), token.clone());
            Box::pin(async move {
                let beat = work::Beat { sign_of: SignOfLife::Worker, progress: None, details: None };
                Ok(service.beat(&id, &token, beat).await?.lease_expires_at)
            })
        });
        Keeper::start(&self.service, claimed.lease_expires_at, running.lease_length, interval, extend)
    }

    /// Sends one heartbeat: of the worker if it extends its leases, and of the work if its code has reported.
    async fn send_beat(
        &self,
        claimed: &ClaimedTask,
        pulse: &mut Pulse,
        unsent: Option<Beat>,
    ) -> Result<Renewed, ServiceError> {
        let (id, token) = (&claimed.task.id, &claimed.token);
        let sign_of = match (self.settings.heartbeat_interval(), &unsent) {
            (Some(_), Some(_)) => SignOfLife::Both,
            (Some(_), None) => SignOfLife::Worker,
            // The lease ends with this process.
            (None, _) => SignOfLife::Work,
        };
        loop {
            let Beat { progress, details, .. } = pulse.sendable(unsent.clone().unwrap_or_default());
            let answer = self.service.beat(id, token, work::Beat { sign_of, progress, details }).await;
            match answer {
                Err(ServiceError::Rejected(reject @ Reject::LimitExceeded { limit: "details", .. })) => {
                    tracing::warn!({ field::TASK_ID } = %id, %reject, "the task's record has no space for the details");
                    pulse.refused = unsent.as_ref().and_then(|beat| beat.details.clone());
                }
                Ok(renewed) => {
                    pulse.note(unsent, &renewed, self.service.now());
                    return Ok(renewed);
                }
                Err(error) => return Err(error),
            }
        }
    }
}
