//! Attempts at inline steps, as far as the journal knows them: those that were written down before they ran.
//!
//! An attempt that was lost with its worker is written down again under the same number, since no policy counts it. Who
//! reads a timeline wants to know how often the step was begun, so here it counts.

use std::collections::BTreeMap;

use tickover_core::execution::Execution;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::id::StepName;
use tickover_core::time::Timestamp;

/// What is known of steps' attempts while a journal is gone through.
#[derive(Default)]
pub(super) struct Attempts<'a> {
    steps: BTreeMap<&'a StepName, Known>,
}

#[derive(Default)]
struct Known {
    lost: u32,
    /// The attempt whose end isn't known.
    open: Option<Open>,
}

/// An attempt whose end isn't known.
#[derive(Clone, Copy)]
struct Open {
    /// As its policy counts.
    attempt: u32,
    begun_at: Timestamp,
    /// When its time is over.
    until: Option<Timestamp>,
}

/// An attempt of a step, with those counted that were lost before.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) name: &'a StepName,
    pub(super) attempt: u32,
    pub(super) until: Option<Timestamp>,
}

impl<'a> Attempts<'a> {
    /// Takes note of an entry. The attempt that was lost, if it shows that one was.
    pub(super) fn note(&mut self, entry: &'a Entry) -> Option<Shown<'a>> {
        match &entry.what {
            Happened::Attempt { name, attempt, error: None, next_at, .. } => {
                let known = self.steps.entry(name).or_default();
                // Under a higher number, the one before failed or timed out, and was tried again at once.
                let lost = known.open.filter(|open| open.attempt == *attempt);
                let lost =
                    lost.map(|lost| Shown { name, attempt: lost.attempt + known.lost, until: lost.until });
                known.lost += u32::from(lost.is_some());
                known.open = Some(Open { attempt: *attempt, begun_at: entry.at, until: *next_at });
                return lost;
            }
            Happened::Attempt { name, error: Some(_), .. } | Happened::Step { name, .. } => {
                if let Some(known) = self.steps.get_mut(name) {
                    known.open = None;
                }
            }
            Happened::Reopened { name } => {
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

    /// The attempts that run: those of the turn under way.
    pub(super) fn running(&self, execution: &Execution) -> Vec<Shown<'a>> {
        self.of_turn(execution, |open, claimed_at| open.begun_at >= claimed_at)
    }

    /// The attempts that were lost before the turn under way, which hasn't begun them again.
    pub(super) fn lost_before(&self, execution: &Execution) -> Vec<Shown<'a>> {
        // One whose time was over counts as one that timed out.
        let is_lost = |open: Open, claimed_at| {
            open.begun_at < claimed_at && open.until.is_none_or(|until| until > claimed_at)
        };
        self.of_turn(execution, is_lost)
    }

    fn of_turn(&self, execution: &Execution, is_wanted: impl Fn(Open, Timestamp) -> bool) -> Vec<Shown<'a>> {
        let Some(turn) = execution.turn() else { return vec![] };
        let steps = self.steps.iter().filter_map(|(name, known)| {
            let open = known.open.filter(|open| is_wanted(*open, turn.claimed_at))?;
            Some(Shown { name, attempt: open.attempt + known.lost, until: open.until })
        });
        steps.collect()
    }
}
