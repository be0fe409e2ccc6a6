//! Numbers within a range.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tickover_core::flow::{CONCURRENCY_MAX, RATE_MAX};
use tickover_core::limits::{CLAIM_MAX, PAGE_MAX};
use tickover_core::retry::MaxAttempts;

/// Defines whole numbers with a range. Both ends are included.
macro_rules! whole {
    ($($(#[$doc:meta])* $name:ident, $least:expr, $most:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        pub struct $name(pub usize);

        impl $name {
            /// The smallest value.
            pub const LEAST: usize = $least;
            /// The largest value.
            pub const MOST: usize = $most;
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_u64(Whole { least: $least, most: $most }).map(Self)
            }
        }
    )*};
}

whole! {
    /// How many tasks one claim takes: 1 to 10.
    ClaimCount, 1, CLAIM_MAX;
    /// How many tasks of a key run at once: 1 to 1,000.
    ConcurrencyLimit, 1, CONCURRENCY_MAX as usize;
    /// How many tasks of a key start in a period: 1 to 1,000,000.
    RateLimit, 1, RATE_MAX as usize;
    /// How many records a page has: 1 to 500.
    PageLimit, 1, PAGE_MAX;
    /// How many runs a cron has: 1 to 4,294,967,295.
    RunCount, 1, 0xffff_ffff;
    /// The number of a run of an execution: 1 to 4,294,967,295.
    RunNumber, 1, 0xffff_ffff;
    /// The version of a published value: 1 to 4,294,967,295.
    ValueVersion, 1, 0xffff_ffff;
}

macro_rules! of_32_bits {
    ($($name:ident),*) => {
        $(
            impl From<u32> for $name {
                fn from(number: u32) -> Self {
                    Self(usize::try_from(number).unwrap_or(Self::MOST))
                }
            }

            impl From<$name> for u32 {
                fn from($name(number): $name) -> Self {
                    Self::try_from(number).unwrap_or(Self::MAX)
                }
            }
        )*
    };
}

of_32_bits!(RunNumber, ValueVersion);

struct Whole {
    least: usize,
    most: usize,
}

impl Visitor<'_> for Whole {
    type Value = usize;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a whole number from {} to {}", self.least, self.most)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<usize, E> {
        let found = usize::try_from(number).ok().filter(|number| (self.least..=self.most).contains(number));
        found.ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }
}

/// The progress of an attempt: 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Progress(pub f64);

impl<'de> Deserialize<'de> for Progress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Part;

        impl Visitor<'_> for Part {
            type Value = f64;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number from 0 to 1")
            }

            fn visit_f64<E: Error>(self, part: f64) -> Result<f64, E> {
                let found = Some(part).filter(|part| (0.0..=1.0).contains(part));
                found.ok_or_else(|| E::invalid_value(Unexpected::Float(part), &self))
            }

            fn visit_u64<E: Error>(self, part: u64) -> Result<f64, E> {
                let found = match part {
                    0 => Some(0.0),
                    1 => Some(1.0),
                    _ => None,
                };
                found.ok_or_else(|| E::invalid_value(Unexpected::Unsigned(part), &self))
            }
        }

        deserializer.deserialize_f64(Part).map(Self)
    }
}

/// The number of attempts, including the first: 0 to skip, -1 for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts(pub MaxAttempts);

impl Serialize for Attempts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0.into())
    }
}

impl<'de> Deserialize<'de> for Attempts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Count;

        impl Visitor<'_> for Count {
            type Value = MaxAttempts;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(MaxAttempts::EXPECTED)
            }

            fn visit_i64<E: Error>(self, count: i64) -> Result<MaxAttempts, E> {
                let attempts = MaxAttempts::try_from(count);
                attempts.map_err(|_| E::invalid_value(Unexpected::Signed(count), &self))
            }

            fn visit_u64<E: Error>(self, count: u64) -> Result<MaxAttempts, E> {
                self.visit_i64(i64::try_from(count).unwrap_or(i64::MAX))
            }
        }

        deserializer.deserialize_i64(Count).map(Self)
    }
}
