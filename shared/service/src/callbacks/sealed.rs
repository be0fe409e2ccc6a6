//! What the segments of a journal say about one event: each is read once, however often somebody with a token asks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tickover_core::execution::Execution;
use tickover_core::execution::journal::{Entry, Happened, Sealed, answered_event, is_wait_for};
use tickover_core::id::{EventName, Incarnation};

use crate::error::ServiceError;
use crate::service::Service;

/// How many are kept.
const KEPT: usize = 64;
/// How many entries they have together. One is as large as an event's, or as an answer's.
const ENTRIES_MAX: usize = 20_000;

/// The incarnation of an execution, its run, and the event.
type Key = (Incarnation, u32, EventName);

/// What is known of the segments up to the last of these.
#[derive(Clone, Debug)]
struct Read {
    sealed: Sealed,
    entries: Arc<[Entry]>,
}

/// The last that were read.
#[derive(Debug, Default)]
pub(super) struct SealedWaits(Mutex<VecDeque<(Key, Read)>>);

impl SealedWaits {
    fn get(&self, key: &Key) -> Option<Read> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known == key).map(|(_, read)| read.clone())
    }

    fn keep(&self, key: Key, read: Read) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| *known != key);
        kept.push_front((key, read));
        let mut entries = 0;
        let fits = kept.iter().take(KEPT).take_while(|(_, read)| {
            entries += read.entries.len();
            entries <= ENTRIES_MAX
        });
        let fits = fits.count();
        kept.truncate(fits.max(1));
    }
}

impl Service {
    /// The entries of the whole journal that are about the waits for this event, and all answers to requests.
    pub(crate) async fn about(
        &self,
        execution: &Execution,
        event: &EventName,
    ) -> Result<Vec<Entry>, ServiceError> {
        let here = execution.journal.iter().filter(|entry| is_about(entry, event)).cloned();
        let Some(sealed) = execution.sealed else { return Ok(here.collect()) };
        let key = (execution.incarnation, execution.run, event.clone());
        let known = self.callbacks.sealed.get(&key);
        let before = match known {
            Some(known) if known.sealed.last == sealed.last => known.entries,
            known => {
                let since = match &known {
                    Some(known) => self.sealed_since(execution, known.sealed).await?,
                    None => None,
                };
                // What was read may be of a process whose write came to nothing.
                let (known, since) = match (known, since) {
                    (Some(known), Some(since)) => (known.entries, since),
                    _ => (Arc::default(), self.sealed_of(execution).await?),
                };
                let since = since.into_iter().filter(|entry| is_about(entry, event));
                let entries: Arc<[Entry]> = known.iter().cloned().chain(since).collect();
                self.callbacks.sealed.keep(key, Read { sealed, entries: Arc::clone(&entries) });
                entries
            }
        };
        Ok(before.iter().cloned().chain(here).collect())
    }
}

fn is_about(entry: &Entry, event: &EventName) -> bool {
    match &entry.what {
        Happened::Event { name, .. } | Happened::EventsCleared { name, .. } => name == event,
        Happened::Until { name, .. } | Happened::Waited { name, .. } => is_wait_for(name, event),
        // The names of answers have the ids of events, which are of all names.
        Happened::Captured { name, .. } => answered_event(name).is_some(),
        Happened::Attempt { .. }
        | Happened::Remote { .. }
        | Happened::Child { .. }
        | Happened::Step { .. }
        | Happened::Reopened { .. }
        | Happened::Fired { .. }
        | Happened::Patches { .. }
        | Happened::Note { .. } => false,
    }
}
