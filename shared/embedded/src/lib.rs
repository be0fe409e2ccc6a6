//! The whole of Tickover's storage inside one process, for local development, tests and small
//! installations: no network, no Docker, no AWS account.
//!
//! [`dynamodb`] gives an ordinary `aws_sdk_dynamodb::Client` whose requests are answered by an
//! engine in this process. The `DynamoDB` adapter can't tell the difference, so there is no second
//! storage engine with rules of its own.

pub mod dynamodb;
mod http;
pub mod local;
mod metrics;
mod time;

pub use http::{Bounds, HostName, HostNameError};
pub use local::{Local, LocalError, Storage};
pub use time::Ticks;
