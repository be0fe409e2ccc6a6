//! How an execution ended, and why.

use serde::Serialize;
use tickover_core::execution::{DeadlineKind, ExecutionOutcome, Failing};
use utoipa::ToSchema;

use crate::view::attempt::ErrorView;

/// What an end without a result goes back to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct CauseView {
    /// `step`, `workflow` (its own code), `timeout`, `cancelled` or `terminated`.
    #[schema(value_type = String)]
    pub category: &'static str,
    /// `timeout`: which deadline, `execution` or `run`; of both, the execution's counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>)]
    pub kind: Option<&'static str>,
    /// `step`: its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub step: Option<String>,
    /// `step`: whether it had used up its attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub retries_exhausted: Option<bool>,
}

impl CauseView {
    const fn of(category: &'static str) -> Self {
        Self { category, kind: None, step: None, retries_exhausted: None }
    }
}

/// A failure that the workflow's own code is dealing with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FailingView {
    /// What the execution ends as, unless that code recovers it: `failed` or `timed_out`.
    #[schema(value_type = String)]
    pub status: &'static str,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<ErrorView>,
    /// What it goes back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cause: Option<CauseView>,
    /// When that code must be done: the execution's own deadlines no longer count.
    #[schema(format = DateTime)]
    pub deadline_at: String,
}

impl From<&Failing> for FailingView {
    fn from(failing: &Failing) -> Self {
        Self {
            status: failing.outcome.status().as_str(),
            error: error(&failing.outcome),
            cause: cause(&failing.outcome),
            deadline_at: failing.deadline_at.to_rfc3339(),
        }
    }
}

/// The deadline that ended it.
pub(super) const fn timeout_kind(outcome: &ExecutionOutcome) -> Option<&'static str> {
    match outcome {
        ExecutionOutcome::TimedOut { kind } => Some(kind.as_str()),
        ExecutionOutcome::Completed { .. }
        | ExecutionOutcome::Failed { .. }
        | ExecutionOutcome::Cancelled { .. } => None,
    }
}

/// What went wrong.
pub(super) fn error(outcome: &ExecutionOutcome) -> Option<ErrorView> {
    match outcome {
        ExecutionOutcome::Failed { error, .. } => Some(error.into()),
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

/// What it goes back to.
pub(super) fn cause(outcome: &ExecutionOutcome) -> Option<CauseView> {
    match outcome {
        ExecutionOutcome::Completed { .. } => None,
        ExecutionOutcome::Failed { step: None, .. } => Some(CauseView::of("workflow")),
        ExecutionOutcome::Failed { step: Some(step), retries_exhausted, .. } => Some(CauseView {
            step: Some(step.clone()),
            retries_exhausted: Some(*retries_exhausted),
            ..CauseView::of("step")
        }),
        ExecutionOutcome::TimedOut { kind } => {
            Some(CauseView { kind: Some(kind.as_str()), ..CauseView::of("timeout") })
        }
        ExecutionOutcome::Cancelled { terminated: false } => Some(CauseView::of("cancelled")),
        ExecutionOutcome::Cancelled { terminated: true } => Some(CauseView::of("terminated")),
    }
}
