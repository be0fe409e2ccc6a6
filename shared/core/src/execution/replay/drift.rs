//! Names that a run's journal has and that its code doesn't ask for.

use std::collections::{BTreeMap, BTreeSet};

use super::{NameState, Replay};
use crate::execution::journal::{DRIFT, RESTARTED};
use crate::id::StepName;

/// The notes of a journal about such names.
#[derive(Clone, Debug, Default)]
pub(super) struct Drift {
    /// Names kept from an earlier run. It is unknown when this run gets to them.
    kept: BTreeSet<StepName>,
    /// Names that the journal has a note about.
    noted: BTreeSet<StepName>,
}

impl Drift {
    pub(super) fn note(
        &mut self,
        kind: &str,
        name: Option<&StepName>,
        name_states: &BTreeMap<StepName, NameState>,
    ) {
        match kind {
            RESTARTED => self.kept = name_states.keys().cloned().collect(),
            DRIFT => self.noted.extend(name.cloned()),
            _ => {}
        }
    }
}

impl Replay {
    /// Names that the journal has and that the code hasn't used in this turn.
    pub fn unclaimed(&self) -> impl Iterator<Item = &StepName> {
        self.name_states.keys().filter(|name| !self.claimed.contains(*name))
    }

    /// Of these, the names that the code would have used by now if it were unchanged: it has received every outcome.
    /// Empty if an operator has had a step run again, because the code may not have got to the rest yet.
    pub fn unused(&self) -> impl Iterator<Item = &StepName> {
        let unclaimed = self.unclaimed().filter(|name| !self.drift.kept.contains(*name));
        unclaimed.filter(|_| self.reopened.is_empty())
    }

    /// Whether the journal has a note that the code doesn't ask for this name.
    pub fn is_noted(&self, name: &StepName) -> bool {
        self.drift.noted.contains(name)
    }
}
