//! A queue of requests for an engine that runs one request at a time. No thread blocks on a lock: a caller that finds
//! the engine free also runs the requests of waiting callers. Waking a thread would take longer than many requests.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

/// Most requests that one caller runs in a row, including its own.
const SERVED_AT_ONCE: usize = 32;

type Job<A> = Box<dyn FnOnce() -> A + Send>;

/// Cheap to clone. All clones share the same queue.
pub(super) struct RequestQueue<A>(Arc<Mutex<Waiting<A>>>);

struct Waiting<A> {
    places: VecDeque<Arc<Place<A>>>,
    is_served: bool,
}

struct Place<A>(Mutex<Standing<A>>);

enum Standing<A> {
    Waits(Job<A>, Option<Waker>),
    /// The engine is running it.
    Served(Option<Waker>),
    /// The answer, or the panic of the job.
    Done(thread::Result<A>),
    /// The caller has taken the answer or has dropped its request.
    Left,
}

/// A future that is in the queue from its first poll on. If it is dropped while it waits, its job never runs.
pub(super) struct Request<A> {
    line: RequestQueue<A>,
    place: Arc<Place<A>>,
    is_in_line: bool,
}

impl<A> Clone for RequestQueue<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A> RequestQueue<A> {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Waiting { places: VecDeque::new(), is_served: false })))
    }

    /// A request that isn't in the queue yet.
    pub(super) fn request(&self, job: impl FnOnce() -> A + Send + 'static) -> Request<A> {
        let place = Place(Mutex::new(Standing::Waits(Box::new(job), None)));
        Request { line: self.clone(), place: Arc::new(place), is_in_line: false }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<A>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs requests from the front of the queue, unless another caller is doing so.
    fn serve(&self) {
        if std::mem::replace(&mut self.lock().is_served, true) {
            return;
        }
        for _ in 0..SERVED_AT_ONCE {
            let Some(place) = self.lock().places.pop_front() else { break };
            place.serve();
        }
        self.lock().is_served = false;
        self.call_first();
    }

    /// Wakes the first request in the queue, unless a caller is serving. The next poll of that request serves.
    fn call_first(&self) {
        let first = {
            let waiting = self.lock();
            if waiting.is_served { None } else { waiting.places.front().map(Arc::clone) }
        };
        if let Some(waker) = first.and_then(|first| first.waker()) {
            waker.wake();
        }
    }
}

impl<A> Place<A> {
    fn lock(&self) -> MutexGuard<'_, Standing<A>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        let job = {
            let mut standing = self.lock();
            match std::mem::replace(&mut *standing, Standing::Left) {
                Standing::Waits(job, waker) => {
                    *standing = Standing::Served(waker);
                    job
                }
                other @ (Standing::Served(_) | Standing::Done(_) | Standing::Left) => {
                    *standing = other;
                    return;
                }
            }
        };
        // A panic is passed to the caller that made the request, not to the caller that ran it.
        let answer = catch_unwind(AssertUnwindSafe(job));
        let waker = match &mut *self.lock() {
            standing @ Standing::Served(_) => match std::mem::replace(standing, Standing::Done(answer)) {
                Standing::Served(waker) => waker,
                Standing::Waits(..) | Standing::Done(_) | Standing::Left => None,
            },
            Standing::Waits(..) | Standing::Done(_) | Standing::Left => None,
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn waker(&self) -> Option<Waker> {
        match &*self.lock() {
            Standing::Waits(_, waker) | Standing::Served(waker) => waker.clone(),
            Standing::Done(_) | Standing::Left => None,
        }
    }

    /// Returns the answer if there is one, otherwise stores the waker.
    fn look(&self, context: &Context<'_>) -> Option<A> {
        let mut standing = self.lock();
        match &mut *standing {
            Standing::Waits(_, waker) | Standing::Served(waker) => {
                *waker = Some(context.waker().clone());
                None
            }
            Standing::Done(_) | Standing::Left => match std::mem::replace(&mut *standing, Standing::Left) {
                Standing::Done(Ok(answer)) => Some(answer),
                Standing::Done(Err(panic)) => {
                    drop(standing);
                    resume_unwind(panic)
                }
                Standing::Waits(..) | Standing::Served(_) | Standing::Left => None,
            },
        }
    }
}

impl<A> Future for Request<A> {
    type Output = A;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<A> {
        if let Some(answer) = self.place.look(context) {
            return Poll::Ready(answer);
        }
        if !std::mem::replace(&mut self.is_in_line, true) {
            let place = Arc::clone(&self.place);
            self.line.lock().places.push_back(place);
        }
        self.line.serve();
        match self.place.look(context) {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        }
    }
}

impl<A> Drop for Request<A> {
    fn drop(&mut self) {
        let was_waiting = {
            let mut standing = self.place.lock();
            matches!(std::mem::replace(&mut *standing, Standing::Left), Standing::Waits(..))
        };
        if was_waiting && self.is_in_line {
            self.line.lock().places.retain(|place| !Arc::ptr_eq(place, &self.place));
            // This request may be the one that was woken to serve.
            self.line.call_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Bell(AtomicUsize);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Bell {
        fn rung(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    /// Requests that were polled and are waiting.
    type InLine = Arc<Mutex<Vec<Request<usize>>>>;

    fn poll<A>(request: &mut Request<A>, bell: &Arc<Bell>) -> Poll<A> {
        Pin::new(request).poll(&mut Context::from_waker(&Waker::from(Arc::clone(bell))))
    }

    /// A request whose job polls other requests: they find the engine busy and stay in the queue.
    fn busy_with(
        line: &RequestQueue<usize>,
        others: Vec<(Request<usize>, Arc<Bell>)>,
    ) -> (Request<usize>, InLine) {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&kept);
        let request = line.request(move || {
            for (mut other, bell) in others {
                assert!(poll(&mut other, &bell).is_pending(), "the engine serves one at a time");
                keep.lock().unwrap().push(other);
            }
            0
        });
        (request, kept)
    }

    #[test]
    fn who_finds_the_engine_free_serves_all_in_line_and_wakes_them() {
        let line = RequestQueue::new();
        let bells: Vec<_> = (1..=3).map(|_| Arc::new(Bell::default())).collect();
        let others = bells.iter().zip(1..).map(|(bell, n)| (line.request(move || n), Arc::clone(bell)));
        let (mut first, kept) = busy_with(&line, others.collect());
        assert_eq!(poll(&mut first, &Arc::default()), Poll::Ready(0));
        for ((request, bell), n) in kept.lock().unwrap().iter_mut().zip(&bells).zip(1..) {
            assert_eq!(bell.rung(), 1);
            assert_eq!(poll(request, bell), Poll::Ready(n), "in the order of their coming");
        }
    }

    #[test]
    fn a_long_line_is_left_to_the_first_who_waits() {
        let line = RequestQueue::new();
        let bells: Vec<_> = (0..=SERVED_AT_ONCE).map(|_| Arc::new(Bell::default())).collect();
        let others = bells.iter().zip(1..).map(|(bell, n)| (line.request(move || n), Arc::clone(bell)));
        let (mut first, kept) = busy_with(&line, others.collect());
        assert_eq!(poll(&mut first, &Arc::default()), Poll::Ready(0));
        let mut kept = kept.lock().unwrap();
        let unserved = kept.split_off(SERVED_AT_ONCE - 1);
        assert_eq!(unserved.len(), 2);
        assert_eq!((bells[SERVED_AT_ONCE - 1].rung(), bells[SERVED_AT_ONCE].rung()), (1, 0));

        // The request that was woken is dropped. The next one is woken instead, and serves itself.
        let mut unserved = unserved.into_iter();
        drop(unserved.next());
        assert_eq!(bells[SERVED_AT_ONCE].rung(), 1);
        let mut last = unserved.next().unwrap();
        assert_eq!(poll(&mut last, &bells[SERVED_AT_ONCE]), Poll::Ready(SERVED_AT_ONCE + 1));
    }

    #[test]
    fn a_request_dropped_before_its_turn_is_not_served() {
        let line = RequestQueue::new();
        let served = Arc::new(AtomicBool::new(false));
        let mark = Arc::clone(&served);
        let mut waiting = line.request(move || mark.fetch_or(true, Ordering::SeqCst));
        let mut busy = line.request(move || {
            assert!(poll(&mut waiting, &Arc::default()).is_pending());
            drop(waiting);
            true
        });
        assert_eq!(poll(&mut busy, &Arc::default()), Poll::Ready(true));
        assert!(!served.load(Ordering::SeqCst));
    }

    #[test]
    fn a_panic_is_for_whoever_asked_and_does_not_close_the_line() {
        let line = RequestQueue::new();
        let (mut first, kept) =
            busy_with(&line, vec![(line.request(|| panic!("on purpose")), Arc::default())]);
        assert_eq!(poll(&mut first, &Arc::default()), Poll::Ready(0));
        let mut bad = kept.lock().unwrap().remove(0);
        assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut bad, &Arc::default()))).is_err());
        assert_eq!(poll(&mut line.request(|| 7), &Arc::default()), Poll::Ready(7));
    }
}
