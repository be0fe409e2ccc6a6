//! Attempts of inline steps that were written down before they run, with the instants by which they must be over.
//!
//! The journal has them too, but its part that does may be sealed, and what watches over them sees the control
//! record alone.

use serde::{Deserialize, Serialize};

use crate::due::fnv1a;
use crate::duration::Millis;
use crate::execution::journal::{Entry, Happened};
use crate::execution::{Execution, ExecutionState, Turn};
use crate::id::StepName;
use crate::time::Timestamp;

/// How long after an attempt's time is over its worker still has the first word: if it lives, it says so itself.
pub const GRACE: Millis = Millis::from_secs(1);
/// Most attempts that the record keeps, those whose time is over first. A worker that has more of them under way says
/// all of them with each of its writes, so that the next one takes the place of one that has ended.
const KEPT: usize = 4;

/// An attempt that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnderWay {
    /// A digest of the step's name. Of two steps with the same one, one is found later.
    #[serde(rename = "s")]
    step: u32,
    /// When its time is over.
    #[serde(rename = "u")]
    timeout_at: Timestamp,
}

impl UnderWay {
    /// A step's attempt whose time is over then.
    pub fn of(step: &StepName, timeout_at: Timestamp) -> Self {
        Self { step: digest(step), timeout_at }
    }
}

/// Keeps all attempts that a turn says are under way.
pub(super) fn list(execution: &mut Execution, under_way: &[UnderWay]) {
    let ExecutionState::Running(turn) = &mut execution.state else { return };
    turn.under_way = under_way.to_vec();
    keep_earliest(turn);
}

/// Keeps what a turn has brought of attempts: begun with a time limit, or over.
pub(super) fn note(execution: &mut Execution, brought: &[Entry]) {
    let ExecutionState::Running(turn) = &mut execution.state else { return };
    for entry in brought {
        match &entry.what {
            Happened::Attempt { name, error, next_at, .. } => {
                forget(turn, name);
                // After a failure, that instant is the next one's beginning.
                let timeout_at = next_at.filter(|_| error.is_none());
                turn.under_way.extend(timeout_at.map(|timeout_at| UnderWay::of(name, timeout_at)));
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
    keep_earliest(turn);
}

fn keep_earliest(turn: &mut Turn) {
    turn.under_way.sort_by_key(|attempt| attempt.timeout_at);
    turn.under_way.truncate(KEPT);
}

/// Makes room in a record that has none: the first attempt is worth the most.
pub(super) fn keep_first(execution: &mut Execution) {
    if let ExecutionState::Running(turn) = &mut execution.state {
        turn.under_way.truncate(1);
    }
}

/// When somebody else has to see that the time of an attempt is over.
pub(super) fn over_at(execution: &Execution) -> Option<Timestamp> {
    let first = execution.turn()?.under_way.iter().map(|attempt| attempt.timeout_at).min()?;
    Some(first.plus(GRACE))
}

/// Whether a turn has an attempt whose time is over and whose worker hasn't said so: it counts as lost, however long
/// its lease. The next turn writes down what became of the step.
pub(super) fn is_overdue(execution: &Execution, now: Timestamp) -> bool {
    over_at(execution).is_some_and(|at| at <= now)
}

fn forget(turn: &mut Turn, name: &StepName) {
    let step = digest(name);
    turn.under_way.retain(|attempt| attempt.step != step);
}

fn digest(name: &StepName) -> u32 {
    // The lower half of it is as good as any.
    u32::try_from(fnv1a(name.as_str()) & u64::from(u32::MAX)).unwrap_or(0)
}
