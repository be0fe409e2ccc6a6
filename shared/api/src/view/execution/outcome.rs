//! How an execution ended, and why.

use tickover_core::execution::{DeadlineKind, ExecutionOutcome, Failing};
use tickover_wire::OpenEnum;
use tickover_wire::answer::{CauseCategory, CauseView, ErrorView, FailingView};

use crate::view::attempt;

const fn of(category: CauseCategory) -> CauseView {
    CauseView { category: OpenEnum::Known(category), kind: None, step: None, retries_exhausted: None }
}

/// A failure that the workflow's own failure code handles.
pub(super) fn failing(failing: &Failing) -> FailingView {
    FailingView {
        status: failing.outcome.status().into(),
        error: error(&failing.outcome),
        cause: cause(&failing.outcome),
        deadline_at: failing.deadline_at.into(),
    }
}

/// The kind of the deadline that ended it.
pub(super) const fn timeout_kind(outcome: &ExecutionOutcome) -> Option<DeadlineKind> {
    match outcome {
        ExecutionOutcome::TimedOut { kind } => Some(*kind),
        ExecutionOutcome::Completed { .. }
        | ExecutionOutcome::Failed { .. }
        | ExecutionOutcome::Cancelled { .. } => None,
    }
}

/// The error of an outcome.
pub(super) fn error(outcome: &ExecutionOutcome) -> Option<ErrorView> {
    match outcome {
        ExecutionOutcome::Failed { error, .. } => Some(attempt::error(error)),
        ExecutionOutcome::TimedOut { kind } => {
            let what = match kind {
                DeadlineKind::Execution => "the deadline of all its runs passed",
                DeadlineKind::Run => "the deadline of its run passed",
            };
            Some(ErrorView { code: "timed_out".to_owned(), message: what.to_owned() })
        }
        ExecutionOutcome::Completed { .. } | ExecutionOutcome::Cancelled { .. } => None,
    }
}

/// The cause of an outcome.
pub(super) fn cause(outcome: &ExecutionOutcome) -> Option<CauseView> {
    match outcome {
        ExecutionOutcome::Completed { .. } => None,
        ExecutionOutcome::Failed { step: None, .. } => Some(of(CauseCategory::Workflow)),
        ExecutionOutcome::Failed { step: Some(step), retries_exhausted, .. } => Some(CauseView {
            step: Some(step.clone()),
            retries_exhausted: Some(*retries_exhausted),
            ..of(CauseCategory::Step)
        }),
        ExecutionOutcome::TimedOut { kind } => {
            Some(CauseView { kind: Some(OpenEnum::Known(*kind)), ..of(CauseCategory::Timeout) })
        }
        ExecutionOutcome::Cancelled { terminated: false } => Some(of(CauseCategory::Cancelled)),
        ExecutionOutcome::Cancelled { terminated: true } => Some(of(CauseCategory::Terminated)),
    }
}
