//! suspend: a turn that can't continue ends, unless something has happened meanwhile that it hasn't seen.

use crate::command::Context;
use crate::decision::{Condition, Write};
use crate::due_slot::SlotChange;
use crate::duration::Millis;
use crate::error::Reject;
use crate::execution::command::Suspend;
use crate::execution::decision::{Decision, Reply, SuspendReply};
use crate::execution::journal::{RECHECK_AFTER, RECHECK_MAX};
use crate::execution::update::{expired_or_unchanged, turn_with_lease, update, update_in_slot};
use crate::execution::{Execution, ExecutionState, Recheck, Waiting, closing};
use crate::limits::QUEUE_DELAY_MAX;
use crate::parked::Parked;
use crate::time::Timestamp;

use super::record;

/// How many rechecks without a result make the interval grow.
const RECHECKS_COUNTED: u32 = 3;

pub(super) fn decide(execution: &Execution, suspend: &Suspend, context: &Context<'_>) -> Decision {
    let after_expiry = closing::expire(execution, context);
    if after_expiry.is_some() || turn_with_lease(execution, &suspend.lease).is_none() {
        return expired_or_unchanged(execution, after_expiry, context, Err(Reject::TurnLost));
    }
    let brought = (suspend.entries.as_slice(), suspend.values.as_ref());
    let mut after = match record::with(execution, brought, Some(suspend.cleanup), context) {
        Ok(after) => after,
        Err(reject) => return Decision::refuse(Some(execution), reject),
    };
    let answer = |reply| Ok(Reply::Suspended(reply));
    let unseen = suspend.seen_version != execution.version || suspend.seen_wakes != execution.wakes;
    // A turn that is to be cancelled waits only for what undoes its work.
    if unseen || execution.cancel_requested && !suspend.cleanup.undoes {
        if suspend.entries.is_empty() && suspend.values.is_none() {
            return Decision::unchanged(execution, answer(SuspendReply::GoOn));
        }
        return update(execution, after, context, answer(SuspendReply::GoOn));
    }
    wait(&mut after, suspend, context);
    // The tick would move the slot of a long sleep to the same instant, by a write of its own.
    let placement = if is_long_sleep(&after) { SlotChange::Latest } else { SlotChange::KeepOrLower };
    let reply = answer(SuspendReply::Suspended);
    let mut decision = update_in_slot(execution, after, placement, context, reply);
    for write in &mut decision.writes {
        if let Write::Put { condition: Condition::Unchanged { wakes, .. }, .. } = write {
            *wakes = Some(suspend.seen_wakes);
        }
    }
    decision
}

fn wait(execution: &mut Execution, suspend: &Suspend, context: &Context<'_>) {
    let now = context.now;
    let recheck = suspend.awaits_others.then(|| {
        let after = recheck_after(execution.idle_turns);
        Recheck { at: now.plus(after), after }
    });
    // A turn that waits for something in the future has done all it could, so rechecks without a result don't count as
    // poison. A turn that could have continued counts.
    if suspend.until.is_none_or(|until| until > now) {
        let harmless = RECHECKS_COUNTED.min(context.limits.idle_turns.saturating_sub(1));
        execution.idle_turns = execution.idle_turns.min(harmless);
    }
    execution.hinted_at = None;
    // Its queue was paused after the lease had ended. The wait has a hint of its own.
    execution.parked = Parked::No;
    execution.state = ExecutionState::Waiting(Waiting {
        since: now,
        seen_wakes: suspend.seen_wakes,
        until: suspend.until,
        hint_later: suspend.until.is_some_and(|until| is_far(until, now)),
        recheck,
        wake_requested: false,
        events: suspend.events.clone(),
        has_more_events: false,
    });
}

/// Whether the tick must send the hint, and nothing before that instant needs a probe.
fn is_long_sleep(execution: &Execution) -> bool {
    match &execution.state {
        ExecutionState::Waiting(waiting) => waiting.hint_later && waiting.recheck.is_none(),
        ExecutionState::Pending(_)
        | ExecutionState::Running(_)
        | ExecutionState::Closing(_)
        | ExecutionState::Ended(_) => false,
    }
}

/// Whether an instant is further away than a queue can delay its hint.
fn is_far(until: Timestamp, now: Timestamp) -> bool {
    until.since(now) > QUEUE_DELAY_MAX
}

/// The interval before the next recheck, after this many rechecks without a result.
fn recheck_after(in_vain: u32) -> Millis {
    RECHECK_AFTER.saturating_mul(4_u32.saturating_pow(in_vain.min(RECHECKS_COUNTED)).into()).min(RECHECK_MAX)
}
