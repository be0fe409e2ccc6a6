//! What a rerun keeps of the run before: by what an entry means, not by its type.
//!
//! | of the last run | a rerun of what failed | a rerun of steps, from a step, or with another input | a rerun of all | restart, `continue_as_new`, retry of the run |
//! |---|---|---|---|---|
//! | captured values | kept | kept | kept | |
//! | steps, remote steps and children that completed | kept | kept, except those that are asked for | | |
//! | those that failed or hadn't ended | run again, under the same keys | run again, under new keys | | |
//! | pages of a map | completed items are kept | kept if they had ended, even if items had failed, except those that are asked for | | |
//! | sleeps and waits that have ended | kept | kept | | |
//! | those that hadn't | begin again | begin again | | |
//! | callbacks, with their tokens | kept | kept | | |
//! | events that no wait has taken | kept | kept | | kept, except by a restart |
//! | published values, which no entry has | kept | kept | kept | kept |
//! | what ran after the failure: `on_failure`, undo steps | | | | |

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tickover_core::execution::journal::{
    CALLBACK_PREFIX, CHILD_PREFIX, END_PREFIX, Entry, Happened, PAGE_PREFIX, StepOutcome, UNDO_PREFIX,
    child_of_start, is_after_failure, is_page,
};
use tickover_core::id::{EventName, StepName};

/// Why a new run can't start from the results of a run that was undone.
pub(super) const RUN_WAS_UNDONE: &str =
    "can't build on a run that was undone when it failed: restart it, or run all its steps again";

pub(super) fn is_undoing(name: &StepName) -> bool {
    name.as_str().starts_with(UNDO_PREFIX)
}

/// Whether any effect of the run has been undone.
pub(super) fn was_undone(journal: &[Entry]) -> bool {
    let undid = |entry: &Entry| {
        !is_failure(entry) && matches!(&entry.what, Happened::Step { name, .. } if is_undoing(name))
    };
    journal.iter().any(undid)
}

/// The step of an entry.
pub(super) const fn step_of(entry: &Entry) -> Option<&StepName> {
    match &entry.what {
        Happened::Attempt { name, .. }
        | Happened::Remote { name }
        | Happened::Child { name, .. }
        | Happened::Step { name, .. }
        | Happened::Reopened { name, .. } => Some(name),
        Happened::Captured { .. }
        | Happened::Until { .. }
        | Happened::Fired { .. }
        | Happened::Event { .. }
        | Happened::Waited { .. }
        | Happened::EventsCleared { .. }
        | Happened::Patches { .. }
        | Happened::Note { .. } => None,
    }
}

/// A step or child of a run, and all that began after it.
pub(super) fn begun_from(journal: &[Entry], from: &StepName) -> Vec<StepName> {
    let mut begun: Vec<&StepName> = vec![];
    for name in journal.iter().filter_map(step_of) {
        if !begun.contains(&name) {
            begun.push(name);
        }
    }
    begun.into_iter().skip_while(|name| *name != from).cloned().collect()
}

pub(super) const fn is_failure(entry: &Entry) -> bool {
    match &entry.what {
        Happened::Step { outcome, .. } => match outcome {
            StepOutcome::Completed { .. } => false,
            StepOutcome::Failed { .. }
            | StepOutcome::Exhausted { .. }
            | StepOutcome::TimedOut
            | StepOutcome::DeadlineExceeded
            | StepOutcome::Cancelled
            | StepOutcome::ResultExpired => true,
        },
        Happened::Attempt { .. }
        | Happened::Remote { .. }
        | Happened::Child { .. }
        | Happened::Reopened { .. }
        | Happened::Captured { .. }
        | Happened::Until { .. }
        | Happened::Fired { .. }
        | Happened::Event { .. }
        | Happened::Waited { .. }
        | Happened::EventsCleared { .. }
        | Happened::Patches { .. }
        | Happened::Note { .. } => false,
    }
}

/// The entries with which a new run starts. Without `preserve`, they are captured values only.
pub(super) fn preserved(
    journal: &[Entry],
    steps: &[StepName],
    preserve: bool,
    is_same_work: bool,
) -> Vec<Entry> {
    let run = LastRun { is_same_work, ..LastRun::of(journal, steps) };
    let taken = events_of_waits(journal);
    let mut gone: BTreeSet<usize> = BTreeSet::new();
    for (index, entry) in journal.iter().enumerate() {
        if !run.keeps(entry, preserve) {
            gone.insert(index);
            gone.extend(taken.get(&index));
        }
    }
    journal
        .iter()
        .enumerate()
        .filter(|(index, _)| !gone.contains(index))
        .map(|(_, entry)| entry.clone())
        .collect()
}

/// What the whole journal says of its names.
struct LastRun<'a> {
    /// Steps that run again, whatever their result.
    steps: &'a [StepName],
    /// Whether the new run repeats what failed of this one, and nothing else.
    is_same_work: bool,
    /// The last end of each step and child that wasn't run again after it.
    ends: BTreeMap<&'a StepName, &'a Entry>,
    /// Sleeps and waits that have ended.
    over: BTreeSet<&'a StepName>,
}

impl<'a> LastRun<'a> {
    fn of(journal: &'a [Entry], steps: &'a [StepName]) -> Self {
        let (mut ends, mut over) = (BTreeMap::new(), BTreeSet::new());
        for entry in journal {
            if let Happened::Step { name, .. } = &entry.what {
                ends.insert(name, entry);
            } else if let Happened::Reopened { name, .. } = &entry.what {
                ends.remove(name);
            } else if let Happened::Fired { name } | Happened::Waited { name, .. } = &entry.what {
                over.insert(name);
            }
        }
        Self { steps, is_same_work: true, ends, over }
    }

    fn keeps(&self, entry: &Entry, preserve: bool) -> bool {
        match &entry.what {
            Happened::Captured { name, .. } => {
                !is_after_failure(name) && (preserve || !name.as_str().starts_with(CALLBACK_PREFIX))
            }
            Happened::Step { name, .. } => preserve && self.keeps_end(name, entry),
            Happened::Until { name, .. } | Happened::Fired { name } | Happened::Waited { name, .. } => {
                let is_over = || self.over.contains(name) && self.keeps_start(name);
                preserve && !is_after_failure(name) && is_over()
            }
            Happened::Event { .. } | Happened::EventsCleared { .. } => preserve,
            // How the old run got a result doesn't matter for the new run, which has started nothing of it.
            Happened::Attempt { .. }
            | Happened::Remote { .. }
            | Happened::Child { .. }
            | Happened::Reopened { .. }
            | Happened::Note { .. }
            | Happened::Patches { .. } => false,
        }
    }

    /// Whether an end is the last of its name, and good. The outcome of a page may have items that failed: the same work asks
    /// for each page again, which is the same page. To other work it would be another page, and all of its items would run.
    fn keeps_end(&self, name: &StepName, entry: &Entry) -> bool {
        let is_last = self.ends.get(name).is_some_and(|last| std::ptr::eq(*last, entry));
        let is_page_again = self.is_same_work && is_page(name);
        is_last
            && !is_failure(entry)
            && !self.steps.contains(name)
            && !is_page_again
            && !self.is_end_of_pages(name)
            && !is_after_failure(name)
    }

    /// Whether a name is that of the step with which a map ends its open pages. The new run may begin some of them again.
    fn is_end_of_pages(&self, name: &StepName) -> bool {
        let Some(label) = name.as_str().strip_prefix(END_PREFIX) else { return false };
        let page = format!("{CHILD_PREFIX}{PAGE_PREFIX}{label}[");
        self.ends.keys().any(|name| name.as_str().starts_with(&page))
    }

    /// Whether a name isn't that of the start of a child, which is started again if its outcome isn't kept.
    fn keeps_start(&self, name: &StepName) -> bool {
        let Some(child) = child_of_start(name) else { return true };
        self.ends.iter().any(|(name, end)| name.as_str() == child && self.keeps_end(name, end))
    }
}

/// The event that each wait took, by their positions in the journal.
fn events_of_waits(journal: &[Entry]) -> BTreeMap<usize, usize> {
    let (mut pending, mut taken) = (BTreeMap::<&EventName, VecDeque<usize>>::new(), BTreeMap::new());
    for (index, entry) in journal.iter().enumerate() {
        if let Happened::Event { name, .. } = &entry.what {
            pending.entry(name).or_default().push_back(index);
        } else if let Happened::Waited { event: Some(name), .. } = &entry.what {
            let event = pending.get_mut(name).and_then(VecDeque::pop_front);
            taken.extend(event.map(|event| (index, event)));
        } else if let Happened::EventsCleared { name, count } = &entry.what {
            let events = pending.entry(name).or_default();
            drop(events.drain(..events.len().min(super::close::index(*count))));
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use tickover_core::time::Timestamp;

    use super::*;

    fn completed(name: &str) -> Entry {
        let (name, outcome) = (StepName::parse(name).unwrap(), StepOutcome::Completed { output: None });
        let what = Happened::Step { name, outcome, attempts: Some(1), expired: None, errors: vec![] };
        Entry { at: Timestamp::EPOCH, what }
    }

    #[test]
    fn a_rerun_ends_the_pages_of_a_map_once_more() {
        let journal = ["child:map:items[0]", "end:items", "end:other"].map(completed);
        let kept = |is_same_work| preserved(&journal, &[], true, is_same_work);
        assert_eq!(kept(true), [completed("end:other")]);
        assert_eq!(kept(false), [completed("child:map:items[0]"), completed("end:other")]);
    }
}
