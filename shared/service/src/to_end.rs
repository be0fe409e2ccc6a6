//! Calls that run to their end, whatever becomes of their callers.
//!
//! A call that changes something consists of several steps: a record is written, then its message is sent. If its future
//! was dropped in between, because its caller has gone or has waited for long enough, the message would be sent by a tick,
//! minutes later.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// A call that goes on by itself if it is dropped once it has begun. See [`to_end`].
pub struct ToEnd<T: Send + 'static> {
    /// Absent at the end.
    call: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    has_begun: bool,
}

/// A call that goes on by itself if it is dropped once it has begun: as a task of the runtime in which it is dropped. What
/// has never been polled does nothing.
pub fn to_end<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> ToEnd<T> {
    ToEnd { call: Some(Box::pin(call)), has_begun: false }
}

impl<T: Send + 'static> Future for ToEnd<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let this = self.get_mut();
        this.has_begun = true;
        // One that panics isn't polled again.
        let Some(mut call) = this.call.take() else { return Poll::Pending };
        let polled = call.as_mut().poll(context);
        if polled.is_pending() {
            this.call = Some(call);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for ToEnd<T> {
    fn drop(&mut self) {
        // Without a runtime, the process is about to end.
        if let (Some(call), true, Ok(runtime)) = (self.call.take(), self.has_begun, Handle::try_current()) {
            runtime.spawn(async move { drop(call.await) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::FutureExt as _;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_call_that_is_dropped_after_it_has_begun_goes_on_and_one_that_never_began_does_not() {
        let ends = Arc::new(AtomicU32::new(0));
        let call = |go: oneshot::Receiver<()>, done: oneshot::Sender<()>| {
            let ends = Arc::clone(&ends);
            async move {
                go.await.unwrap();
                ends.fetch_add(1, Ordering::SeqCst);
                done.send(()).unwrap();
            }
        };
        let (go, gone) = oneshot::channel();
        let (done, is_done) = oneshot::channel();
        let mut begun = to_end(call(gone, done));
        assert_eq!((&mut begun).now_or_never(), None);
        drop(begun);
        go.send(()).unwrap();
        is_done.await.unwrap();
        assert_eq!(ends.load(Ordering::SeqCst), 1);

        let (go, gone) = oneshot::channel();
        let (done, is_done) = oneshot::channel();
        drop(to_end(call(gone, done)));
        assert!(go.send(()).is_err() && is_done.await.is_err());
        assert_eq!(to_end(async { 5 }).await, 5);
    }
}
