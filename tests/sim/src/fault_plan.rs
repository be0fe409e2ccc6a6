//! The faults of a run, and their frequency. Each seed has its own; some seeds have none.

use tickover_core::duration::Millis;

use super::dice::Dice;

/// How far a process's clock is off at most, so that two of them differ by up to 2 s.
pub const AHEAD_MAX_MS: i64 = 1_000;
/// How far two clocks may differ.
pub const SKEW: Millis = Millis::from_secs(2);
/// How far the due index usually lags behind the table at most.
pub const LAG: Millis = Millis::from_secs(3);

/// The probability of each fault, in a thousand cases of its kind. All of them end with the fault phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// A process dies at a call to the world.
    pub crash: u64,
    /// A process freezes for minutes at a call to the world.
    pub freeze: u64,
    /// A write is applied, and its answer never arrives.
    pub lost_answer: u64,
    /// A write's answer never arrives, and the write is applied some seconds later.
    pub late_write: u64,
    /// A call isn't answered, and has no effect.
    pub unavailable: u64,
    /// A call is throttled.
    pub throttle: u64,
    /// A write is refused because of another one, which fails as well.
    pub conflict: u64,
    /// A message is accepted and never delivered.
    pub drop: u64,
    /// A message is delivered twice.
    pub duplicate: u64,
    /// A message arrives up to fifteen minutes late.
    pub delay: u64,
    /// A message in flight is delivered again.
    pub shown: u64,
    /// A queue with messages reports that it is empty.
    pub wrong_depth: u64,
    /// A clock jumps.
    pub jump: u64,
    /// A minute passes without a tick; usually several in a row.
    pub missed_tick: u64,
    /// How long a call takes at most, each way.
    pub latency_ms: u64,
    /// How late a tick comes at most.
    pub tick_late_ms: u64,
    /// How far clocks are off at most.
    pub ahead_max_ms: i64,
    /// How far the due index lags at most.
    pub lag_ms: u64,
}

impl FaultPlan {
    pub fn of(seed: u64) -> Self {
        // The label is part of the seeds: another one would change every run.
        let dice = Dice::new(seed, "weather");
        match dice.between(0, 7) {
            0 => Self::default(),
            1 | 2 => Self::with_all_faults(&dice).fair(),
            _ => Self::with_all_faults(&dice),
        }
    }

    fn with_all_faults(dice: &Dice) -> Self {
        // A few frequent faults, without the others, find more than a low rate of every fault.
        let often = |usual: u64| dice.pick([0, usual, usual, usual * 3]);
        Self {
            crash: often(3),
            freeze: often(3),
            lost_answer: often(20),
            late_write: often(6),
            unavailable: often(15),
            throttle: often(15),
            conflict: often(15),
            drop: often(100),
            duplicate: often(150),
            delay: often(100),
            shown: often(30),
            wrong_depth: often(60),
            jump: often(10),
            missed_tick: often(60),
            latency_ms: dice.pick([0, 20, 100, 800, 2_000]),
            tick_late_ms: dice.pick([0, 5_000, 40_000]),
            ahead_max_ms: dice.pick([0, 100, AHEAD_MAX_MS]),
            lag_ms: dice.pick([0, 500, LAG.as_u64()]),
        }
    }

    /// The same without failures: calls take time, clocks are off, the index lags, and ticks are late or missing.
    #[must_use]
    pub fn fair(self) -> Self {
        Self {
            missed_tick: self.missed_tick,
            tick_late_ms: self.tick_late_ms,
            jump: self.jump,
            ..self.settled()
        }
    }

    /// After the fault phase: everything works and ticks come, but clocks stay off and calls take time.
    #[must_use]
    pub fn settled(self) -> Self {
        Self {
            latency_ms: self.latency_ms,
            ahead_max_ms: self.ahead_max_ms,
            lag_ms: self.lag_ms,
            ..Self::default()
        }
    }

    /// Whether nothing fails: then due work is done within seconds, and not only by the next tick.
    pub fn is_fair(self) -> bool {
        self == self.fair()
    }
}
