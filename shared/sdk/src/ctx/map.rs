//! One step for each of many items, so many at once, with failures up to a bound.

use std::fmt;
use std::fmt::Display;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::combine::{Settled, Steps};
use super::step::Stored;
use crate::error::Error;
use crate::step::{Step, StepError};
use crate::turn::state::Shared;

/// How many may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tolerance {
    Count(usize),
    /// Of all of them.
    Percent(usize),
}

impl Tolerance {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => percent.trim().parse().ok().filter(|percent| *percent <= 100).map(Self::Percent),
            None => text.trim().parse().ok().map(Self::Count),
        }
    }

    const fn allows(self, failed: usize, of: usize) -> bool {
        match self {
            Self::Count(most) => failed <= most,
            Self::Percent(percent) => failed.saturating_mul(100) <= percent.saturating_mul(of),
        }
    }
}

/// A step for each of many items, see [`Ctx::map`](crate::Ctx::map). Nothing runs before it is awaited.
#[must_use = "it does nothing unless it is awaited"]
pub struct Map<T, E> {
    shared: Arc<Shared>,
    label: String,
    steps: Vec<Step<T, E>>,
    at_once: usize,
    tolerance: Result<Tolerance, String>,
}

impl<T, E> Map<T, E> {
    pub(super) fn new(shared: &Arc<Shared>, label: String, steps: Vec<Step<T, E>>) -> Self {
        let tolerance = Ok(Tolerance::Count(0));
        Self { shared: Arc::clone(shared), label, steps, at_once: usize::MAX, tolerance }
    }

    /// At most so many at once; all of them without this. Steps begin in the order of their items.
    pub fn concurrency(mut self, most: usize) -> Self {
        self.at_once = most;
        self
    }

    /// Goes on as long as no more than so many have failed: a number such as `"3"`, or a share of all such as `"10%"`.
    /// None may fail without this.
    pub fn tolerate(mut self, failures: impl Display) -> Self {
        let text = failures.to_string();
        self.tolerance = Tolerance::parse(&text).ok_or(text);
        self
    }
}

/// More of a map's steps failed than it tolerates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooManyFailed<E> {
    /// The map's label.
    pub label: String,
    /// How many items there are.
    pub of: usize,
    /// How many steps had a result by then.
    pub completed: usize,
    /// Why others failed, by index, in the order in which they did.
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
        let Self { shared, label, steps, at_once, tolerance } = self;
        let of = steps.len();
        let steps = Steps::new(&shared, label.clone(), steps);
        Mapping { shared, label, steps, at_once, tolerance, of, failed: vec![] }
    }
}

/// A [`Map`] that is awaited.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Mapping<T, E> {
    shared: Arc<Shared>,
    label: String,
    steps: Steps<T, E>,
    at_once: usize,
    tolerance: Result<Tolerance, String>,
    of: usize,
    /// Indexes of those that have failed, in the order in which they did.
    failed: Vec<usize>,
}

impl<T, E> Unpin for Mapping<T, E> {}

impl<T: Stored, E: Stored + Display> Future for Mapping<T, E> {
    type Output = Result<Settled<T, E>, TooManyFailed<E>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let problem = match &this.tolerance {
            Err(text) => {
                Some(format!("tolerate: expected a number or a share such as \"10%\", found {text:?}"))
            }
            Ok(_) if this.at_once == 0 => {
                Some("concurrency: with none at once nothing would ever run".to_owned())
            }
            Ok(_) => None,
        };
        if let Some(problem) = problem {
            let problem = format!("{}: {problem}", this.label);
            this.shared.lock().fail(Error::new("invalid_step", problem));
            return Poll::Pending;
        }
        let tolerance = this.tolerance.clone().unwrap_or(Tolerance::Count(0));
        loop {
            let Poll::Ready(ended) = this.steps.poll_next(context, this.at_once) else {
                return Poll::Pending;
            };
            let Some((index, is_failed)) = ended else {
                return Poll::Ready(Ok(Settled { outcomes: this.steps.take() }));
            };
            if !is_failed {
                continue;
            }
            this.failed.push(index);
            if !tolerance.allows(this.failed.len(), this.of) {
                let completed = this.steps.ended_count() - this.failed.len();
                this.steps.end_rest();
                let failed = std::mem::take(&mut this.failed).into_iter();
                let failed = failed.filter_map(|index| Some((index, this.steps.error_of(index)?))).collect();
                let (label, of) = (this.label.clone(), this.of);
                return Poll::Ready(Err(TooManyFailed { label, of, completed, failed }));
            }
        }
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
