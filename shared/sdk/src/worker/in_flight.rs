//! What a worker has in flight: enough to release it if there is no time left to finish it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickover_core::duration::Millis;
use tickover_core::execution::Execution;
use tickover_core::execution::command::{Cleanup, ReleaseReason};
use tickover_core::id::{LeaseId, TaskId};
use tickover_service::claim::ClaimedTask;
use tickover_service::executions::Work;
use tickover_service::telemetry::field;
use tickover_service::warn_unless_logged;
use tokio::sync::watch;

/// All turns and tasks that a worker has in flight. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct InFlight(Arc<Mutex<All>>);

#[derive(Default)]
struct All {
    held: BTreeMap<u64, Held>,
    next: u64,
}

struct Held {
    leased: Leased,
    /// Says that a turn has to end.
    ask: Arc<watch::Sender<bool>>,
}

/// A claimed turn or task.
pub(super) enum Leased {
    Turn { record: Box<Execution>, lease: LeaseId, receipt: Option<String> },
    Task { id: TaskId, token: String },
}

/// Marks a turn or task as in flight. Dropping this doesn't end that: see [`InFlight::empty`].
pub(super) struct InFlightGuard {
    in_flight: InFlight,
    number: u64,
    asked: watch::Receiver<bool>,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hold(&self, leased: Leased) -> InFlightGuard {
        let mut all = self.lock();
        all.next += 1;
        let number = all.next;
        let (ask, asked) = watch::channel(false);
        all.held.insert(number, Held { leased, ask: Arc::new(ask) });
        InFlightGuard { in_flight: self.clone(), number, asked }
    }

    pub(super) fn count(&self) -> usize {
        self.lock().held.len()
    }

    /// Asks the turns in flight to write what they have and to end. The future waits until each of them has ended.
    pub(super) fn ask_turns_to_end(&self) -> impl Future<Output = ()> + use<> {
        let all = self.lock();
        let turns = all.held.values().filter(|held| matches!(held.leased, Leased::Turn { .. }));
        let asks: Vec<_> = turns.map(|held| Arc::clone(&held.ask)).collect();
        drop(all);
        for ask in &asks {
            ask.send_replace(true);
        }
        async move {
            for ask in asks {
                // A turn lets go of the other end when it ends.
                ask.closed().await;
            }
        }
    }

    /// Removes and returns everything in flight, including the work whose guard was just dropped.
    pub(super) fn empty(&self) -> Vec<Leased> {
        std::mem::take(&mut self.lock().held).into_values().map(|held| held.leased).collect()
    }
}

impl InFlightGuard {
    /// Where a turn is asked to end.
    pub(super) fn asked_to_end(&self) -> watch::Receiver<bool> {
        self.asked.clone()
    }

    /// Marks the work as done.
    pub(super) fn remove(self) {
        self.in_flight.lock().held.remove(&self.number);
    }
}

impl Leased {
    pub(super) fn of(work: &Work) -> Self {
        match work {
            Work::Turn(taken) => {
                let (lease, receipt) = (taken.lease, taken.receipt.clone());
                Self::Turn { record: Box::new(taken.execution.clone()), lease, receipt }
            }
            Work::Task(claimed) => Self::of_task(claimed),
        }
    }

    pub(super) fn of_task(claimed: &ClaimedTask) -> Self {
        Self::Task { id: claimed.task.id.clone(), token: claimed.token.clone() }
    }

    /// Releases it. If that fails, it becomes available again when its lease expires. Code of it that has run may have
    /// registered undo steps that nobody knows of.
    pub(super) async fn give_back(self, service: &Backend, has_run: bool) {
        match self {
            Self::Turn { record, lease, receipt } => {
                let service = service.of_turn(&record, lease, receipt.as_deref());
                let cleanup = (!has_run).then(|| Cleanup::of(&record));
                let (after, reason) = (Millis::ZERO, ReleaseReason::ByWorker);
                match service.release_turn(&record, lease, after, reason, cleanup).await {
                    Ok(()) => {
                        if let Some(receipt) = receipt {
                            service.done_with(&record.queue, &receipt).await;
                        }
                    }
                    Err(error) => {
                        warn_unless_logged!(error; { field::EXECUTION_ID } = %record.id, %error, "can't release the turn");
                    }
                }
            }
            Self::Task { id, token } => {
                if let Err(error) = service.release(&id, &token).await {
                    warn_unless_logged!(error; { field::TASK_ID } = %id, %error, "can't release the task");
                }
            }
        }
    }
}
use crate::backend::Backend;
