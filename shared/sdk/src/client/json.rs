//! How answers of the HTTP API write what JSON has no type for.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;

/// A payload, `null` included: only what is absent is nothing.
pub(super) fn payload<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Json>, D::Error> {
    Box::<RawValue>::deserialize(value).map(|raw| Some(Json::from(raw)))
}

/// An instant.
pub(super) fn instant<'de, D: Deserializer<'de>>(value: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(value)?;
    Timestamp::parse_rfc3339(&text).ok_or_else(|| D::Error::custom(format!("not an instant: {text}")))
}

/// An instant that may be absent.
pub(super) fn some_instant<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Timestamp>, D::Error> {
    instant(value).map(Some)
}
