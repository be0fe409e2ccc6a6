//! `wait_in_line`: a key of the execution is full. It waits in the line, and the places that were taken for this version
//! are to be given up.

use crate::command::Context;
use crate::due_slot::SlotChange;
use crate::execution::decision::{Decision, Reply};
use crate::execution::update::{expired_or_unchanged, update_in_slot};
use crate::execution::{Execution, ExecutionState, closing};
use crate::flow::Paced;
use crate::gate::Position;
use crate::parked::Parked;

pub(super) fn decide(execution: &Execution, seen_version: u64, context: &Context<'_>) -> Decision {
    let expired = closing::expire(execution, context);
    // A turn in progress has its places, and one for later asks for them then.
    let is_ready = match &execution.state {
        ExecutionState::Pending(ready) => ready.available_at <= context.now,
        ExecutionState::Running(turn) => turn.lease_expires_at <= context.now,
        ExecutionState::Waiting(_) => true,
        ExecutionState::Closing(_) | ExecutionState::Ended(_) => false,
    };
    let changed = execution.version == seen_version && is_ready && expired.is_none();
    let reply = Ok(Reply::Changed { changed });
    if !changed {
        return expired_or_unchanged(execution, expired, context, reply);
    }
    let mut after = execution.clone();
    let comes = execution.parked.is_no() && !execution.gates().is_empty();
    if comes {
        let since = execution.ready_at().unwrap_or(context.now).min(context.now);
        after.parked = Parked::InLine(Position { since, version: execution.version + 1 });
        // It reserves another one when it has a place: others may use this one meanwhile.
        let admission = after.admission.as_deref_mut();
        admission.and_then(|admission| admission.paced.as_mut()).into_iter().for_each(Paced::forget_start);
        super::due::hint_has_come(&mut after, context.now);
    }
    let slot = if comes { SlotChange::in_line(context.limits) } else { SlotChange::KeepOrLower };
    update_in_slot(execution, after, slot, context, reply)
}
