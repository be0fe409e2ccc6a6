//! How long the parts of an execution are kept: payloads in items of their own, and segments of its journal.
//!
//! Each part has an end from the beginning, far enough away for most executions to be over by then, with their
//! retention. So one that nothing points to, because a worker died or was refused, goes by itself, and so do all
//! parts of an execution that has ended. Only what stays open for longer has its parts kept on, by the tick.
//!
//! What counts is [`Execution::kept`]: everything that the record points to is kept at least until then. What a
//! pointer says of its item is only the least: an end is moved later, never earlier, and pointers in segments stay.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::decision::Write;
use crate::duration::Millis;
use crate::execution::{Execution, ExecutionState, append, blobs};
use crate::limits::{KEPT_FOR_PARENT, Limits};
use crate::payload::Payload;
use crate::time::Timestamp;

/// How long parts are kept at first for an execution that may stay open, its retention not counted.
const OPEN_FOR: Millis = Millis::from_days(60);
/// They are kept on once an execution could stay open for no more than this.
const OPEN_FOR_LEAST: Millis = Millis::from_days(30);
/// The same for one that has a parent, whose record is kept for longer.
const OPEN_FOR_LEAST_OF_CHILD: Millis = Millis::from_days(10);
/// How long after its deadline an execution's parts are kept, its retention not counted: a deadline may be enforced
/// late, and what deals with its failure takes time.
const AFTER_DEADLINE: Millis = Millis::from_days(7);
/// They are kept on once it is less than this.
const AFTER_DEADLINE_LEAST: Millis = Millis::from_days(1);
/// How long before it is written into a journal a payload may have been written itself.
const AHEAD: Millis = Millis::from_days(7);

/// How far somebody has come who ends what an execution has left open, or goes through all that it points to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Open remote steps and children that have been ended, by their names in order.
    #[serde(rename = "s", default, skip_serializing_if = "is_zero")]
    pub steps: u32,
    /// Entries of the journal whose parts are kept until `to`, oldest first.
    #[serde(rename = "e", default, skip_serializing_if = "is_zero")]
    pub entries: u32,
    /// Until when they are.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Until when a payload is kept that is on its way into the journal of an execution.
pub fn ahead_of_journal(now: Timestamp, limits: &Limits) -> Timestamp {
    now.plus(OPEN_FOR).plus(AHEAD).plus(limits.retention)
}

/// Until when the parts of an execution have to be kept that are not kept for long enough; `None` if they are, or
/// there are none. One that has ended is taken to go on now. What somebody has begun is gone on with, if it is enough.
pub fn missing_time(execution: &Execution, now: Timestamp, limits: &Limits) -> Option<Timestamp> {
    let kept = execution.kept?;
    let (enough, to) = match &execution.state {
        ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_) => {
            (least(execution, now, limits), at_first(execution, now, limits))
        }
        ExecutionState::Closing(closed) => (closed.expires_at, closed.expires_at),
        ExecutionState::Ended(_) => (
            now.plus(open_for_least(execution)).plus(limits.retention),
            now.plus(OPEN_FOR).plus(limits.retention),
        ),
    };
    let begun = execution.progress.and_then(|progress| progress.to).filter(|begun| *begun >= enough);
    (kept < enough).then(|| begun.unwrap_or(to))
}

/// Whether parts aren't kept for as long as the record that has closed.
pub(super) fn ends_too_early(execution: &Execution) -> bool {
    let closed = execution.closed();
    closed.is_some_and(|closed| execution.kept.is_some_and(|kept| kept < closed.expires_at))
}

/// When the tick has to see to the parts of an open execution.
pub(super) fn look_at(execution: &Execution, limits: &Limits) -> Option<Timestamp> {
    let kept = execution.kept.filter(|_| execution.closed().is_none())?;
    let is_enough = |at: Timestamp| {
        kept >= at.plus(AFTER_DEADLINE_LEAST).plus(for_parent(execution)).plus(limits.retention)
    };
    let for_good = ends_by(execution).is_some_and(is_enough);
    (!for_good).then(|| kept.minus(limits.retention).minus(open_for_least(execution)))
}

/// Until when parts are kept that are new now.
pub(super) fn at_first(execution: &Execution, now: Timestamp, limits: &Limits) -> Timestamp {
    // One that starts later has nothing to do before that.
    let from = match &execution.state {
        ExecutionState::Pending(ready) => ready.available_at.max(now),
        ExecutionState::Running(_)
        | ExecutionState::Waiting(_)
        | ExecutionState::Closing(_)
        | ExecutionState::Ended(_) => now,
    };
    until(execution, [from.plus(OPEN_FOR), now.plus(AFTER_DEADLINE)], AFTER_DEADLINE, limits)
}

/// Until when the parts of an open execution must be kept at least.
fn least(execution: &Execution, now: Timestamp, limits: &Limits) -> Timestamp {
    until(execution, [now.plus(open_for_least(execution)), now], AFTER_DEADLINE_LEAST, limits)
}

/// As long as that, but no longer than needed by a deadline, and never less than the second.
fn until(
    execution: &Execution,
    [at_most, at_least]: [Timestamp; 2],
    slack: Millis,
    limits: &Limits,
) -> Timestamp {
    let more = for_parent(execution);
    let by = ends_by(execution).map_or(at_most, |at| at.plus(slack).plus(more).min(at_most));
    by.max(at_least.plus(more)).plus(limits.retention)
}

/// How much longer than its retention the record of one that has a parent is kept after its end.
const fn for_parent(execution: &Execution) -> Millis {
    if execution.parent.is_some() { KEPT_FOR_PARENT } else { Millis::ZERO }
}

/// Parts are kept on once an execution could stay open for no more than this, its retention not counted.
fn open_for_least(execution: &Execution) -> Millis {
    if execution.parent.is_some() {
        KEPT_FOR_PARENT.saturating_add(OPEN_FOR_LEAST_OF_CHILD)
    } else {
        OPEN_FOR_LEAST
    }
}

/// The deadline that ends the execution, whatever the number of its runs.
fn ends_by(execution: &Execution) -> Option<Timestamp> {
    execution.failing.as_ref().map_or(execution.deadline_at, |failing| Some(failing.deadline_at))
}

/// Has everything that the record points to kept as long as it says, what came to it included.
pub(super) fn settle(execution: &mut Execution, now: Timestamp, limits: &Limits) -> Vec<Write> {
    if !has_parts(execution) {
        execution.kept = None;
        return vec![];
    }
    let kept = execution.kept.unwrap_or_else(|| at_first(execution, now, limits));
    execution.kept = Some(kept);
    blobs::keep_until(execution, kept)
}

/// Whether there is anything to be kept.
fn has_parts(execution: &Execution) -> bool {
    execution.sealed.is_some() || blobs::blobs(execution).next().is_some()
}

/// Whether somebody has come further than is known. Of two who go through the same, the one behind has to stop: what
/// it would do has been done, and its note would send others back.
pub(super) fn is_ahead(execution: &Execution, progress: Progress) -> bool {
    let before = execution.progress.unwrap_or_default();
    let parts = (progress.to, progress.entries).cmp(&(before.to, before.entries));
    let are_short = |to: Timestamp| execution.kept.is_some_and(|kept| kept < to);
    match progress.steps.cmp(&before.steps) {
        Ordering::Less => false,
        Ordering::Equal => parts.is_gt() && progress.to.is_some_and(are_short),
        Ordering::Greater => parts.is_ge(),
    }
}

/// Takes note of how far somebody has come.
pub(super) fn note(execution: &mut Execution, progress: Progress) {
    match progress
        .to
        .filter(|_| usize::try_from(progress.entries).is_ok_and(|all| all >= append::count(execution)))
    {
        Some(to) => {
            execution.kept = execution.kept.map(|kept| kept.max(to));
            // The items have been given theirs by the caller: there may be more of them than one commit takes.
            blobs::keep_until(execution, to);
            execution.progress =
                (progress.steps > 0).then_some(Progress { steps: progress.steps, ..Progress::default() });
        }
        None => execution.progress = Some(progress),
    }
}

/// What a journal brings along into another run of the same execution is kept as long as all of it.
pub(super) fn carried(mut entry: super::journal::Entry, kept: Option<Timestamp>) -> super::journal::Entry {
    if let (Some(kept), Some(Payload::Blob(at))) = (kept, blobs::payload_mut(&mut entry)) {
        at.expires_at = at.expires_at.max(kept);
    }
    entry
}
