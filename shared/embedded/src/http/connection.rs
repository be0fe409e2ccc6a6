//! The state of one connection and since when: it decides the timeout, and which connection may be closed for a new
//! one.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
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
    /// The last answer is being sent. The connection closes after it.
    Leaving,
}

/// A connection, as other tasks see it.
#[derive(Debug)]
pub(super) struct Connection {
    phase: watch::Sender<(Phase, Instant)>,
    close_requested: Notify,
    /// Whether the waits of its requests are over: it answers what it can, and closes.
    hurried: watch::Sender<bool>,
    /// Notified when there may be one connection less, or one more that can be closed.
    closable: Arc<Notify>,
}

impl Connection {
    pub(super) fn new(closable: Arc<Notify>) -> Self {
        let phase = watch::Sender::new((Phase::Idle, Instant::now()));
        Self { phase, close_requested: Notify::new(), hurried: watch::Sender::new(false), closable }
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

    /// Ends the waits of its requests: the one that is being answered is its last one.
    pub(super) fn hurry(&self) {
        self.hurried.send_replace(true);
    }

    /// Whether the waits of its requests are over.
    pub(super) fn hurried(&self) -> watch::Receiver<bool> {
        self.hurried.subscribe()
    }

    /// Ends the waits once the caller has sent everything, or is gone: nobody may be there for what a wait would bring. Never
    /// resolves.
    pub(super) async fn watch_caller(&self, from: &OwnedReadHalf) -> Infallible {
        let mut phases = self.phase.subscribe();
        loop {
            // The sender exists for as long as this borrow of it.
            drop(phases.wait_for(|(phase, _)| *phase == Phase::Answering).await);
            let has_more = async { matches!(from.as_ref().peek(&mut [0]).await, Ok(1..)) };
            let answered = async { drop(phases.wait_for(|(phase, _)| *phase != Phase::Answering).await) };
            let has_more = tokio::select! {
                has_more = has_more => has_more,
                () = answered => continue,
            };
            // If its next request is there, that hides what comes after it.
            if !has_more {
                self.hurry();
            }
            drop(phases.wait_for(|(phase, _)| *phase != Phase::Answering).await);
        }
    }

    /// Resolves when it must be closed, because its timeout has passed or because a new connection needs its space.
    /// Returns the reason.
    pub(super) async fn wait_for_close(&self, bounds: &Bounds) -> &'static str {
        let silent = async {
            let mut phases = self.phase.subscribe();
            loop {
                let (phase, since) = *phases.borrow_and_update();
                let bound = match phase {
                    Phase::Idle | Phase::Leaving => Some(bounds.idle),
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
    pub(super) from: Arc<OwnedReadHalf>,
    pub(super) to: OwnedWriteHalf,
    pub(super) connection: Arc<Connection>,
}

impl AsyncRead for ObservedSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.from.as_ref().as_ref().poll_read_ready(context))?;
            match self.from.try_read(buffer.initialize_unfilled()) {
                Ok(bytes) => {
                    buffer.advance(bytes);
                    if bytes > 0 {
                        self.connection.bytes_arrived();
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for ObservedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.to).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.to).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.to.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.to).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.to).poll_shutdown(context)
    }
}
