//! The wakers that a workflow's body is polled with, one for each poll: they tell whether somebody keeps the latest one,
//! and wake the driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use futures::task::AtomicWaker;

/// The other side of a body's wakers.
pub(super) struct Bell {
    inner: Arc<Inner>,
    /// That of the last poll.
    last: Arc<Pull>,
}

#[derive(Default)]
struct Inner {
    rung: AtomicBool,
    driver: AtomicWaker,
}

/// What wakes the body: of one poll.
struct Pull(Arc<Inner>);

impl Wake for Pull {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.rung.store(true, Ordering::Release);
        self.0.driver.wake();
    }
}

impl Bell {
    pub(super) fn new() -> Self {
        let inner = Arc::<Inner>::default();
        let last = Arc::new(Pull(Arc::clone(&inner)));
        Self { inner, last }
    }

    /// A waker for the next poll. Wakes from before it are forgotten: the poll sees what they told of.
    pub(super) fn next(&mut self) -> Waker {
        self.last = Arc::new(Pull(Arc::clone(&self.inner)));
        self.inner.rung.store(false, Ordering::Release);
        self.waker()
    }

    /// The waker of the last poll.
    pub(super) fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.last))
    }

    /// How many keep the waker of the last poll, besides the turn's state.
    pub(super) fn kept(&self) -> usize {
        Arc::strong_count(&self.last).saturating_sub(2)
    }

    /// Has the driver's task woken when the body is, and says whether it has been since it was last polled.
    pub(super) fn listen(&self, context: &Context<'_>) -> bool {
        self.inner.driver.register(context.waker());
        self.has_rung()
    }

    /// Whether the body has been woken since it was last polled.
    pub(super) fn has_rung(&self) -> bool {
        self.inner.rung.load(Ordering::Acquire)
    }
}
