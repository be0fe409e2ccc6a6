//! What must hold of each write: versions, due slots, outcomes that never change, and the byte budget.

use tickover_core::due::START_LEAD;
use tickover_core::limits::CONTROL_RECORD_BYTES;
use tickover_core::payload::Payload;
use tickover_core::size;
use tickover_core::task::command::Command;
use tickover_core::task::{Ended, Outcome, State, Task};
use tickover_core::time::Timestamp;

use super::story::{Step, visible_instant};
use crate::Run;
use crate::fault_plan::SKEW;
use crate::trace::{brief, clock};
use crate::violation::{Invariant, Violation};

pub(super) fn of_step(step: &Step<'_>, run: &Run) -> Vec<Violation> {
    [
        i2_each_write_is_decided_on_its_predecessor(step),
        i3_only_live_records_have_a_due_slot(step),
        i4_no_due_slot_is_later_than_a_visible_instant(step),
        i4_no_due_slot_is_later_than_the_backstop(step, run),
        i6_an_outcome_stays(step),
        i6_an_id_is_used_again_only_after_retention(step),
        an_input_changes_only_as_an_operator_says(step),
        i8_a_record_keeps_its_kilobyte(step),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn found(invariant: Invariant, step: &Step<'_>, what: impl Into<String>) -> Violation {
    Violation::new(invariant, step.at, format!("{}: {}", brief(step.after), what.into()))
}

fn i2_each_write_is_decided_on_its_predecessor(step: &Step<'_>) -> Option<Violation> {
    let found = |what: String| found(Invariant::I2, step, what);
    if step.is_rearm() {
        let before = Task { due: step.after.due, ..step.before?.clone() };
        return (before != *step.after).then(|| found("changed without a new version".to_owned()));
    }
    let Some(decided) = step.decided else { return Some(found("no decision made this change".to_owned())) };
    let Some(before) = step.before else {
        let version = step.after.version;
        return (version != 1).then(|| found(format!("created as version {version}")));
    };
    if step.after.version != before.version + 1 {
        return Some(found(format!("written over v{}", before.version)));
    }
    let seen = decided.seen.as_ref().map(|seen| (seen.incarnation, seen.version));
    if seen != Some((before.incarnation, before.version)) {
        return Some(found(format!("decided on {seen:?}, written over v{}", before.version)));
    }
    None
}

fn i3_only_live_records_have_a_due_slot(step: &Step<'_>) -> Option<Violation> {
    match (step.after.status().is_live(), step.after.due) {
        (true, None) => Some(found(Invariant::I3, step, "it is live, and has no due slot")),
        (false, Some(_)) => Some(found(Invariant::I3, step, "it has ended, and still has a due slot")),
        (true, Some(_)) | (false, None) => None,
    }
}

fn i4_no_due_slot_is_later_than_a_visible_instant(step: &Step<'_>) -> Option<Violation> {
    let (visible_at, due) = (visible_instant(step.after)?, step.after.due?);
    let late = due.at > visible_at;
    late.then(|| found(Invariant::I4, step, format!("no tick would see {} pass", clock(visible_at))))
}

/// The slot is then at most a backstop after the hint was needed; the tick's re-arming may increase that up to the
/// longest backstop.
fn i4_no_due_slot_is_later_than_the_backstop(step: &Step<'_>, run: &Run) -> Option<Violation> {
    let (due, limits) = (step.after.due?, &run.plan.limits);
    // Nobody waits so long in a line that its item must be written again.
    if step.after.parked.in_line().is_some() {
        return None;
    }
    let by_now = step.decided.map_or(step.at, |decided| decided.now);
    let latest = match &step.after.state {
        State::Pending(pending) if pending.hint_later => pending.available_at.minus(START_LEAD),
        State::Pending(pending) => {
            let needed = pending.available_at.max(step.after.hinted_at.unwrap_or(Timestamp::EPOCH));
            // A parked one has no hint that may be lost.
            let grows = step.is_rearm() || was_waiting(step.before) || !step.after.parked.is_no();
            if grows { needed.max(by_now).plus(limits.backstop_max) } else { needed.plus(limits.backstop) }
        }
        // Its message is its backstop: the slot is unchanged, or one that the tick has set.
        State::Running(_) => by_now.plus(limits.backstop_max).plus(limits.backstop),
        State::Ended(_) => return None,
    };
    let late = due.at > latest.plus(SKEW);
    late.then(|| found(Invariant::I4, step, format!("a lost hint is missed after {}", clock(latest))))
}

/// Whether it had been pending before: then the tick may have set its slot.
fn was_waiting(before: Option<&Task>) -> bool {
    before.is_some_and(|before| match &before.state {
        State::Pending(pending) => !pending.hint_later,
        State::Running(_) | State::Ended(_) => false,
    })
}

fn i6_an_outcome_stays(step: &Step<'_>) -> Option<Violation> {
    let Ended { outcome, .. } = step.before?.ended()?;
    let revived = match outcome {
        Outcome::Failed { .. } | Outcome::TimedOut { .. } | Outcome::Cancelled { .. } => {
            let asked = step.decided.filter(|decided| matches!(decided.command, Command::Retry(_)));
            asked.is_some_and(|decided| step.after.revived_at == Some(decided.now))
        }
        Outcome::Completed { .. } | Outcome::Skipped => false,
    };
    (!revived).then(|| found(Invariant::I6, step, format!("it had ended: {outcome:?}")))
}

/// And in a burst, whose last request runs.
fn an_input_changes_only_as_an_operator_says(step: &Step<'_>) -> Option<Violation> {
    let (before, command) = (step.before?, &step.decided?.command);
    let is = match (&step.after.input, command) {
        (_, Command::Bounce(_)) => return None,
        (Some(Payload::Inline(is)), Command::Retry(Some(given))) => *is == given.input,
        (Some(Payload::Blob(is)), Command::Retry(Some(given))) => is.id == given.blob_id,
        (Some(Payload::Blob(is)), _) => {
            matches!(&before.input, Some(Payload::Blob(was)) if was.id == is.id)
        }
        (is, _) => *is == before.input,
    };
    let what = || format!("its input is {:?}", step.after.input);
    (!is).then(|| found(Invariant::Again, step, what()))
}

fn i6_an_id_is_used_again_only_after_retention(step: &Step<'_>) -> Option<Violation> {
    let (replaced, decided) = (step.replaced?, step.decided?);
    let early = !replaced.is_gone(decided.now);
    early.then(|| found(Invariant::I6, step, format!("it replaces {}", brief(replaced))))
}

fn i8_a_record_keeps_its_kilobyte(step: &Step<'_>) -> Option<Violation> {
    let bytes = size::of(step.after);
    (bytes > CONTROL_RECORD_BYTES).then(|| found(Invariant::I8, step, format!("{bytes} bytes")))
}
