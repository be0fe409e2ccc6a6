//! Counts the system's writes, and ends its life after one of them.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickover_core::decision::{Change, Write};

/// Counts writes and keeps the life of the system that runs now.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    writes: AtomicU64,
    /// Commits that changed an outcome or the journal: not those by which an execution only starts to wait again.
    news: AtomicU64,
    /// The number of the write after which the system dies; 0 for none.
    fatal: AtomicU64,
    deaths: AtomicU64,
    life: Mutex<Arc<Life>>,
}

/// The time from a system's start to its death. Calls to the store and the queues after that never return.
#[derive(Debug, Default)]
pub(super) struct Life {
    over: AtomicBool,
}

impl Life {
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Returns at once during the life, and never after it.
    pub(super) async fn pend_if_over(&self) {
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

    /// Starts a new life.
    pub(super) fn begin_life(&self) -> Arc<Life> {
        let life = Arc::<Life>::default();
        *self.current() = Arc::clone(&life);
        life
    }

    /// Counts a commit.
    pub(super) fn committed(&self, writes: &[Write]) {
        if writes.iter().any(is_news) {
            self.news.fetch_add(1, Ordering::SeqCst);
        }
        self.written();
    }

    /// Counts a write. The current system dies after the fatal one, also if the test made it.
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

/// Whether a write is news. A record that only starts to wait again, or only gets a new hint, isn't news.
fn is_news(write: &Write) -> bool {
    match write.change() {
        Some(Change::Execution(Some(before), after)) => {
            before.journal != after.journal
                || before.sealed != after.sealed
                || before.run != after.run
                || before.status().is_live() != after.status().is_live()
        }
        Some(Change::Task(Some(before), after)) => {
            before.status() != after.status() || before.attempt != after.attempt
        }
        Some(Change::Task(None, _) | Change::Execution(None, _)) => true,
        Some(Change::Cron(..)) | None => false,
    }
}
