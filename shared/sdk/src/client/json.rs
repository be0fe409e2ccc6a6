//! How answers of the HTTP API write what JSON has no type for.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tickover_core::cron::plan::{Missed, Overlap};
use tickover_core::duration::Millis;
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;

/// A payload, `null` included: only what is absent is nothing.
pub(super) fn payload<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Json>, D::Error> {
    Box::<RawValue>::deserialize(value).map(|raw| Some(Json::from(raw)))
}

/// An instant.
pub(super) fn instant<'de, D: Deserializer<'de>>(value: D) -> Result<Timestamp, D::Error> {
    read(value, "an instant", Timestamp::parse_rfc3339)
}

/// An instant that may be absent.
pub(super) fn some_instant<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Timestamp>, D::Error> {
    instant(value).map(Some)
}

/// A length of time in words.
pub(super) fn some_span<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Millis>, D::Error> {
    read(value, "a length of time", |text| Millis::parse_allowing_zero(text).ok()).map(Some)
}

/// What becomes of an occurrence while an earlier run is open.
pub(super) fn overlap<'de, D: Deserializer<'de>>(value: D) -> Result<Overlap, D::Error> {
    read(value, "a policy for overlaps", Overlap::parse)
}

/// What becomes of occurrences that nobody saw in time.
pub(super) fn missed<'de, D: Deserializer<'de>>(value: D) -> Result<Missed, D::Error> {
    read(value, "a policy for what is missed", Missed::parse)
}

fn read<'de, D: Deserializer<'de>, T>(
    value: D,
    what: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error> {
    let text = String::deserialize(value)?;
    parse(&text).ok_or_else(|| D::Error::custom(format!("not {what}: {text}")))
}
