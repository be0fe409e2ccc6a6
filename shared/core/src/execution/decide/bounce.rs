//! bounce: another request of a burst takes the place of the one that waits. Only the last one of a burst runs.

use crate::command::Context;
use crate::execution::command::Bounce;
use crate::execution::decision::{Decision, Reply};
use crate::execution::update::{expired_or_unchanged, update};
use crate::execution::{Execution, closing};

pub(super) fn decide(execution: &Execution, bounce: &Bounce, context: &Context<'_>) -> Decision {
    let expired = closing::expire(execution, context);
    if expired.is_some() || !execution.is_untouched() {
        return expired_or_unchanged(execution, expired, context, Ok(Reply::Bounced { taken: false }));
    }
    let mut after = execution.clone();
    let latest = execution.created_at.plus(bounce.at_most);
    let available_at = context.now.plus(bounce.wait).min(latest).max(context.now);
    after.run_started_at = available_at;
    after.run_deadline_at = after.timeouts.run.map(|timeout| available_at.plus(timeout));
    closing::release_turn(&mut after, available_at, context.now);
    let (after, new_items) = super::start::spill(after, &bounce.given, context);
    let decision = update(execution, after, context, Ok(Reply::Bounced { taken: true }));
    Decision { new_items: [new_items, decision.new_items].concat(), ..decision }
}
