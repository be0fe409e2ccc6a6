//! `note_progress`: records the progress of a caller, so that the next one continues from there. A caller that is behind
//! another is refused.

use crate::command::Context;
use crate::due_slot::SlotChange;
use crate::duration::Millis;
use crate::execution::command::NoteProgress;
use crate::execution::decision::{Decision, Reply};
use crate::execution::update::update_in_slot;
use crate::execution::{Execution, ExecutionState, retention};

/// How long a record is kept at least after the expiry of its items was extended.
const REOPEN_WITHIN: Millis = Millis::from_days(1);

pub(super) fn decide(execution: &Execution, gone: &NoteProgress, context: &Context<'_>) -> Decision {
    let ended_at = execution.closed().map(|closed| closed.ended_at);
    // After a new run or another end, it has other items and other open steps.
    let is_same = gone.run == execution.run && gone.ended_at == ended_at;
    if !is_same || !retention::is_ahead(execution, gone.progress) {
        return Decision::unchanged(execution, Ok(Reply::Changed { changed: false }));
    }
    let mut after = execution.clone();
    retention::note(&mut after, gone.progress);
    if let ExecutionState::Ended(closed) = &mut after.state {
        // The expiry of its items is extended because it is to be reopened, which may take more than this call.
        closed.expires_at = closed.expires_at.max(context.now.plus(REOPEN_WITHIN));
    }
    if matches!(execution.state, ExecutionState::Closing(_)) {
        // The close makes progress: the tick counts its backstop from here.
        after.hinted_at = Some(context.now);
    }
    // Once the expiry of all items is extended, the next extension is far away.
    let is_kept_on = after.kept != execution.kept && ended_at.is_none();
    let placement = if is_kept_on { SlotChange::Latest } else { SlotChange::KeepOrLower };
    update_in_slot(execution, after, placement, context, Ok(Reply::Changed { changed: true }))
}
