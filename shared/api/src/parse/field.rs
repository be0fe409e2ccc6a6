//! One field's value, and the readings of it: each says what it expected and what it found instead.

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::error::Reject;
use tickover_core::id::NameError;
use tickover_core::limits::SPAN_MAX;
use tickover_core::payload::Json;
use tickover_core::policy::{PolicyError, integer};

use super::excerpt;
use super::object::{Object, pairs, twice};

/// A value and where it was found.
#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    path: String,
    raw: &'a RawValue,
}

impl<'a> Field<'a> {
    pub(crate) fn new(path: String, raw: &'a RawValue) -> Self {
        Self { path, raw }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn raw(&self) -> &'a RawValue {
        self.raw
    }

    pub(crate) fn is_null(&self) -> bool {
        self.raw.get() == "null"
    }

    /// The refusal of this value.
    pub(crate) fn wrong(&self, expected: &str) -> Reject {
        self.refuse(format!("expected {expected}, found {}", self.found()))
    }

    /// A refusal in other words.
    pub(crate) fn refuse(&self, problem: impl std::fmt::Display) -> Reject {
        Reject::field(self.path.clone(), problem)
    }

    /// The value's type, with the value itself where it is short enough to be of help.
    fn found(&self) -> String {
        let text = self.raw.get();
        let kind = match text.as_bytes().first() {
            Some(b'{') => return "an object".to_owned(),
            Some(b'[') => return "a list".to_owned(),
            Some(b'n') => return "null".to_owned(),
            Some(b'"') => "the string",
            Some(b't' | b'f') => "the boolean",
            Some(_) | None => "the number",
        };
        format!("{kind} `{}`", excerpt(text.trim_matches('"')))
    }

    /// The text as it came, without a string's quotes: what errors quote.
    fn quoted(&self) -> String {
        excerpt(self.raw.get().trim_matches('"'))
    }

    pub(crate) fn text(&self) -> Result<String, Reject> {
        serde_json::from_str(self.raw.get()).map_err(|_| self.wrong("a string"))
    }

    /// A string that names something: the reading says what is wrong with it.
    pub(crate) fn name<T>(&self, parse: impl FnOnce(String) -> Result<T, NameError>) -> Result<T, Reject> {
        parse(self.text()?).map_err(|error| self.refuse(error))
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Reject> {
        let text = self.text()?;
        let known = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        known.ok_or_else(|| {
            let words: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            self.wrong(&words.join(" or "))
        })
    }

    pub(crate) fn boolean(&self) -> Result<bool, Reject> {
        serde_json::from_str(self.raw.get()).map_err(|_| self.wrong("true or false"))
    }

    /// A number that isn't too large to be one.
    pub(crate) fn number(&self, expected: &str) -> Result<f64, Reject> {
        serde_json::from_str(self.raw.get()).map_err(|_| self.wrong(expected))
    }

    /// A whole number within a range, both ends included.
    pub(crate) fn integer(&self, least: usize, most: usize) -> Result<usize, Reject> {
        let value: Option<Value> = serde_json::from_str(self.raw.get()).ok();
        let number = value.as_ref().and_then(integer).and_then(|number| usize::try_from(number).ok());
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| self.wrong(&format!("a whole number from {least} to {most}")))
    }

    /// A duration of at most a year.
    pub(crate) fn span(&self, zero: ZeroRule) -> Result<Millis, Reject> {
        let value = self.value("a duration such as \"1h 30m\", or whole milliseconds")?;
        let span = Millis::from_json(&value, zero).map_err(|mut error| {
            // A number in memory has lost how it was written.
            if value.is_number() {
                error.text = self.quoted();
            }
            self.refuse(error)
        })?;
        self.within_a_year(span)
    }

    /// A duration of at most a year, as a whole number of units of so many milliseconds.
    pub(crate) fn span_in(&self, unit_ms: u64, zero: ZeroRule) -> Result<Millis, Reject> {
        let text = self.raw.get();
        let count = if text.bytes().all(|byte| byte.is_ascii_digit()) {
            // All digits and no number: longer than 64 bits, so far beyond a year.
            text.parse().unwrap_or(u64::MAX)
        } else {
            let value: Option<Value> = serde_json::from_str(text).ok();
            let number = value.as_ref().and_then(integer).and_then(|number| u64::try_from(number).ok());
            number.ok_or_else(|| self.wrong("a whole number, not negative"))?
        };
        if count == 0 && zero == ZeroRule::Reject {
            return Err(self.wrong("a duration longer than zero"));
        }
        self.within_a_year(Millis::new(count.saturating_mul(unit_ms)))
    }

    /// Refuses what is longer than a year.
    pub(crate) fn within_a_year(&self, span: Millis) -> Result<Millis, Reject> {
        if span > SPAN_MAX {
            let problem =
                format!("expected a duration of at most a year ({SPAN_MAX}), found `{}`", self.quoted());
            return Err(self.refuse(problem));
        }
        Ok(span)
    }

    /// A duration within a range, both ends included.
    pub(crate) fn span_within(&self, span: Millis, least: Millis, most: Millis) -> Result<Millis, Reject> {
        if (least..=most).contains(&span) {
            return Ok(span);
        }
        let problem = format!("expected a duration from {least} to {most}, found `{}`", self.quoted());
        Err(self.refuse(problem))
    }

    /// The payload as it came.
    pub(crate) fn payload(&self) -> Json {
        Json::from(self.raw.to_owned())
    }

    pub(crate) fn object(&self, known: &[&str]) -> Result<Object<'a>, Reject> {
        Object::read(&self.path, self.raw, known)
    }

    /// A batch's entry. Its fields are named as if it came by itself: which entry it is, the place of its
    /// result says.
    pub(crate) fn entry(&self, known: &[&str]) -> Result<Object<'a>, Reject> {
        if self.raw.get().starts_with('{') {
            Object::read("", self.raw, known)
        } else {
            Err(self.wrong("a JSON object"))
        }
    }

    /// A list's entries, each with its own path.
    pub(crate) fn list(&self, expected: &str) -> Result<Vec<Field<'a>>, Reject> {
        let entries: Vec<&'a RawValue> =
            serde_json::from_str(self.raw.get()).map_err(|_| self.wrong(expected))?;
        let entries = entries.into_iter().enumerate();
        Ok(entries.map(|(index, raw)| Field::new(format!("{}[{index}]", self.path), raw)).collect())
    }

    /// A policy in any of its forms.
    pub(crate) fn policy<T>(&self, read: impl FnOnce(&Value) -> Result<T, PolicyError>) -> Result<T, Reject> {
        let value = self.value("a policy")?;
        read(&value).map_err(|error| {
            let found = if value.is_number() { self.quoted() } else { error.found.clone() };
            let error = error.under(&self.path);
            Reject::field(error.path, format!("expected {}, found `{found}`", error.expected))
        })
    }

    /// The value in memory. An object that has a name twice is refused: a reader would see one of them only.
    fn value(&self, expected: &str) -> Result<Value, Reject> {
        if !self.raw.get().starts_with('{') {
            return serde_json::from_str(self.raw.get()).map_err(|_| self.wrong(expected));
        }
        let mut fields = Map::new();
        for (name, raw) in pairs(&self.path, self.raw)? {
            let field = Field::new(format!("{}.{}", self.path, excerpt(&name)), raw);
            let value = serde_json::from_str(raw.get()).map_err(|_| field.wrong("a policy's field"))?;
            if fields.insert(name, value).is_some() {
                return Err(twice(field.path));
            }
        }
        Ok(Value::Object(fields))
    }
}
