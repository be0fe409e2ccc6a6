//! cancel: ends the task at once if no worker has a lease on it, or by force. Otherwise the answer to the worker's
//! next heartbeat asks it to stop.

use crate::command::Context;
use crate::task::decision::{Decision, Reply};
use crate::task::transition;
use crate::task::{Ending, Outcome, Running, State, Task};

pub(super) fn decide(task: &Task, force: bool, context: &Context<'_>) -> Decision {
    let expired = transition::expire(task, context);
    let current = expired.as_ref().unwrap_or(task);
    let reply = |changed| Ok(Reply::Cancel { changed });
    match &current.state {
        State::Ended(_) => match expired {
            Some(after) => super::update(task, after, context, reply(false)),
            None => Decision::unchanged(task, reply(false)),
        },
        State::Running(running) if !force && running.lease_expires_at > context.now => {
            if running.cancel_requested {
                return Decision::unchanged(task, reply(false));
            }
            let mut after = by(current, context);
            after.state = State::Running(Running { cancel_requested: true, ..running.clone() });
            super::update(task, after, context, reply(true))
        }
        State::Pending(_) | State::Running(_) => {
            let mut after = by(current, context);
            transition::end_attempt(&mut after, Ending::Cancelled, None, context.now);
            transition::finish(&mut after, Outcome::Cancelled { timeout: None }, context);
            super::update(task, after, context, reply(true))
        }
    }
}

/// The task with the operator whose call it is.
fn by(task: &Task, context: &Context<'_>) -> Task {
    let by = context.by.cloned().map(Box::new);
    Task { by: by.or_else(|| task.by.clone()), ..task.clone() }
}
