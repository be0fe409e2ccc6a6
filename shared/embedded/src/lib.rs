//! All of Tickover in one process, for local development, tests and small installations: no network, no Docker, no AWS
//! account.
//!
//! [`dynamodb`] returns an ordinary `aws_sdk_dynamodb::Client` whose requests are answered by an engine in this
//! process. The `DynamoDB` adapter is the same as on AWS, so there is no second implementation of the storage rules.

pub mod dynamodb;
mod http;
pub mod local;
mod metrics;
mod time;

pub use http::{Bounds, HostName, HostNameError};
pub use local::{Local, LocalError, Storage};
pub use time::Ticks;
