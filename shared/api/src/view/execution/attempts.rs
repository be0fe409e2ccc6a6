//! Attempts at inline steps that the journal knows: those that were recorded before they ran.
//!
//! When a worker is lost, its attempt is recorded again under the same number, since no retry policy counts it. A
//! timeline shows how often the step was started, so a lost attempt counts here.

use std::collections::BTreeMap;

use tickover_core::execution::Execution;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::id::StepName;
use tickover_core::time::Timestamp;

/// The attempts of each step, as far as the journal has been read.
#[derive(Default)]
pub(super) struct Attempts<'a> {
    steps: BTreeMap<&'a StepName, Known>,
}

#[derive(Default)]
struct Known {
    lost: u32,
    open: Option<Open>,
}

/// An attempt whose end isn't recorded yet.
#[derive(Clone, Copy)]
struct Open {
    /// The number by which the retry policy counts.
    attempt: u32,
    started_at: Timestamp,
    /// The end of its timeout.
    until: Option<Timestamp>,
}

/// An attempt of a step. Its number includes the attempts that were lost before.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) name: &'a StepName,
    pub(super) attempt: u32,
    pub(super) until: Option<Timestamp>,
}

impl<'a> Attempts<'a> {
    /// Reads the next entry. Returns the attempt that was lost, if the entry shows that one was.
    pub(super) fn apply(&mut self, entry: &'a Entry) -> Option<Shown<'a>> {
        match &entry.what {
            Happened::Attempt { name, attempt, error: None, next_at, is_ongoing, .. } => {
                let known = self.steps.entry(name).or_default();
                if *is_ongoing && known.open.is_some_and(|open| open.attempt == *attempt) {
                    return None;
                }
                // If the number is higher, the attempt before it failed or timed out and was retried at once: it wasn't
                // lost.
                let lost = known.open.filter(|open| open.attempt == *attempt);
                let lost =
                    lost.map(|lost| Shown { name, attempt: lost.attempt + known.lost, until: lost.until });
                known.lost += u32::from(lost.is_some());
                known.open = Some(Open { attempt: *attempt, started_at: entry.at, until: *next_at });
                return lost;
            }
            Happened::Attempt { name, error: Some(_), .. } | Happened::Step { name, .. } => {
                if let Some(known) = self.steps.get_mut(name) {
                    known.open = None;
                }
            }
            Happened::Reopened { name, .. } => {
                self.steps.remove(name);
            }
            Happened::Remote { .. }
            | Happened::Child { .. }
            | Happened::Captured { .. }
            | Happened::Until { .. }
            | Happened::Fired { .. }
            | Happened::Event { .. }
            | Happened::Waited { .. }
            | Happened::EventsCleared { .. }
            | Happened::Patches { .. }
            | Happened::Note { .. } => {}
        }
        None
    }

    /// How many attempts of a step were lost.
    pub(super) fn lost(&self, name: &StepName) -> u32 {
        self.steps.get(name).map_or(0, |known| known.lost)
    }

    /// The attempts that run: those that the current turn started.
    pub(super) fn running(&self, execution: &Execution) -> Vec<Shown<'a>> {
        self.in_turn(execution, |open, claimed_at| open.started_at >= claimed_at)
    }

    /// The attempts that were lost before the current turn and that this turn hasn't started again.
    pub(super) fn lost_before(&self, execution: &Execution) -> Vec<Shown<'a>> {
        // An attempt whose timeout has passed counts as timed out, not as lost.
        let is_lost = |open: Open, claimed_at| {
            open.started_at < claimed_at && open.until.is_none_or(|until| until > claimed_at)
        };
        self.in_turn(execution, is_lost)
    }

    fn in_turn(
        &self,
        execution: &Execution,
        is_included: impl Fn(Open, Timestamp) -> bool,
    ) -> Vec<Shown<'a>> {
        let Some(turn) = execution.turn() else { return vec![] };
        let steps = self.steps.iter().filter_map(|(name, known)| {
            let open = known.open.filter(|open| is_included(*open, turn.claimed_at))?;
            Some(Shown { name, attempt: open.attempt + known.lost, until: open.until })
        });
        steps.collect()
    }
}
