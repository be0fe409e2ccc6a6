//! What each operation costs in the units that AWS bills. The tests on cost hold the code to these figures, so a
//! price reckoned from them is a price that was measured.
//!
//! Write units are `DynamoDB`'s for records of up to 1 KB, the indexes' included; read units are strongly consistent
//! ones; messages are those sent to SQS. What receiving and deleting a message, and the function's own time, cost
//! depends on batching and on the work: that is the caller's to say.

/// What one operation consumes at most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Units {
    /// Write units.
    pub writes: f64,
    /// Read units.
    pub reads: f64,
    pub sends: f64,
}

impl Units {
    const fn of(writes: f64, reads: f64, sends: f64) -> Self {
        Self { writes, reads, sends }
    }

    #[must_use]
    pub fn times(self, count: f64) -> Self {
        Self { writes: self.writes * count, reads: self.reads * count, sends: self.sends * count }
    }

    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            writes: self.writes + other.writes,
            reads: self.reads + other.reads,
            sends: self.sends + other.sends,
        }
    }
}

pub const SCHEDULE: Units = Units::of(2.0, 0.0, 1.0);
/// Claiming it from its hint.
pub const CLAIM: Units = Units::of(1.0, 0.0, 0.0);
/// What the claim of a remote step adds: a look at its execution.
pub const PARENT: Units = Units::of(0.0, 0.5, 0.0);
/// What an attempt's own timeout adds to the claim that begins it.
pub const ATTEMPT_TIMEOUT: Units = Units::of(2.0, 0.0, 1.0);
pub const HEARTBEAT: Units = Units::of(1.0, 1.0, 0.0);
pub const COMPLETE: Units = Units::of(2.0, 1.0, 0.0);
/// A failure that is tried again.
pub const RETRY: Units = Units::of(1.0, 1.0, 1.0);
/// A failure for good, or a deadline that passed.
pub const END_BADLY: Units = Units::of(3.0, 1.0, 0.0);
/// The timer of a deadline.
pub const TIMER: Units = Units::of(0.0, 1.0, 1.0);
/// Starting an execution.
pub const START: Units = Units::of(3.0, 0.0, 1.0);
/// Taking a turn of it.
pub const TURN: Units = Units::of(1.0, 1.0, 0.0);
/// Writing down an inline step's result. The last one before a close or a suspension costs nothing.
pub const INLINE_STEP: Units = Units::of(1.0, 0.0, 0.0);
/// Suspending, and the turn that goes on later: a sleep or a wait as a whole.
pub const SLEEP: Units = Units::of(5.0, 1.0, 1.0);
/// A remote step of a fan-out, with everything its execution does for it.
pub const REMOTE_STEP: Units = Units::of(6.5, 3.0, 1.0);
/// Closing an execution.
pub const CLOSE: Units = Units::of(2.0, 0.0, 0.0);
/// A tick with nothing due, for each shard of the due index.
pub const IDLE_SHARD: Units = Units::of(0.0, 0.5, 0.0);
