//! Writers of one record. Those of one process take turns at it once one of them has met another; those of several
//! processes try again after random waits, for as long as a caller may wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::error::ServiceError;
use crate::service::Service;

/// For how long a call tries to write a record that others write meanwhile. Callers wait longer for an answer.
const TRIED_FOR: Millis = Millis::from_secs(10);
/// How often at most, whatever the clock says.
const TRIES_MAX: u32 = 1_000;

/// How far a call has come with its tries.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tries {
    count: u32,
    /// Since the first one failed.
    until: Option<Timestamp>,
}

/// The records of which somebody in this process has a turn, or waits for one.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<HashMap<String, Arc<AsyncMutex<()>>>>);

/// The right to be the only one in this process to write a record, until it is dropped. The next one has it in the order in
/// which they came. Whoever has one waits for no other record's, except for a task or an execution while it has the turn of
/// a unique key or of a burst.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    record: String,
    mine: Option<OwnedMutexGuard<()>>,
    /// Whether others had it before.
    pub(crate) has_waited: bool,
}

impl Turns {
    fn records(&self) -> MutexGuard<'_, HashMap<String, Arc<AsyncMutex<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn at a record.
    pub(crate) async fn take(self: &Arc<Self>, record: String) -> Turn {
        let lock = Arc::clone(self.records().entry(record.clone()).or_default());
        // From here on, the entry is left out also if the caller is gone before it has its turn.
        let mut turn = Turn { turns: Arc::clone(self), record, mine: None, has_waited: false };
        turn.mine = Arc::clone(&lock).try_lock_owned().ok();
        if turn.mine.is_none() {
            turn.has_waited = true;
            turn.mine = Some(lock.lock_owned().await);
        }
        turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.mine = None;
        let mut records = self.turns.records();
        // Everybody who waits has a handle of the lock.
        if records.get(&self.record).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            records.remove(&self.record);
        }
    }
}

impl Service {
    /// Waits for another try, a random time.
    pub(crate) async fn once_more(&self, tries: &mut Tries, wait: Millis) -> Result<(), ServiceError> {
        let now = self.now();
        if tries.count >= TRIES_MAX || now >= *tries.until.get_or_insert(now.plus(TRIED_FOR)) {
            return Err(ServiceError::Contended);
        }
        self.back_off(tries.count, wait).await;
        tries.count += 1;
        Ok(())
    }

    /// The same, but the second try is at once: the first one mostly had an old copy of the record.
    pub(crate) async fn once_more_soon(&self, tries: &mut Tries, wait: Millis) -> Result<(), ServiceError> {
        if tries.count > 0 {
            return self.once_more(tries, wait).await;
        }
        tries.count = 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_record_is_one_writers_at_a_time_and_is_forgotten_afterwards() {
        let turns = Arc::new(Turns::default());
        let first = turns.take("task a".to_owned()).await;
        assert!(!first.has_waited && !turns.take("task b".to_owned()).await.has_waited);
        let mut second = Box::pin(turns.take("task a".to_owned()));
        let mut third = Box::pin(turns.take("task a".to_owned()));
        assert!(second.as_mut().now_or_never().is_none() && third.as_mut().now_or_never().is_none());
        drop(first);
        let second = second.await;
        assert!(second.has_waited && third.as_mut().now_or_never().is_none());
        // One that no longer waits leaves nothing behind.
        drop(third);
        drop(second);
        assert!(turns.records().is_empty());
    }
}
