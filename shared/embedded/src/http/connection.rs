//! What one connection is doing, and since when: what bounds its silence, and what may be closed for another one.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

use super::Bounds;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing of a request has come since the last answer, or since it was opened.
    Idle,
    /// A part of a request's head has come.
    Head,
    /// A request's head has come, its body not yet.
    Body,
    /// A request is being answered, which may take as long as a long poll waits.
    Answering,
}

/// A connection as others see it.
#[derive(Debug)]
pub(super) struct Connection {
    phase: watch::Sender<(Phase, Instant)>,
    unwanted: Notify,
    /// Told when there may be one connection less, or one more that can be closed.
    room: Arc<Notify>,
}

impl Connection {
    pub(super) fn new(room: Arc<Notify>) -> Self {
        let phase = watch::Sender::new((Phase::Idle, Instant::now()));
        Self { phase, unwanted: Notify::new(), room }
    }

    /// What it is doing, and since when.
    pub(super) fn phase(&self) -> (Phase, Instant) {
        *self.phase.borrow()
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.phase.send_replace((phase, Instant::now()));
        if phase != Phase::Answering {
            self.room.notify_one();
        }
    }

    /// Bytes have come.
    fn heard(&self) {
        if self.phase().0 == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    /// Asks for its end, for the sake of others.
    pub(super) fn close(&self) {
        self.unwanted.notify_one();
    }

    /// Resolves when it is to be closed, because it has been silent for too long or others need its place.
    pub(super) async fn is_over(&self, bounds: &Bounds) -> &'static str {
        let silent = async {
            let mut phases = self.phase.subscribe();
            loop {
                let (phase, since) = *phases.borrow_and_update();
                let bound = match phase {
                    Phase::Idle => Some(bounds.idle),
                    Phase::Head => Some(bounds.head),
                    // A body that takes too long is answered, by whoever reads it.
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
                    // The sender lives as long as this borrow of it.
                    _ = phases.changed() => {}
                }
            }
        };
        tokio::select! {
            () = silent => "silent for too long",
            () = self.unwanted.notified() => "closed to make room",
        }
    }
}

/// A socket that tells its connection when bytes come.
pub(super) struct Heard {
    pub(super) stream: TcpStream,
    pub(super) connection: Arc<Connection>,
}

impl AsyncRead for Heard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.connection.heard();
        }
        read
    }
}

impl AsyncWrite for Heard {
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
