//! One step for each of many items, with a limit on how many run at once and how many may fail.

use std::fmt;
use std::fmt::Display;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::combine::{Settled, Steps};
use super::paged::Paged;
use super::step::Stored;
use crate::step::{Step, StepError};
use crate::turn::shared::Shared;

/// How many steps may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tolerance {
    Count(usize),
    /// A percentage of all steps.
    Percent(usize),
}

impl Tolerance {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => percent.trim().parse().ok().filter(|percent| *percent <= 100).map(Self::Percent),
            None => text.trim().parse().ok().map(Self::Count),
        }
    }

    /// The most steps that may fail.
    pub(super) const fn most(self, of: usize) -> usize {
        match self {
            Self::Count(most) => most,
            Self::Percent(percent) => percent.saturating_mul(of) / 100,
        }
    }

    const fn allows(self, failed: usize, of: usize) -> bool {
        match self {
            Self::Count(most) => failed <= most,
            Self::Percent(percent) => failed.saturating_mul(100) <= percent.saturating_mul(of),
        }
    }
}

/// A step for each of many items; see [`Ctx::map`](crate::Ctx::map). Nothing runs before it is awaited.
#[must_use = "it does nothing unless it is awaited"]
pub struct Map<T, E> {
    pub(super) shared: Arc<Shared>,
    pub(super) label: String,
    pub(super) steps: Vec<Step<T, E>>,
    pub(super) at_once: usize,
    tolerance: Result<Tolerance, String>,
}

impl<T, E> Map<T, E> {
    pub(super) fn new(shared: &Arc<Shared>, label: String, steps: Vec<Step<T, E>>) -> Self {
        let tolerance = Ok(Tolerance::Count(0));
        Self { shared: Arc::clone(shared), label, steps, at_once: usize::MAX, tolerance }
    }

    /// Runs at most this many steps at once. Without this call, all run at once. Steps start in the order of their
    /// items.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn pages(ctx: Ctx, (): ()) -> Result<usize> {
    ///     let fetch = |page: u32| step("page", move || async move { Ok::<_, Failure>(page) });
    ///     let fetched = ctx.map("page", 0..20, fetch).concurrency(4).await?;
    ///     Ok(fetched.completed().count())
    /// }
    /// # assert_eq!(tickover::test::outcome(pages, &pages, ()), 20);
    /// ```
    pub fn concurrency(mut self, most: usize) -> Self {
        self.at_once = most;
        self
    }

    /// The same as [`Map::concurrency`].
    pub fn at_once(self, most: usize) -> Self {
        self.concurrency(most)
    }

    /// Runs the items in child executions of at most `size` items each, so that this execution's journal gets two
    /// entries for `size` items: for thousands of items, with a size of 1 to 1,000. See [`Paged`](super::Paged).
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # #[tickover::step]
    /// # async fn double(number: u32) -> Result<u32> { Ok(number * 2) }
    /// #[tickover::workflow]
    /// async fn doubled(ctx: Ctx, (): ()) -> Result<u32> {
    ///     let mut results = ctx.map("double", 0..2_500, double).at_once(20).tolerate("10%").paged(100).await?;
    ///     let mut sum = 0;
    ///     for number in 0..results.pages() {
    ///         sum += results.page(number).await?.completed().map(|(_, result)| result).sum::<u32>();
    ///     }
    ///     Ok(sum)
    /// }
    /// # assert_eq!(tickover::test::outcome(doubled, &doubled, ()), 2_499 * 2_500);
    /// ```
    pub fn paged(self, size: usize) -> Paged<T, E> {
        Paged::new(self, size)
    }

    /// Continues as long as no more than this many steps have failed: a number such as `"3"`, or a share of all steps
    /// such as `"10%"`. Without this call, none may fail.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn most(ctx: Ctx, (): ()) -> Result<usize> {
    ///     let odd = |n: u32| step("odd", move || async move { if n == 3 { Err(Failure::new("odd", "three")) } else { Ok(n) } });
    ///     let settled = ctx.map("number", 0..10, odd).tolerate("10%").await?;
    ///     Ok(settled.completed().count())
    /// }
    /// # assert_eq!(tickover::test::outcome(most, &most, ()), 9);
    /// ```
    pub fn tolerate(mut self, failures: impl Display) -> Self {
        let text = failures.to_string();
        self.tolerance = Tolerance::parse(&text).ok_or(text);
        self
    }
}

impl<T, E> Map<T, E> {
    /// The tolerance, or what is wrong with the options.
    pub(super) fn checked_tolerance(&self) -> Result<Tolerance, String> {
        match &self.tolerance {
            Err(text) => {
                Err(format!("tolerate: expected a number or a share such as \"10%\", found {text:?}"))
            }
            Ok(_) if self.at_once == 0 => Err("concurrency: it must be at least 1".to_owned()),
            Ok(tolerance) => Ok(*tolerance),
        }
    }
}

/// More steps of a map failed than it tolerates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooManyFailed<E> {
    /// The map's label.
    pub label: String,
    /// The number of items.
    pub of: usize,
    /// The number of steps that had succeeded by then.
    pub completed: usize,
    /// The errors of the failed steps with their indexes, in the order of their ends.
    pub failed: Vec<(usize, StepError<E>)>,
}

impl<E: Display> Display for TooManyFailed<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (label, of) = (&self.label, self.of);
        write!(formatter, "{} of {of} steps of `{label}` failed", self.failed.len())?;
        match self.failed.last() {
            Some((_, error)) => write!(formatter, "; the last one: {error}"),
            None => Ok(()),
        }
    }
}

impl<E: Display + fmt::Debug> std::error::Error for TooManyFailed<E> {}

impl<T: Stored, E: Stored + Display> IntoFuture for Map<T, E> {
    type Output = Result<Settled<T, E>, TooManyFailed<E>>;
    type IntoFuture = Mapping<T, E>;

    fn into_future(self) -> Mapping<T, E> {
        let tolerance = self.checked_tolerance();
        let Self { shared, label, steps, at_once, .. } = self;
        Mapping { steps: Steps::new(&shared, label, steps), at_once, tolerance, failed: 0 }
    }
}

/// A [`Map`] that is being awaited.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Mapping<T, E> {
    steps: Steps<T, E>,
    at_once: usize,
    /// An error here fails the run when the future is polled.
    tolerance: Result<Tolerance, String>,
    /// How many steps have failed.
    failed: usize,
}

impl<T, E> Unpin for Mapping<T, E> {}

impl<T: Stored, E: Stored + Display> Future for Mapping<T, E> {
    type Output = Result<Settled<T, E>, TooManyFailed<E>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let tolerance = match &this.tolerance {
            Ok(tolerance) => *tolerance,
            Err(problem) => {
                this.steps.refuse(problem);
                return Poll::Pending;
            }
        };
        while let Some(is_failed) = ready!(this.steps.poll_next(context, this.at_once)) {
            this.failed += usize::from(is_failed);
            if !tolerance.allows(this.failed, this.steps.count()) {
                return Poll::Ready(Err(this.steps.fail_too_many()));
            }
        }
        Poll::Ready(Ok(Settled { outcomes: this.steps.take() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerance_is_a_number_or_a_share_of_all() {
        let allows = |text: &str, failed, of| Tolerance::parse(text).unwrap().allows(failed, of);
        assert!(allows("0", 0, 9) && !allows("0", 1, 9));
        assert!(allows("3", 3, 4) && !allows("3", 4, 4));
        assert!(allows("10%", 1, 10) && !allows("10%", 2, 10) && !allows("10%", 1, 9));
        assert!(allows("100 %", 7, 7) && allows("0%", 0, 0));
        for wrong in ["", "ten", "-1", "101%", "1.5", "%"] {
            assert_eq!(Tolerance::parse(wrong), None, "{wrong}");
        }
    }
}
