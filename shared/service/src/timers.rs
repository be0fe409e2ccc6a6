//! The timers queue. Its messages process records when their instant comes, sweep a shard, or hand over future instants
//! to timers.
//!
//! Correctness doesn't depend on it. If a message is lost, the next tick does its work; a message that comes too early
//! is sent again with the remaining delay; a repeated message finds nothing to do.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, StreamExt as _};
use tickover_core::decision::DueReply;
use tickover_core::duration::Millis;
use tickover_core::id::{QueueName, RecordId};
use tickover_core::task::command::Command;
use tickover_core::task::decision::Reply;
use tickover_core::time::Timestamp;
use tickover_core::timer::{Handover, Sweep, Timer, Wake, WakeError};

use crate::claim::{Delivered, WAITED_OUT};
use crate::drive::Known;
use crate::error::ServiceError;
use crate::executions::DueCause;
use crate::metric;
use crate::ports::Clock;
use crate::service::{Ports, Service};
use crate::tick::{TickReport, outgoing};

/// No timer is sent for longer than a quarter of an hour; a clock error can't explain more than this.
const AHEAD_MAX: Millis = Millis::from_secs(86_400);

/// Timers of one message that are processed at the same time.
const TIMERS_AT_ONCE: usize = 16;

/// The result of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fired {
    /// A deadline or timeout had passed, and its expiry is recorded.
    TimedOut,
    /// It came too early, or its instant has moved away: another message is on its way.
    SentOn,
    Spent,
    /// Timers in one message.
    Together {
        /// Those whose deadline or timeout had passed.
        timed_out: u64,
        /// Those that were sent on, or found nothing to do.
        others: u64,
    },
    /// A shard was swept.
    Swept(TickReport),
    /// Future instants were handed over to timers.
    HandedOver {
        timers: u64,
    },
}

impl Fired {
    /// The name for metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::TimedOut => "timed_out",
            Self::SentOn => "sent_on",
            Self::Spent => "spent",
            Self::Together { .. } => "together",
            Self::Swept(_) => "swept",
            Self::HandedOver { .. } => "handed_over",
        }
    }
}

/// Why a message failed. It should be received again, and in the end be checked by an operator.
#[derive(Debug, thiserror::Error)]
pub enum FireError {
    /// It isn't a message of Tickover.
    #[error(transparent)]
    Malformed(#[from] WakeError),
    /// Its instant is further away than any timer is sent for.
    #[error("a timer for {at}, which is more than a day ahead", at = .at.to_rfc3339())]
    TooFarAhead { at: Timestamp },
    /// Sending it on failed.
    #[error("the message could not be sent on")]
    NotSentOn,
    /// The store or the queue failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl FireError {
    /// Whether the same message may succeed later.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Malformed(_) | Self::TooFarAhead { .. } => false,
            Self::NotSentOn => true,
            Self::Service(error) => error.is_retryable(),
        }
    }

    /// Whether the store has logged the cause. See [`warn_unless_logged!`](crate::warn_unless_logged).
    pub const fn is_logged(&self) -> bool {
        match self {
            Self::Malformed(_) | Self::TooFarAhead { .. } | Self::NotSentOn => false,
            Self::Service(error) => error.is_logged(),
        }
    }
}

/// A clock that shows at least this instant.
struct NotBefore {
    clock: Arc<dyn Clock>,
    instant: Timestamp,
}

#[async_trait]
impl Clock for NotBefore {
    fn now(&self) -> Timestamp {
        self.clock.now().max(self.instant)
    }

    async fn sleep_until(&self, instant: Timestamp) {
        self.clock.sleep_until(instant).await;
    }
}

impl Service {
    /// Processes one message of the timers queue. After success the caller deletes it. Starts no new work after
    /// `stop_at`, by the service's clock.
    pub async fn fire<'m>(
        &self,
        message: impl Into<Delivered<'m>>,
        stop_at: Timestamp,
    ) -> Result<Fired, FireError> {
        // An expiry is written whether or not a queue answers.
        let service = self.with_short_timeouts();
        let message = message.into();
        let again = message.is_again();
        let fired = match Wake::parse(message.body) {
            Ok(Wake::Timer(timer)) => service.fire_timer(timer, again, stop_at).await,
            // Each timer is counted, not their message.
            Ok(Wake::Timers(timers)) => return service.fire_together(timers, again, stop_at).await,
            Ok(Wake::Sweep(sweep)) => service.fire_sweep(sweep, stop_at).await,
            Ok(Wake::Handover(rest)) => service.fire_handover(rest, stop_at).await,
            Ok(Wake::Resume(resume)) => service.fire_resume(resume, stop_at).await,
            Err(error) => Err(error.into()),
        };
        metric::timer(fired.as_ref().map_or("failed", Fired::as_str));
        fired
    }

    async fn fire_sweep(&self, sweep: Sweep, stop_at: Timestamp) -> Result<Fired, FireError> {
        match self.continue_sweep(sweep, stop_at).await? {
            None => Ok(Fired::Spent),
            // This message continues the sweep once it is received again: a message for the rest could not be sent.
            Some(report) if report.out_of_time => Err(FireError::NotSentOn),
            Some(report) => Ok(Fired::Swept(report)),
        }
    }

    async fn fire_handover(&self, rest: Handover, stop_at: Timestamp) -> Result<Fired, FireError> {
        let (timers, is_sent) = self.continue_handover(rest, stop_at).await?;
        if is_sent { Ok(Fired::HandedOver { timers }) } else { Err(FireError::NotSentOn) }
    }

    /// Processes timers of one second. If one of them fails for now, the message comes back, and for the other timers
    /// it is a repetition.
    async fn fire_together(
        &self,
        timers: Vec<Timer>,
        again: bool,
        stop_at: Timestamp,
    ) -> Result<Fired, FireError> {
        let first = timers.first().map_or(Timestamp::EPOCH, |first| first.at);
        if let Some(answer) = self.too_early(first, || Wake::Timers(timers.clone())).await {
            metric::timer(answer.as_ref().map_or("failed", Fired::as_str));
            return answer;
        }
        let fired: Vec<_> = stream::iter(timers)
            .map(|timer| async {
                let fired = self.fire_timer(timer, again, stop_at).await;
                metric::timer(fired.as_ref().map_or("failed", Fired::as_str));
                fired
            })
            .buffered(TIMERS_AT_ONCE)
            .collect()
            .await;
        let (mut timed_out, mut others) = (0, 0);
        for fired in fired {
            if fired? == Fired::TimedOut {
                timed_out += 1;
            } else {
                others += 1;
            }
        }
        Ok(Fired::Together { timed_out, others })
    }

    /// Handles a message whose instant is too far away to wait for.
    async fn too_early(
        &self,
        at: Timestamp,
        wake: impl FnOnce() -> Wake,
    ) -> Option<Result<Fired, FireError>> {
        let left = at.since(self.now());
        if left > AHEAD_MAX {
            return Some(Err(FireError::TooFarAhead { at }));
        }
        if left <= WAITED_OUT {
            return None;
        }
        // Replaces the message by a fresh one, whose receive count starts at zero.
        let again = outgoing(&wake(), left).into_iter().collect::<Vec<_>>();
        let sent = self.send(&QueueName::timers(), &again).await;
        Some(if sent == again.len() { Ok(Fired::SentOn) } else { Err(FireError::NotSentOn) })
    }

    /// The same service with a clock that isn't set back behind an instant that has come: the timer was sent for it, and
    /// isn't sent again.
    fn not_before(&self, instant: Timestamp) -> Self {
        let clock = NotBefore { clock: Arc::clone(&self.ports.clock), instant };
        Self { ports: Ports { clock: Arc::new(clock), ..self.ports.clone() }, ..self.clone() }
    }

    async fn fire_timer(&self, timer: Timer, again: bool, stop_at: Timestamp) -> Result<Fired, FireError> {
        if let Some(answer) = self.too_early(timer.at, || Wake::Timer(timer.clone())).await {
            return answer;
        }
        // Queues count whole seconds and round down: the last one is waited out here.
        self.ports.clock.sleep_until(timer.at).await;
        let service = self.not_before(timer.at);
        let (due_at, again) = (timer.due_at, again || timer.is_beforehand());
        let reply = match &timer.record {
            RecordId::Task(id) => {
                let decision = service.drive(id, Known::Unread, &Command::Timer { due_at, again }).await?;
                // If there is no task, it was deleted meanwhile.
                let Ok((task, Reply::Due(reply))) = decision.outcome else { return Ok(Fired::Spent) };
                if again {
                    Box::pin(service.notify_of_end(&task, again)).await?;
                }
                reply
            }
            RecordId::Execution(id) => {
                let cause = DueCause::Timer { at: timer.at, due_at, again };
                Box::pin(service.process_due_execution(id, Known::Unread, cause, stop_at)).await?
            }
            RecordId::Cron(id) => Box::pin(service.process_cron(id, stop_at)).await?,
            RecordId::Queue(name) => Box::pin(service.restart_walks(name, stop_at)).await?,
            RecordId::Operation(id) => Box::pin(service.carry_out_operation(id, stop_at)).await?,
            RecordId::Gate(_) | RecordId::Tick | RecordId::Key(_) => DueReply::Nothing,
        };
        Ok(match reply {
            DueReply::TimedOut => Fired::TimedOut,
            DueReply::Waiting => Fired::SentOn,
            DueReply::Dispatched | DueReply::Rearmed | DueReply::Nothing => Fired::Spent,
        })
    }
}
