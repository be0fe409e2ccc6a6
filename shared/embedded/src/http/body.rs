//! A request's body: how long the server waits for it, and how much memory all bodies may use together.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use axum::http::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use tickover_api::{BODY_BYTES_MAX, Problem};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

use super::connection::{Connection, Phase};

/// Bodies up to this size don't wait for memory: with the most connections, they use less than the large bodies do.
const SMALL_BYTES: usize = 64 * 1024;
/// The unit in which the memory for large bodies is counted: in bytes, the count could exceed a semaphore's maximum
/// where it has 32 bits.
const UNIT_BYTES: usize = 1024;

/// The memory that large bodies may use together.
pub(super) struct Memory(Semaphore);

impl Memory {
    pub(super) fn new(bytes: usize) -> Self {
        // At least enough for one body: with less, no body could be read.
        Self(Semaphore::new(bytes.max(BODY_BYTES_MAX).div_ceil(UNIT_BYTES)))
    }

    /// Waits until a body of this size may be read. If the size is unknown, the largest size is assumed.
    pub(super) async fn reserve(
        &self,
        size: &SizeHint,
        until: Instant,
    ) -> Result<Option<SemaphorePermit<'_>>, Problem> {
        let bytes = size.exact().map_or(BODY_BYTES_MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        if bytes <= SMALL_BYTES {
            return Ok(None);
        }
        // Bytes beyond the largest body are read but not kept.
        let units = bytes.min(BODY_BYTES_MAX).div_ceil(UNIT_BYTES);
        let permit = self.0.acquire_many(u32::try_from(units).unwrap_or(u32::MAX));
        match timeout_at(until, permit).await {
            Ok(Ok(permit)) => Ok(Some(permit)),
            Ok(Err(_)) | Err(_) => Err(busy()),
        }
    }
}

fn busy() -> Problem {
    let detail = "too many large requests are under way; repeating the call is safe";
    Problem::new(503, "unavailable", "Unavailable", detail).later()
}

/// The answer to a request whose body didn't arrive in time.
pub(super) fn too_slow() -> Problem {
    let detail = "the request's body was not sent in time; nothing of it took effect";
    Problem::new(408, "request_timeout", "Request timeout", detail)
}

/// A body that ends with an error when its timeout passes.
pub(super) struct Timed {
    inner: Incoming,
    deadline: Pin<Box<Sleep>>,
    connection: Arc<Connection>,
    late: Arc<AtomicBool>,
}

impl Timed {
    /// Adds the timeout to a request's body. The flag is set when the timeout has passed.
    pub(super) fn request(
        request: Request<Incoming>,
        until: Instant,
        connection: &Arc<Connection>,
    ) -> (Request<Self>, Arc<AtomicBool>) {
        let late = Arc::new(AtomicBool::new(false));
        let (connection, flag) = (Arc::clone(connection), Arc::clone(&late));
        let timed = request.map(|inner| Self {
            inner,
            deadline: Box::pin(sleep_until(until)),
            connection,
            late: flag,
        });
        (timed, late)
    }
}

impl HttpBody for Timed {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        // Checked before the bytes: a body that is sent in small pieces always has some.
        if self.deadline.as_mut().poll(context).is_ready() {
            self.late.store(true, Ordering::Relaxed);
            return Poll::Ready(Some(Err("the body took too long".into())));
        }
        Pin::new(&mut self.inner)
            .poll_frame(context)
            .map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Timed {
    /// The body was read or is ignored: from here on the request is being answered.
    fn drop(&mut self) {
        self.connection.enter(Phase::Answering);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn large_bodies_share_a_bounded_memory_and_small_ones_take_none_of_it() {
        let memory = Memory::new(BODY_BYTES_MAX);
        let soon = || Instant::now() + Duration::from_millis(20);
        let size = |bytes: usize| SizeHint::with_exact(u64::try_from(bytes).unwrap());
        let first = memory.reserve(&size(BODY_BYTES_MAX - SMALL_BYTES), soon()).await.unwrap();
        assert!(first.is_some());
        for too_much in [size(SMALL_BYTES * 2), size(BODY_BYTES_MAX * 50), SizeHint::default()] {
            let problem = memory.reserve(&too_much, soon()).await.unwrap_err();
            assert_eq!((problem.status(), problem.is_retryable()), (503, true));
        }
        assert!(memory.reserve(&size(SMALL_BYTES), soon()).await.unwrap().is_none());
        drop(first);
        assert!(memory.reserve(&size(BODY_BYTES_MAX * 50), soon()).await.unwrap().is_some());
    }
}
