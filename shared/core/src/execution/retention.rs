//! How long the blobs of an execution and the segments of its journal are kept.
//!
//! Each of these items has an expiry from the start, which is late enough for most executions to have ended by then and
//! for their retention to have passed. So the store deletes an item that no record points to, because a worker died or
//! was refused, without further work, and it deletes all items of an execution that has ended. Only for an execution
//! that stays open longer does the tick extend their expiry.
//!
//! The instant that counts is [`Execution::kept`]: every item that the record points to is kept at least until then.
//! The expiry in a pointer is only a lower bound. An expiry is moved later, never earlier, and pointers inside segments
//! aren't rewritten.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::decision::Write;
use crate::duration::Millis;
use crate::execution::{Execution, ExecutionState, blobs};
use crate::limits::{KEPT_FOR_PARENT, Limits};
use crate::payload::Payload;
use crate::time::Timestamp;

/// How long items are kept at first for an execution that may stay open, not counting its retention.
const OPEN_FOR: Millis = Millis::from_days(60);
/// The expiry of items is extended once it allows the execution to stay open for no longer than this.
const OPEN_FOR_LEAST: Millis = Millis::from_days(30);
/// The same for an execution that has a parent, whose record is kept longer.
const OPEN_FOR_LEAST_OF_CHILD: Millis = Millis::from_days(10);
/// How long after its deadline an execution's items are kept, not counting its retention: the deadline may be enforced
/// late, and the `on_failure` code takes time.
const AFTER_DEADLINE: Millis = Millis::from_days(7);
/// The expiry of items is extended if they are kept for less than this after the deadline.
const AFTER_DEADLINE_LEAST: Millis = Millis::from_days(1);
/// How long before its journal entry a payload may have been written.
const AHEAD: Millis = Millis::from_days(7);

/// The progress of ending the steps and children that an execution left open, or of extending the expiry of all items
/// that it points to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// How many open remote steps and children have been ended, in the order of their names.
    #[serde(rename = "s", default, skip_serializing_if = "is_zero")]
    pub steps: u32,
    /// How many journal entries have items that are kept until `to`, oldest first.
    #[serde(rename = "e", default, skip_serializing_if = "is_zero")]
    pub entries: u32,
    /// Until when these items are kept.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The expiry of a payload that is written before its journal entry.
pub fn ahead_of_journal(now: Timestamp, limits: &Limits) -> Timestamp {
    now.plus(OPEN_FOR).plus(AHEAD).plus(limits.retention)
}

/// If the items of an execution aren't kept long enough: until when they must be kept. `None` if they are, or if there
/// are none. For an execution that has ended, the question is whether it could be reopened now. If a caller has started
/// to extend them to an instant that is late enough, this is that instant.
pub fn required_expiry(execution: &Execution, now: Timestamp, limits: &Limits) -> Option<Timestamp> {
    let kept = execution.kept?;
    let (enough, to) = match &execution.state {
        ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_) => {
            (minimum_expiry(execution, now, limits), first_expiry(execution, now, limits))
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

/// Whether the items of a closed execution expire before its record.
pub(super) fn expires_before_record(execution: &Execution) -> bool {
    let closed = execution.closed();
    closed.is_some_and(|closed| execution.kept.is_some_and(|kept| kept < closed.expires_at))
}

/// When the tick must extend the expiry of an open execution's items.
pub(super) fn extend_at(execution: &Execution, limits: &Limits) -> Option<Timestamp> {
    let kept = execution.kept.filter(|_| execution.closed().is_none())?;
    let is_enough = |at: Timestamp| {
        kept >= at.plus(AFTER_DEADLINE_LEAST).plus(for_parent(execution)).plus(limits.retention)
    };
    let for_good = final_deadline(execution).is_some_and(is_enough);
    (!for_good).then(|| kept.minus(limits.retention).minus(open_for_least(execution)))
}

/// The expiry of an item that is written now.
pub(super) fn first_expiry(execution: &Execution, now: Timestamp, limits: &Limits) -> Timestamp {
    // An execution with a delayed start does nothing before it.
    let from = match &execution.state {
        ExecutionState::Pending(ready) => ready.available_at.max(now),
        ExecutionState::Running(_)
        | ExecutionState::Waiting(_)
        | ExecutionState::Closing(_)
        | ExecutionState::Ended(_) => now,
    };
    until(execution, [from.plus(OPEN_FOR), now.plus(AFTER_DEADLINE)], AFTER_DEADLINE, limits)
}

/// Until when the items of an open execution must be kept at least.
fn minimum_expiry(execution: &Execution, now: Timestamp, limits: &Limits) -> Timestamp {
    until(execution, [now.plus(open_for_least(execution)), now], AFTER_DEADLINE_LEAST, limits)
}

/// `at_most`, but no longer than the deadline requires, and never less than `at_least`.
fn until(
    execution: &Execution,
    [at_most, at_least]: [Timestamp; 2],
    slack: Millis,
    limits: &Limits,
) -> Timestamp {
    let more = for_parent(execution);
    let by = final_deadline(execution).map_or(at_most, |at| at.plus(slack).plus(more).min(at_most));
    by.max(at_least.plus(more)).plus(limits.retention)
}

/// How much longer than its retention the record of a child is kept after its end.
const fn for_parent(execution: &Execution) -> Millis {
    if execution.parent.is_some() { KEPT_FOR_PARENT } else { Millis::ZERO }
}

/// The expiry of items is extended once it allows the execution to stay open for no longer than this, not counting its
/// retention.
fn open_for_least(execution: &Execution) -> Millis {
    if execution.parent.is_some() {
        KEPT_FOR_PARENT.saturating_add(OPEN_FOR_LEAST_OF_CHILD)
    } else {
        OPEN_FOR_LEAST
    }
}

/// The deadline that ends the execution, however many runs it has.
fn final_deadline(execution: &Execution) -> Option<Timestamp> {
    execution.failing.as_ref().map_or(execution.deadline_at, |failing| Some(failing.deadline_at))
}

/// Extends the expiry of every blob in the record to [`Execution::kept`], new ones included.
pub(super) fn extend_blobs(execution: &mut Execution, now: Timestamp, limits: &Limits) -> Vec<Write> {
    if !has_parts(execution) {
        execution.kept = None;
        return vec![];
    }
    let kept = execution.kept.unwrap_or_else(|| first_expiry(execution, now, limits));
    execution.kept = Some(kept);
    blobs::keep_until(execution, kept)
}

/// Whether the execution has blobs or segments.
fn has_parts(execution: &Execution) -> bool {
    execution.sealed.is_some() || blobs::blobs(execution).next().is_some()
}

/// Whether this progress is further than the recorded one. Of two callers that do the same work, the one behind must
/// stop: its work has been done, and its note would set the recorded progress back.
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

/// Records progress.
pub(super) fn note(execution: &mut Execution, progress: Progress) {
    match progress
        .to
        .filter(|_| usize::try_from(progress.entries).is_ok_and(|all| all >= execution.entries()))
    {
        Some(to) => {
            execution.kept = execution.kept.map(|kept| kept.max(to));
            // The caller has already extended the items: there may be more of them than one commit takes.
            blobs::keep_until(execution, to);
            execution.progress =
                (progress.steps > 0).then_some(Progress { steps: progress.steps, ..Progress::default() });
        }
        None => execution.progress = Some(progress),
    }
}

/// An entry that is carried into another run of the same execution. Its blob is kept as long as the other items.
pub(super) fn carry_over(mut entry: super::journal::Entry, kept: Option<Timestamp>) -> super::journal::Entry {
    if let (Some(kept), Some(Payload::Blob(at))) = (kept, entry.payload_mut()) {
        at.expires_at = at.expires_at.max(kept);
    }
    entry
}
