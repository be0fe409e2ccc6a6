//! What a turn has told its code, though others had written before that it isn't so.
//!
//! A turn ends a wait by what it has seen of the journal: with the oldest event, or without one when its time is over. If
//! somebody has cleared that event meanwhile, or had sent one in time, the end isn't true. Nor is the number of events that
//! the code has cleared. It must not be written, and what the code has done since must not either. But whatever has run by then began before: a turn begins nothing before all of
//! its entries are written. So the results of steps stay.

use crate::execution::journal::{Entry, Happened, is_wait_for};
use crate::id::StepName;
use crate::time::Timestamp;

/// The entries of a turn that may still be written, if what others have written `since` it last looked has overtaken one of
/// them. `None` if all may be written. `until_of` says when a sleep, a timeout or a wait ends by itself.
pub fn what_holds(
    entries: &[Entry],
    until_of: impl Fn(&StepName) -> Option<Timestamp>,
    since: &[Entry],
) -> Option<Vec<Entry>> {
    let is_overtaken = |entry: &Entry| since.iter().any(|other| overtakes(other, entry, &until_of));
    let (before, after) = entries.split_at(entries.iter().position(is_overtaken)?);
    Some(before.iter().chain(after.iter().filter(|entry| is_of_work(entry))).cloned().collect())
}

/// Whether a turn that had seen the other entry wouldn't have written this one.
fn overtakes(other: &Entry, entry: &Entry, until_of: impl Fn(&StepName) -> Option<Timestamp>) -> bool {
    let is_in_time = |name| until_of(name).is_some_and(|until| other.at < until);
    match (&other.what, &entry.what) {
        (
            Happened::EventsCleared { name, .. },
            Happened::Waited { event: Some(taken), .. } | Happened::EventsCleared { name: taken, .. },
        ) => name == taken,
        (Happened::Event { name: event, .. }, Happened::Waited { name, event: None }) => {
            is_wait_for(name, event) && is_in_time(name)
        }
        // The code may wait for any event beside a sleep or a timeout.
        (Happened::Event { .. }, Happened::Fired { name }) => is_in_time(name),
        _ => false,
    }
}

/// Whether an entry says how a step has run, or that a remote step or child was started.
const fn is_of_work(entry: &Entry) -> bool {
    match &entry.what {
        Happened::Step { attempts: Some(made), .. } => *made > 0,
        Happened::Attempt { error, .. } => error.is_some(),
        Happened::Remote { .. } | Happened::Child { .. } => true,
        Happened::Step { attempts: None, .. }
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
