//! release: a worker that shuts down returns its task to the queue. The attempt doesn't count.

use crate::command::Context;
use crate::id::LeaseId;
use crate::task::decision::{Decision, Reply};
use crate::task::transition;
use crate::task::{Ending, Outcome, Task};

use super::LeaseStatus;
use super::complete::closed_otherwise;

pub(super) fn decide(task: &Task, lease: &LeaseId, context: &Context<'_>) -> Decision {
    let expired = transition::expire(task, context);
    let current = expired.as_ref().unwrap_or(task);
    let reject = match super::lease_status(current, lease) {
        LeaseStatus::Current(_) => return release_task(task, context),
        LeaseStatus::Closed(Ending::Released) => {
            return super::repeated_close(task, lease);
        }
        LeaseStatus::Closed(_) => closed_otherwise(current),
        LeaseStatus::Refused(reject) => reject,
    };
    super::refuse_expired(task, expired, reject, context)
}

fn release_task(task: &Task, context: &Context<'_>) -> Decision {
    let mut after = task.clone();
    if transition::end_attempt(&mut after, Ending::Released, None, context.now) {
        transition::finish(&mut after, Outcome::Cancelled { timeout: None }, context);
    } else {
        transition::resume_wait(&mut after, context.now);
    }
    super::update(task, after, context, Ok(Reply::Closed { duplicate: false }))
}
