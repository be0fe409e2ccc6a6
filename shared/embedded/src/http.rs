//! The HTTP server of a local system: who may call it, and how much of it one caller can take.
//!
//! None of this is in a function's archive: on AWS, API Gateway or the function URL stands in front of the routes.

mod access;
mod body;
mod connection;
mod connections;
mod permits;

use std::time::Duration;

pub use access::{HostName, HostNameError};
pub(crate) use connections::serve;

/// How long a caller may be silent, and how much callers may take together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Between a request's first byte and the end of its head.
    pub head: Duration,
    /// Between the end of a request's head and the end of its body.
    pub body: Duration,
    /// Before the first byte of a connection's first request, and between two requests.
    pub idle: Duration,
    /// Most connections at once; by default as many as the process's limit of open files leaves room for.
    pub connections: Option<usize>,
    /// Most bytes that large bodies may take together, from their heads until they are answered.
    pub large_bodies_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            // Longer than clients keep a connection, so that it is them who close it.
            idle: Duration::from_mins(2),
            connections: None,
            large_bodies_bytes: 64 * 1024 * 1024,
        }
    }
}
