//! complete: the worker's result. Only the first report counts.

use crate::command::Context;
use crate::decision::NewItem;
use crate::error::Reject;
use crate::payload::{BlobRef, Json, Payload};
use crate::task::command::Complete;
use crate::task::decision::{Decision, Reply};
use crate::task::transition;
use crate::task::{Ending, Outcome, Task};

use super::LeaseStatus;

/// How much longer than its record a payload is kept that was written when the task ended.
pub(super) const MARGIN: crate::duration::Millis = crate::duration::Millis::from_secs(86_400);

pub(super) fn decide(task: &Task, complete: &Complete, context: &Context<'_>) -> Decision {
    let expired = transition::expire(task, context);
    let current = expired.as_ref().unwrap_or(task);
    let reject = match super::lease_status(current, &complete.lease) {
        LeaseStatus::Current(_) => return close(task, complete, context),
        LeaseStatus::Closed(Ending::Completed) => {
            return super::repeated_close(task, &complete.lease);
        }
        LeaseStatus::Closed(_) => closed_otherwise(current),
        LeaseStatus::Refused(reject) => reject,
    };
    super::refuse_expired(task, expired, reject, context)
}

/// The attempt was closed before, by another kind of report.
pub(super) fn closed_otherwise(task: &Task) -> Reject {
    match task.ended() {
        Some(_) => Reject::AlreadyTerminal { status: task.status() },
        None => Reject::LeaseLost,
    }
}

fn close(task: &Task, complete: &Complete, context: &Context<'_>) -> Decision {
    let mut after = task.clone();
    transition::end_attempt(&mut after, Ending::Completed, None, context.now);
    let output = complete.output.clone().map(Payload::Inline);
    transition::finish(&mut after, Outcome::Completed { output }, context);
    if complete.output.is_some() && !super::fits(&after) {
        // No attempt follows that would need them.
        after.details = None;
    }
    let mut new_items = Vec::new();
    if complete.output.is_some() && !super::fits(&after) {
        // A result in an item of its own is one write more. The step's name never causes that.
        after.forget_step();
    }
    if let Some(body) = complete.output.as_ref().filter(|_| !super::fits(&after)) {
        if let (Some(parent), Some(known)) = (&mut after.parent, &task.parent) {
            parent.step.clone_from(&known.step);
        }
        let at = closing_blob(task, complete.blob_id, body, context);
        let output = Some(Payload::Blob(at.clone()));
        transition::finish(&mut after, Outcome::Completed { output }, context);
        new_items.push(NewItem::Blob { at, body: body.clone() });
    }
    let decision = super::update(task, after, context, Ok(Reply::Closed { duplicate: false }));
    Decision { new_items, ..decision }
}

/// The blob of a payload written when the task ends. It is kept a little longer than the record.
pub(super) fn closing_blob(
    task: &Task,
    id: crate::id::BlobId,
    body: &Json,
    context: &Context<'_>,
) -> BlobRef {
    let expires_at = context.now.plus(context.limits.kept(task.parent.is_some())).plus(MARGIN);
    BlobRef { id, bytes: u32::try_from(body.len()).unwrap_or(u32::MAX), expires_at }
}
