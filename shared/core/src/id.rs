//! Names that users choose, and random ids that can't be guessed. Both are parsed once, where they enter.
//!
//! Random bits are arguments: this module only gives them types and a text form.

mod key;
mod owner;

use std::fmt;
use std::hash::{Hash, Hasher};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use subtle::ConstantTimeEq as _;

use crate::error::Reject;

pub use key::FlowKey;
pub use owner::Owner;
pub use step::StepName;

/// Longest task id, in characters.
pub const ID_MAX: usize = 96;
/// Longest execution id, in characters. Each task that is a step of an execution has that id in its record.
pub const EXECUTION_ID_MAX: usize = 64;
/// Longest workflow name, in characters.
pub const WORKFLOW_MAX: usize = 64;
/// Longest name of a step, sleep or wait, its index included, in characters.
pub const STEP_NAME_MAX: usize = 96;
/// Longest event name, in characters.
pub const EVENT_NAME_MAX: usize = 64;
/// Longest event id, in characters.
pub const EVENT_ID_MAX: usize = 64;
/// Longest logical queue name, in characters. SQS allows 80, and a prefix must fit too.
pub const QUEUE_NAME_MAX: usize = 48;
/// Longest task kind, in characters.
pub const KIND_MAX: usize = 64;
/// Longest worker name, in characters.
pub const WORKER_MAX: usize = 64;
/// Longest name of a capability, in characters.
pub const CAPABILITY_MAX: usize = 32;
/// Longest key of flow control, in bytes.
pub const FLOW_KEY_MAX: usize = 256;

/// Why a text isn't a valid name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Empty, or white space only.
    #[error("must not be empty")]
    Empty,
    /// Longer than the limit.
    #[error("must be at most {maximum} characters long, not {length}")]
    TooLong { length: usize, maximum: usize },
    /// A character outside `[A-Za-z0-9._:-]`.
    #[error("must consist of A-Z a-z 0-9 . _ : - only, not {found:?}")]
    BadCharacter {
        /// The first character that isn't allowed.
        found: char,
    },
    /// Bytes that are no text.
    #[error("must be UTF-8")]
    NoText,
    /// A text that a path can't have in the place of this name.
    #[error("must be a name that a path can carry, not {found:?}")]
    Unreachable { found: String },
}

impl NameError {
    /// The valid form, for use after the word "expected". It contains nothing of the text that was found.
    pub fn expected(&self) -> String {
        match self {
            Self::Empty => "a name that is not empty".to_owned(),
            Self::TooLong { maximum, .. } => format!("a name of at most {maximum} characters"),
            Self::BadCharacter { .. } => "a name of A-Z a-z 0-9 . _ : - only".to_owned(),
            Self::NoText => "UTF-8".to_owned(),
            Self::Unreachable { .. } => "a name that a path can carry".to_owned(),
        }
    }

    /// The text or character that was found.
    pub fn found(&self) -> String {
        match self {
            Self::Empty => "nothing".to_owned(),
            Self::TooLong { length, .. } => format!("{length} characters"),
            Self::BadCharacter { found } => format!("{found:?}"),
            Self::NoText => "other bytes".to_owned(),
            Self::Unreachable { found } => format!("`{found}`"),
        }
    }

    /// The refusal of a request with such a name in this field.
    pub fn refused(&self, field: &str) -> Reject {
        Reject::instead_of(field, format_args!("expected {}", self.expected()), self.found())
    }
}

/// Reads a name. An error keeps the expected form and the text that was found separate.
fn read_name<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl FnOnce(String) -> Result<T, NameError>,
) -> Result<T, D::Error> {
    parse(String::deserialize(deserializer)?).map_err(|error| {
        D::Error::invalid_value(Unexpected::Other(&error.found()), &error.expected().as_str())
    })
}

/// Path segments that URL parsers remove.
const DOTS: [&str; 2] = [".", ".."];

/// Refuses a text that a path can't have in the place of a name: dots only, or one of these words.
fn check_reachable(text: &str, words: &[&str]) -> Result<(), NameError> {
    if DOTS.contains(&text) || words.contains(&text) {
        return Err(NameError::Unreachable { found: text.to_owned() });
    }
    Ok(())
}

fn check_name(text: &str, maximum: usize) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if let Some(found) = text.chars().find(|c| !(c.is_ascii_alphanumeric() || "._:-".contains(*c))) {
        return Err(NameError::BadCharacter { found });
    }
    if text.len() > maximum {
        return Err(NameError::TooLong { length: text.len(), maximum });
    }
    Ok(())
}

/// The allowed characters of a name that isn't `.` or `..`, as a regular expression for the schema.
#[cfg(feature = "schema")]
macro_rules! pattern {
    () => {
        r"(\.{0,2}[A-Za-z0-9_:-]|\.{3})[A-Za-z0-9._:-]*$"
    };
}

/// The bounds of a name in the API's schema.
#[cfg(feature = "schema")]
macro_rules! schema {
    ($name:ident, $pattern:expr) => {
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                let text = utoipa::openapi::ObjectBuilder::new().schema_type(utoipa::openapi::Type::String);
                let text = text.min_length(Some(1)).max_length(Some(Self::MAX));
                text.pattern(Some($pattern)).build().into()
            }
        }

        impl utoipa::ToSchema for $name {}
    };
}

mod step;

#[cfg(feature = "schema")]
schema!(Owner, concat!("^(@|(?!(batch|complete)$))", pattern!()));

/// Words as alternatives in a regular expression.
#[cfg(feature = "schema")]
macro_rules! words {
    ($first:literal $(| $word:literal)*) => {
        concat!($first, $("|", $word),*)
    };
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $maximum:expr $(, not $($word:literal)|+)?) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(into = "String")]
        pub struct $name(String);

        impl $name {
            /// The most characters it may have. Each is one byte.
            pub const MAX: usize = $maximum;

            /// Checks that the text isn't empty or too long and has only the characters `[A-Za-z0-9._:-]`, and that a
            /// path can carry it.
            pub fn parse(text: impl Into<String>) -> Result<Self, NameError> {
                let text = text.into();
                check_name(&text, Self::MAX)?;
                check_reachable(&text, &[$($($word),+)?])?;
                Ok(Self(text))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::parse(text)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                read_name(deserializer, Self::parse)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        #[cfg(feature = "schema")]
        schema!($name, concat!("^", $("(?!(", words!($($word)|+), ")$)",)? pattern!()));

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// A task's id. It is the same for all its attempts: pass it to other services as the idempotency key. It isn't the word
    /// of a call that has an id's place in a path.
    TaskId,
    ID_MAX,
    not "batch" | "complete"
);
name!(QueueName, QUEUE_NAME_MAX);
/// The first character of Tickover's own queue names. Users' names can't contain it.
const RESERVED: char = '@';

impl QueueName {
    /// The queue of timers and of sweeps that continue.
    pub fn timers() -> Self {
        Self(format!("{RESERVED}timers"))
    }

    /// The queue of lifecycle events.
    pub fn events() -> Self {
        Self(format!("{RESERVED}events"))
    }

    /// Whether it is one of Tickover's own queues, which contain no tasks.
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with(RESERVED)
    }
}

name!(
    /// A task's kind: a worker chooses its handler by this name.
    TaskKind,
    KIND_MAX
);
name!(
    /// The name of the worker that claims. It is shown in the list of attempts and has no other effect.
    WorkerName,
    WORKER_MAX
);
name!(
    /// The version of a worker's code. It is shown in the list of workers and has no other effect.
    WorkerVersion,
    WORKER_MAX
);

name!(
    /// An execution's id, chosen by the caller that starts it, or random.
    ExecutionId,
    EXECUTION_ID_MAX
);
name!(
    /// A workflow's name. A worker finds the code of an execution by it.
    WorkflowName,
    WORKFLOW_MAX
);
name!(EventName, EVENT_NAME_MAX);
name!(
    /// An event's id. An event sent twice with the same id is delivered once.
    EventId,
    EVENT_ID_MAX
);
name!(CronId, EXECUTION_ID_MAX);
name!(
    /// The id of an operation on many records, chosen by its caller, or random. An event that it sends has it as its id.
    OperationId,
    EVENT_ID_MAX
);

name!(
    /// The id of a key with limits: the digest of its key, as text.
    GateId,
    22
);

impl From<&Fingerprint> for GateId {
    fn from(digest: &Fingerprint) -> Self {
        Self(digest.to_string())
    }
}

name!(
    /// What a worker provides and a task may require, such as `gpu`.
    Capability,
    CAPABILITY_MAX
);

/// The id of a record, of whichever kind. The order is that of listings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordId {
    Task(TaskId),
    Execution(ExecutionId),
    Cron(CronId),
    Queue(QueueName),
    Operation(OperationId),
    Gate(GateId),
    /// All ticks share one record.
    Tick,
    /// An idempotency key, by its digest.
    Key(Fingerprint),
}

/// The id as text, without its kind. The record of the ticks has none.
impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(id) => id.fmt(f),
            Self::Execution(id) => id.fmt(f),
            Self::Cron(id) => id.fmt(f),
            Self::Queue(name) => name.fmt(f),
            Self::Operation(id) => id.fmt(f),
            Self::Gate(id) => id.fmt(f),
            Self::Tick => Ok(()),
            Self::Key(digest) => digest.fmt(f),
        }
    }
}

macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident, $bytes:expr, $shown:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name([u8; $bytes]);

        impl $name {
            /// Its length in bytes.
            pub const LEN: usize = $bytes;

            pub const fn from_bytes(bytes: [u8; $bytes]) -> Self {
                Self(bytes)
            }

            pub const fn as_bytes(&self) -> &[u8; $bytes] {
                &self.0
            }
        }

        /// In constant time: some of these ids are secrets, and the time of a comparison must reveal nothing about
        /// them.
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.0.as_slice().ct_eq(other.0.as_slice()).into()
            }
        }

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.0.hash(state);
            }
        }

        impl TryFrom<String> for $name {
            type Error = &'static str;
            fn try_from(text: String) -> Result<Self, Self::Error> {
                let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| "not base64url")?;
                Ok(Self(bytes.try_into().map_err(|_| "of the wrong length")?))
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                URL_SAFE_NO_PAD.encode(id.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let text: String = self.to_string().chars().take($shown).collect();
                write!(f, concat!(stringify!($name), "({})"), text)
            }
        }
    };
}

/// How many characters of an id its debug text shows: all, or for a secret only enough to distinguish two of them.
const WHOLE: usize = usize::MAX;
const OF_A_SECRET: usize = 4;

random_id!(
    /// Distinguishes two records that had the same id one after the other. All items that belong to a record contain
    /// it.
    Incarnation,
    8,
    WHOLE
);
random_id!(
    /// Marks the write of one decision. If the answer to the write is lost, the write can be recognised.
    Nonce,
    8,
    WHOLE
);
random_id!(
    /// The fence of one attempt. Every write of its worker contains it.
    LeaseId,
    16,
    OF_A_SECRET
);
random_id!(
    /// The key of a payload that doesn't fit into its record.
    BlobId,
    16,
    WHOLE
);
random_id!(
    /// A digest of a request. It distinguishes a repeated request from another one with the same id.
    Fingerprint,
    16,
    WHOLE
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_for_emptiness_characters_and_length() {
        assert_eq!(QueueName::parse(""), Err(NameError::Empty));
        assert_eq!(QueueName::parse("a b"), Err(NameError::BadCharacter { found: ' ' }));
        assert_eq!(QueueName::parse("naïve"), Err(NameError::BadCharacter { found: 'ï' }));
        assert!(QueueName::parse("A-z.0:9_").is_ok_and(|name| name.as_str() == "A-z.0:9_"));
        let long = "x".repeat(QUEUE_NAME_MAX + 1);
        assert!(matches!(QueueName::parse(long), Err(NameError::TooLong { .. })));
        assert!(QueueName::parse("x".repeat(QUEUE_NAME_MAX)).is_ok());
    }

    #[test]
    fn random_ids_survive_their_text_form_and_refuse_other_texts() {
        let lease = LeaseId::from_bytes([7; 16]);
        let text = serde_json::to_string(&lease).unwrap();
        assert_eq!(serde_json::from_str::<LeaseId>(&text).unwrap(), lease);
        assert!(serde_json::from_str::<LeaseId>("\"AAAA\"").is_err());
        assert!(serde_json::from_str::<LeaseId>("\"!\"").is_err());
    }
}
