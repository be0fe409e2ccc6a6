//! fail: the attempt failed. The retry policy decides whether there is another one.

use crate::command::Context;
use crate::decision::NewItem;
use crate::payload::{BlobRef, Json};
use crate::task::command::Fail;
use crate::task::decision::{Decision, Reply};
use crate::task::transition;
use crate::task::{Ending, Outcome, Task};

use super::LeaseStatus;
use super::complete::{closed_otherwise, closing_blob};

pub(super) fn decide(task: &Task, fail: &Fail, context: &Context<'_>) -> Decision {
    let expired = transition::expire(task, context);
    let current = expired.as_ref().unwrap_or(task);
    let reject = match super::lease_status(current, &fail.lease) {
        LeaseStatus::Current(_) => return close(task, fail, context),
        LeaseStatus::Closed(Ending::Failed) => {
            return super::repeated_close(task, &fail.lease);
        }
        LeaseStatus::Closed(_) => closed_otherwise(current),
        LeaseStatus::Refused(reject) => reject,
    };
    super::refuse_expired(task, expired, reject, context)
}

fn close(task: &Task, fail: &Fail, context: &Context<'_>) -> Decision {
    let decision = end(task, fail, None, context);
    if !is_cut(&decision, fail) {
        return decision;
    }
    // The record has no space for the whole message.
    let body = Json::string(&fail.error.message);
    let at = closing_blob(task, fail.blob_id, &body, context);
    let decision = end(task, fail, Some(at.clone()), context);
    Decision { new_items: vec![NewItem::Blob { at, body }], ..decision }
}

fn end(task: &Task, fail: &Fail, message: Option<BlobRef>, context: &Context<'_>) -> Decision {
    let mut after = task.clone();
    let cancelling = transition::end_attempt(&mut after, Ending::Failed, Some(&fail.error), context.now);
    let retryable = fail.retryable && task.retry.is_retryable(&fail.error.code);
    let otherwise = Outcome::Failed { error: fail.error.clone(), message };
    transition::retry_or_finish(&mut after, cancelling, retryable, &fail.error, otherwise, context);
    super::update(task, after, context, Ok(Reply::Closed { duplicate: false }))
}

/// Whether the task has failed for good with a shorter message than its worker sent. A task that is retried keeps
/// only the short message.
fn is_cut(decision: &Decision, fail: &Fail) -> bool {
    let ended = decision.record().and_then(Task::ended);
    ended.is_some_and(|ended| match &ended.outcome {
        Outcome::Failed { error, .. } => error.message.len() < fail.error.message.len(),
        Outcome::Completed { .. }
        | Outcome::TimedOut { .. }
        | Outcome::Cancelled { .. }
        | Outcome::Skipped => false,
    })
}
