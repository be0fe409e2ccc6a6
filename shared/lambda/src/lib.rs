//! The common parts of the Lambda functions: the cold start, their events, and their answers.
//!
//! A function's `main.rs` only names its handler. Its `handler.rs` turns an [`Event`] into calls of
//! `tickover_api::calls`. This crate decides nothing about a task, and logs neither events nor the bodies of messages.

pub mod answer;
pub mod boot;
pub mod event;
pub mod fields;
pub mod ingress;
pub mod invocation;
pub mod message;
pub mod metrics;
pub mod sqs;
pub mod timer;

mod aws;
mod callback_secret;
mod http;
mod init_error;

pub use answer::Failure;
pub use boot::{App, BootError};
pub use event::Event;
pub use http::https_client;
pub use invocation::{Invocation, prepare, serve, start};
