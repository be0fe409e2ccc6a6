//! Instants, as milliseconds since the Unix epoch in UTC. This module never reads a clock.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use crate::duration::Millis;
use crate::limits::QUEUE_DELAY_MAX;

/// How far a clock may be ahead of another one. An instant further ahead is from a clock that has since been set back.
pub(crate) const SKEW_MAX: Millis = Millis::from_secs(60);

/// An instant in milliseconds since the Unix epoch. It is stored and compared as that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The epoch itself, which is before every instant in a record.
    pub const EPOCH: Self = Self(0);

    pub const fn from_millis(epoch_ms: i64) -> Self {
        Self(epoch_ms)
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded up, for TTL attributes: so no item is deleted too early.
    pub const fn as_secs_ceil(self) -> i64 {
        self.0.div_euclid(1000) + if self.0.rem_euclid(1000) == 0 { 0 } else { 1 }
    }

    /// This instant moved later. The result is at most the largest instant.
    #[must_use]
    pub fn plus(self, span: Millis) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_u64()).unwrap_or(i64::MAX)))
    }

    /// This instant moved earlier. The result is at least the smallest instant.
    #[must_use]
    pub fn minus(self, span: Millis) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_u64()).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this instant is; zero if it isn't after it.
    pub fn since(self, earlier: Self) -> Millis {
        Millis::new(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// RFC 3339 in UTC with milliseconds, as in answers: `2026-01-31T12:00:00.250Z`.
    pub fn to_rfc3339(self) -> String {
        DateTime::<Utc>::from_timestamp_millis(self.0)
            .unwrap_or(DateTime::<Utc>::MAX_UTC)
            .to_rfc3339_opts(SecondsFormat::Millis, true)
    }

    /// Reads RFC 3339 with any offset; `None` for any other text.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        DateTime::parse_from_rfc3339(text).ok().map(|instant| Self(instant.timestamp_millis()))
    }
}

/// The earliest of the instants that are present.
pub fn earliest(instants: impl IntoIterator<Item = Option<Timestamp>>) -> Option<Timestamp> {
    instants.into_iter().flatten().min()
}

/// A wait until an instant in a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// When it ends.
    pub(crate) until: Timestamp,
    /// When it began, as far as the record says.
    pub(crate) since: Option<Timestamp>,
    /// Whether its hint is still to be sent, because a queue can't delay it for so long.
    pub(crate) hint_later: bool,
}

impl Wait {
    /// Whether it is over. What was ready stays ready if the clock is set back: no wait that began at its own end lasts, and
    /// none whose hint was sent lasts longer than a queue can delay that.
    pub(crate) fn is_over(self, now: Timestamp) -> bool {
        let left = self.until.since(now);
        let was_none = self.since.is_some_and(|since| self.until <= since) && left > SKEW_MAX;
        // One that began before now may be a burst's, which each request prolongs though the hint was sent.
        let began_later = self.since.is_none_or(|since| since.since(now) > SKEW_MAX);
        let longest = QUEUE_DELAY_MAX.saturating_add(SKEW_MAX);
        left.is_zero() || was_none || (began_later && !self.hint_later && left > longest)
    }
}

/// Whether a lease ends later than it could if the clock hadn't been set back since its worker's last sign of life.
pub(crate) fn is_beyond(lease_expires_at: Timestamp, length: Millis, now: Timestamp) -> bool {
    lease_expires_at.since(now) > length.saturating_add(SKEW_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_milliseconds_and_any_offset_is_read() {
        let instant = Timestamp::parse_rfc3339("2026-01-31T13:00:00.25+01:00").unwrap();
        assert_eq!(instant.to_rfc3339(), "2026-01-31T12:00:00.250Z");
        assert_eq!(Timestamp::parse_rfc3339("yesterday"), None);
    }

    #[test]
    fn arithmetic_saturates_and_never_goes_negative() {
        let now = Timestamp::from_millis(1_500);
        assert_eq!(now.plus(Millis::new(u64::MAX)).as_millis(), i64::MAX);
        assert_eq!(Timestamp::EPOCH.since(now), Millis::ZERO);
        assert_eq!(now.since(Timestamp::EPOCH), Millis::new(1_500));
        assert_eq!(now.as_secs_ceil(), 2);
        assert_eq!(Timestamp::from_millis(2_000).as_secs_ceil(), 2);
    }
}
