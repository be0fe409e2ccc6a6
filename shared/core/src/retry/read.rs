//! Policies as people write them: objects in two spellings, and short forms in words.

use serde_json::{Map, Value};

use crate::duration::{Millis, ZeroRule};
use crate::policy::{PolicyError, integer};

use super::limits::{check_count, check_delay, expected_code};
use super::{Delay, Jitter, MaxAttempts, RetryPolicy};

pub(super) const EXPECTED_MAX_ATTEMPTS: &str =
    "a whole number of attempts with the first included, 0 to skip, -1 for no limit";
pub(super) const EXPECTED_BACKOFF: &str = "a finite number above zero";
/// The short forms, as errors list them.
pub const SHORT_FORMS: &str = "none, fixed(retries, delay), exponential(retries, base), \
                           exponential(retries, base, max_delay)";

/// The names of the fields that the two spellings name differently, and those that only one of them has.
pub(super) struct Spelling {
    pub(super) max_attempts: &'static str,
    pub(super) backoff: &'static str,
    pub(super) max_delay: &'static str,
    extra: &'static [&'static str],
}

pub(super) const SNAKE_CASE: Spelling = Spelling {
    max_attempts: "max_attempts",
    backoff: "backoff",
    max_delay: "max_delay",
    extra: &["jitter", "non_retryable"],
};

const CAMEL_CASE: Spelling = Spelling {
    max_attempts: "maxAttempts",
    backoff: "exponentialBackoff",
    max_delay: "maxDelay",
    extra: &[],
};

impl Spelling {
    /// The spelling an object is written in; `delay` belongs to both.
    fn of(fields: &Map<String, Value>) -> Result<&'static Self, PolicyError> {
        let (mut snake, mut camel) = (None, None);
        for name in fields.keys().filter(|name| *name != "delay") {
            if SNAKE_CASE.owns(name) {
                snake = Some(name);
            } else if CAMEL_CASE.owns(name) {
                camel = Some(name);
            } else {
                let expected = format!("only the fields {}", SNAKE_CASE.fields());
                return Err(PolicyError::new(name, expected, name));
            }
        }
        match (snake, camel) {
            (Some(snake), Some(camel)) => Err(PolicyError::new(
                "",
                "one spelling of the fields, snake_case or camelCase",
                &format!("{snake}, {camel}"),
            )),
            (None, Some(_)) => Ok(&CAMEL_CASE),
            (Some(_) | None, None) => Ok(&SNAKE_CASE),
        }
    }

    fn owns(&self, name: &str) -> bool {
        [self.max_attempts, self.backoff, self.max_delay].contains(&name) || self.extra.contains(&name)
    }

    /// All its field names, for error messages.
    pub(super) fn fields(&self) -> String {
        let mut fields = vec![self.max_attempts, "delay", self.backoff, self.max_delay];
        fields.extend(self.extra);
        fields.join(", ")
    }
}

pub(super) fn read_fields(fields: &Map<String, Value>) -> Result<RetryPolicy, PolicyError> {
    let spelling = Spelling::of(fields)?;
    let field = |name| fields.get(name).filter(|value| !value.is_null());
    let mut policy = RetryPolicy::none();
    if let Some(value) = field(spelling.max_attempts) {
        policy.max_attempts = read_max_attempts(value).map_err(|error| error.under(spelling.max_attempts))?;
    }
    if let Some(value) = field("delay") {
        policy.delay = read_delay(value)?;
    }
    if let Some(value) = field(spelling.backoff) {
        policy.backoff = value
            .as_f64()
            .filter(|backoff| backoff.is_finite() && *backoff > 0.0)
            .ok_or_else(|| PolicyError::about(spelling.backoff, EXPECTED_BACKOFF, value))?;
    }
    if let Some(value) = field(spelling.max_delay) {
        policy.max_delay = Some(read_duration(value, spelling.max_delay, ZeroRule::Reject)?);
    }
    if let Some(value) = field("jitter") {
        policy.jitter = read_jitter(value)?;
    }
    if let Some(value) = field("non_retryable") {
        policy.non_retryable = read_codes(value)?;
    }
    policy.check_as(spelling)?;
    Ok(policy)
}

fn read_max_attempts(value: &Value) -> Result<MaxAttempts, PolicyError> {
    let number = integer(value).ok_or_else(|| PolicyError::about("", EXPECTED_MAX_ATTEMPTS, value))?;
    MaxAttempts::try_from(number)
}

fn read_delay(value: &Value) -> Result<Delay, PolicyError> {
    let Value::Array(entries) = value else {
        return read_duration(value, "delay", ZeroRule::Allow).map(Delay::Fixed);
    };
    check_count(entries.len())?;
    let entries = entries.iter().enumerate();
    entries
        .map(|(index, entry)| read_duration(entry, &format!("delay[{index}]"), ZeroRule::Allow))
        .collect::<Result<_, _>>()
        .map(Delay::Listed)
}

/// Reads a delay and holds it to its limit here, where the caller's own words can be quoted.
fn read_duration(value: &Value, path: &str, zero: ZeroRule) -> Result<Millis, PolicyError> {
    let delay = Millis::from_json(value, zero).map_err(|error| PolicyError::from(error).under(path))?;
    let found = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    check_delay(delay, path, &found)?;
    Ok(delay)
}

fn read_jitter(value: &Value) -> Result<Jitter, PolicyError> {
    match value.as_str() {
        Some("none") => Ok(Jitter::None),
        Some("full") => Ok(Jitter::Full),
        Some(_) | None => Err(PolicyError::about("jitter", "none or full", value)),
    }
}

fn read_codes(value: &Value) -> Result<Vec<String>, PolicyError> {
    let Value::Array(entries) = value else {
        return Err(PolicyError::about("non_retryable", "a list of error codes", value));
    };
    let code = |(index, entry): (usize, &Value)| match entry {
        Value::String(code) => Ok(code.clone()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(PolicyError::about(&format!("non_retryable[{index}]"), expected_code(), entry))
        }
    };
    entries.iter().enumerate().map(code).collect()
}

/// The paths of its errors are empty: the parts of a text have no place in the JSON.
pub(super) fn short_form(text: &str) -> Result<RetryPolicy, PolicyError> {
    let unknown = || PolicyError::new("", SHORT_FORMS, text);
    if text.trim() == "none" {
        return Ok(RetryPolicy::none());
    }
    let call = text.trim().strip_suffix(')').and_then(|call| call.split_once('('));
    let (name, arguments) = call.ok_or_else(unknown)?;
    let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
    let delay = |text: &str, zero| read_duration(&Value::from(text), "", zero);
    match (name.trim(), arguments.as_slice()) {
        ("fixed", [retries, every]) => {
            Ok(RetryPolicy::fixed(read_retries(retries)?, delay(every, ZeroRule::Allow)?))
        }
        ("exponential", [retries, base]) => {
            Ok(RetryPolicy::exponential(read_retries(retries)?, delay(base, ZeroRule::Allow)?))
        }
        ("exponential", [retries, base, longest]) => {
            let policy = RetryPolicy::exponential(read_retries(retries)?, delay(base, ZeroRule::Allow)?);
            Ok(RetryPolicy { max_delay: Some(delay(longest, ZeroRule::Reject)?), ..policy })
        }
        _ => Err(unknown()),
    }
}

fn read_retries(text: &str) -> Result<u32, PolicyError> {
    // One less than a u32 holds: the first attempt comes on top. A sign is refused, though Rust reads a plus.
    let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let retries = digits.and_then(|digits| digits.parse().ok()).filter(|retries| *retries < u32::MAX);
    retries.ok_or_else(|| PolicyError::new("", "a whole number of retries", text))
}
