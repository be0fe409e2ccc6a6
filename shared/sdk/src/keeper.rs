//! Extends a lease while the code that it is for blocks its thread.
//!
//! A turn or an attempt extends its lease in the task that polls its code. Code that blocks its thread keeps it from that. So
//! a task of its own looks whether the lease was extended in time, and extends it if it wasn't. That needs a runtime with
//! several threads, of which one isn't blocked.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures::future::BoxFuture;
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_service::ServiceError;
use tokio::task::JoinHandle;

use crate::backend::Backend;
use crate::busy::is_multi_threaded;

/// Extends the lease. Returns its new end.
pub(crate) type Extend = Box<dyn Fn() -> BoxFuture<'static, Result<Timestamp, ServiceError>> + Send + Sync>;

/// A lease that is kept. It is left alone when this is dropped.
#[derive(Default)]
pub(crate) struct Keeper {
    kept: Option<Arc<Kept>>,
    task: Option<JoinHandle<()>>,
}

/// What the two tasks know of the lease, in milliseconds.
struct Kept {
    ends_at: AtomicI64,
    /// When the time of the code itself is over.
    until: AtomicI64,
}

impl Keeper {
    /// Whether another task can run while the code blocks its thread.
    pub(crate) fn is_possible() -> bool {
        is_multi_threaded()
    }

    /// Keeps a lease of this length, which its own task extends after each `interval`.
    pub(crate) fn start(
        service: &Backend,
        ends_at: Timestamp,
        length: Millis,
        interval: Millis,
        extend: Extend,
    ) -> Self {
        let kept =
            Arc::new(Kept { ends_at: AtomicI64::new(ends_at.as_millis()), until: AtomicI64::new(i64::MAX) });
        // Half-way between the extension that is due and the end.
        let before = Millis::new(length.saturating_sub(interval).as_u64() / 2);
        let keeping = keep(service.clone(), Arc::clone(&kept), before, extend);
        Self { kept: Some(kept), task: Some(tokio::spawn(keeping)) }
    }

    /// Lets the other task begin. The runtime runs a new task on the thread that made it, which the code may block at once.
    pub(crate) async fn begin(&self) {
        if self.task.is_some() {
            tokio::task::yield_now().await;
        }
    }

    /// Notes when the lease ends, and until when the code may run: no lease is extended for code whose time ends first.
    pub(crate) fn note(&self, ends_at: Option<Timestamp>, until: Option<Timestamp>) {
        if let Some(kept) = &self.kept {
            kept.until.store(until.map_or(i64::MAX, Timestamp::as_millis), Ordering::SeqCst);
            kept.ends_at.fetch_max(ends_at.map_or(0, Timestamp::as_millis), Ordering::SeqCst);
        }
    }

    /// When the lease ends, if it was extended here.
    pub(crate) fn ends_at(&self) -> Option<Timestamp> {
        self.kept.as_ref().map(|kept| Timestamp::from_millis(kept.ends_at.load(Ordering::SeqCst)))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

async fn keep(service: Backend, kept: Arc<Kept>, before: Millis, extend: Extend) {
    let at = |value: &AtomicI64| Timestamp::from_millis(value.load(Ordering::SeqCst));
    let mut next = Timestamp::EPOCH;
    loop {
        let ends_at = at(&kept.ends_at);
        service.clock().sleep_until(ends_at.minus(before).max(next)).await;
        let now = service.now();
        next = now.plus(Millis::new((before.as_u64() / 4).max(1)));
        let is_enough = at(&kept.until) <= ends_at.max(now);
        if at(&kept.ends_at) > ends_at || is_enough {
            continue;
        }
        match extend().await {
            Ok(ends_at) => {
                tracing::debug!("a lease was extended beside code that blocks its thread");
                kept.ends_at.fetch_max(ends_at.as_millis(), Ordering::SeqCst);
            }
            // Another worker has it, or it has ended.
            Err(ServiceError::Rejected(_)) => return,
            Err(error) => tracing::debug!(%error, "the lease was not extended"),
        }
    }
}
