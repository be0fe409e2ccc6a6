//! A turn: one worker runs an execution's code until it has ended or has to wait.
//!
//! Owns polling the code, and everything that the code does through its context. Each result is written before anything
//! that others can see follows from it. So no step with a written result runs again. A worker that has lost the lease
//! can't write, and stops.

mod begin;
mod body;
mod deliver;
mod drift;
mod drive;
mod end;
pub(crate) mod facts;
mod inline;
pub(crate) mod kept;
pub(crate) mod need;
pub(crate) mod panics;
mod plan;
pub(crate) mod published;
#[cfg(feature = "test")]
pub(crate) mod retrace;
pub(crate) mod shared;
pub(crate) mod state;
mod store;
#[cfg(test)]
mod tests;
mod waker;

pub(crate) use end::cause_of;
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_service::executions::StartedTurn;
use tickover_service::telemetry::field;
use tickover_service::warn_unless_logged;
use tokio::sync::watch;

use crate::backend::Backend;
use crate::registry::Registry;
use drive::Driver;
use kept::KeptRuns;

/// The default timeout of `on_failure` and of `on_cancel`.
pub(crate) const HANDLER: Millis = Millis::from_secs(15 * 60);

/// How a turn is run.
#[derive(Clone, Debug)]
pub(crate) struct TurnSettings {
    /// The end of the invocation that it runs in, minus the time that releasing the turn takes.
    pub(crate) limit_at: Option<Timestamp>,
    /// Where the worker asks the turn to write what it has and to end.
    pub(crate) asked_to_end: Option<watch::Receiver<bool>>,
    /// How long the code may wait for a future that isn't of its context.
    pub(crate) foreign_wait_max: Millis,
    /// Waits before a retry of up to this length are spent in the turn. For longer waits the turn is suspended.
    pub(crate) in_place: Millis,
    /// The time between the heartbeats that extend the lease: a third of it if `None`. Zero: it isn't extended.
    pub(crate) heartbeat: Option<Millis>,
}

impl Default for TurnSettings {
    fn default() -> Self {
        Self {
            limit_at: None,
            asked_to_end: None,
            foreign_wait_max: Millis::from_secs(60),
            in_place: Millis::from_secs(5),
            heartbeat: None,
        }
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    /// The code waits for something.
    Suspended,
    /// The run has ended.
    Closed,
    /// The lease was released: this worker or another one tries again later.
    Released,
    /// Another worker has the lease, or the execution has ended. Nothing more was written.
    Lost,
}

/// Runs a turn to its end.
pub(crate) async fn run_turn(
    service: &Backend,
    registry: &Registry,
    kept: &KeptRuns,
    taken: StartedTurn,
    settings: &TurnSettings,
) -> TurnEnd {
    let (queue, receipt) = (taken.execution.queue.clone(), taken.receipt.clone());
    let service = &service.of_turn(&taken.execution, taken.lease, receipt.as_deref());
    let driver = match kept.resume(service, registry, Box::new(taken), settings) {
        Ok(driver) => Ok(driver),
        // It was in memory when the turn started, and isn't any more or can't go on.
        Err(taken) if taken.since.is_some() => match service.read_turn(*taken, None).await {
            Ok(taken) => Driver::new(service, registry, taken, settings).map(Box::new),
            // Its message comes back.
            Err(error) => {
                warn_unless_logged!(error; { field::QUEUE_NAME } = %queue, %error, "can't read a turn's journal");
                return TurnEnd::Lost;
            }
        },
        Err(taken) => Driver::new(service, registry, *taken, settings).map(Box::new),
    };
    let end = match driver {
        Ok(driver) => {
            let (end, driver) = Box::pin(driver.run()).await;
            if end == TurnEnd::Suspended {
                kept.keep(driver);
            }
            end
        }
        Err(unknown) => unknown.release(service).await,
    };
    // If the lease was lost, the message stays in the queue: it may be the one that brings the execution to another
    // worker.
    if let (Some(receipt), TurnEnd::Suspended | TurnEnd::Closed | TurnEnd::Released) = (receipt, end) {
        service.done_with(&queue, &receipt).await;
    }
    end
}
