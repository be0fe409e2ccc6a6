//! The error of this machine's clock, and a clock that is corrected by it.
//!
//! Every answer of AWS has a date. That instant lies between the request and the arrival of the answer, so each answer
//! bounds the clock's error from below and from above. A date has whole seconds; the bounds of many answers together
//! are narrower than that.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;

use crate::metric;
use crate::ports::Clock;

/// A date is an instant rounded down by up to this much.
const DATE_PRECISION_MS: i64 = 999;
/// A clock that may be right to this is not corrected.
const IGNORED_MS: i64 = 100;
/// An error from this size on is logged.
const LOGGED_FROM_MS: u64 = 1_000;
/// Of an error that is known only roughly, how much is corrected beyond the certain part.
const GUESS_MAX_MS: i64 = 500;
/// A clock gains or loses at most one part in this many.
const DRIFT: i64 = 1_000;

/// What must be added to the machine's clock: bounds in milliseconds, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    least: i64,
    most: i64,
    /// When these bounds were measured, by the machine's clock.
    known_at: Timestamp,
}

impl Bounds {
    /// These bounds together with a later measurement; `None` if they contradict each other.
    fn and(self, later: Self) -> Option<Self> {
        let drift = (later.known_at.as_millis() - self.known_at.as_millis()).abs() / DRIFT;
        let least = later.least.max(self.least - drift);
        let most = later.most.min(self.most + drift);
        (least <= most).then_some(Self { least, most, ..later })
    }

    fn offset(self) -> i64 {
        let guessed = ((self.most - self.least) / 2).min(GUESS_MAX_MS);
        if self.least > IGNORED_MS {
            self.least + guessed
        } else if self.most < -IGNORED_MS {
            self.most - guessed
        } else {
            0
        }
    }
}

/// The measurements of all answers so far.
#[derive(Debug, Default)]
struct Seen {
    bounds: Option<Bounds>,
    /// The last answer, if it contradicted those before it: the clock was set, or one server's clock is wrong.
    doubt: Option<Bounds>,
}

impl Seen {
    fn add(&mut self, new: Bounds) {
        let Some(known) = self.bounds else {
            self.bounds = Some(new);
            return;
        };
        if let Some(both) = known.and(new) {
            *self = Self { bounds: Some(both), doubt: None };
            return;
        }
        match self.doubt.and_then(|doubt| doubt.and(new)) {
            Some(both) => *self = Self { bounds: Some(both), doubt: None },
            None => self.doubt = Some(new),
        }
    }
}

/// The error of this machine's clock, as measured by answers.
#[derive(Debug, Default)]
pub struct Skew {
    seen: Mutex<Seen>,
    offset_ms: AtomicI64,
    is_logged: AtomicBool,
}

impl Skew {
    /// Records the date of an answer, in whole seconds, to a request that was sent and answered at these instants of
    /// the machine's own clock. A single answer that contradicts all others changes nothing; a second one does.
    pub fn note(&self, sent_at: Timestamp, answered_at: Timestamp, date: Timestamp) {
        let date = date.as_millis();
        let least = date.saturating_sub(answered_at.as_millis());
        let most = date.saturating_add(DATE_PRECISION_MS).saturating_sub(sent_at.as_millis());
        if least > most {
            // The clock was set back in between.
            return;
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.add(Bounds { least, most, known_at: answered_at });
        let offset_ms = seen.bounds.map_or(0, Bounds::offset);
        if self.offset_ms.swap(offset_ms, Ordering::AcqRel) != offset_ms {
            self.tell(offset_ms);
        }
    }

    /// The milliseconds to add to the machine's clock.
    pub fn offset_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Acquire)
    }

    fn tell(&self, offset_ms: i64) {
        metric::clock_offset(offset_ms);
        let is_off = offset_ms.unsigned_abs() >= LOGGED_FROM_MS;
        if is_off && !self.is_logged.swap(true, Ordering::AcqRel) {
            tracing::warn!(offset_ms, "this machine's clock is wrong; it is corrected by the dates of AWS");
        } else if !is_off {
            self.is_logged.store(false, Ordering::Release);
        }
    }
}

/// A machine's clock, corrected by the dates of AWS's answers.
#[derive(Clone)]
pub struct MeasuredClock {
    clock: Arc<dyn Clock>,
    skew: Arc<Skew>,
}

impl MeasuredClock {
    /// This clock, corrected by its measured error.
    pub fn new(clock: Arc<dyn Clock>, skew: Arc<Skew>) -> Self {
        Self { clock, skew }
    }
}

#[async_trait]
impl Clock for MeasuredClock {
    fn now(&self) -> Timestamp {
        let offset_ms = self.skew.offset_ms();
        let span = Millis::new(offset_ms.unsigned_abs());
        let now = self.clock.now();
        if offset_ms < 0 { now.minus(span) } else { now.plus(span) }
    }

    async fn sleep_until(&self, instant: Timestamp) {
        // The measured error may change meanwhile.
        loop {
            let left = instant.since(self.now());
            if left.is_zero() {
                return;
            }
            self.clock.sleep_until(self.clock.now().plus(left)).await;
        }
    }
}

#[cfg(test)]
mod tests;
