//! What the segments of a journal say about one event: read once, however often somebody with a token asks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tickover_core::execution::Execution;
use tickover_core::execution::journal::{Entry, Happened, answered_event, is_wait_for};
use tickover_core::id::{EventName, Nonce};

use crate::error::ServiceError;
use crate::service::Service;

/// How many are kept. An entry of them is as large as an event's.
const KEPT: usize = 64;

/// The mark of the last segment, which no other chain has, and the event.
type Key = (Nonce, EventName);

/// The last that were read.
#[derive(Debug, Default)]
pub(super) struct SealedWaits(Mutex<VecDeque<(Key, Arc<[Entry]>)>>);

impl SealedWaits {
    fn get(&self, key: &Key) -> Option<Arc<[Entry]>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known == key).map(|(_, entries)| Arc::clone(entries))
    }

    fn keep(&self, key: Key, entries: Arc<[Entry]>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.truncate(KEPT - 1);
        kept.push_front((key, entries));
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
        let key = (sealed.last, event.clone());
        let before = if let Some(known) = self.callbacks.sealed.get(&key) {
            known
        } else {
            let of_segments = Execution { journal: vec![], ..execution.clone() };
            let entries = self.journal_of(&of_segments).await?;
            let entries: Arc<[Entry]> = entries.into_iter().filter(|entry| is_about(entry, event)).collect();
            self.callbacks.sealed.keep(key, Arc::clone(&entries));
            entries
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
