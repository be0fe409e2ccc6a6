//! Attempts of inline steps that were recorded before they ran, with their timeouts: those of steps with a timeout over
//! all attempts, and of steps that are `at_most_once`.
//!
//! The journal has them too, but those entries may be in a segment, and the tick reads only the control record.

use serde::{Deserialize, Serialize};

use crate::due::fnv1a;
use crate::duration::Millis;
use crate::execution::journal::{Entry, Happened};
use crate::execution::{Execution, ExecutionState, Turn};
use crate::id::StepName;
use crate::limits::Limits;
use crate::time::Timestamp;

/// How long the tick and the timers wait after an attempt's timeout, so that a live worker can record it first.
pub const GRACE: Millis = Millis::from_secs(1);
/// Maximum number of attempts in the record: those with the earliest timeouts. A worker with more attempts in progress
/// sends all of them with each of its writes, so that the next one takes the place of one that has ended.
const KEPT: usize = 4;

/// An attempt in progress that has a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedAttempt {
    /// A digest of the step's name. If two steps have the same digest, the record may lose one of them, whose timeout
    /// is then found later.
    #[serde(rename = "s")]
    step: u32,
    /// When it times out.
    #[serde(rename = "u")]
    timeout_at: Timestamp,
}

impl TimedAttempt {
    /// A step's attempt that times out then.
    pub fn of(step: &StepName, timeout_at: Timestamp) -> Self {
        Self { step: digest(step), timeout_at }
    }
}

/// Replaces the record's list by the attempts that a turn reports as in progress.
pub(super) fn list(execution: &mut Execution, timed_attempts: &[TimedAttempt], limits: &Limits) {
    let ExecutionState::Running(turn) = &mut execution.state else { return };
    turn.timed_attempts = timed_attempts.to_vec();
    keep_earliest(turn, limits);
}

/// Updates the list from a turn's entries: attempts that started with a timeout, or ended.
pub(super) fn note(execution: &mut Execution, new_entries: &[Entry], limits: &Limits) {
    let ExecutionState::Running(turn) = &mut execution.state else { return };
    for entry in new_entries {
        match &entry.what {
            Happened::Attempt { name, error, next_at, .. } => {
                forget(turn, name);
                // After a failure, that instant is the start of the next attempt.
                let timeout_at = next_at.filter(|_| error.is_none());
                turn.timed_attempts.extend(timeout_at.map(|timeout_at| TimedAttempt::of(name, timeout_at)));
            }
            Happened::Step { name, .. } => forget(turn, name),
            Happened::Remote { .. }
            | Happened::Child { .. }
            | Happened::Reopened { .. }
            | Happened::Captured { .. }
            | Happened::Until { .. }
            | Happened::Fired { .. }
            | Happened::Event { .. }
            | Happened::Waited { .. }
            | Happened::EventsCleared { .. }
            | Happened::Patches { .. }
            | Happened::Note { .. } => {}
        }
    }
    keep_earliest(turn, limits);
}

/// Only a lease that is longer than `short_lease` needs the list: the end of a shorter one comes soon enough, and the next
/// turn then finds the timeout in the journal. So such a turn's due slot needn't move, which would cost two index writes.
fn keep_earliest(turn: &mut Turn, limits: &Limits) {
    if turn.lease_length <= limits.short_lease {
        turn.timed_attempts.clear();
    }
    turn.timed_attempts.sort_by_key(|attempt| attempt.timeout_at);
    turn.timed_attempts.truncate(KEPT);
}

/// Makes space in a record that has none. The attempt with the earliest timeout is kept.
pub(super) fn keep_first(execution: &mut Execution) {
    if let ExecutionState::Running(turn) = &mut execution.state {
        turn.timed_attempts.truncate(1);
    }
}

/// When the tick must record that an attempt has timed out.
pub(super) fn earliest_timeout_at(execution: &Execution) -> Option<Timestamp> {
    let first = execution.turn()?.timed_attempts.iter().map(|attempt| attempt.timeout_at).min()?;
    Some(first.plus(GRACE))
}

/// Whether an attempt of the turn has timed out and its worker hasn't recorded that. Then the turn counts as lost,
/// however long its lease. The next turn records the outcome of the attempt.
pub(super) fn is_overdue(execution: &Execution, now: Timestamp) -> bool {
    earliest_timeout_at(execution).is_some_and(|at| at <= now)
}

fn forget(turn: &mut Turn, name: &StepName) {
    let step = digest(name);
    turn.timed_attempts.retain(|attempt| attempt.step != step);
}

fn digest(name: &StepName) -> u32 {
    // Any half of the digest would do.
    u32::try_from(fnv1a(name.as_str()) & u64::from(u32::MAX)).unwrap_or(0)
}
