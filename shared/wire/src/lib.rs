//! The JSON of the HTTP API: each request and each answer is one type, for the server, the client and the
//! command-line tool.
//!
//! It owns the names of fields, the form of values, and the errors of reading them. Each type checks its own value.
//! `TryFrom` and the server check rules across fields. The crate does no I/O and never parses a payload.
//!
//! - Names are types of the core (`TaskId`, `QueueName`). Their lengths are in [`tickover_core::limits`].
//! - Instants are [`Instant`]: RFC 3339 in UTC with milliseconds.
//! - Lengths of time are text such as `1h 30m`, or whole milliseconds: [`Duration`] and its variants.
//! - Values of an enumeration are [`Word`] in requests, which refuses an unknown value, and [`OpenEnum`] in answers,
//!   which keeps an unknown value.
//! - Payloads are [`Verbatim`]: the text as it was sent.
//! - In requests, `null` is the same as no field, except for a payload. Unknown fields are refused.
//! - In answers, a field that doesn't apply is absent. Unknown fields are ignored: the server may be newer than its
//!   reader.

#![warn(missing_docs)]

pub mod answer;
pub mod read;
pub mod request;

mod number;
mod plain;
mod route;
#[cfg(feature = "schema")]
mod schema;
mod span;
#[cfg(test)]
mod tests;
mod text;
mod verbatim;
mod word;

pub use number::{
    Attempts, ClaimCount, ConcurrencyLimit, PageLimit, Progress, RateLimit, RunCount, RunNumber, ValueVersion,
};
#[cfg(feature = "schema")]
pub use route::Documented;
pub use route::{OPERATORS_ROUTES, Route};
pub use span::*;
pub use text::{CronText, Cursor, FailureCode, IdempotencyKey, Label, Labels, LeaseToken};
pub use verbatim::Verbatim;
pub use word::*;
