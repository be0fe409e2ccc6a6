//! Names that a run's journal has and that its code doesn't ask for.

use std::collections::{BTreeMap, BTreeSet};

use super::{NameState, Replay};
use crate::execution::journal::{DRIFT, RESTARTED};
use crate::id::StepName;

/// The notes of a journal about such names.
#[derive(Clone, Debug, Default)]
pub(super) struct Drift {
    /// Names kept from an earlier run, or from before an operator had a step run again. It is unknown when the code gets to
    /// them.
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
            RESTARTED => self.keep(name_states),
            DRIFT => self.noted.extend(name.cloned()),
            _ => {}
        }
    }

    pub(super) fn keep(&mut self, name_states: &BTreeMap<StepName, NameState>) {
        self.kept = name_states.keys().cloned().collect();
    }
}

impl Replay {
    /// Names that the journal has and that the code hasn't used in this turn.
    pub fn unclaimed(&self) -> impl Iterator<Item = &StepName> {
        self.name_states.keys().filter(|name| !self.claimed.contains(*name))
    }

    /// Of these, the names that the code would have used by now if it were unchanged: it has received every outcome.
    pub fn unused(&self) -> impl Iterator<Item = &StepName> {
        self.unclaimed().filter(|name| !self.drift.kept.contains(*name))
    }

    /// Whether the journal has a note that the code doesn't ask for this name.
    pub fn is_noted(&self, name: &StepName) -> bool {
        self.drift.noted.contains(name)
    }
}
