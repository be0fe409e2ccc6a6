//! Deliberate bugs in the rules or in the table. A check that finds none of them checks nothing.

use tickover_core::command::Context;
use tickover_core::decision::{Condition, Effect, Write};
use tickover_core::due::Due;
use tickover_core::id::LeaseId;
use tickover_core::record::Record;
use tickover_core::task::command::{Command, Complete, Fail};
use tickover_core::task::decide;
use tickover_core::task::decision::Decision;
use tickover_core::task::{Pending, State, Task};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A report is accepted from any worker: its lease isn't compared with the holder's.
    NoFence,
    /// The table doesn't check the version that a write was decided on.
    AnyVersion,
    /// A claim keeps the record's due slot, even if its attempt times out earlier.
    ClaimKeepsDueSlot,
    /// A write that keeps the due slot has no condition that the slot is still early enough.
    NoDueSlotCondition,
    /// The tick enforces a deadline on any record, even on one that has ended.
    ExpiryOfAnything,
    /// The tick records expiries and moves due slots, but never sends a hint again.
    HintsSentOnce,
    /// The tick doesn't record that an instant has passed.
    NothingExpires,
}

impl Bug {
    /// The core's decision, changed by the bug.
    pub(super) fn decide(
        bug: Option<Self>,
        task: Option<&Task>,
        command: &Command,
        context: &Context<'_>,
    ) -> Decision {
        let is_look = matches!(command, Command::Due(_) | Command::Timer { .. });
        match bug {
            Some(Self::NoFence) => decide(task, &with_holders_lease(task, command), context),
            Some(Self::ClaimKeepsDueSlot) => {
                let mut decision = decide(task, command, context);
                if matches!(command, Command::Claim(_)) {
                    decision.writes.iter_mut().for_each(leave_due);
                }
                decision
            }
            Some(Self::NoDueSlotCondition) => {
                let mut decision = decide(task, command, context);
                decision.writes.iter_mut().for_each(drop_due_condition);
                decision
            }
            Some(Self::ExpiryOfAnything) => match task {
                Some(ended) if is_look && ended.ended().is_some() => expire(ended, command, context),
                Some(_) | None => decide(task, command, context),
            },
            Some(Self::HintsSentOnce) => {
                let mut decision = decide(task, command, context);
                decision.effects.retain(|effect| !is_look || matches!(effect, Effect::Timer(_)));
                decision
            }
            Some(Self::NothingExpires) if is_look => {
                let too_early = task.map_or(context.now, |task| task.created_at);
                decide(task, command, &Context { now: too_early, ..*context })
            }
            None | Some(Self::AnyVersion | Self::NothingExpires) => decide(task, command, context),
        }
    }
}

fn with_holders_lease(task: Option<&Task>, command: &Command) -> Command {
    let holder = task.and_then(Task::running).map(|running| running.lease);
    let lease = |own: LeaseId| holder.unwrap_or(own);
    match command {
        Command::Complete(complete) => {
            Command::Complete(Complete { lease: lease(complete.lease), ..complete.clone() })
        }
        Command::Fail(fail) => Command::Fail(Fail { lease: lease(fail.lease), ..fail.clone() }),
        other => other.clone(),
    }
}

fn leave_due(write: &mut Write) {
    if let Write::Put { before: Some(Record::Task(before)), after: Record::Task(after), .. } = write {
        after.due = before.due;
    }
    drop_due_condition(write);
}

fn drop_due_condition(write: &mut Write) {
    if let Write::Put { condition: Condition::Unchanged { due_no_later_than, .. }, .. } = write {
        *due_no_later_than = None;
    }
}

/// Decides as if the task were still waiting, and overwrites its end.
fn expire(ended: &Task, command: &Command, context: &Context<'_>) -> Decision {
    let available_at = ended.created_at;
    let waiting = Pending {
        available_at,
        schedule_to_start_at: None,
        hint_later: false,
        since_version: 0,
        unread_since: None,
    };
    let due = Due { at: available_at, kind: tickover_core::due::DueKind::Instant, shard: 0 };
    let open = Task { state: State::Pending(waiting), due: Some(due), ..ended.clone() };
    let mut decision = decide(Some(&open), command, context);
    for write in &mut decision.writes {
        if let Write::Put { before: Some(Record::Task(before)), .. } = write {
            **before = ended.clone();
        }
    }
    decision
}
