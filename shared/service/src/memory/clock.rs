//! A clock that moves only when its owner moves it.
//!
//! It has its own time, and the sleepers that wait for an instant. It never reads the machine's clock, so a test with
//! it takes no time and gives the same result each time.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use async_trait::async_trait;
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tokio::sync::Notify;

use crate::ports::Clock;

/// A clock that its owner moves.
#[derive(Debug)]
pub struct ManualClock {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    now: Timestamp,
    /// Sorted by instant; the number distinguishes sleepers until the same instant.
    sleepers: BTreeMap<(Timestamp, u64), Waker>,
    next_ticket: u64,
}

impl ManualClock {
    /// A clock that starts at an instant and doesn't move.
    pub fn new(start: Timestamp) -> Self {
        Self { state: Mutex::new(State { now: start, sleepers: BTreeMap::new(), next_ticket: 0 }) }
    }

    /// Moves the clock forward and wakes the sleepers whose instant has come.
    pub fn advance(&self, by: Millis) {
        self.change(|now| now.plus(by));
    }

    /// Moves the clock to an instant, which may be earlier than now: real clocks jump as well.
    pub fn set(&self, instant: Timestamp) {
        self.change(|_| instant);
    }

    pub fn next_wake(&self) -> Option<Timestamp> {
        self.lock().sleepers.keys().next().map(|(instant, _)| *instant)
    }

    /// Runs a future, and whenever the future can't proceed, jumps to the earliest instant that it sleeps until.
    ///
    /// Everything that sleeps by this clock must be inside the future, and nothing in it may wait for anything else,
    /// such as a thread or the network: the clock would run away meanwhile.
    pub async fn drive<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            let progress = Arc::new(Progress::default());
            let waker = Waker::from(Arc::clone(&progress));
            if let Poll::Ready(output) = poll_once(future.as_mut(), &waker).await {
                return output;
            }
            // Lets the runtime run other tasks once: a future that only yielded is woken now, and only now.
            tokio::task::yield_now().await;
            if progress.made.load(Ordering::Acquire) {
                continue;
            }
            match self.next_wake() {
                Some(instant) => self.set(instant),
                None => progress.woken.notified().await,
            }
        }
    }

    fn change(&self, to: impl FnOnce(Timestamp) -> Timestamp) {
        let mut awake = Vec::new();
        {
            let mut state = self.lock();
            let now = to(state.now);
            state.now = now;
            while let Some(first) = state.sleepers.first_entry() {
                if first.key().0 > now {
                    break;
                }
                awake.push(first.remove());
            }
        }
        // Not under the lock: a waker may run code that reads the clock.
        awake.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is complete before anything can panic, so a poisoned state is still valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.lock().now
    }

    async fn sleep_until(&self, instant: Timestamp) {
        Sleep { clock: self, instant, ticket: None }.await;
    }
}

/// A sleeper. Dropping it removes it from the list, so that [`ManualClock::drive`] never jumps to an instant without a
/// sleeper.
struct Sleep<'a> {
    clock: &'a ManualClock,
    instant: Timestamp,
    ticket: Option<u64>,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.lock();
        if state.now >= self.instant {
            return Poll::Ready(());
        }
        let ticket = self.ticket.unwrap_or(state.next_ticket);
        if self.ticket.is_none() {
            state.next_ticket += 1;
        }
        state.sleepers.insert((self.instant, ticket), context.waker().clone());
        drop(state);
        self.ticket = Some(ticket);
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.clock.lock().sleepers.remove(&(self.instant, ticket));
        }
    }
}

/// Records whether a driven future was woken, that is, whether it can proceed.
#[derive(Default)]
struct Progress {
    made: AtomicBool,
    woken: Notify,
}

impl Wake for Progress {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.made.store(true, Ordering::Release);
        self.woken.notify_one();
    }
}

async fn poll_once<F: Future>(mut future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    poll_fn(|_| Poll::Ready(future.as_mut().poll(&mut Context::from_waker(waker)))).await
}

#[cfg(test)]
mod tests {
    use futures::future::{join, join3};

    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_000);

    fn after(ms: u64) -> Timestamp {
        START.plus(Millis::new(ms))
    }

    #[tokio::test]
    async fn sleepers_wake_when_their_instant_comes_and_not_before() {
        let clock = ManualClock::new(START);
        let mut sleep = pin!(clock.sleep_until(after(100)));
        assert!(futures::poll!(sleep.as_mut()).is_pending());
        clock.advance(Millis::new(99));
        assert!(futures::poll!(sleep.as_mut()).is_pending());
        assert_eq!(clock.next_wake(), Some(after(100)));
        clock.advance(Millis::new(1));
        assert!(futures::poll!(sleep.as_mut()).is_ready());
        assert_eq!(clock.next_wake(), None);
    }

    #[tokio::test]
    async fn an_instant_that_has_passed_is_not_waited_for() {
        let clock = ManualClock::new(START);
        clock.sleep_until(START).await;
        clock.set(after(50));
        clock.sleep_until(after(10)).await;
        clock.set(START);
        assert_eq!(clock.now(), START);
    }

    #[tokio::test]
    async fn a_dropped_sleeper_is_removed() {
        let clock = ManualClock::new(START);
        {
            let mut sleep = pin!(clock.sleep_until(after(100)));
            assert!(futures::poll!(sleep.as_mut()).is_pending());
        }
        assert_eq!(clock.next_wake(), None);
    }

    #[tokio::test]
    async fn driving_jumps_from_instant_to_instant_in_order() {
        let clock = ManualClock::new(START);
        let seen = Mutex::new(Vec::new());
        let sleeper = async |ms: u64| {
            for round in 1..=2 {
                clock.sleep_until(after(ms * round)).await;
                seen.lock().unwrap().push(clock.now().since(START).as_u64());
            }
        };
        clock.drive(join3(sleeper(70), sleeper(50), sleeper(3_600_000))).await;
        assert_eq!(*seen.lock().unwrap(), [50, 70, 100, 140, 3_600_000, 7_200_000]);
    }

    #[tokio::test]
    async fn driving_lets_everything_finish_before_it_jumps() {
        let clock = ManualClock::new(START);
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let busy = async {
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
                sender.send(clock.now()).unwrap();
            }
        };
        clock.drive(join(busy, clock.sleep_until(after(1)))).await;
        while let Ok(instant) = receiver.try_recv() {
            assert_eq!(instant, START);
        }
        assert_eq!(clock.now(), after(1));
    }
}
