//! Reads requests, with errors that name the field, the expected value and the value that was found. Reads answers
//! without these checks.

mod fault;
mod node;
mod spelling;
mod text;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tickover_core::error::Reject;

pub use spelling::{SPELLED, UNITS};

use fault::{Fault, NameKind};
use node::{Fields, Node};

/// Reads a request's body. In errors about the whole body, the field is `body`.
pub fn body<T: DeserializeOwned>(text: &str) -> Result<T, Reject> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| {
        // The message ends with the position: "expected `,` or `}` at line 1 column 7". It quotes nothing of the text.
        Reject::instead_of("body", "expected one JSON object", format_args!("malformed JSON: {error}"))
    })?;
    value("", raw)
}

/// Reads a value of a request. `path` is the value's path in it.
pub fn value<'de, T: Deserialize<'de>>(path: &str, raw: &'de RawValue) -> Result<T, Reject> {
    T::deserialize(Node::new(raw)).map_err(|fault| fault.found_in(raw).reject(path, NameKind::Field))
}

/// Reads an object without one of its fields, and that field's text: for requests in which the field has another
/// meaning.
pub fn without<'de, T: Deserialize<'de>>(
    path: &str,
    raw: &'de RawValue,
    name: &str,
) -> Result<(T, Option<String>), Reject> {
    let refused = |fault: Fault| fault.found_in(raw).reject(path, NameKind::Field);
    let mut fields = Node::new(raw).fields().map_err(refused)?;
    let place = fields.iter().position(|(own, _)| own == name);
    let taken = place.map(|place| fields.remove(place).1);
    let taken = taken.map(|raw| Option::deserialize(Node::new(raw)).map_err(|fault| fault.under(name, raw)));
    let taken = taken.transpose().map_err(refused)?;
    let value = T::deserialize(Fields::new(fields)).map_err(refused)?;
    Ok((value, taken.flatten()))
}

/// Reads a query: names and values, already percent-decoded. Only `status` may be repeated.
pub fn query<T: DeserializeOwned>(pairs: &[(String, String)]) -> Result<T, Reject> {
    text::Query::new(pairs).and_then(T::deserialize).map_err(|fault| fault.reject("", NameKind::Parameter))
}

/// Reads an answer. Fields that this version doesn't know are ignored.
pub fn answer<T: DeserializeOwned>(text: &[u8]) -> Result<T, Unreadable> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let unreadable = |path: String, error: serde_json::Error| Unreadable { path, reason: error.to_string() };
    let value = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| unreadable(error.path().to_string(), error.into_inner()))?;
    deserializer.end().map_err(|error| unreadable(".".to_owned(), error))?;
    Ok(value)
}

/// An answer that doesn't fit its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct Unreadable {
    /// Where in the answer.
    pub path: String,
    /// Why.
    pub reason: String,
}

#[cfg(test)]
mod tests;
