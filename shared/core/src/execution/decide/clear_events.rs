//! `clear_events`: all pending events of a name are cleared.

use crate::command::Context;
use crate::error::Reject;
use crate::execution::decision::{Decision, Reply};
use crate::execution::journal::{Entry, Happened};
use crate::execution::update::{expired_or_unchanged, update};
use crate::execution::{Execution, append, closing};
use crate::id::EventName;

pub(super) fn decide(
    execution: &Execution,
    name: &EventName,
    count: u32,
    seen_version: u64,
    context: &Context<'_>,
) -> Decision {
    let after_expiry = closing::expire(execution, context);
    let current = after_expiry.as_ref().unwrap_or(execution);
    if let Some(closed) = current.closed() {
        let reject = Reject::ExecutionClosed { status: closed.outcome.status() };
        return expired_or_unchanged(execution, after_expiry, context, Err(reject));
    }
    if count == 0 || seen_version != execution.version {
        return expired_or_unchanged(execution, after_expiry, context, Ok(Reply::EventsCleared(0)));
    }
    let mut after = current.clone();
    let what = Happened::EventsCleared { name: name.clone(), count };
    // This doesn't check the limits: it reduces the number of pending events.
    append::append(&mut after, &[Entry { at: context.now, what }]);
    update(execution, after, context, Ok(Reply::EventsCleared(count)))
}
