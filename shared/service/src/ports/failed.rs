//! What a store counts of a failure.

use std::borrow::Cow;

use tickover_core::execution::{Execution, ExecutionOutcome};
use tickover_core::task::Task;
use tickover_core::time::Timestamp;

/// A task or an execution that has failed or timed out, as its group counts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed<'a> {
    /// Its id.
    pub id: &'a str,
    /// The task's kind, or the execution's workflow.
    pub of: &'a str,
    /// The code of its error. `None` for an execution whose deadline passed, which has none.
    pub code: Option<&'a str>,
    /// The step because of which an execution failed; the steps of a fan-out are one: `label[…]`.
    pub step: Option<Cow<'a, str>>,
    pub at: Timestamp,
}

impl<'a> Failed<'a> {
    pub fn of_task(task: &'a Task) -> Option<Self> {
        let (code, ended) = (task.error_code()?, task.ended()?);
        let (id, of) = (task.id.as_str(), task.kind.as_str());
        Some(Self { id, of, code: Some(code), step: None, at: ended.ended_at })
    }

    pub fn of_execution(execution: &'a Execution) -> Option<Self> {
        let closed = execution.closed()?;
        let step = match &closed.outcome {
            ExecutionOutcome::Failed { step, .. } => step.as_deref().map(of_fan_out),
            ExecutionOutcome::TimedOut { .. } => None,
            ExecutionOutcome::Completed { .. } | ExecutionOutcome::Cancelled { .. } => return None,
        };
        let (id, of) = (execution.id.as_str(), execution.workflow.as_str());
        Some(Self { id, of, code: execution.error_code(), step, at: closed.ended_at })
    }
}

/// A step's name; that of an item of a fan-out without its number.
fn of_fan_out(step: &str) -> Cow<'_, str> {
    match step.strip_suffix(']').and_then(|step| step.rsplit_once('[')) {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            Cow::Owned(format!("{name}[…]"))
        }
        _ => Cow::Borrowed(step),
    }
}
