//! The entry point of all decisions about crons. It dispatches, and sets the due slots of records.

mod advance;
mod define;
mod operate;

use super::command::Command;
use super::decision::{Decision, Reply};
use super::due_slot;
use super::{Cron, HISTORY};
use crate::command::Context;
use crate::decision::{Condition, Write};
use crate::error::Reject;
use crate::limits::CONTROL_RECORD_BYTES;
use crate::size;
use crate::time::Timestamp;

/// Decides a command on a cron, or on an id without a cron.
///
/// `record` may be a deleted cron. A new cron with its id is then written over it.
pub fn decide(record: Option<&Cron>, command: &Command, context: &Context<'_>) -> Decision {
    let live = record.filter(|record| !record.is_deleted());
    let known = |decide: &dyn Fn(&Cron) -> Decision| {
        live.map_or_else(|| Decision::refuse(None, Reject::NoCron), decide)
    };
    match command {
        Command::Create(definition) => define::create(record, definition, context),
        Command::Replace(definition) => define::replace(record, definition, context),
        Command::Pause => known(&|record| operate::pause(record, context)),
        Command::Resume => known(&|record| operate::resume(record, context)),
        Command::Trigger => known(&|record| operate::trigger(record, context)),
        Command::Delete => known(&|record| operate::delete(record, context)),
        Command::Due { ended } => known(&|record| advance::due(record, ended, context)),
        Command::Started { results } => known(&|record| advance::started(record, results, context)),
    }
}

/// The decision to write `after`, if it differs from the stored record.
fn write_record(before: Option<&Cron>, mut after: Cron, reply: Reply, context: &Context<'_>) -> Decision {
    drop_old_runs(&mut after, context.now);
    let mut writes = due_slot::extend_request(&mut after, context.now);
    let (due, timer) = due_slot::slot_and_timer(before, &after, context.now, context.limits);
    after.due = due;
    if before == Some(&after) {
        return Decision::of(after, Ok(reply));
    }
    after.version = before.map_or(1, |before| before.version + 1);
    after.nonce = context.nonce;
    if let Some(by) = context.by {
        after.by = Some(Box::new(by.clone()));
    }
    if size::of(&after) > CONTROL_RECORD_BYTES {
        after.by = None;
    }
    let before = before.cloned().map(Into::into);
    writes.push(Write::Put { before, after: after.clone().into(), condition: Condition::Same });
    Decision { writes, effects: timer.into_iter().collect(), ..Decision::of(after, Ok(reply)) }
}

/// Keeps only the last of the runs that the cron no longer follows.
fn drop_old_runs(after: &mut Cron, now: Timestamp) {
    // From it the next trigger learns that its instant is used.
    let newest = after.newest_trigger().filter(|at| *at >= now);
    let over = after.runs.iter().filter(|run| !run.state.is_live()).count();
    let mut surplus = over.saturating_sub(HISTORY);
    after.runs.retain(|run| {
        let is_newest = run.occurrence.manual && Some(run.occurrence.at) == newest;
        let forgotten = surplus > 0 && !run.state.is_live() && !is_newest;
        surplus -= usize::from(forgotten);
        !forgotten
    });
}
