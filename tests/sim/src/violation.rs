//! The result of a check: a value, not a panic, so that a test can expect one.

use std::fmt;

use tickover_core::time::Timestamp;

/// A rule that must hold whatever goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// The table is the truth; a message is a hint.
    I1,
    /// Every write is conditional on the record that was decided on.
    I2,
    /// Every live record has a due slot.
    I3,
    /// The due slot may be early, never late.
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
    /// Journal entries are never lost: one result a step, and each event is taken once and in order.
    Journal,
    /// A workflow's code ends as it would without faults, and no step starts that must not start.
    Engine,
    /// A waiting execution is notified of each end that it waits for, and no turn suspends with an unseen wake.
    Wakes,
    /// No item is deleted that is needed, and what isn't needed is deleted in the end.
    Expiry,
    /// Only a message that can't be processed becomes a dead letter, and no loop of messages is stopped.
    Messages,
    /// Work that kills its worker ends alone as poisoned: work beside it continues.
    Isolation,
    /// An older build doesn't change records that it can't read.
    Format,
    /// The requests of operators and the policies of parents are carried out.
    Policies,
    /// A report with a token counts while its wait is open, and only then, and once.
    Callbacks,
    /// An execution whose journal doesn't fit its code waits for an operator: nobody else ends it.
    Drift,
    /// What an operator has run again runs again, and its new outcome counts.
    Again,
    /// Every operation on many records ends, and does what it was asked for, and nothing twice.
    Operations,
    /// At every commit, something leads to each record that waits to be started.
    Carriers,
    /// No key has more running tasks than its limit, and nobody waits while a place is free.
    Limits,
    /// Who needs two keys holds none while it waits for the other.
    Keys,
    /// Of a key never two tasks at once, and of a burst the last request runs, in time.
    Single,
    /// No more tasks of a key start than its rate allows.
    Rates,
    /// A cron's runs start once, in time, and not beside each other where they must not.
    Crons,
    /// Tasks that were claimed as one batch belong together.
    Batches,
    /// Every task and every execution ends.
    Liveness,
    /// Due work is done on time, as far as the faults allow.
    Timeliness,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: Invariant,
    /// Since when, by the world's clock.
    pub at: Timestamp,
    /// What was observed.
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
