//! How many connections there may be, and which one is closed for a new one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::resource::{Resource, getrlimit};
use tokio::sync::Notify;

use super::connection::{Connection, Phase};

/// Most connections, even if the process may open more files.
const CONNECTIONS_MAX: usize = 1_024;
/// Open files kept for the store, for outgoing connections and for the rest of the program.
const FILES_KEPT: usize = 40;
/// Fewest connections: enough for a page and a few workers.
const CONNECTIONS_MIN: usize = 8;

pub(super) struct Permits {
    maximum: usize,
    open: Mutex<(u64, BTreeMap<u64, Arc<Connection>>)>,
    released: Arc<Notify>,
}

/// The permit of one connection. Dropping it makes space for another one.
pub(super) struct Permit {
    permits: Arc<Permits>,
    number: u64,
    pub(super) connection: Arc<Connection>,
}

impl Permits {
    pub(super) fn new(maximum: Option<usize>) -> Self {
        let maximum = maximum.unwrap_or_else(by_open_files).max(1);
        Self { maximum, open: Mutex::default(), released: Arc::default() }
    }

    /// Resolves when there is space for one more connection. If there is none, it closes another one.
    pub(super) async fn wait_for_space(&self) {
        while self.count() >= self.maximum {
            self.close_one();
            self.released.notified().await;
        }
    }

    /// Closes the connection that has been in its phase for longest. If all are being answered, the oldest answer is hurried:
    /// a long poll ends, and its connection closes after that.
    pub(super) fn close_one(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let longest = |wanted: fn(Phase) -> bool| {
            let those = open.1.values().filter(move |connection| wanted(connection.phase().0));
            those.min_by_key(|connection| connection.phase().1)
        };
        if let Some(silent) = longest(|phase| !matches!(phase, Phase::Answering | Phase::Leaving)) {
            silent.close();
        } else if let Some(polling) = longest(|phase| phase == Phase::Answering) {
            polling.hurry();
        }
    }

    pub(super) fn take(self: &Arc<Self>) -> Permit {
        let connection = Arc::new(Connection::new(Arc::clone(&self.released)));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let number = open.0;
        open.0 += 1;
        open.1.insert(number, Arc::clone(&connection));
        Permit { permits: Arc::clone(self), number, connection }
    }

    fn count(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).1.len()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.permits.open.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&self.number);
        self.permits.released.notify_one();
    }
}

/// As many connections as leave `FILES_KEPT` open files.
fn by_open_files() -> usize {
    let soft = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    let files = usize::try_from(soft).unwrap_or(usize::MAX);
    files.saturating_sub(FILES_KEPT).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_silent_are_closed_first_and_then_the_oldest_answer_is_hurried_once() {
        let permits = Arc::new(Permits::new(Some(3)));
        let (old, new, silent) = (permits.take(), permits.take(), permits.take());
        for polling in [&old, &new] {
            polling.connection.enter(Phase::Answering);
        }
        let hurried = || [&old, &new].map(|permit| *permit.connection.hurried().borrow());
        permits.close_one();
        assert_eq!(hurried(), [false, false]);
        drop(silent);
        permits.close_one();
        assert_eq!(hurried(), [true, false]);
        // It is being answered at last: another one makes space.
        old.connection.enter(Phase::Leaving);
        permits.close_one();
        assert_eq!(hurried(), [true, true]);
    }
}
