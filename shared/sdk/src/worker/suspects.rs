//! Work of a queue that may have killed another worker: it runs one piece at a time, beside everything else. If the process
//! dies, at most one of them is the cause, and counts the loss.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use tickover_core::id::QueueName;
use tickover_service::claim::Suspect;
use tokio::sync::watch;

use super::{Finished, Worker};

/// As many may wait. The messages of others are received again when this worker's claim on them is over.
const WAITING_MAX: usize = 100;

/// Those that wait. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Suspects(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    suspects: VecDeque<Suspect>,
    /// Whether they are being run.
    is_running: bool,
}

impl Suspects {
    /// Adds more. Returns what runs them all, one after the other, unless that is running already.
    pub(super) fn run(
        &self,
        more: Vec<Suspect>,
        worker: &Worker,
        queue: &QueueName,
        stopped: watch::Receiver<bool>,
    ) -> Option<BoxFuture<'static, Finished>> {
        let mut waiting = self.lock();
        for suspect in more {
            // One that waited for long has been received again.
            waiting.suspects.retain(|one| !one.is_same(&suspect));
            if waiting.suspects.len() < WAITING_MAX {
                waiting.suspects.push_back(suspect);
            }
        }
        if waiting.is_running || waiting.suspects.is_empty() {
            return None;
        }
        waiting.is_running = true;
        let (suspects, worker, queue) = (self.clone(), worker.clone(), queue.clone());
        Some(Box::pin(async move {
            while let Some(suspect) = suspects.next().filter(|_| !*stopped.borrow()) {
                worker.start_suspect(&queue, &suspect).await;
            }
            Finished::Nothing
        }))
    }

    fn next(&self) -> Option<Suspect> {
        let mut waiting = self.lock();
        let next = waiting.suspects.pop_front();
        waiting.is_running = next.is_some();
        next
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
