//! The HTTP server of a local system: it checks who may call, and limits how much one caller can use.
//!
//! None of this is in a function's archive: on AWS, API Gateway or the function URL does it.

mod access;
mod body;
mod connection;
mod connections;
mod permits;

use std::io;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;

pub use access::{HostName, HostNameError};

/// How long requests under way are waited for at the end; a long poll is cut off.
const GRACE: Duration = Duration::from_secs(3);

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

/// Serves a router until `stop` resolves, to callers that know the server by a loopback address, `localhost` or one of the
/// allowed names. Requests of other sites' pages are refused.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    allowed: Vec<HostName>,
    bounds: Bounds,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let (stopping, stopped) = tokio::sync::watch::channel(false);
    let mut server = tokio::spawn(connections::serve(listener, router, allowed, bounds, stopped));
    let ended = tokio::select! {
        ended = &mut server => ended,
        () = stop => {
            stopping.send_replace(true);
            if let Ok(ended) = tokio::time::timeout(GRACE, &mut server).await {
                ended
            } else {
                server.abort();
                Ok(())
            }
        }
    };
    ended.map_err(io::Error::other)
}
