//! Many steps in parallel: wait for all, for the first to end, or for the first to succeed.

use std::collections::VecDeque;
use std::fmt;
use std::fmt::Display;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use sha2::{Digest as _, Sha256};
use tickover_core::execution::Slot;
use tickover_core::execution::journal::JOIN_MAX;
use tickover_core::id::{Nonce, StepName};

use super::map::TooManyFailed;
use super::operation::Awaited;
use super::step::{StepOperation, Stored};
use crate::error::Error;
use crate::options::Place;
use crate::step::{Step, StepError};
use crate::turn::shared::Shared;

/// A step's outcome.
type Outcome<T, E> = Result<T, StepError<E>>;

/// Steps that run in parallel, each named after a label and its index: `label[0]`, `label[1]`, ….
pub(super) struct Steps<T, E> {
    shared: Arc<Shared>,
    label: String,
    /// Steps that haven't started, with their indexes.
    members: VecDeque<(usize, StepOperation<T, E>)>,
    /// Steps that have started and haven't ended. A step is polled only when its waker was called, however many there
    /// are.
    running: FuturesUnordered<Member<T, E>>,
    outcomes: Vec<Option<Outcome<T, E>>>,
    /// The indexes of the steps that have ended, in the order of their ends.
    ended: Vec<usize>,
    is_checked: bool,
}

/// A step with its index.
struct Member<T, E> {
    index: usize,
    step: Awaited<StepOperation<T, E>>,
}

impl<T: Stored, E: Stored + Display> Future for Member<T, E> {
    type Output = (usize, Outcome<T, E>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let index = self.index;
        self.step.poll_unpin(context).map(|outcome| (index, outcome))
    }
}

impl<T: Stored, E: Stored + Display> Steps<T, E> {
    pub(super) fn new(
        shared: &Arc<Shared>,
        label: String,
        steps: impl IntoIterator<Item = Step<T, E>>,
    ) -> Self {
        Self::starting_at(0, shared, label, steps)
    }

    /// The same, with the names `label[first]`, ….
    pub(super) fn starting_at(
        first: usize,
        shared: &Arc<Shared>,
        label: String,
        steps: impl IntoIterator<Item = Step<T, E>>,
    ) -> Self {
        let named = |(index, step): (usize, Step<T, E>)| step.named(format!("{label}[{}]", first + index));
        let steps = steps.into_iter().enumerate();
        let members: VecDeque<_> =
            steps.map(|(index, step)| (index, StepOperation::new(named((index, step))))).collect();
        let outcomes = members.iter().map(|_| None).collect();
        let (shared, running) = (Arc::clone(shared), FuturesUnordered::new());
        Self { shared, label, members, running, outcomes, ended: vec![], is_checked: false }
    }

    /// Puts the remote steps into joins, so that the execution is woken only after all of them have ended. A step whose
    /// result was kept from an earlier run is left out: it has no task that would mark its slot.
    fn with_joins(mut self) -> Self {
        let state = self.shared.lock();
        let tells = |index: usize, member: &StepOperation<T, E>| {
            let is_remote = matches!(member.step.options.place, Place::Remote { .. });
            let name = StepName::parse(format!("{}[{index}]", self.label));
            is_remote && !name.is_ok_and(|name| state.replay.is_from_earlier_run(&name))
        };
        let members = self.members.iter();
        let telling: Vec<usize> =
            members.filter_map(|(index, member)| tells(*index, member).then_some(*index)).collect();
        drop(state);
        if telling.len() < 2 {
            return self;
        }
        let label = digest(&self.label);
        let most = usize::from(JOIN_MAX);
        for (place, index) in telling.iter().enumerate() {
            let (item, of) = (place / most, (telling.len() - place / most * most).min(most));
            if let Some((_, member)) = self.members.get_mut(*index) {
                member.slot = slot(label, item, place % most, of);
            }
        }
        self
    }

    /// Polls the steps that haven't ended. Returns whether all have ended, or `None` if there are more steps than the
    /// limit allows: then the run fails.
    fn poll_all(&mut self, context: &mut Context<'_>) -> Option<bool> {
        if !self.check_limit() {
            return None;
        }
        self.begin(usize::MAX);
        while let Poll::Ready(Some(ended)) = self.running.poll_next_unpin(context) {
            self.note(ended);
        }
        Some(self.ended.len() == self.outcomes.len())
    }

    /// Starts the next steps, as long as fewer than `at_once` are running.
    fn begin(&mut self, at_once: usize) {
        while self.running.len() < at_once
            && let Some((index, member)) = self.members.pop_front()
        {
            self.running.push(Member { index, step: Awaited::new(&self.shared, member) });
        }
    }

    fn note(&mut self, (index, outcome): (usize, Outcome<T, E>)) {
        if let Some(place) = self.outcomes.get_mut(index) {
            *place = Some(outcome);
            self.ended.push(index);
        }
    }

    /// Runs at most `at_once` steps and waits for the next one to end. Returns whether it failed, or `None` if all have
    /// ended.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>, at_once: usize) -> Poll<Option<bool>> {
        if !self.check_limit() {
            return Poll::Pending;
        }
        self.begin(at_once);
        self.running.poll_next_unpin(context).map(|ended| {
            let ended = ended?;
            let is_failed = ended.1.is_err();
            self.note(ended);
            Some(is_failed)
        })
    }

    pub(super) const fn count(&self) -> usize {
        self.outcomes.len()
    }

    /// Fails the run because the options of these steps can't be used.
    pub(super) fn refuse(&self, problem: &str) {
        self.shared.lock().fail(Error::new("invalid_step", format!("{}: {problem}", self.label)));
    }

    /// Ends the running steps and starts no more: too many have failed.
    pub(super) fn fail_too_many(&mut self) -> TooManyFailed<E> {
        self.end_all();
        let (label, of, ended) = (self.label.clone(), self.count(), std::mem::take(&mut self.ended));
        let error_of = |index: &usize| Some((*index, self.outcomes.get_mut(*index)?.take()?.err()?));
        let failed: Vec<_> = ended.iter().filter_map(error_of).collect();
        TooManyFailed { label, of, completed: ended.len() - failed.len(), failed }
    }

    /// Ends the running steps and starts no more.
    pub(super) fn end_all(&mut self) {
        self.members.clear();
        let running = std::mem::take(&mut self.running);
        self.shared.drop_ending(true, running);
    }

    /// The outcomes so far, by index.
    pub(super) fn take_all(&mut self) -> Vec<Option<Outcome<T, E>>> {
        std::mem::take(&mut self.outcomes)
    }

    /// Checks the limit of the number of steps. If there are too many, the run fails.
    fn check_limit(&mut self) -> bool {
        if self.is_checked {
            return true;
        }
        let mut state = self.shared.lock();
        match state.replay.check_fan_out(self.members.len()) {
            Ok(()) => self.is_checked = true,
            Err(reject) => state.fail(Error::new(reject.code(), format!("{}: {reject}", self.label))),
        }
        self.is_checked
    }

    pub(super) fn take(&mut self) -> Vec<Outcome<T, E>> {
        self.outcomes.iter_mut().filter_map(Option::take).collect()
    }
}

fn digest(label: &str) -> Nonce {
    let hash = Sha256::digest(label.as_bytes());
    let mut bytes = [0; Nonce::LEN];
    for (byte, from) in bytes.iter_mut().zip(hash.iter()) {
        *byte = *from;
    }
    Nonce::from_bytes(bytes)
}

fn slot(label: Nonce, item: usize, place: usize, of: usize) -> Option<Slot> {
    let number = |number: usize| u16::try_from(number).ok();
    Some(Slot { label, item: number(item)?, place: number(place)?, of: number(of)? })
}

/// Waits for all steps and returns the outcome of each.
pub(super) struct JoinAll<T, E>(Steps<T, E>);

impl<T: Stored, E: Stored + Display> JoinAll<T, E> {
    pub(super) fn new(steps: Steps<T, E>) -> Self {
        Self(steps.with_joins())
    }
}

impl<T, E> Unpin for Steps<T, E> {}

impl<T: Stored, E: Stored + Display> Future for JoinAll<T, E> {
    type Output = Vec<Outcome<T, E>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0.poll_all(context) {
            Some(true) => Poll::Ready(self.0.take()),
            Some(false) | None => Poll::Pending,
        }
    }
}

/// The outcomes of several steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled<T, E> {
    /// The outcomes, by index.
    pub outcomes: Vec<Result<T, StepError<E>>>,
}

impl<T, E> Settled<T, E> {
    /// The results of the steps that completed, with their indexes.
    pub fn completed(&self) -> impl Iterator<Item = (usize, &T)> {
        self.by_index().filter_map(|(index, outcome)| Some((index, outcome.as_ref().ok()?)))
    }

    /// The errors of the steps that failed, with their indexes. Cancelled steps aren't included.
    pub fn failed(&self) -> impl Iterator<Item = (usize, &StepError<E>)> {
        let errors = self.by_index().filter_map(|(index, outcome)| Some((index, outcome.as_ref().err()?)));
        errors.filter(|(_, error)| !matches!(error, StepError::Cancelled { .. }))
    }

    /// The indexes of the steps that were cancelled.
    pub fn cancelled(&self) -> impl Iterator<Item = usize> {
        self.by_index()
            .filter(|(_, outcome)| matches!(outcome, Err(StepError::Cancelled { .. })))
            .map(|(index, _)| index)
    }

    fn by_index(&self) -> impl Iterator<Item = (usize, &Result<T, StepError<E>>)> {
        self.outcomes.iter().enumerate()
    }
}

/// No step succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllTasksFailed<E> {
    /// The errors, by index.
    pub errors: Vec<StepError<E>>,
}

impl<E: Display> fmt::Display for AllTasksFailed<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "none of {} steps succeeded", self.errors.len())?;
        match self.errors.last() {
            Some(error) => write!(formatter, "; the last one: {error}"),
            None => Ok(()),
        }
    }
}

impl<E: Display + fmt::Debug> std::error::Error for AllTasksFailed<E> {}

/// Which step wins a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// The first step that ends, with a result or an error.
    End,
    /// The first step that succeeds.
    Success,
}

/// A race between steps.
struct Race<T, E> {
    steps: Steps<T, E>,
    goal: Goal,
    /// Whether the other steps are ended when one has won.
    cancelling: bool,
}

/// The result of a race: its winner, or the errors if no step succeeded.
enum RaceEnd<T, E> {
    Won(usize, Outcome<T, E>),
    NoWinner(Vec<StepError<E>>),
}

impl<T: Stored, E: Stored + Display> Race<T, E> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<RaceEnd<T, E>> {
        if self.steps.outcomes.is_empty() {
            self.steps.refuse("there is nothing to choose from");
            return Poll::Pending;
        }
        let Some(all) = self.steps.poll_all(context) else { return Poll::Pending };
        if let Some((index, outcome)) = self.winner() {
            let losers = std::mem::take(&mut self.steps.running);
            self.steps.shared.drop_ending(self.cancelling, losers);
            return Poll::Ready(RaceEnd::Won(index, outcome));
        }
        if !all {
            return Poll::Pending;
        }
        Poll::Ready(RaceEnd::NoWinner(self.steps.take().into_iter().filter_map(Result::err).collect()))
    }

    /// The first step that meets the goal.
    fn winner(&mut self) -> Option<(usize, Outcome<T, E>)> {
        let wins = |index: &usize| match (self.goal, self.steps.outcomes.get(*index)) {
            (Goal::End, _) => true,
            (Goal::Success, outcome) => matches!(outcome, Some(Some(Ok(_)))),
        };
        let index = self.steps.ended.iter().copied().find(wins)?;
        Some((index, self.steps.outcomes.get_mut(index)?.take()?))
    }
}

/// Waits for the first of several steps to end; see [`Ctx::select`](crate::Ctx::select).
#[must_use = "futures do nothing unless they are awaited"]
pub struct Select<T, E>(Race<T, E>);

/// Waits for the first of several steps to succeed; see [`Ctx::select_ok`](crate::Ctx::select_ok).
#[must_use = "futures do nothing unless they are awaited"]
pub struct SelectOk<T, E>(Race<T, E>);

impl<T: Stored, E: Stored + Display> Select<T, E> {
    pub(super) fn new(steps: Steps<T, E>) -> Self {
        Self(Race { steps, goal: Goal::End, cancelling: false })
    }

    /// Ends the other steps when one has ended. Without this call, the other remote steps continue. The other inline
    /// steps are ended in either case.
    pub fn cancelling(mut self) -> Self {
        self.0.cancelling = true;
        self
    }
}

impl<T: Stored, E: Stored + Display> SelectOk<T, E> {
    pub(super) fn new(steps: Steps<T, E>) -> Self {
        Self(Race { steps, goal: Goal::Success, cancelling: false })
    }

    /// Ends the other steps when one has succeeded. Without this call, the other remote steps continue. The other
    /// inline steps are ended in either case.
    pub fn cancelling(mut self) -> Self {
        self.0.cancelling = true;
        self
    }
}

impl<T: Stored, E: Stored + Display> Future for Select<T, E> {
    type Output = (usize, Result<T, StepError<E>>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0.poll(context) {
            Poll::Ready(RaceEnd::Won(winner, outcome)) => Poll::Ready((winner, outcome)),
            Poll::Ready(RaceEnd::NoWinner(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl<T: Stored, E: Stored + Display> Future for SelectOk<T, E> {
    type Output = Result<(usize, T), AllTasksFailed<E>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0.poll(context) {
            Poll::Ready(RaceEnd::Won(winner, Ok(value))) => Poll::Ready(Ok((winner, value))),
            Poll::Ready(RaceEnd::Won(_, Err(error))) => {
                Poll::Ready(Err(AllTasksFailed { errors: vec![error] }))
            }
            Poll::Ready(RaceEnd::NoWinner(errors)) => Poll::Ready(Err(AllTasksFailed { errors })),
            Poll::Pending => Poll::Pending,
        }
    }
}
