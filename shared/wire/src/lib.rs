//! The JSON of the HTTP API: each request and each answer is one type, for the server, the client and the
//! command-line tool.
//!
//! It owns the names of fields, how values are written, and the errors of reading them. A type holds one value at a
//! time to its rules; rules across fields are `TryFrom` and the server's. It does no I/O and never looks into a payload.
//!
//! - Names are core's (`TaskId`, `QueueName`). Their lengths are in [`tickover_core::limits`].
//! - Instants are [`Instant`]: RFC 3339 in UTC with milliseconds.
//! - Lengths of time are text such as `1h 30m`, or whole milliseconds: [`Duration`] and its relatives.
//! - Words are [`Word`] in requests, which refuses what it doesn't know, and [`Said`] in answers, which keeps it.
//! - Payloads are [`Verbatim`]: the text as it came.
//! - In requests, `null` is the same as no field, but for a payload. Unknown fields are refused.
//! - In answers, what doesn't apply is absent. Unknown fields are ignored: the server may be newer than its reader.

#![warn(missing_docs)]

pub mod answer;
pub mod read;
pub mod request;

mod number;
mod plain;
#[cfg(feature = "schema")]
mod schema;
mod span;
#[cfg(test)]
mod tests;
mod text;
mod verbatim;
mod word;

pub use number::{Attempts, ClaimCount, PageLimit, Progress, RunCount};
pub use span::*;
pub use text::{CronText, Cursor, FailureCode, IdempotencyKey, Labels, LeaseToken};
pub use verbatim::Verbatim;
pub use word::*;
