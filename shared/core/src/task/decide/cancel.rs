//! cancel: at once where nobody works on it, else on the worker's next sign of life; by force at once.

use crate::command::Context;
use crate::task::decision::{CancelReply, Decision, Reply};
use crate::task::transition;
use crate::task::{Ending, Outcome, Running, State, Task};

pub(super) fn decide(task: &Task, force: bool, context: &Context<'_>) -> Decision {
    let settled = transition::settle(task, context);
    let current = settled.as_ref().unwrap_or(task);
    let outcome = |reply| Ok(Reply::Cancel(reply));
    match &current.state {
        State::Ended(_) => match settled {
            Some(after) => super::update(task, after, context, outcome(CancelReply::AlreadyFinished)),
            None => Decision::unchanged(Some(task), outcome(CancelReply::AlreadyFinished)),
        },
        State::Running(running) if !force && running.lease_expires_at > context.now => {
            if running.cancel_requested {
                return Decision::unchanged(Some(task), outcome(CancelReply::Requested));
            }
            let mut after = current.clone();
            after.state = State::Running(Running { cancel_requested: true, ..running.clone() });
            super::update(task, after, context, outcome(CancelReply::Requested))
        }
        State::Pending(_) | State::Running(_) => {
            let mut after = current.clone();
            transition::end_attempt(&mut after, Ending::Cancelled, None, context.now);
            transition::finish(&mut after, Outcome::Cancelled { timeout: None }, context);
            super::update(task, after, context, outcome(CancelReply::Cancelled))
        }
    }
}
