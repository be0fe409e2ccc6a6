//! The short text forms of policies.

use crate::duration::{Millis, ZeroRule};
use crate::policy::PolicyError;

use super::RetryPolicy;
use super::limits::check_delay;

/// The short forms, as errors list them.
pub const SHORT_FORMS: &str = "none, fixed(retries, delay), exponential(retries, base), \
                               exponential(retries, base, max_delay)";

/// The paths of its errors are empty: the parts of a text have no path.
pub(super) fn short_form(text: &str) -> Result<RetryPolicy, PolicyError> {
    let unknown = || PolicyError::new("", SHORT_FORMS, text);
    if text.trim() == "none" {
        return Ok(RetryPolicy::none());
    }
    let call = text.trim().strip_suffix(')').and_then(|call| call.split_once('('));
    let (name, arguments) = call.ok_or_else(unknown)?;
    let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
    match (name.trim(), arguments.as_slice()) {
        ("fixed", [retries, every]) => {
            Ok(RetryPolicy::fixed(read_retries(retries)?, read_delay(every, ZeroRule::Allow)?))
        }
        ("exponential", [retries, base]) => {
            Ok(RetryPolicy::exponential(read_retries(retries)?, read_delay(base, ZeroRule::Allow)?))
        }
        ("exponential", [retries, base, longest]) => {
            let policy = RetryPolicy::exponential(read_retries(retries)?, read_delay(base, ZeroRule::Allow)?);
            Ok(RetryPolicy { max_delay: Some(read_delay(longest, ZeroRule::Reject)?), ..policy })
        }
        _ => Err(unknown()),
    }
}

fn read_retries(text: &str) -> Result<u32, PolicyError> {
    // At most `u32::MAX - 1`, because the first attempt is added. Rust would accept a plus sign; this refuses it.
    let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let retries = digits.and_then(|digits| digits.parse().ok()).filter(|retries| *retries < u32::MAX);
    retries.ok_or_else(|| PolicyError::new("", "a whole number of retries", text))
}

/// Reads a delay and checks its limit here, where the error can quote the caller's text.
fn read_delay(text: &str, zero: ZeroRule) -> Result<Millis, PolicyError> {
    let delay = match zero {
        ZeroRule::Allow => Millis::parse_allowing_zero(text),
        ZeroRule::Reject => Millis::parse(text),
    }?;
    check_delay(delay, "", text)?;
    Ok(delay)
}
