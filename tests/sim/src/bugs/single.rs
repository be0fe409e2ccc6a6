//! Bugs of unique tasks and bursts.

use tickover_core::command::Context;
use tickover_core::decision::Write;
use tickover_core::duration::Millis;
use tickover_core::error::{Reject, TakenBy};
use tickover_core::id::RecordId;
use tickover_core::record::Record;
use tickover_core::retry::MaxAttempts;
use tickover_core::task::Task;
use tickover_core::task::command::{Bounce, Command};
use tickover_core::task::decision::Decision;

use super::Bug;
use crate::ledger::Ledger;
use crate::plan::single::KeyUse;

/// The core's decision on a unique task or a burst, with the bug of this run; `None` if the bug has no effect on it.
pub(super) fn decide_single(
    bug: Bug,
    task: Option<&Task>,
    command: &Command,
    context: &Context<'_>,
) -> Option<Decision> {
    if let Command::Schedule(schedule) = command {
        let is_fence =
            schedule.retry.max_attempts == MaxAttempts::Skip && KeyUse::of(&schedule.kind).is_some();
        return (bug == Bug::LateTaskNotFenced && is_fence)
            .then(|| Decision::refuse(task, Reject::IdConflict { by: TakenBy::Task, since: context.now }));
    }
    let Command::Bounce(bounce) = command else { return None };
    if bug == Bug::FirstOfBurstRuns {
        let input = task?.input.clone();
        let decision = tickover_core::task::decide(task, command, context);
        return Some(super::rules::edited(decision, |after| after.input.clone_from(&input)));
    }
    (bug == Bug::BurstUnbounded).then(|| {
        let at_most = Millis::from_secs(86_400);
        let command = Command::Bounce(Box::new(Bounce { at_most, ..(**bounce).clone() }));
        tickover_core::task::decide(task, &command, context)
    })
}

/// Lets a key be taken whoever has it.
pub(super) fn take_key(ledger: &Ledger, write: &mut Write) {
    if let Write::Put { before, after: Record::Key(record), .. } = write {
        *before = ledger.read(RecordId::Key(record.key));
    }
}
