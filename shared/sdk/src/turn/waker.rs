//! The wakers that a workflow's body is polled with, one for each poll. They wake the driver, and show whether any
//! future keeps the waker of the last poll.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use futures::task::AtomicWaker;

/// The driver's view of the wakers.
pub(super) struct WakeFlag {
    inner: Arc<Inner>,
    /// The waker of the last poll.
    last: Arc<BodyWaker>,
}

#[derive(Default)]
struct Inner {
    woken: AtomicBool,
    driver: AtomicWaker,
}

/// The waker of one poll.
struct BodyWaker(Arc<Inner>);

impl Wake for BodyWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.woken.store(true, Ordering::Release);
        self.0.driver.wake();
    }
}

impl WakeFlag {
    pub(super) fn new() -> Self {
        let inner = Arc::<Inner>::default();
        let last = Arc::new(BodyWaker(Arc::clone(&inner)));
        Self { inner, last }
    }

    /// Creates the waker for the next poll. Earlier wakes are cleared: this poll handles them.
    pub(super) fn next(&mut self) -> Waker {
        self.last = Arc::new(BodyWaker(Arc::clone(&self.inner)));
        self.inner.woken.store(false, Ordering::Release);
        self.waker()
    }

    /// The waker of the last poll.
    pub(super) fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.last))
    }

    /// How many holders keep the waker of the last poll, in addition to the turn's state.
    pub(super) fn kept(&self) -> usize {
        Arc::strong_count(&self.last).saturating_sub(2)
    }

    /// Registers the driver's task to be woken with the body. Returns whether the body was woken since its last poll.
    pub(super) fn listen(&self, context: &Context<'_>) -> bool {
        self.inner.driver.register(context.waker());
        self.is_woken()
    }

    /// Whether the body was woken since its last poll.
    pub(super) fn is_woken(&self) -> bool {
        self.inner.woken.load(Ordering::Acquire)
    }
}
