//! The parsing of arguments. The types of `tickover-wire` check the values, so the command line and the API accept the
//! same.

use std::fmt;
use std::io::Read as _;

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;
use tickover_wire::{Instant, Label, Labels, Verbatim, Words, read};

/// Options that contradict each other: wrong usage, whatever the system is.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Checks the bounds of a period.
pub(crate) fn period(from: Option<Instant>, before: Option<Instant>) -> Result<(), Usage> {
    match (from, before) {
        (Some(from), Some(before)) if from.0 >= before.0 => Err(Usage(format!(
            "no instant is from {} on and before {}",
            from.to_rfc3339(),
            before.to_rfc3339()
        ))),
        _ => Ok(()),
    }
}

/// Makes an argument parser from a type's `parse` function.
pub(crate) fn name<N, E: std::fmt::Display>(
    parse: impl Fn(String) -> Result<N, E> + Clone,
) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| parse(text.to_owned()).map_err(|error| error.to_string())
}

/// Reads `NAME=VALUE`.
pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Reads a label to look for.
pub(crate) fn wanted_label(text: &str) -> Result<Label, String> {
    Label::parse(text).ok_or_else(|| "expected NAME=VALUE".to_owned())
}

/// Reads an instant.
pub(crate) fn instant(text: &str) -> Result<Instant, String> {
    let instant = Timestamp::parse_rfc3339(text).map(Instant);
    instant.ok_or_else(|| "expected an instant such as 2026-01-31T08:00:00Z".to_owned())
}

/// Reads one of the words of an enumeration.
pub(crate) fn word<T: Words>(text: &str) -> Result<T, String> {
    let words = || T::ALL.iter().map(Words::as_word).collect::<Vec<_>>().join(", ");
    T::of_word(text).ok_or_else(|| format!("expected one of {}", words()))
}

/// Reads a duration such as `1s` or `1h 30m`.
pub(crate) fn duration(text: &str) -> Result<Millis, String> {
    Millis::parse(text).map_err(|error| error.to_string())
}

/// Reads a duration that may be 0.
pub(crate) fn duration_or_zero(text: &str) -> Result<Millis, String> {
    Millis::parse_allowing_zero(text).map_err(|error| error.to_string())
}

/// Labels of a request.
pub(crate) fn labels(labels: Vec<(String, String)>) -> Option<Labels> {
    (!labels.is_empty()).then(|| Labels(labels.into_iter().collect()))
}

/// Reads a text as the value of a request's field.
pub(crate) fn field<T: DeserializeOwned>(field: &str, text: Option<&str>) -> anyhow::Result<Option<T>> {
    text.map(|text| value(field, &to_raw_value(text)?)).transpose()
}

/// Reads a number as the value of a request's field.
pub(crate) fn number<T: DeserializeOwned>(field: &str, number: Option<u32>) -> anyhow::Result<Option<T>> {
    number.map(|number| value(field, &to_raw_value(&number)?)).transpose()
}

/// Reads JSON as the value of a request's field.
pub(crate) fn value<T: DeserializeOwned>(field: &str, json: &RawValue) -> anyhow::Result<T> {
    read::value(field, json).map_err(|reject| refused(&reject))
}

/// The error, worded as the server's.
fn refused(reject: &Reject) -> anyhow::Error {
    anyhow::anyhow!("{}: {reject}", reject.code())
}

/// Reads an argument that is JSON. `-` reads it from standard input.
pub(crate) fn json(argument: Option<&str>, what: &str) -> anyhow::Result<Option<Verbatim>> {
    let Some(argument) = argument else { return Ok(None) };
    let text = if argument == "-" {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.with_context(|| format!("can't read {what} from standard input"))?;
        text.trim().to_owned()
    } else {
        argument.to_owned()
    };
    let json = RawValue::from_string(text)
        .with_context(|| format!("{what} isn't JSON (a text needs quotes of its own: '\"text\"')"))?;
    Ok(Some(Verbatim(Json::from(json))))
}

#[cfg(test)]
mod tests {
    use tickover_wire::Timeout;

    use super::*;

    #[test]
    fn an_input_that_is_no_json_is_explained() {
        let read = |text| json(Some(text), "the input");
        assert_eq!(read(r#"{"n": 1.50}"#).unwrap().unwrap().as_str(), r#"{"n": 1.50}"#);
        assert!(format!("{:#}", read("hello").unwrap_err()).contains("quotes of its own"));
    }

    #[test]
    fn invalid_values_are_rejected_with_the_servers_message() {
        let refused = field::<Timeout>("timeout", Some("1 fortnight")).unwrap_err().to_string();
        assert!(refused.starts_with("invalid_request: timeout: expected a duration"), "{refused}");
    }
}
