//! bounce: another request of a burst takes the place of the one that waits. Only the last one of a burst runs.

use crate::command::Context;
use crate::task::command::Bounce;
use crate::task::decision::{Decision, Reply};
use crate::task::transition;
use crate::task::{Pending, State, Task};

pub(super) fn decide(task: &Task, bounce: &Bounce, context: &Context<'_>) -> Decision {
    if let Some(expired) = transition::expire(task, context) {
        return super::update(task, expired, context, Ok(Reply::Bounced { taken: false }));
    }
    let Some(pending) = never_claimed(task) else {
        return Decision::unchanged(task, Ok(Reply::Bounced { taken: false }));
    };
    let latest = task.created_at.plus(bounce.at_most);
    let available_at = context.now.plus(bounce.wait).min(latest).max(context.now);
    let waits = Pending {
        available_at,
        schedule_to_start_at: task.timeouts.schedule_to_start.map(|timeout| available_at.plus(timeout.after)),
        // A hint that is under way stays: it is delayed again when it arrives too early.
        hint_later: pending.hint_later && transition::is_later_than_a_delay(available_at, context.now),
        ..pending.clone()
    };
    let after = Task {
        fingerprint: bounce.fingerprint,
        input: None,
        labels: None,
        parked: task.parked.out_of_line(),
        state: State::Pending(waits),
        ..task.clone()
    };
    let given = super::schedule::Given {
        input: bounce.input.as_ref(),
        labels: bounce.labels.as_ref(),
        blob_ids: bounce.blob_ids,
    };
    let (after, new_items) = super::schedule::spill(after, &given, context);
    let decision = super::update(task, after, context, Ok(Reply::Bounced { taken: true }));
    Decision { new_items, ..decision }
}

/// How the task waits, if no worker has ever had it.
fn never_claimed(task: &Task) -> Option<&Pending> {
    let is_new = task.attempt == 0 && task.history.is_empty() && task.revived_at.is_none();
    match &task.state {
        State::Pending(pending) if is_new => Some(pending),
        State::Pending(_) | State::Running(_) | State::Ended(_) => None,
    }
}
