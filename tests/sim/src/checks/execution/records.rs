//! What must hold of each write of an execution: versions, due slots, outcomes that never change, and the byte budget.

use tickover_core::due::{DueKind, SLEEP_PROBE, START_LEAD};
use tickover_core::execution::command::Command;
use tickover_core::execution::due::attempt_timeout_at;
use tickover_core::execution::journal::Happened;
use tickover_core::execution::{Execution, ExecutionOutcome, ExecutionState, GRACE, Waiting};
use tickover_core::limits::CONTROL_RECORD_BYTES;
use tickover_core::payload::Payload;
use tickover_core::size;
use tickover_core::time::Timestamp;

use super::found;
use super::journals::rerun_of;
use super::story::{Step, visible_instant, watched_instant};
use crate::Run;
use crate::fault_plan::SKEW;
use crate::trace::clock;
use crate::trace::execution::brief;
use crate::violation::{Invariant, Violation};

pub(super) fn of_step(step: &Step<'_>, run: &Run) -> Vec<Violation> {
    [
        i2_each_write_is_decided_on_its_predecessor(step),
        i3_open_records_with_work_left_have_a_due_slot(step, run),
        i4_no_due_slot_is_later_than_a_visible_instant(step),
        i4_no_due_slot_is_later_than_the_next_probe(step, run),
        i4_a_recorded_attempts_timeout_has_a_due_slot(step),
        i6_an_outcome_stays(step),
        i6_an_id_is_used_again_only_after_retention(step),
        i8_a_record_keeps_its_kilobyte(step),
        journal_no_segment_is_missing(step),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn i2_each_write_is_decided_on_its_predecessor(step: &Step<'_>) -> Option<Violation> {
    let found = |what: String| found(Invariant::I2, step, what);
    if step.is_undecided() {
        let was = step.before?;
        let moved = Execution { due: step.after.due, ..was.clone() };
        let woken = Execution { wakes: was.wakes + 1, ..was.clone() };
        let is_sound = moved == *step.after || (woken == *step.after && was.closed().is_none());
        return (!is_sound).then(|| found("changed without a new version".to_owned()));
    }
    let Some(ruling) = step.ruling else { return Some(found("no decision made this change".to_owned())) };
    let Some(before) = step.before else {
        let version = step.after.version;
        return (version != 1).then(|| found(format!("created as version {version}")));
    };
    if step.after.version != before.version + 1 {
        return Some(found(format!("written over v{}", before.version)));
    }
    if step.after.wakes != before.wakes {
        return Some(found(format!("it had been woken {} times", before.wakes)));
    }
    let seen = ruling.seen.as_ref().map(|seen| (seen.incarnation, seen.version));
    let on = Some((before.incarnation, before.version));
    (seen != on).then(|| found(format!("decided on {seen:?}, written over v{}", before.version)))
}

fn i3_open_records_with_work_left_have_a_due_slot(step: &Step<'_>, run: &Run) -> Option<Violation> {
    let due = step.after.due;
    if matches!(step.after.state, ExecutionState::Ended(_)) {
        return due.map(|_| found(Invariant::I3, step, "it has ended, and still has a due slot"));
    }
    let is_needed = visible_instant(step.after).is_some() || probe_by(step, run).is_some();
    (is_needed && due.is_none()).then(|| found(Invariant::I3, step, "it is live, and has no due slot"))
}

fn i4_no_due_slot_is_later_than_a_visible_instant(step: &Step<'_>) -> Option<Violation> {
    let (visible_at, due) = (watched_instant(step.after)?, step.after.due?);
    let late = due.at > visible_at;
    late.then(|| found(Invariant::I4, step, format!("no tick would see {} pass", clock(visible_at))))
}

fn i4_no_due_slot_is_later_than_the_next_probe(step: &Step<'_>, run: &Run) -> Option<Violation> {
    let (probe_by, due) = (probe_by(step, run)?, step.after.due?);
    let late = due.at > probe_by;
    late.then(|| found(Invariant::I4, step, format!("its next probe must be by {}", clock(probe_by))))
}

fn i4_a_recorded_attempts_timeout_has_a_due_slot(step: &Step<'_>) -> Option<Violation> {
    let ruling = step.ruling.filter(|ruling| ruling.outcome.is_ok())?;
    step.after.turn()?;
    // The last entry of a name counts; a script runs one step at a time.
    let brought = ruling.command.entries().last()?;
    let Happened::Attempt { error: None, next_at: Some(timeout_at), .. } = &brought.what else { return None };
    let is_watched = attempt_timeout_at(step.after).is_some_and(|at| at <= timeout_at.plus(GRACE));
    let what = || format!("no tick would see {} pass", clock(*timeout_at));
    (!is_watched).then(|| found(Invariant::I4, step, what()))
}

/// The latest instant of the next probe: for a hint that is to be sent later, or for one that may have been lost. The
/// tick's re-arming may increase the wait for a lost hint up to the longest backstop.
fn probe_by(step: &Step<'_>, run: &Run) -> Option<Timestamp> {
    let (after, limits) = (step.after, &run.plan.limits);
    let by_now = step.ruling.map_or(step.at, |ruling| ruling.now).max(step.at.minus(SKEW));
    let from = |needed: Timestamp| {
        let since = needed.max(after.hinted_at.unwrap_or(Timestamp::EPOCH)).max(by_now);
        since.plus(limits.backstop_max).plus(SKEW)
    };
    let held = after.needs_operator();
    match &after.state {
        ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_) if held => None,
        // Nobody waits so long in a line that its item must be written again.
        _ if after.parked.in_line().is_some() => None,
        // Its queue is paused, so a hint would have no effect: the resuming sends one.
        ExecutionState::Pending(_) | ExecutionState::Waiting(_) if after.parked.is_paused() => {
            Some(from(by_now))
        }
        ExecutionState::Pending(ready) if ready.hint_later => Some(ready.available_at.minus(START_LEAD)),
        ExecutionState::Pending(ready) => Some(from(ready.available_at)),
        // Its message is its backstop, so the slot may be unchanged: not later than any probe may be.
        ExecutionState::Running(turn) => Some(from(turn.lease_expires_at).plus(limits.backstop)),
        ExecutionState::Waiting(waiting) => wait_probe_by(after, waiting, from),
        ExecutionState::Closing(closed) => Some(from(closed.ended_at)),
        ExecutionState::Ended(_) => None,
    }
}

fn wait_probe_by(
    after: &Execution,
    waiting: &Waiting,
    from: impl Fn(Timestamp) -> Timestamp,
) -> Option<Timestamp> {
    if waiting.wake_requested {
        return Some(from(waiting.since));
    }
    // The slot says to the tick that it must send the hint, without reading the record.
    let is_asleep = |until: Timestamp| {
        let place = (DueKind::Asleep, until.plus(SLEEP_PROBE));
        waiting.recheck.is_none() && after.due.is_some_and(|due| (due.kind, due.at) == place)
    };
    let by_itself = waiting.until.map(|until| match waiting.hint_later {
        true if is_asleep(until) => until.plus(SLEEP_PROBE),
        true => until.minus(START_LEAD),
        false => from(until),
    });
    let sent_for = waiting.until.filter(|_| !waiting.hint_later);
    let recheck = waiting.recheck.map(|recheck| recheck.at).map(|at| {
        // If the recheck's hint, or an earlier one, is sent: the turn that follows checks as well.
        let is_sent = after.hinted_at.is_some_and(|hinted| hinted >= at);
        let is_covered = sent_for.is_some_and(|until| until <= at);
        if is_sent || is_covered { from(at) } else { at }
    });
    [by_itself, recheck].into_iter().flatten().min()
}

fn i6_an_outcome_stays(step: &Step<'_>) -> Option<Violation> {
    let before = step.before?.closed()?;
    let reopened = matches!(step.before?.state, ExecutionState::Ended(_))
        && step.ruling.is_some_and(|ruling| {
            let again =
                rerun_of(&ruling.command).is_some() || matches!(ruling.command, Command::RetryStep { .. });
            again && ruling.outcome.is_ok()
        });
    let stays = step
        .after
        .closed()
        .is_some_and(|after| same(&before.outcome, &after.outcome) && before.ended_at == after.ended_at);
    (!stays && !reopened).then(|| found(Invariant::I6, step, format!("it had ended: {:?}", before.outcome)))
}

/// Whether two outcomes are the same; the expiries of their payloads are ignored.
fn same(one: &ExecutionOutcome, other: &ExecutionOutcome) -> bool {
    let output = |outcome: &ExecutionOutcome| match outcome {
        ExecutionOutcome::Completed { output: Some(Payload::Blob(at)) } => Some(at.id),
        ExecutionOutcome::Completed { .. }
        | ExecutionOutcome::Failed { .. }
        | ExecutionOutcome::TimedOut { .. }
        | ExecutionOutcome::Cancelled { .. } => None,
    };
    one == other || (output(one).is_some() && output(one) == output(other))
}

fn i6_an_id_is_used_again_only_after_retention(step: &Step<'_>) -> Option<Violation> {
    let (replaced, ruling) = (step.replaced?, step.ruling?);
    let early = !replaced.is_gone(ruling.now);
    early.then(|| found(Invariant::I6, step, format!("it replaces {}", brief(replaced))))
}

fn i8_a_record_keeps_its_kilobyte(step: &Step<'_>) -> Option<Violation> {
    let bytes = size::of(step.after);
    (bytes > CONTROL_RECORD_BYTES).then(|| found(Invariant::I8, step, format!("{bytes} bytes")))
}

fn journal_no_segment_is_missing(step: &Step<'_>) -> Option<Violation> {
    step.journal.is_none().then(|| found(Invariant::Journal, step, "a segment of its journal is missing"))
}
