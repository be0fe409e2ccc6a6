//! Instants and lengths of time.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tickover_core::duration::{DurationProblem, Millis};
use tickover_core::flow::{RATE_PERIOD_MAX, WINDOW_MAX};
use tickover_core::limits::{LEASE_RANGE, RUN_TIMEOUT_MIN, SPAN_MAX, WAIT_MAX};
use tickover_core::time::Timestamp;

/// An instant: RFC 3339 in UTC with milliseconds when it is written, with any offset when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(pub Timestamp);

/// The epoch.
impl Default for Instant {
    fn default() -> Self {
        Self(Timestamp::EPOCH)
    }
}

impl From<Timestamp> for Instant {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

impl From<Instant> for Timestamp {
    fn from(instant: Instant) -> Self {
        instant.0
    }
}

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_rfc3339())
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Instant;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an RFC 3339 instant such as \"2026-01-31T12:00:00Z\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Instant, E> {
                let instant = Timestamp::parse_rfc3339(text).map(Instant);
                instant.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

/// A length of time within a range.
pub trait Span: Copy + From<Millis> + Into<Millis> {
    /// The shortest.
    const LEAST: Millis;
    /// The longest.
    const MOST: Millis;
}

/// Defines lengths of time with a range. They are written as text. [`From<Millis>`] doesn't check the range.
macro_rules! spans {
    ($($(#[$doc:meta])* $name:ident, $least:expr, $most:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(Millis);

        impl Span for $name {
            const LEAST: Millis = $least;
            const MOST: Millis = $most;
        }

        impl From<Millis> for $name {
            fn from(span: Millis) -> Self {
                Self(span)
            }
        }

        impl From<$name> for Millis {
            fn from(span: $name) -> Self {
                span.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Either::<Self>(PhantomData))
            }
        }
    )*};
}

spans! {
    /// A length of time: at most a year.
    Duration, Millis::ZERO, SPAN_MAX;
    /// A length of time: longer than zero, at most a year.
    Timeout, Millis::new(1), SPAN_MAX;
    /// A length of time: 1 s to a year.
    RunTimeout, RUN_TIMEOUT_MIN, SPAN_MAX;
    /// Whole seconds: 1 s to a year.
    Interval, Millis::from_secs(1), SPAN_MAX;
    /// A length of time: 1 s to 12 h.
    Lease, LEASE_RANGE.0, LEASE_RANGE.1;
    /// A length of time: at most 20 s.
    Wait, Millis::ZERO, WAIT_MAX;
    /// A length of time: longer than zero, at most 24 h.
    RatePeriod, Millis::new(1), RATE_PERIOD_MAX;
    /// A length of time: longer than zero, at most 30 days.
    Window, Millis::new(1), WINDOW_MAX;
    /// A length of time in an answer, such as `1h 30m`.
    Length, Millis::ZERO, Millis::MAX;
}

/// Text in the grammar of durations, or whole milliseconds.
pub(crate) struct Either<S>(pub(crate) PhantomData<S>);

impl<S: Span> Visitor<'_> for Either<S> {
    type Value = S;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a duration such as \"1h 30m\" (units ms, s, m, h, d), or whole milliseconds")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<S, E> {
        let span = Millis::parse_allowing_zero(text).map_err(|error| match error.problem {
            DurationProblem::TooLong => too_long::<S, E>(Unexpected::Str(text)),
            problem => E::invalid_value(Unexpected::Other(&format!("`{}`: {problem}", error.text)), &self),
        })?;
        within(span, Unexpected::Str(text))
    }

    fn visit_u64<E: Error>(self, ms: u64) -> Result<S, E> {
        within(Millis::new(ms), Unexpected::Unsigned(ms))
    }

    fn visit_i64<E: Error>(self, ms: i64) -> Result<S, E> {
        let found = Unexpected::Signed(ms);
        let ms = u64::try_from(ms).map_err(|_| E::invalid_value(found, &self))?;
        within(Millis::new(ms), found)
    }

    fn visit_f64<E: Error>(self, ms: f64) -> Result<S, E> {
        let found = Unexpected::Float(ms);
        Err(if is_huge(ms) { too_long::<S, E>(found) } else { E::invalid_value(found, &self) })
    }
}

/// Whether a number is at least 2^53: too large for a length of time, and never a fraction. JSON's numbers have no
/// bounds.
fn is_huge(number: f64) -> bool {
    number >= 9_007_199_254_740_992.0
}

fn within<S: Span, E: Error>(span: Millis, found: Unexpected<'_>) -> Result<S, E> {
    if (S::LEAST..=S::MOST).contains(&span) {
        Ok(S::from(span))
    } else if span > S::MOST {
        Err(too_long::<S, E>(found))
    } else if span.is_zero() {
        Err(E::invalid_value(found, &"a duration longer than zero"))
    } else {
        Err(E::invalid_value(found, &range::<S>().as_str()))
    }
}

fn too_long<S: Span, E: Error>(found: Unexpected<'_>) -> E {
    let of_a_year = format!("a duration of at most a year ({SPAN_MAX})");
    let expected = if S::MOST == SPAN_MAX { of_a_year } else { range::<S>() };
    E::invalid_value(found, &expected.as_str())
}

fn range<S: Span>() -> String {
    if S::MOST == SPAN_MAX {
        format!("a duration of at least {}", S::LEAST)
    } else {
        format!("a duration from {} to {}", S::LEAST, S::MOST)
    }
}
