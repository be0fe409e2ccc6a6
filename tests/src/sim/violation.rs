//! What a check finds: a value, not a panic, so that a test can ask for one.

use std::fmt;

use tickover_core::time::Timestamp;

/// What must hold, whatever goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// The table is the truth; a message is a hint.
    I1,
    /// Every write is conditional on what was decided on.
    I2,
    /// Every live record has a place in the due index.
    I3,
    /// That place may be early, never late.
    I4,
    /// Deadlines are instants fixed at scheduling, and exactly one of expiry and report wins.
    I5,
    /// An outcome never changes, except by an operator's retry.
    I6,
    /// At most one result a task, and it is that of the lease that held it.
    I7,
    /// A control record stays within its kilobyte.
    I8,
    /// A backlog doesn't multiply.
    I9,
    /// Every call can be repeated, and its answer is true.
    I10,
    /// What a run remembers stays: one result a step, and each event is taken once and in order.
    Journal,
    /// A workflow's code ends as if nothing had disturbed it, and none of its steps begins that must not.
    Engine,
    /// Whoever waits for others is told of them, and nobody goes to sleep on something that it hasn't seen.
    Wakes,
    /// Nothing is deleted that is needed, and what isn't needed is deleted in the end.
    Expiry,
    /// A message reaches the dead letters only if nobody can deal with it, and no loop of messages is stopped.
    Messages,
    /// What kills its worker is given up alone: what ran beside it goes on.
    Isolation,
    /// What an older build can't read, it leaves as it is.
    Format,
    /// What operators and parents want of an execution is done.
    Policies,
    /// Every task and every execution ends.
    Liveness,
    /// What is due is done on time, as far as the faults allow.
    Timeliness,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: Invariant,
    /// Since when, by the world's clock.
    pub at: Timestamp,
    /// How it showed.
    pub what: String,
}

impl Violation {
    /// A violation found at an instant.
    pub fn new(invariant: Invariant, at: Timestamp, what: impl Into<String>) -> Self {
        Self { invariant, at, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.invariant, self.at.to_rfc3339(), self.what)
    }
}
