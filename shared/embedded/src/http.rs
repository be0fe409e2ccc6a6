//! The HTTP server of a local system: it checks who may call, and limits how much one caller can use.
//!
//! None of this is in a function's archive: on AWS, API Gateway or the function URL does it.

mod access;
mod body;
mod connection;
mod connections;
mod permits;

use std::time::Duration;

pub use access::{HostName, HostNameError};
pub(crate) use connections::serve;

/// How long a caller may send nothing, and how much memory and how many connections callers may use together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Longest time between a request's first byte and the end of its head.
    pub head: Duration,
    /// Longest time between the end of a request's head and the end of its body.
    pub body: Duration,
    /// Longest time before the first byte of a connection's first request, and between two requests.
    pub idle: Duration,
    /// Most connections at once. By default, the limit of open files minus those kept for other uses.
    pub connections: Option<usize>,
    /// Most bytes that large bodies may use together, from the end of their heads to their answers.
    pub large_bodies_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            // Longer than clients keep an idle connection, so that the clients close it.
            idle: Duration::from_mins(2),
            connections: None,
            large_bodies_bytes: 64 * 1024 * 1024,
        }
    }
}
