//! What the system has written so far, and at which of its writes it dies.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickover_core::decision::Write;

/// Counts writes and keeps the life of the system that runs now.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    writes: AtomicU64,
    /// Those that brought something new: not those by which an execution only goes to sleep again.
    news: AtomicU64,
    /// The number of the write after which it dies; 0 for none.
    fatal: AtomicU64,
    deaths: AtomicU64,
    life: Mutex<Arc<Life>>,
}

/// A system from its start to its death. Nothing that is asked of the outside after that is ever answered.
#[derive(Debug, Default)]
pub(super) struct Life {
    over: AtomicBool,
}

impl Life {
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Returns while it lasts, and never after.
    pub(super) async fn goes_on(&self) {
        if self.is_over() {
            pending::<()>().await;
        }
    }
}

impl Ledger {
    pub(super) fn writes(&self) -> u64 {
        self.writes.load(Ordering::SeqCst)
    }

    pub(super) fn news(&self) -> u64 {
        self.news.load(Ordering::SeqCst)
    }

    pub(super) fn deaths(&self) -> u64 {
        self.deaths.load(Ordering::SeqCst)
    }

    pub(super) fn die_after(&self, write: u64) {
        self.fatal.store(write, Ordering::SeqCst);
    }

    /// The life of the system that runs now.
    pub(super) fn life(&self) -> Arc<Life> {
        Arc::clone(&self.current())
    }

    /// Begins another one.
    pub(super) fn begin_life(&self) -> Arc<Life> {
        let life = Arc::<Life>::default();
        *self.current() = Arc::clone(&life);
        life
    }

    /// Notes what was committed.
    pub(super) fn committed(&self, writes: &[Write]) {
        if writes.iter().any(is_news) {
            self.news.fetch_add(1, Ordering::SeqCst);
        }
        self.written();
    }

    /// Notes a write. The system that runs now dies of the fatal one, whoever made it.
    pub(super) fn written(&self) {
        let number = self.writes.fetch_add(1, Ordering::SeqCst) + 1;
        if number == self.fatal.load(Ordering::SeqCst) {
            self.end_life();
        }
    }

    /// Ends the life of the system that runs now.
    pub(super) fn end_life(&self) {
        self.deaths.fetch_add(1, Ordering::SeqCst);
        self.current().over.store(true, Ordering::SeqCst);
    }

    fn current(&self) -> MutexGuard<'_, Arc<Life>> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether something has come of it. A record that is only put to sleep again, or told of once more, is no news.
fn is_news(write: &Write) -> bool {
    if let Write::UpdateExecution { before, after, .. } = write {
        return before.journal != after.journal
            || before.sealed != after.sealed
            || before.run != after.run
            || before.status().is_live() != after.status().is_live();
    }
    if let Write::UpdateTask { before, after, .. } = write {
        return before.status() != after.status() || before.attempt != after.attempt;
    }
    matches!(write, Write::CreateTask { .. } | Write::CreateExecution { .. })
}
