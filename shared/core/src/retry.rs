//! Retry policies: how many attempts a task has, how long it waits between them, and which errors are never retried.
//!
//! Owns the arithmetic of delays, the stored form and the short text forms. The JSON of callers is in the wire
//! crate. It has no clock. Its jitter has no random source: it depends only on the caller's seed and the attempt, so
//! a repeated decision gives the same result.

mod limits;
mod read;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::duration::Millis;
use crate::policy::PolicyError;

use limits::{check_backoff, check_codes, check_delay, check_list};
pub use read::SHORT_FORMS;
use read::short_form;

/// Most delays in a list.
pub const MAX_LISTED_DELAYS: usize = 8;

/// Most codes in `non_retryable`.
pub const MAX_CODES: usize = 8;

/// Most characters of a code. It has at least one.
pub const MAX_CODE_CHARS: usize = 64;

/// Most UTF-8 bytes of all codes of a policy together.
pub const MAX_CODES_BYTES: usize = 64;

/// The longest delay, given or computed: 365 days, as long as the longest timeout.
pub const MAX_DELAY: Millis = Millis::from_days(365);

/// The most bytes of JSON that a policy within the limits takes. The control record has space for them.
pub const MAX_STORED_BYTES: usize = 239;

/// How a failed task is retried. Fixed when the task is scheduled.
///
/// The derived form is the stored one: short names, without defaults. [`RetryPolicy::check`] checks the limits of a
/// policy that wasn't parsed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    /// How many attempts the task has, the first included. One by default.
    #[serde(rename = "n", default, skip_serializing_if = "is_default")]
    pub max_attempts: MaxAttempts,
    /// The delay after the first attempt, or after each attempt. Zero by default.
    #[serde(rename = "d", default, skip_serializing_if = "is_default")]
    pub delay: Delay,
    /// The factor by which a fixed delay grows with every further attempt: finite and above zero, 1 by default. A
    /// list of delays has none.
    #[serde(rename = "b", default = "no_backoff", skip_serializing_if = "is_no_backoff")]
    pub backoff: f64,
    /// The longest delay. [`MAX_DELAY`] if absent.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub max_delay: Option<Millis>,
    /// Whether delays have jitter. None by default.
    #[serde(rename = "j", default, skip_serializing_if = "is_default")]
    pub jitter: Jitter,
    /// Error codes that end the task even if attempts are left.
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    pub non_retryable: Vec<String>,
}

/// How many attempts a task has, the first included. Serialised as an integer: 0, n, or -1 for no limit (S5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub enum MaxAttempts {
    /// 0: the task is skipped and never runs.
    Skip,
    /// n: the task runs at most n times.
    Limited(NonZeroU32),
    /// -1: the task runs until it succeeds, or until something else ends it.
    Unlimited,
}

/// The wait before a retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Delay {
    /// One delay, multiplied by [`RetryPolicy::backoff`].
    Fixed(Millis),
    /// The delay after each attempt; the last one repeats (D12).
    Listed(Vec<Millis>),
}

/// How delays are spread, so that tasks that failed together aren't retried together (Z11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// Delays are exact.
    #[default]
    None,
    /// Uniform between zero and the delay, both included.
    Full,
}

impl RetryPolicy {
    /// One attempt: no retry. The default.
    pub const fn none() -> Self {
        Self {
            max_attempts: MaxAttempts::Limited(NonZeroU32::MIN),
            delay: Delay::Fixed(Millis::ZERO),
            backoff: 1.0,
            max_delay: None,
            jitter: Jitter::None,
            non_retryable: Vec::new(),
        }
    }

    /// `retries` further attempts after the first, each `delay` after the previous one.
    pub fn fixed(retries: u32, delay: Millis) -> Self {
        let attempts = MaxAttempts::Limited(NonZeroU32::MIN.saturating_add(retries));
        Self { max_attempts: attempts, delay: Delay::Fixed(delay), ..Self::none() }
    }

    /// `retries` further attempts after the first; the delay starts at `base`, doubles, and has full jitter.
    pub fn exponential(retries: u32, base: Millis) -> Self {
        Self { backoff: 2.0, jitter: Jitter::Full, ..Self::fixed(retries, base) }
    }

    /// Reads a short form: `none`, `fixed(3, 2s)`, `exponential(5, 1s)`, or `exponential(5, 1s, 1m)` with the
    /// longest delay as the last value (Z11). The number counts retries, without the first attempt.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        short_form(text)
    }

    /// The delay between the end of attempt `finished_attempt` (from 1; 0 counts as 1) and the next one. It is the
    /// list's value or `min(delay * backoff^(finished_attempt - 1), max_delay)`, rounded to milliseconds and never
    /// longer than [`MAX_DELAY`] (S6).
    ///
    /// With [`Jitter::Full`] the delay depends on `seed`, which should differ from task to task. The same policy,
    /// attempt and seed always give the same delay.
    pub fn delay_before_next(&self, finished_attempt: u32, seed: u64) -> Millis {
        let earlier = finished_attempt.saturating_sub(1);
        let grown = match &self.delay {
            Delay::Fixed(delay) => grow(*delay, self.backoff, earlier),
            Delay::Listed(delays) => listed(delays, earlier),
        };
        let delay = grown.min(self.max_delay.unwrap_or(MAX_DELAY)).min(MAX_DELAY);
        match self.jitter {
            Jitter::None => delay,
            Jitter::Full => spread(delay, finished_attempt.max(1), seed),
        }
    }

    /// Whether another attempt may start after `used` attempts.
    pub const fn attempts_left(&self, used: u32) -> bool {
        match self.max_attempts {
            MaxAttempts::Skip => false,
            MaxAttempts::Limited(limit) => used < limit.get(),
            MaxAttempts::Unlimited => true,
        }
    }

    /// Whether a failure with this code may be retried: the list doesn't contain exactly this code.
    pub fn is_retryable(&self, code: &str) -> bool {
        !self.non_retryable.iter().any(|listed| listed == code)
    }

    /// Checks the limits of this module.
    pub fn check(&self) -> Result<(), PolicyError> {
        check_backoff(self.backoff, "backoff")?;
        match &self.delay {
            Delay::Fixed(delay) => check_delay(*delay, "delay", &delay.to_string())?,
            Delay::Listed(delays) => {
                check_list(delays)?;
                if !is_no_backoff(&self.backoff) {
                    let (expected, found) = ("no backoff with a list of delays", self.backoff.to_string());
                    return Err(PolicyError::new("backoff", expected, &found));
                }
            }
        }
        if let Some(max_delay) = self.max_delay {
            check_delay(max_delay, "max_delay", &max_delay.to_string())?;
            if max_delay.is_zero() {
                let expected = "a duration longer than zero";
                return Err(PolicyError::new("max_delay", expected, &max_delay.to_string()));
            }
        }
        check_codes(&self.non_retryable)
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::none()
    }
}

impl MaxAttempts {
    /// The expected value, for use after the word "expected".
    pub const EXPECTED: &str =
        "a whole number of attempts with the first included, 0 to skip, -1 for no limit";
}

impl Default for MaxAttempts {
    fn default() -> Self {
        Self::Limited(NonZeroU32::MIN)
    }
}

impl From<MaxAttempts> for i64 {
    fn from(attempts: MaxAttempts) -> Self {
        match attempts {
            MaxAttempts::Skip => 0,
            MaxAttempts::Limited(limit) => Self::from(limit.get()),
            MaxAttempts::Unlimited => -1,
        }
    }
}

/// The path of the error is empty: [`PolicyError::under`] adds the field.
impl TryFrom<i64> for MaxAttempts {
    type Error = PolicyError;

    fn try_from(number: i64) -> Result<Self, Self::Error> {
        if number == -1 {
            return Ok(Self::Unlimited);
        }
        let limit =
            u32::try_from(number).map_err(|_| PolicyError::new("", Self::EXPECTED, &number.to_string()))?;
        Ok(NonZeroU32::new(limit).map_or(Self::Skip, Self::Limited))
    }
}

impl Default for Delay {
    fn default() -> Self {
        Self::Fixed(Millis::ZERO)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

const fn no_backoff() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_no_backoff(backoff: &f64) -> bool {
    backoff.total_cmp(&no_backoff()).is_eq()
}

fn listed(delays: &[Millis], earlier: u32) -> Millis {
    let index = usize::try_from(earlier).unwrap_or(usize::MAX);
    delays.get(index).or(delays.last()).copied().unwrap_or(Millis::ZERO)
}

fn grow(delay: Millis, backoff: f64, times: u32) -> Millis {
    // Zero times an infinite power would be NaN.
    if delay.is_zero() || times == 0 {
        return delay;
    }
    #[expect(clippy::cast_precision_loss, reason = "a delay within MAX_DELAY is exact below 2^53")]
    let grown = (delay.as_u64() as f64 * power(backoff, times)).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates: an overflowed power becomes the longest duration"
    )]
    Millis::new(grown as u64)
}

/// `base^exponent` by squaring. Not `powi`, whose last bits may differ between platforms: two decisions about one
/// attempt must give the same delay on all of them.
fn power(base: f64, exponent: u32) -> f64 {
    let (mut result, mut square, mut rest) = (1.0, base, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            result *= square;
        }
        square *= square;
        rest >>= 1;
    }
    result
}

/// Scales a 64-bit hash to `0..=delay` without the bias of a modulo.
pub(crate) fn spread(delay: Millis, attempt: u32, seed: u64) -> Millis {
    let choices = u128::from(delay.as_u64()) + 1;
    let scaled = (u128::from(splitmix64(seed, attempt)) * choices) >> u64::BITS;
    u64::try_from(scaled).map_or(delay, Millis::new)
}

/// Output number `index` (from 1) of the `SplitMix64` generator with this seed.
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
fn splitmix64(seed: u64, index: u32) -> u64 {
    let state = seed.wrapping_add(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(u64::from(index)));
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
