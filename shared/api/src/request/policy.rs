//! Durations and policies in all their forms.

use utoipa::ToSchema;

use super::Jitter;

/// Lengths of time that differ in their range only.
macro_rules! spans {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        ///
        /// One or more of `<integer><unit>` with units `ms`, `s`, `m`, `h`, `d` and their long forms, or whole
        /// milliseconds.
        #[derive(ToSchema)]
        #[serde(untagged)]
        #[schema(examples("1h 30m", 5_400_000))]
        pub enum $name {
            /// In words.
            Words(String),
            /// In milliseconds.
            Millis(u64),
        }
    )*};
}

spans! {
    /// A length of time: at most a year.
    Duration
    /// A length of time: longer than zero, at most a year.
    Timeout
    /// A length of time: 1 s to a year.
    RunTimeout
    /// Whole seconds: 1 s to a year.
    Interval
    /// A length of time: 1 s to 12 h.
    Lease
    /// A length of time: at most 20 s.
    Wait
}

/// One delay, or a list of them whose last one repeats.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum Delay {
    /// The same each time, but for `backoff`.
    Fixed(Duration),
    /// One for each retry, at least one and at most eight.
    Listed(Vec<Duration>),
}

/// How a failed task is tried again: an object, Steep's object, or a short form.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum RetryPolicy {
    /// `none`, `fixed(retries, delay)`, `exponential(retries, base)` or
    /// `exponential(retries, base, max_delay)`; the first attempt isn't counted.
    Short(String),
    /// In full.
    Object(RetryObject),
    /// In Steep's spelling.
    Steep(SteepRetries),
}

/// The delay before attempt n+1 is `min(delay * backoff^(n-1), max_delay)`.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryObject {
    /// Attempts, the first included: 1 by default, 0 to skip the task, -1 for no limit.
    #[schema(minimum = -1)]
    pub max_attempts: Option<i64>,
    /// Zero by default.
    pub delay: Option<Delay>,
    /// The factor by which a delay grows: 1 by default. A list of delays has none.
    pub backoff: Option<f64>,
    /// The longest delay.
    pub max_delay: Option<Duration>,
    /// `none` (default), or `full`: uniform between zero and the delay.
    pub jitter: Option<Jitter>,
    /// Error codes that end the task, at most eight of 1 to 64 characters, 64 bytes in all.
    pub non_retryable: Option<Vec<String>>,
}

/// Steep's retry policy.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SteepRetries {
    /// Attempts, the first included.
    #[schema(rename = "maxAttempts", minimum = -1)]
    pub max_attempts: Option<i64>,
    /// Zero by default.
    pub delay: Option<Delay>,
    /// The factor by which a delay grows.
    #[schema(rename = "exponentialBackoff")]
    pub exponential_backoff: Option<f64>,
    /// The longest delay.
    #[schema(rename = "maxDelay")]
    pub max_delay: Option<Duration>,
}

/// Steep's timeouts: a duration, which isn't an error, or an object.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum SteepTimeout {
    /// It ends in `cancelled`.
    Short(Timeout),
    /// In full.
    Object(SteepTimeoutObject),
}

/// A timeout and how it ends what it stops.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SteepTimeoutObject {
    /// How long.
    pub timeout: Timeout,
    /// `false` (default): it ends in `cancelled`, which is never retried.
    #[schema(rename = "errorOnTimeout")]
    pub error_on_timeout: Option<bool>,
}
