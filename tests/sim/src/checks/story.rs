//! The history of each task, taken from the history of the run.

use std::collections::{BTreeMap, HashMap};

use tickover_core::id::{Incarnation, Nonce};
use tickover_core::task::{PastAttempt, Task};
use tickover_core::time::Timestamp;

use crate::Run;
use crate::history::{Decided, Stored, What};

/// A change of a record.
pub(super) struct Step<'a> {
    /// Its number in the history.
    pub(super) number: usize,
    /// When it was applied, by the world's clock.
    pub(super) at: Timestamp,
    /// The record before; absent where the task is new.
    pub(super) before: Option<&'a Task>,
    /// The record of the task that had this id before a new one.
    pub(super) replaced: Option<&'a Task>,
    /// The record after.
    pub(super) after: &'a Task,
    /// The decision behind the write; absent where only the due slot moved.
    pub(super) decided: Option<&'a Decided>,
}

impl Step<'_> {
    /// Whether only the record's due slot moved.
    pub(super) fn is_rearm(&self) -> bool {
        self.before.is_some_and(|before| before.version == self.after.version)
    }

    /// The attempt that this step added to the history, if it did. The texts of earlier attempts may have been cut.
    pub(super) fn ended_attempt(&self) -> Option<&PastAttempt> {
        let which = |past: &PastAttempt| (past.attempt, past.lease, past.ended_at);
        let last = self.after.history.last()?;
        let known = self.before.and_then(|before| before.history.last());
        (known.map(which) != Some(which(last))).then_some(last)
    }
}

/// All tasks, each from its creation to its end.
pub(super) struct Stories<'a> {
    by_task: BTreeMap<Incarnation, Vec<Step<'a>>>,
}

impl<'a> Stories<'a> {
    /// The stories of a run.
    pub(super) fn of(run: &'a Run) -> Self {
        let mut decisions = HashMap::new();
        let mut by_task: BTreeMap<_, Vec<Step<'a>>> = BTreeMap::new();
        for (number, event) in run.events.iter().enumerate() {
            match &event.what {
                What::Decided(decided) => {
                    decisions.insert(decided.nonce, &**decided);
                }
                What::Stored(stored) => {
                    let step = step(number, event.at, stored, &decisions);
                    by_task.entry(stored.after.incarnation).or_default().push(step);
                }
                What::Called { .. }
                | What::Answered { .. }
                | What::OfExecution(_)
                | What::Message { .. }
                | What::Fault(_) => {}
            }
        }
        Self { by_task }
    }

    /// Every step of every task.
    pub(super) fn steps(&self) -> impl Iterator<Item = &Step<'a>> {
        self.by_task.values().flatten()
    }

    /// The tasks' steps, task by task.
    pub(super) fn tasks(&self) -> impl Iterator<Item = &[Step<'a>]> {
        self.by_task.values().map(Vec::as_slice)
    }

    /// The steps of one task.
    pub(super) fn task(&self, incarnation: Incarnation) -> &[Step<'a>] {
        self.by_task.get(&incarnation).map_or(&[], Vec::as_slice)
    }
}

fn step<'a>(
    number: usize,
    at: Timestamp,
    stored: &'a Stored,
    decisions: &HashMap<Nonce, &'a Decided>,
) -> Step<'a> {
    let after = &stored.after;
    let same = |before: &&Task| before.incarnation == after.incarnation;
    let before = stored.before.as_ref().filter(same);
    let replaced = stored.before.as_ref().filter(|before| !same(before));
    let is_rearm = before.is_some_and(|before| before.version == after.version);
    let decided = if is_rearm { None } else { decisions.get(&after.nonce).copied() };
    Step { number, at, before, replaced, after, decided }
}

/// The earliest instant of this record that a user can see pass.
pub(super) fn visible_instant(task: &Task) -> Option<Timestamp> {
    use tickover_core::task::State;
    let own = match &task.state {
        State::Pending(pending) => vec![pending.schedule_to_start_at],
        State::Running(running) => vec![running.heartbeat_at, running.start_to_close_at],
        State::Ended(_) => return None,
    };
    own.into_iter().flatten().chain(task.deadline_at).min()
}
