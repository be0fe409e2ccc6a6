//! The waker that a workflow's body is polled with: it tells whether somebody keeps it, and wakes the driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use futures::task::AtomicWaker;

/// The other side of a body's waker.
pub(super) struct Bell {
    inner: Arc<Inner>,
    waker: Waker,
}

#[derive(Default)]
struct Inner {
    rung: AtomicBool,
    driver: AtomicWaker,
}

impl Wake for Inner {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.driver.wake();
    }
}

impl Bell {
    pub(super) fn new() -> Self {
        let inner = Arc::<Inner>::default();
        let waker = Waker::from(Arc::clone(&inner));
        Self { inner, waker }
    }

    /// The waker itself.
    pub(super) const fn waker(&self) -> &Waker {
        &self.waker
    }

    /// How many clones there are besides this one and the one in the turn's state.
    pub(super) fn clones(&self) -> usize {
        Arc::strong_count(&self.inner).saturating_sub(3)
    }

    /// Has the driver's task woken when the body is, and says whether it has been since it was last polled.
    pub(super) fn listen(&self, context: &Context<'_>) -> bool {
        self.inner.driver.register(context.waker());
        self.inner.rung.load(Ordering::Acquire)
    }

    /// Whether the body has been woken since it was last polled.
    pub(super) fn has_rung(&self) -> bool {
        self.inner.rung.load(Ordering::Acquire)
    }

    /// Forgets wakes from before a poll: it sees what they told of.
    pub(super) fn hush(&self) {
        self.inner.rung.store(false, Ordering::Release);
    }
}
