//! A task's attempts: those that have ended and the one that runs.

use tickover_core::task::{Failure, PastAttempt, Running, Task};
use tickover_wire::OpenEnum;
use tickover_wire::answer::{AttemptOutcome, AttemptView, ErrorView};

/// The error of a failure.
pub(super) fn error(failure: &Failure) -> ErrorView {
    ErrorView { code: failure.code.clone(), message: failure.message.clone() }
}

fn past(past: &PastAttempt) -> AttemptView {
    AttemptView {
        attempt: past.attempt,
        worker: past.worker.clone(),
        claimed_at: past.claimed_at.map(Into::into),
        ended_at: Some(past.ended_at.into()),
        outcome: Some(OpenEnum::Known(AttemptOutcome::from(past.ending))),
        error: past.error.as_ref().map(error),
    }
}

fn running(attempt: u32, running: &Running) -> AttemptView {
    AttemptView {
        attempt,
        worker: running.worker.clone(),
        claimed_at: Some(running.claimed_at.into()),
        ended_at: None,
        outcome: None,
        error: None,
    }
}

/// The last attempts, oldest first.
pub(super) fn attempts(task: &Task) -> Vec<AttemptView> {
    let current = task.running().map(|held| running(task.attempt, held));
    task.history.iter().map(past).chain(current).collect()
}
