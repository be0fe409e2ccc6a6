//! What each operation costs in the units that AWS bills. The tests of costs check the code against these figures, so a
//! price that is calculated from them is measured.
//!
//! Write units are `DynamoDB`'s for records of up to 1 KB, including the indexes; read units are strongly consistent
//! ones; messages are those sent to SQS. The cost of receiving and deleting a message, and of the function's own time,
//! depends on batching and on the work: the caller adds it.

/// The most that one operation consumes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Units {
    pub writes: f64,
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
/// Claiming the task from its hint.
pub const CLAIM: Units = Units::of(1.0, 0.0, 0.0);
/// What the claim of a remote step adds: a read of its execution.
pub const PARENT: Units = Units::of(0.0, 0.5, 0.0);
/// What an attempt's own timeout adds to the claim that starts it.
pub const ATTEMPT_TIMEOUT: Units = Units::of(2.0, 0.0, 1.0);
pub const HEARTBEAT: Units = Units::of(1.0, 1.0, 0.0);
pub const COMPLETE: Units = Units::of(2.0, 1.0, 0.0);
/// A failure with a retry.
pub const RETRY: Units = Units::of(1.0, 1.0, 1.0);
/// A final failure, or a deadline that passed.
pub const END_BADLY: Units = Units::of(3.0, 1.0, 0.0);
/// The timer of a deadline.
pub const TIMER: Units = Units::of(0.0, 1.0, 1.0);
pub const START: Units = Units::of(3.0, 0.0, 1.0);
/// Starting a turn.
pub const TURN: Units = Units::of(1.0, 1.0, 0.0);
/// Recording an inline step's result. The last one before a close or a suspension costs nothing.
pub const INLINE_STEP: Units = Units::of(1.0, 0.0, 0.0);
/// Suspending, and the turn that continues later: the whole of a sleep or a wait.
pub const SLEEP: Units = Units::of(5.0, 1.0, 1.0);
/// A remote step of a fan-out, with everything that its execution does for it.
pub const REMOTE_STEP: Units = Units::of(6.5, 3.0, 1.0);
pub const CLOSE: Units = Units::of(2.0, 0.0, 0.0);
/// A tick with nothing due, for each shard of the due index.
pub const IDLE_SHARD: Units = Units::of(0.0, 0.5, 0.0);
