//! bounce: another request of a burst takes the place of the one that waits. Only the last one of a burst runs.

use crate::command::Context;
use crate::execution::command::Bounce;
use crate::execution::decision::{Decision, Reply};
use crate::execution::update::{expired_or_unchanged, update};
use crate::execution::{Execution, ExecutionState, Ready, closing};
use crate::limits::QUEUE_DELAY_MAX;

pub(super) fn decide(execution: &Execution, bounce: &Bounce, context: &Context<'_>) -> Decision {
    let expired = closing::expire(execution, context);
    let ready = match &execution.state {
        ExecutionState::Pending(ready) if expired.is_none() && execution.is_untouched() => ready,
        _ => return expired_or_unchanged(execution, expired, context, Ok(Reply::Bounced { taken: false })),
    };
    let now = context.now;
    let latest = execution.created_at.plus(bounce.at_most);
    let available_at = now.plus(bounce.wait).min(latest).max(now);
    // A hint that is under way stays: it is delayed again when it arrives too early. That of a paused queue comes when the
    // queue is resumed.
    let hint_later = ready.hint_later && available_at.since(now) > QUEUE_DELAY_MAX;
    let after = Execution {
        run_started_at: available_at,
        run_deadline_at: execution.timeouts.run.map(|timeout| available_at.plus(timeout)),
        parked: execution.parked.out_of_line(),
        state: ExecutionState::Pending(Ready { available_at, hint_later }),
        ..execution.clone()
    };
    let (after, new_items) = super::start::spill(after, &bounce.given, context);
    let decision = update(execution, after, context, Ok(Reply::Bounced { taken: true }));
    Decision { new_items: [new_items, decision.new_items].concat(), ..decision }
}
