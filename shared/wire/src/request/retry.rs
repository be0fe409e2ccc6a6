//! Retry policies as callers write them: an object in two spellings, or a short form.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use tickover_core::policy::PolicyError;
use tickover_core::retry::{self, RetryPolicy};

use crate::span::Either;
use crate::{Attempts, Duration, JitterWord, Timeout, Word};

/// How a failed task is retried: an object, Steep's object, or a short form.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = RetryPolicy))]
pub enum Retry {
    /// `none`, `fixed(retries, delay)`, `exponential(retries, base)` or `exponential(retries, base, max_delay)`; the
    /// first attempt doesn't count.
    Short(String),
    /// All fields.
    Object(RetryObject),
    /// In Steep's spelling.
    Steep(SteepRetries),
}

/// The delay before attempt n+1 is `min(delay * backoff^(n-1), max_delay)`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RetryObject {
    /// Attempts, including the first: 1 by default, 0 to skip the task, -1 for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<Attempts>,
    /// Zero by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// The factor by which a delay grows: 1 by default. It isn't allowed with a list of delays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<f64>,
    /// The longest delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_delay: Option<Timeout>,
    /// `none` (default), or `full`: uniform between zero and the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<JitterWord>,
    /// Error codes that end the task, at most eight of 1 to 64 characters, 64 bytes in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_retryable: Option<Codes>,
}

/// Steep's retry policy. Its delays are exact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SteepRetries {
    /// Attempts, including the first.
    #[serde(rename = "maxAttempts", skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<Attempts>,
    /// Zero by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// The factor by which a delay grows.
    #[serde(rename = "exponentialBackoff", skip_serializing_if = "Option::is_none")]
    pub exponential_backoff: Option<f64>,
    /// The longest delay. It only applies if `exponentialBackoff` is larger than 1, so otherwise the stored policy
    /// doesn't have it.
    #[serde(rename = "maxDelay", skip_serializing_if = "Option::is_none")]
    pub max_delay: Option<Timeout>,
}

/// One delay, or a list of them whose last one repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Delay {
    /// The same each time, except for `backoff`.
    Fixed(Duration),
    /// One for each retry, at least one and at most eight.
    Listed(Vec<Duration>),
}

/// Error codes that end the task: at most eight of 1 to 64 characters, 64 bytes in all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Codes(pub Vec<String>);

/// The path of the error starts at the policy. [`PolicyError::under`] adds the field.
impl TryFrom<Retry> for RetryPolicy {
    type Error = PolicyError;

    fn try_from(given: Retry) -> Result<Self, PolicyError> {
        let object = match given {
            Retry::Short(text) => return Self::parse(&text),
            Retry::Object(object) => object,
            Retry::Steep(steep) => return in_steeps_spelling(steep),
        };
        let policy = Self::from(object);
        policy.check()?;
        Ok(policy)
    }
}

fn in_steeps_spelling(steep: SteepRetries) -> Result<RetryPolicy, PolicyError> {
    let mut policy = RetryPolicy::from(RetryObject {
        max_attempts: steep.max_attempts,
        delay: steep.delay,
        backoff: steep.exponential_backoff,
        max_delay: steep.max_delay,
        jitter: None,
        non_retryable: None,
    });
    // The core's errors have this crate's field names.
    policy.check().map_err(|error| match error.path.as_str() {
        "backoff" => PolicyError { path: "exponentialBackoff".to_owned(), ..error },
        "max_delay" => PolicyError { path: "maxDelay".to_owned(), ..error },
        _ => error,
    })?;
    // Steep's `maxDelay` bounds a growing delay only.
    if policy.backoff <= 1.0 {
        policy.max_delay = None;
    }
    Ok(policy)
}

/// Doesn't check the limits: [`RetryPolicy::check`] does.
impl From<RetryObject> for RetryPolicy {
    fn from(object: RetryObject) -> Self {
        let none = Self::none();
        Self {
            max_attempts: object.max_attempts.map_or(none.max_attempts, |Attempts(attempts)| attempts),
            delay: object.delay.map_or(none.delay, retry::Delay::from),
            backoff: object.backoff.unwrap_or(none.backoff),
            max_delay: object.max_delay.map(Into::into),
            jitter: object.jitter.map_or(none.jitter, |Word(jitter)| jitter),
            non_retryable: object.non_retryable.map_or(none.non_retryable, |Codes(codes)| codes),
        }
    }
}

impl From<Delay> for retry::Delay {
    fn from(delay: Delay) -> Self {
        match delay {
            Delay::Fixed(delay) => Self::Fixed(delay.into()),
            Delay::Listed(delays) => Self::Listed(delays.into_iter().map(Into::into).collect()),
        }
    }
}

/// All fields, in this crate's spelling, as a client sends them.
impl From<&RetryPolicy> for Retry {
    fn from(policy: &RetryPolicy) -> Self {
        let delay = match &policy.delay {
            retry::Delay::Fixed(delay) => Delay::Fixed((*delay).into()),
            retry::Delay::Listed(delays) => {
                Delay::Listed(delays.iter().map(|delay| (*delay).into()).collect())
            }
        };
        Self::Object(RetryObject {
            max_attempts: Some(Attempts(policy.max_attempts)),
            delay: Some(delay),
            backoff: Some(policy.backoff),
            max_delay: policy.max_delay.map(Into::into),
            jitter: Some(Word(policy.jitter)),
            non_retryable: Some(Codes(policy.non_retryable.clone())),
        })
    }
}

/// The fields of both spellings, to find out which one is used; `delay` is in both.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    max_attempts: Option<Attempts>,
    delay: Option<Delay>,
    backoff: Option<f64>,
    max_delay: Option<Timeout>,
    jitter: Option<JitterWord>,
    non_retryable: Option<Codes>,
    #[serde(rename = "maxAttempts")]
    steeps_max_attempts: Option<Attempts>,
    #[serde(rename = "exponentialBackoff")]
    steeps_backoff: Option<f64>,
    #[serde(rename = "maxDelay")]
    steeps_max_delay: Option<Timeout>,
}

impl Fields {
    /// The policy, unless the spellings are mixed.
    fn policy(self) -> Option<Retry> {
        let object = RetryObject {
            max_attempts: self.max_attempts,
            delay: self.delay,
            backoff: self.backoff,
            max_delay: self.max_delay,
            jitter: self.jitter,
            non_retryable: self.non_retryable,
        };
        let steep = SteepRetries {
            max_attempts: self.steeps_max_attempts,
            delay: None,
            exponential_backoff: self.steeps_backoff,
            max_delay: self.steeps_max_delay,
        };
        if steep == SteepRetries::default() {
            return Some(Retry::Object(object));
        }
        let RetryObject { delay, .. } = object.clone();
        let is_mixed = object != RetryObject { delay: delay.clone(), ..RetryObject::default() };
        (!is_mixed).then_some(Retry::Steep(SteepRetries { delay, ..steep }))
    }
}

impl<'de> Deserialize<'de> for Retry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        impl<'de> Visitor<'de> for Form {
            type Value = Retry;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                let fields = "max_attempts, delay, backoff, max_delay, jitter, non_retryable";
                write!(formatter, "a retry policy: an object with {fields}, or {}", retry::SHORT_FORMS)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Retry, E> {
                Ok(Retry::Short(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Retry, A::Error> {
                let fields = Fields::deserialize(MapAccessDeserializer::new(map))?;
                fields.policy().ok_or_else(|| {
                    let expected = "one spelling of the fields, snake_case or camelCase";
                    A::Error::invalid_value(Unexpected::Other("both"), &expected)
                })
            }
        }

        deserializer.deserialize_any(Form)
    }
}

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        const FIXED: Either<Duration> = Either(PhantomData);

        impl<'de> Visitor<'de> for Form {
            type Value = Delay;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                FIXED.expecting(formatter)?;
                formatter.write_str(", or a list of them")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Delay, E> {
                FIXED.visit_str(text).map(Delay::Fixed)
            }

            fn visit_u64<E: Error>(self, ms: u64) -> Result<Delay, E> {
                FIXED.visit_u64(ms).map(Delay::Fixed)
            }

            fn visit_i64<E: Error>(self, ms: i64) -> Result<Delay, E> {
                FIXED.visit_i64(ms).map(Delay::Fixed)
            }

            fn visit_f64<E: Error>(self, ms: f64) -> Result<Delay, E> {
                FIXED.visit_f64(ms).map(Delay::Fixed)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Delay, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Delay::Listed)
            }
        }

        deserializer.deserialize_any(Form)
    }
}

#[cfg(test)]
mod tests;
