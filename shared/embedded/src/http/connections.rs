//! Accepts, serves and closes connections.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tickover_api::Problem;
use tickover_api::audit::Identity;
use tickover_core::by::Caller;
use tickover_service::config::LOCAL;
use tickover_service::waits;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::ServiceExt as _;

use super::body::{Memory, Timed, too_slow};
use super::connection::{ObservedSocket, Phase};
use super::permits::{Permit, Permits};
use super::{Bounds, HostName, access};

/// Largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The wait after the system had no open file left for a connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(20);

/// What all connections share.
struct Server {
    router: Router,
    allowed: Vec<HostName>,
    bounds: Bounds,
    memory: Memory,
}

/// Serves the router until it is asked to stop, then until the running requests are answered.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    allowed: Vec<HostName>,
    bounds: Bounds,
    mut stopping: watch::Receiver<bool>,
) {
    let memory = Memory::new(bounds.large_bodies_bytes);
    let server = Arc::new(Server { router, allowed, bounds, memory });
    let permits = Arc::new(Permits::new(bounds.connections));
    let stopped = stopping.clone();
    let mut open = JoinSet::new();
    let accept = async {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    // Only now: without a caller, nobody needs space.
                    permits.wait_for_space().await;
                    let (server, permit) = (Arc::clone(&server), permits.take());
                    open.spawn(server.serve_one(stream, peer.ip(), permit, stopped.clone()));
                }
                // The caller closed the connection before it was accepted.
                Err(error) if is_caller_error(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "no connection accepted; one that is idle is closed");
                    permits.close_one();
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
            while open.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        () = accept => {}
        // The sender exists until this call has ended.
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
    drop(listener);
    while open.join_next().await.is_some() {}
}

fn is_caller_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

impl Server {
    /// Answers a connection's requests until either side closes it.
    async fn serve_one(
        self: Arc<Self>,
        stream: TcpStream,
        peer: IpAddr,
        place: Permit,
        mut stopping: watch::Receiver<bool>,
    ) {
        // Answers are written whole: waiting for more data would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection's answers may be delayed");
        }
        let connection = &place.connection;
        let (from, to) = stream.into_split();
        let from = Arc::new(from);
        let socket = ObservedSocket { from: Arc::clone(&from), to, connection: Arc::clone(connection) };
        let answer = service_fn(|request| self.answer(request, peer, &place));
        let mut http = http1::Builder::new();
        // A caller that has sent its request may close its side: it still reads the answer.
        http.max_buf_size(HEAD_BYTES_MAX).half_close(true);
        let mut served = std::pin::pin!(http.serve_connection(TokioIo::new(socket), answer));
        let mut watch = std::pin::pin!(connection.watch_caller(&from));
        let mut is_stopping = false;
        loop {
            tokio::select! {
                ended = served.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection failed");
                    }
                    return;
                }
                why = connection.wait_for_close(&self.bounds) => return tracing::debug!(why, "a connection is closed"),
                never = watch.as_mut() => match never {},
                _ = stopping.wait_for(|stopping| *stopping), if !is_stopping => {
                    is_stopping = true;
                    connection.hurry();
                    served.as_mut().graceful_shutdown();
                }
            }
        }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        peer: IpAddr,
        place: &Permit,
    ) -> Result<Response, Infallible> {
        let connection = &place.connection;
        connection.enter(if request.body().is_end_stream() { Phase::Answering } else { Phase::Body });
        let hurried = connection.hurried();
        let response = waits::end_with(hurried.clone(), self.route(request, peer, place)).await;
        let response = response.map(|response| if *hurried.borrow() { closing(response) } else { response });
        let response = response.unwrap_or_else(|problem| closing(problem.into_response()));
        connection.enter(if *hurried.borrow() { Phase::Leaving } else { Phase::Idle });
        Ok(response)
    }

    async fn route(
        &self,
        request: Request<Incoming>,
        peer: IpAddr,
        place: &Permit,
    ) -> Result<Response, Problem> {
        let (parts, body) = request.into_parts();
        if let Err(problem) = access::check(&parts, peer, &self.allowed) {
            tracing::warn!(code = problem.code(), "a request of a foreign caller is refused");
            return Err(problem);
        }
        let until = Instant::now() + self.bounds.body;
        // Until the answer: the body stays in memory while the request is handled.
        let _reserved = self.memory.reserve(&body.size_hint(), until).await?;
        let mut parts = parts;
        parts.extensions.insert(identity(peer));
        let (request, late) = Timed::request(Request::from_parts(parts, body), until, &place.connection);
        let routed = self.router.clone().oneshot(request.map(Body::new)).await;
        let response = routed.unwrap_or_else(|never| match never {});
        if late.load(Ordering::Relaxed) { Err(too_slow()) } else { Ok(response) }
    }
}

/// Who a caller is: the machine is all that is known.
fn identity(peer: IpAddr) -> Identity {
    let peer = peer.to_canonical();
    let name = if peer.is_loopback() { LOCAL.to_owned() } else { peer.to_string() };
    Identity { caller: Caller::new(&name), client: None }
}

/// An answer after which the connection closes: because the rest of a refused body would have to be read, or because another
/// caller or the server's end waits for it.
fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
