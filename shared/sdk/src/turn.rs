//! A turn: an execution's code runs on one worker until it has ended or can't go on by itself.
//!
//! The code is polled here, and all that it does by its context is done here. What happens is written down before
//! anything follows from it that others could see; then it is never done twice. Whoever loses the turn to another
//! worker can't write any more, and stops.

mod begin;
mod body;
mod deliver;
mod drift;
mod drive;
mod end;
mod inline;
pub(crate) mod need;
pub(crate) mod panics;
mod plan;
pub(crate) mod state;
mod store;
#[cfg(test)]
mod tests;
mod waker;

use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_service::Service;
use tickover_service::executions::StartedTurn;

use crate::registry::Registry;

/// How long the code that runs after a failure has.
pub(crate) const ON_FAILURE: Millis = Millis::from_secs(15 * 60);

/// How a turn is run.
#[derive(Clone, Debug)]
pub(crate) struct TurnSettings {
    /// When the invocation that it runs in ends, with what it takes to say good-bye left out.
    pub(crate) limit_at: Option<Timestamp>,
    /// How long the code may wait for what isn't its context's.
    pub(crate) foreign_wait_max: Millis,
    /// Waits before a retry up to this long are spent here; longer ones suspend.
    pub(crate) in_place: Millis,
    /// Whether the lease is renewed.
    pub(crate) heartbeats: bool,
}

impl Default for TurnSettings {
    fn default() -> Self {
        Self {
            limit_at: None,
            foreign_wait_max: Millis::from_secs(60),
            in_place: Millis::from_secs(5),
            heartbeats: true,
        }
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    /// The code waits for something.
    Suspended,
    /// The run is over.
    Closed,
    /// It was given back: another worker, or this one, tries again later.
    Released,
    /// Another worker has the execution, or it has ended meanwhile. Nothing more was written.
    Lost,
}

/// Runs a turn to its end.
pub(crate) async fn run_turn(
    service: &Service,
    registry: &Registry,
    taken: StartedTurn,
    settings: &TurnSettings,
) -> TurnEnd {
    let (queue, receipt) = (taken.execution.queue.clone(), taken.receipt.clone());
    let end = match drive::Driver::new(service, registry, taken, settings) {
        Ok(driver) => Box::pin(driver.run()).await,
        Err(unknown) => unknown.release(service).await,
    };
    // A turn that was lost leaves its message alone: it may be what brings the execution to another worker.
    if let (Some(receipt), TurnEnd::Suspended | TurnEnd::Closed | TurnEnd::Released) = (receipt, end) {
        service.done_with(&queue, &receipt).await;
    }
    end
}
