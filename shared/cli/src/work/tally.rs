//! What a worker has done, as counts.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a task ended in this worker.
#[derive(Debug)]
pub(super) enum Ending {
    /// Its result is recorded.
    Completed,
    /// Its failed attempt is recorded.
    Failed,
    /// Its cancellation is recorded.
    Cancelled,
    /// The command was ended because the worker no longer had the lease, or because it was too late.
    Stopped,
    /// The server refused the report, or it couldn't be sent.
    Unrecorded,
    /// Released without a result.
    Released,
    /// Released because the command can't be started.
    Unstartable(io::Error),
}

impl Ending {
    const fn name(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Stopped => "stopped",
            Self::Unrecorded => "unrecorded",
            Self::Released | Self::Unstartable(_) => "released",
        }
    }
}

/// The number of tasks by ending.
#[derive(Debug, Default)]
pub(super) struct Tally(BTreeMap<&'static str, u64>);

impl Tally {
    /// Counts one task.
    pub(super) fn add(&mut self, ending: &Ending) {
        *self.0.entry(ending.name()).or_default() += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no tasks");
        }
        let counts: Vec<_> = self.0.iter().map(|(name, count)| format!("{count} {name}")).collect();
        f.write_str(&counts.join(", "))
    }
}

/// Heartbeats by outcome (Z24).
#[derive(Debug, Default)]
pub(super) struct Heartbeats {
    /// The lease was extended.
    pub(super) extended: AtomicU64,
    /// The worker no longer had the lease.
    pub(super) refused: AtomicU64,
    /// No answer, or an unexpected one.
    pub(super) unanswered: AtomicU64,
}

impl fmt::Display for Heartbeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (extended, refused) = (read(&self.extended), read(&self.refused));
        write!(f, "{extended} renewed, {refused} refused, {} unanswered", read(&self.unanswered))
    }
}
