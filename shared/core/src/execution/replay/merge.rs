//! What others have written to a run meanwhile, found in the record that a write of the turn gave back.

use super::Replay;
use crate::execution::Execution;
use crate::execution::journal::Entry;

/// What a record told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// All that it holds is known now.
    Known,
    /// Others' entries have been sealed: the whole journal is needed, for [`Replay::rebuild`].
    Incomplete,
}

impl Replay {
    /// Takes note of a record of this run that came back from a write. If the write was this turn's, the entries it
    /// was given are stored now; what others wrote stands before them.
    pub fn merge(&mut self, record: &Execution) -> Merged {
        let sealed = record.sealed.map_or(0, |sealed| usize::try_from(sealed.entries).unwrap_or(usize::MAX));
        let total = sealed.saturating_add(record.journal.len());
        let Some(from) = self.stored.checked_sub(sealed) else {
            // Our own entries may have been what was sealed.
            let others = total.saturating_sub(self.stored + self.in_flight.len());
            if others > 0 {
                return Merged::Incomplete;
            }
            self.settle(total);
            return Merged::Known;
        };
        let mut ours = std::mem::take(&mut self.in_flight).into_iter().peekable();
        for entry in record.journal.iter().skip(from) {
            if ours.next_if(|own| own == entry).is_none() {
                self.absorb(entry);
            }
        }
        self.settle(total);
        Merged::Known
    }

    fn settle(&mut self, total: usize) {
        self.stored = total;
        self.in_flight.clear();
    }

    /// Begins again with the whole journal as it is stored now. Names stay taken, and what isn't written counts.
    pub fn rebuild(&mut self, journal: &[Entry]) {
        self.standings.clear();
        self.events.clear();
        self.order.begin_again();
        self.patches = None;
        self.untouched = true;
        self.reopened.clear();
        self.begun.clear();
        self.stored = journal.len();
        self.in_flight.clear();
        for entry in journal {
            self.absorb(entry);
        }
        for entry in self.fresh.clone() {
            self.absorb(&entry);
        }
    }
}
