//! The bounds that keep a policy small enough to be stored in its task.

use crate::duration::Millis;
use crate::policy::PolicyError;

use super::{MAX_CODE_CHARS, MAX_CODES, MAX_CODES_BYTES, MAX_DELAY, MAX_LISTED_DELAYS};

const EXPECTED_BACKOFF: &str = "a finite number above zero";

pub(super) fn check_backoff(backoff: f64, path: &str) -> Result<(), PolicyError> {
    if backoff.is_finite() && backoff > 0.0 {
        return Ok(());
    }
    Err(PolicyError::new(path, EXPECTED_BACKOFF, &backoff.to_string()))
}

pub(super) fn check_delay(delay: Millis, path: &str, found: &str) -> Result<(), PolicyError> {
    if delay <= MAX_DELAY {
        return Ok(());
    }
    Err(PolicyError::new(path, format!("a delay of at most {MAX_DELAY}"), found))
}

pub(super) fn check_list(delays: &[Millis]) -> Result<(), PolicyError> {
    check_count(delays.len())?;
    for (index, delay) in delays.iter().enumerate() {
        check_delay(*delay, &format!("delay[{index}]"), &delay.to_string())?;
    }
    Ok(())
}

fn check_count(delays: usize) -> Result<(), PolicyError> {
    if (1..=MAX_LISTED_DELAYS).contains(&delays) {
        return Ok(());
    }
    let expected = format!("a list of 1 to {MAX_LISTED_DELAYS} delays");
    Err(PolicyError::new("delay", expected, &format!("{delays} delays")))
}

pub(super) fn check_codes(codes: &[String]) -> Result<(), PolicyError> {
    if codes.len() > MAX_CODES {
        let found = format!("{} codes", codes.len());
        return Err(PolicyError::new("non_retryable", format!("at most {MAX_CODES} codes"), &found));
    }
    for (index, code) in codes.iter().enumerate() {
        if !is_code(code) {
            let path = format!("non_retryable[{index}]");
            return Err(PolicyError::new(&path, expected_code(), code));
        }
    }
    let bytes: usize = codes.iter().map(String::len).sum();
    if bytes > MAX_CODES_BYTES {
        let expected = format!("at most {MAX_CODES_BYTES} bytes for all codes together");
        return Err(PolicyError::new("non_retryable", expected, &format!("{bytes} bytes")));
    }
    Ok(())
}

/// Without characters that JSON escapes, a code's stored size is its own size.
fn is_code(code: &str) -> bool {
    let escaped = |c: char| c.is_control() || c == '"' || c == '\\';
    (1..=MAX_CODE_CHARS).contains(&code.chars().count()) && !code.contains(escaped)
}

fn expected_code() -> String {
    format!("an error code of 1 to {MAX_CODE_CHARS} characters without control characters, \" or \\")
}
