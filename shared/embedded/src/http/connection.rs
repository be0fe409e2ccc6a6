//! The state of one connection and since when: it decides the timeout, and which connection may be closed for a new
//! one.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

use super::Bounds;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No byte of a request has arrived since the last answer, or since the connection was opened.
    Idle,
    /// A part of a request's head has arrived.
    Head,
    /// A request's head has arrived, but not its whole body.
    Body,
    /// A request is being answered. A long poll may take as long as it waits.
    Answering,
}

/// A connection, as other tasks see it.
#[derive(Debug)]
pub(super) struct Connection {
    phase: watch::Sender<(Phase, Instant)>,
    close_requested: Notify,
    /// Notified when there may be one connection less, or one more that can be closed.
    closable: Arc<Notify>,
}

impl Connection {
    pub(super) fn new(closable: Arc<Notify>) -> Self {
        let phase = watch::Sender::new((Phase::Idle, Instant::now()));
        Self { phase, close_requested: Notify::new(), closable }
    }

    /// Its phase, and since when.
    pub(super) fn phase(&self) -> (Phase, Instant) {
        *self.phase.borrow()
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.phase.send_replace((phase, Instant::now()));
        if phase != Phase::Answering {
            self.closable.notify_one();
        }
    }

    /// Bytes have arrived.
    fn bytes_arrived(&self) {
        if self.phase().0 == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    /// Asks the connection to close, to make space for others.
    pub(super) fn close(&self) {
        self.close_requested.notify_one();
    }

    /// Resolves when it must be closed, because its timeout has passed or because a new connection needs its space.
    /// Returns the reason.
    pub(super) async fn wait_for_close(&self, bounds: &Bounds) -> &'static str {
        let silent = async {
            let mut phases = self.phase.subscribe();
            loop {
                let (phase, since) = *phases.borrow_and_update();
                let bound = match phase {
                    Phase::Idle => Some(bounds.idle),
                    Phase::Head => Some(bounds.head),
                    // The reader of a body answers when the body takes too long.
                    Phase::Body | Phase::Answering => None,
                };
                let over = async {
                    match bound {
                        Some(bound) => sleep_until(since + bound).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = over => return,
                    // The sender exists for as long as this borrow of it.
                    _ = phases.changed() => {}
                }
            }
        };
        tokio::select! {
            () = silent => "silent for too long",
            () = self.close_requested.notified() => "closed to make space",
        }
    }
}

/// A socket that notifies its connection when bytes arrive.
pub(super) struct ObservedSocket {
    pub(super) stream: TcpStream,
    pub(super) connection: Arc<Connection>,
}

impl AsyncRead for ObservedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.connection.bytes_arrived();
        }
        read
    }
}

impl AsyncWrite for ObservedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
