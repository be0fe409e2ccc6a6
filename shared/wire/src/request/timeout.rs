//! The scope and the effect of a task's timeouts, and Steep's form of timeouts.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::Timeout;
use crate::span::Either;
use crate::word::words;

words! {
    /// What `timeout` limits.
    TimeoutScope {
        /// The whole task, from scheduling.
        Global = "global",
        /// Each attempt, from its claim. The first attempt that takes longer ends the task.
        PerAttempt = "per_attempt",
    }

    /// What the timeouts of an attempt do.
    OnTimeout {
        /// Another attempt, while any are left.
        Retry = "retry",
        /// The end of the task.
        Terminal = "terminal",
    }
}

/// Steep's timeouts: a duration, which isn't an error, or an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum SteepTimeout {
    /// It ends in `cancelled`.
    Short(Timeout),
    /// All fields.
    Object(SteepTimeoutObject),
}

/// A timeout, and whether it counts as an error. Source: Steep's timeout policies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SteepTimeoutObject {
    /// How long.
    pub timeout: Timeout,
    /// `false` (default): it ends in `cancelled`, which is never retried.
    #[serde(rename = "errorOnTimeout", skip_serializing_if = "Option::is_none")]
    pub error_on_timeout: Option<bool>,
}

impl SteepTimeout {
    /// How long, and whether it counts as an error.
    pub fn parts(&self) -> (Timeout, bool) {
        match self {
            Self::Short(timeout) => (*timeout, false),
            Self::Object(object) => (object.timeout, object.error_on_timeout.unwrap_or_default()),
        }
    }
}

impl<'de> Deserialize<'de> for SteepTimeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        const SHORT: Either<Timeout> = Either(PhantomData);

        impl<'de> Visitor<'de> for Form {
            type Value = SteepTimeout;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a duration or an object {timeout, errorOnTimeout}")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<SteepTimeout, E> {
                SHORT.visit_str(text).map(SteepTimeout::Short)
            }

            fn visit_u64<E: Error>(self, ms: u64) -> Result<SteepTimeout, E> {
                SHORT.visit_u64(ms).map(SteepTimeout::Short)
            }

            fn visit_i64<E: Error>(self, ms: i64) -> Result<SteepTimeout, E> {
                SHORT.visit_i64(ms).map(SteepTimeout::Short)
            }

            fn visit_f64<E: Error>(self, ms: f64) -> Result<SteepTimeout, E> {
                SHORT.visit_f64(ms).map(SteepTimeout::Short)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SteepTimeout, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(map)).map(SteepTimeout::Object)
            }
        }

        deserializer.deserialize_any(Form)
    }
}
