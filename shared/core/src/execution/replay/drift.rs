//! What is remembered of a run and its code doesn't ask for.

use std::collections::{BTreeMap, BTreeSet};

use super::{Replay, Standing};
use crate::execution::journal::{DRIFT, RESTARTED};
use crate::id::StepName;

/// What the notes of a journal say about that.
#[derive(Clone, Debug, Default)]
pub(super) struct Drift {
    /// Names of an earlier run: when this one gets to them isn't known.
    kept: BTreeSet<StepName>,
    /// Names that have been told.
    noted: BTreeSet<StepName>,
}

impl Drift {
    pub(super) fn note(
        &mut self,
        kind: &str,
        name: Option<&StepName>,
        standings: &BTreeMap<StepName, Standing>,
    ) {
        match kind {
            RESTARTED => self.kept = standings.keys().cloned().collect(),
            DRIFT => self.noted.extend(name.cloned()),
            _ => {}
        }
    }
}

impl Replay {
    /// Names that are remembered and that the code hasn't used in this turn.
    pub fn unclaimed(&self) -> impl Iterator<Item = &StepName> {
        self.standings.keys().filter(|name| !self.claimed.contains(*name))
    }

    /// Those of them that it would have used by now, if it were the code that has run before: it has heard of all that
    /// has happened. Where an operator has had something run again, it may not have got to the rest yet.
    pub fn unused(&self) -> impl Iterator<Item = &StepName> {
        let unclaimed = self.unclaimed().filter(|name| !self.drift.kept.contains(*name));
        unclaimed.filter(|_| self.reopened.is_empty())
    }

    /// Whether the journal says that the code doesn't ask for this.
    pub fn is_noted(&self, name: &StepName) -> bool {
        self.drift.noted.contains(name)
    }
}
