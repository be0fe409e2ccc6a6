//! Merges the entries that other callers have written to a run since, from the record that a write of the turn
//! returned.

use super::Replay;
use super::overtaken::what_holds;
use crate::execution::Execution;
use crate::execution::journal::Entry;

/// The result of merging a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// All entries of the record are known now.
    Known,
    /// Entries of other callers are already in segments: the caller must pass the whole journal to [`Replay::rebuild`].
    Incomplete,
}

impl Replay {
    /// Merges a record of this run that a write returned. If it was this turn's write, its entries are stored now. The
    /// entries of other callers come before them.
    pub fn merge(&mut self, record: &Execution) -> Merged {
        let sealed = record.sealed.map_or(0, |sealed| usize::try_from(sealed.entries).unwrap_or(usize::MAX));
        let total = record.entries();
        let Some(from) = self.stored.checked_sub(sealed) else {
            // The entries that moved into segments may be this turn's own.
            let others = total.saturating_sub(self.stored + self.in_flight.len());
            if others > 0 {
                return Merged::Incomplete;
            }
            self.mark_stored(total);
            return Merged::Known;
        };
        let mut ours = std::mem::take(&mut self.in_flight).into_iter().peekable();
        for entry in record.journal.iter().skip(from) {
            if ours.next_if(|own| own == entry).is_none() {
                self.note_overtaken(std::slice::from_ref(entry));
                self.apply_entry(entry);
            }
        }
        self.mark_stored(total);
        Merged::Known
    }

    /// Adds entries of other callers. All of this turn's own must be written.
    pub fn append(&mut self, entries: &[Entry]) {
        for entry in entries {
            self.apply_entry(entry);
        }
        self.stored += entries.len();
    }

    /// Withdraws what the code has got from this turn and isn't written, if others' entries have overtaken it.
    fn note_overtaken(&mut self, since: &[Entry]) {
        if let Some(holds) = what_holds(&self.fresh, |name| self.instants.get(name).copied(), since) {
            self.fresh = holds;
            self.overtaken = true;
        }
    }

    fn mark_stored(&mut self, total: usize) {
        self.stored = total;
        self.in_flight.clear();
    }

    /// Starts again from the whole journal as it is stored now. Claimed names stay claimed, and entries not yet written
    /// still count.
    pub fn rebuild(&mut self, journal: &[Entry]) {
        self.fresh.retain(|entry| !journal.contains(entry));
        self.note_overtaken(journal.get(self.stored..).unwrap_or_default());
        self.name_states.clear();
        self.open.clear();
        self.events.clear();
        self.order.restart_replay();
        self.patches = None;
        self.untouched = true;
        self.reopened.clear();
        self.left.clear();
        self.instants.clear();
        self.begun.clear();
        self.stored = journal.len();
        self.bytes = 0;
        self.in_flight.clear();
        for entry in journal {
            self.apply_entry(entry);
        }
        for entry in self.fresh.clone() {
            self.apply_entry(&entry);
        }
    }
}
