//! Which remote steps and children of a run are open.

use std::collections::{BTreeMap, BTreeSet};

use crate::execution::journal::{Entry, Happened, StepOutcome};
use crate::id::{ExecutionId, StepName};

/// The remote steps and children of a journal that have started and haven't ended: first those of its run, of which the
/// latest entry of a name counts, then the children that an earlier run has left.
pub fn open_steps(entries: &[Entry]) -> Vec<&Entry> {
    let mut open: BTreeMap<&StepName, &Entry> = BTreeMap::new();
    // By their ids: this run's child of the same name may be another one, as a page of a map is.
    let mut left: BTreeMap<&ExecutionId, &Entry> = BTreeMap::new();
    for entry in entries {
        match &entry.what {
            Happened::Child { execution, left: true, .. } => {
                left.insert(execution, entry);
            }
            Happened::Child { name, execution, .. } => {
                left.remove(execution);
                open.insert(name, entry);
            }
            Happened::Remote { name } => {
                open.insert(name, entry);
            }
            Happened::Step { name, attempts, .. } => {
                // No turn writes the end of a child that was left; a reader of records adds it.
                if open.remove(name).is_none() && attempts.is_none() {
                    left.retain(
                        |_, entry| !matches!(&entry.what, Happened::Child { name: of, .. } if of == name),
                    );
                }
            }
            Happened::Reopened { name, .. } => {
                open.remove(name);
            }
            Happened::Attempt { .. }
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
    open.into_values().chain(left.into_values()).collect()
}

/// The remote steps of a journal that were cancelled after the last end of a step, and haven't run again since.
pub fn cancelled_after<'a>(entries: &'a [Entry], step: &StepName) -> BTreeSet<&'a StepName> {
    let is_end = |entry: &Entry| matches!(&entry.what, Happened::Step { name, .. } if name == step);
    let (mut remote, mut cancelled) = (BTreeSet::new(), BTreeSet::new());
    let Some(end) = entries.iter().rposition(is_end) else { return cancelled };
    for (place, entry) in entries.iter().enumerate() {
        match &entry.what {
            Happened::Remote { name } => {
                remote.insert(name);
            }
            Happened::Step { name, outcome: StepOutcome::Cancelled, attempts: None, .. }
                if place > end && remote.contains(name) =>
            {
                cancelled.insert(name);
            }
            Happened::Reopened { name, .. } => {
                cancelled.remove(name);
            }
            _ => {}
        }
    }
    cancelled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parent::ParentClosePolicy;
    use crate::time::Timestamp;

    fn child(name: &str, id: &str, left: bool, was_left: bool) -> Entry {
        let (name, execution) = (StepName::parse(name).unwrap(), ExecutionId::parse(id).unwrap());
        let policy = ParentClosePolicy::Terminate;
        Entry { at: Timestamp::EPOCH, what: Happened::Child { name, execution, policy, left, was_left } }
    }

    fn ended(name: &str) -> Entry {
        let (name, outcome) = (StepName::parse(name).unwrap(), StepOutcome::Cancelled);
        let what = Happened::Step { name, outcome, attempts: None, expired: None, errors: vec![] };
        Entry { at: Timestamp::EPOCH, what }
    }

    fn open(entries: &[Entry]) -> Vec<&str> {
        let open = open_steps(entries).into_iter();
        open.filter_map(|entry| match &entry.what {
            Happened::Child { execution, .. } => Some(execution.as_str()),
            _ => None,
        })
        .collect()
    }

    #[test]
    fn a_child_that_was_left_stays_open_beside_one_of_its_name() {
        let mut journal = vec![child("child:map:a[0]", "old", true, false)];
        assert_eq!(open(&journal), ["old"]);
        journal.push(child("child:map:a[0]", "new", false, false));
        assert_eq!(open(&journal), ["new", "old"]);
        journal.push(ended("child:map:a[0]"));
        assert_eq!(open(&journal), ["old"]);
        journal.push(child("child:other", "old", false, true));
        assert_eq!(open(&journal), ["old"]);
        journal.push(ended("child:other"));
        assert_eq!(open(&journal), [""; 0]);
        // As a reader of its record says.
        assert_eq!(open(&[child("a", "old", true, false), ended("a")]), [""; 0]);
    }
}
