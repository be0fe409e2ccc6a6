//! What a request asks of flow control.

use std::fmt;
use std::num::NonZeroU32;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tickover_core::duration::Millis;
use tickover_core::flow::{self, UniqueWindow};
use tickover_core::id::FlowKey;

use crate::span::Span as _;
use crate::{ConcurrencyLimit, OnConflictWord, RateLimit, RatePeriod, Window};

/// How many tasks of a key run at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Concurrency {
    /// Any text of at most 256 bytes. All queues share it.
    pub key: FlowKey,
    /// At most so many: 1 to 1,000. The latest request's limit counts for the key.
    pub limit: ConcurrencyLimit,
}

/// How fast tasks of a key start. Each attempt of a task is a start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Rate {
    /// Any text of at most 256 bytes. All queues share it.
    pub key: FlowKey,
    /// How many starts in each `per`: 1 to 1,000,000. The latest request's rate counts for the key.
    pub limit: RateLimit,
    /// At most 24 h; 1 s by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per: Option<RatePeriod>,
    /// How many may start at once after a quiet time: 1 (default) to `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<RateLimit>,
}

/// Only one task of a key at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Unique {
    /// Any text of at most 256 bytes. All queues share it.
    pub key: FlowKey,
    /// `open` (default): until the task has ended. `waiting`: until a worker has claimed it. Or a length of time from its
    /// scheduling, at most 30 days.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub window: Option<UniqueFor>,
    /// `existing` (default): the other task is the answer. `replace`: the other task is cancelled. `refuse`: this
    /// request is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_conflict: Option<OnConflictWord>,
}

/// Of a burst of requests, the last one runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Debounce {
    /// Any text of at most 256 bytes. All queues share it.
    pub key: FlowKey,
    /// How long it must have been quiet: at most 30 days.
    pub wait: Window,
    /// How long after the first request of the burst it runs at the latest: `wait` to 30 days.
    pub at_most: Window,
}

impl From<&flow::Concurrency> for Concurrency {
    fn from(asked: &flow::Concurrency) -> Self {
        Self { key: asked.key.clone(), limit: ConcurrencyLimit(asked.limit.get().into()) }
    }
}

impl From<&flow::Rate> for Rate {
    fn from(rate: &flow::Rate) -> Self {
        let count = |count: NonZeroU32| RateLimit(usize::try_from(count.get()).unwrap_or(RateLimit::MOST));
        let (limit, burst) = (count(rate.limit), Some(count(rate.burst)));
        Self { key: rate.key.clone(), limit, per: Some(rate.per.into()), burst }
    }
}

impl From<&flow::Unique> for Unique {
    fn from(unique: &flow::Unique) -> Self {
        let (window, on_conflict) = (UniqueFor(unique.window), unique.on_conflict.into());
        Self { key: unique.key.clone(), window: Some(window), on_conflict: Some(on_conflict) }
    }
}

impl From<&flow::Debounce> for Debounce {
    fn from(bounce: &flow::Debounce) -> Self {
        Self { key: bounce.key.clone(), wait: bounce.wait.into(), at_most: bounce.at_most.into() }
    }
}

/// For how long a task keeps its key to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniqueFor(pub UniqueWindow);

impl Serialize for UniqueFor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            UniqueWindow::Open => serializer.serialize_str("open"),
            UniqueWindow::Waiting => serializer.serialize_str("waiting"),
            UniqueWindow::For(span) => serializer.collect_str(&span),
        }
    }
}

impl<'de> Deserialize<'de> for UniqueFor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;

        impl Visitor<'_> for Words {
            type Value = UniqueFor;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("\"open\", \"waiting\", or a length of time of at most 30 days")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<UniqueFor, E> {
                match text {
                    "open" => Ok(UniqueFor(UniqueWindow::Open)),
                    "waiting" => Ok(UniqueFor(UniqueWindow::Waiting)),
                    other => in_window(Millis::parse(other).map_err(E::custom)?),
                }
            }

            fn visit_u64<E: Error>(self, ms: u64) -> Result<UniqueFor, E> {
                in_window(Millis::new(ms))
            }
        }

        fn in_window<E: Error>(span: Millis) -> Result<UniqueFor, E> {
            if span < Window::LEAST || span > Window::MOST {
                return Err(E::invalid_value(serde::de::Unexpected::Str(&span.to_string()), &Words));
            }
            Ok(UniqueFor(UniqueWindow::For(span)))
        }

        deserializer.deserialize_any(Words)
    }
}
