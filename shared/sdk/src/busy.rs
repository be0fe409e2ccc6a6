//! Detects steps that block their thread: a step that waits without `await`, or computes for long, delays everything
//! else that its worker runs on that thread.
//!
//! A separate thread checks the steps that are being polled, because a runtime whose threads are all blocked can't
//! report that itself. It logs the name of the step. From then on, steps with this name (with any index) are polled so
//! that other threads take over the rest of the thread's work, if the runtime has several threads.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tokio::runtime::{Handle, RuntimeFlavor};

/// How long a step may block its thread before that is reported.
const LONG: Duration = Duration::from_secs(5);

/// The watch of this process.
pub(crate) fn watch() -> &'static Watch {
    static WATCH: OnceLock<Watch> = OnceLock::new();
    WATCH.get_or_init(|| Watch::new(LONG, Report::log))
}

/// A report about a step.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Report {
    step: String,
    /// How long it has blocked its thread so far.
    kept: Duration,
    /// Whether the poll has ended.
    is_over: bool,
}

impl Report {
    fn log(&self) {
        let (step, seconds) = (self.step.as_str(), self.kept.as_secs());
        if self.is_over {
            tracing::warn!(step, seconds, "the step no longer blocks its thread");
            return;
        }
        tracing::error!(
            step,
            seconds,
            "the step blocks its thread: run blocking code in \
             `tokio::task::spawn_blocking`, and await that"
        );
    }
}

/// Watches steps that are being polled.
pub(crate) struct Watch {
    inner: Arc<Inner>,
}

struct Inner {
    long: Duration,
    report: Box<dyn Fn(&Report) + Send + Sync>,
    polls: Mutex<Polls>,
    /// Whether any step is known to block.
    some_block: AtomicBool,
}

#[derive(Default)]
struct Polls {
    next: u64,
    under_way: BTreeMap<u64, Polled>,
    /// The names of steps that have blocked their thread.
    blocking: BTreeSet<String>,
}

/// A poll in progress.
struct Polled {
    step: Arc<str>,
    since: Instant,
    is_reported: bool,
}

impl Inner {
    fn new(long: Duration, report: impl Fn(&Report) + Send + Sync + 'static) -> Self {
        let some_block = AtomicBool::new(false);
        Self { long, report: Box::new(report), polls: Mutex::default(), some_block }
    }

    fn lock(&self) -> MutexGuard<'_, Polls> {
        self.polls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, step: &Arc<str>) -> u64 {
        let mut polls = self.lock();
        polls.next += 1;
        let number = polls.next;
        let polled = Polled { step: Arc::clone(step), since: Instant::now(), is_reported: false };
        polls.under_way.insert(number, polled);
        number
    }

    fn end(&self, number: u64) {
        let ended = self.lock().under_way.remove(&number);
        if let Some(Polled { step, since, is_reported: true }) = ended {
            (self.report)(&Report { step: step.to_string(), kept: since.elapsed(), is_over: true });
        }
    }

    fn blocks(&self, step: &str) -> bool {
        self.some_block.load(Ordering::Relaxed) && self.lock().blocking.contains(base_name(step))
    }

    /// Checks all polls in progress. With `was_frozen`, the time since the last check is so long that the process was
    /// frozen, like a Lambda function between two invocations: the time of each poll starts again.
    fn look(&self, was_frozen: bool) {
        let mut reports = Vec::new();
        let mut polls = self.lock();
        let Polls { under_way, blocking, .. } = &mut *polls;
        for polled in under_way.values_mut().filter(|polled| !polled.is_reported) {
            if was_frozen {
                polled.since = Instant::now();
            } else if polled.since.elapsed() >= self.long {
                polled.is_reported = true;
                blocking.insert(base_name(&polled.step).to_owned());
                self.some_block.store(true, Ordering::Relaxed);
                reports.push(Report {
                    step: polled.step.to_string(),
                    kept: polled.since.elapsed(),
                    is_over: false,
                });
            }
        }
        drop(polls);
        for report in reports {
            (self.report)(&report);
        }
    }
}

impl Watch {
    fn new(long: Duration, report: impl Fn(&Report) + Send + Sync + 'static) -> Self {
        let inner = Arc::new(Inner::new(long, report));
        let watched = Arc::downgrade(&inner);
        let watching = std::thread::Builder::new().name("tickover-watch".to_owned());
        if let Err(error) = watching.spawn(move || watch_polls(&watched, long / 4)) {
            tracing::warn!(%error, "can't start the thread that detects blocking steps");
        }
        Self { inner }
    }

    /// Wraps a future so that its polls are watched.
    pub(crate) fn over<'a, T>(&self, step: &str, future: BoxFuture<'a, T>) -> Watched<'a, T> {
        Watched { watch: Arc::clone(&self.inner), step: Arc::from(step), future }
    }
}

/// The common name of steps such as `page[3]` and `page[4]`.
fn base_name(step: &str) -> &str {
    step.split_once('[').map_or(step, |(base, _)| base)
}

/// Checks periodically, until the watch is dropped.
fn watch_polls(watched: &Weak<Inner>, pause: Duration) {
    let mut looked = Instant::now();
    loop {
        std::thread::sleep(pause);
        let Some(inner) = watched.upgrade() else { return };
        inner.look(looked.elapsed() > 3 * pause);
        looked = Instant::now();
    }
}

/// A step's attempt whose polls are watched.
pub(crate) struct Watched<'a, T> {
    watch: Arc<Inner>,
    step: Arc<str>,
    future: BoxFuture<'a, T>,
}

/// Ends a poll, also after a panic.
struct Ending<'a>(&'a Inner, u64);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end(self.1);
    }
}

impl<T> Future for Watched<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        let future = this.future.as_mut();
        let _polled = Ending(&this.watch, this.watch.begin(&this.step));
        if this.watch.blocks(&this.step) && is_multi_threaded() {
            return tokio::task::block_in_place(|| future.poll(context));
        }
        future.poll(context)
    }
}

/// Whether the runtime has several threads, so that others can take over what this one would run next.
pub(crate) fn is_multi_threaded() -> bool {
    Handle::try_current().is_ok_and(|handle| matches!(handle.runtime_flavor(), RuntimeFlavor::MultiThread))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver};

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    fn watched() -> (Watch, Receiver<Report>) {
        let (sender, receiver) = mpsc::channel();
        let watch = Watch::new(SHORT, move |report| drop(sender.send(report.clone())));
        (watch, receiver)
    }

    #[tokio::test]
    async fn a_step_that_blocks_its_thread_is_named_while_it_does_and_when_it_no_longer_does() {
        let (watch, receiver) = watched();
        let receiver = Arc::new(Mutex::new(receiver));
        let report = Arc::clone(&receiver);
        // It waits for the report about itself, which only another thread can send.
        let blocks = Box::pin(async move { report.lock().unwrap().recv().unwrap() });
        let first = watch.over("charge", blocks).await;
        assert_eq!((first.step.as_str(), first.is_over), ("charge", false));
        assert!(first.kept >= SHORT, "{first:?}");
        let last = receiver.lock().unwrap().recv().unwrap();
        assert_eq!((last.step.as_str(), last.is_over), ("charge", true));
        assert!(last.kept >= first.kept, "{last:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_go_on_beside_a_step_that_is_known_to_block() {
        let (watch, receiver) = watched();
        let receiver = Arc::new(Mutex::new(receiver));
        let report = Arc::clone(&receiver);
        watch.over("slow[0]", Box::pin(async move { report.lock().unwrap().recv().unwrap() })).await;
        // On the only thread, this step waits for the other task.
        let (begins, begun) = tokio::sync::oneshot::channel();
        let (sender, from_other) = mpsc::channel();
        let blocks = Box::pin(async move {
            begins.send(()).unwrap();
            from_other.recv_timeout(Duration::from_secs(30)).unwrap()
        });
        let slow = tokio::spawn(watch.over("slow[1]", blocks));
        begun.await.unwrap();
        let other = tokio::spawn(async move { sender.send(7).unwrap() });
        other.await.unwrap();
        assert_eq!(slow.await.unwrap(), 7);
    }

    #[test]
    fn a_process_that_was_frozen_reports_no_step() {
        let (sender, receiver) = mpsc::channel();
        // Only this test checks the polls.
        let inner = Inner::new(Duration::ZERO, move |report: &Report| drop(sender.send(report.clone())));
        let number = inner.begin(&Arc::from("frozen"));
        inner.look(true);
        assert!(receiver.try_recv().is_err());
        inner.look(false);
        assert_eq!(receiver.try_recv().unwrap().step, "frozen");
        inner.end(number);
    }
}
