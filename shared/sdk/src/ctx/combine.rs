//! Many steps at once: all of them, the first to end, the first to succeed.

use std::fmt;
use std::fmt::Display;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use sha2::{Digest as _, Sha256};
use tickover_core::execution::Slot;
use tickover_core::execution::journal::{Happened, JOIN_MAX};
use tickover_core::execution::replay::Standing;
use tickover_core::id::{Nonce, StepName};
use tickover_core::payload::{Json, Payload};

use super::operation::Awaited;
use super::step::{StepOperation, Stored};
use crate::codec;
use crate::error::Error;
use crate::options::Place;
use crate::step::{Step, StepError};
use crate::turn::state::{ClaimProblem, Shared};

/// A step's outcome.
type Outcome<T, E> = Result<T, StepError<E>>;

/// Steps that run side by side, each named after a label and its index: `label[0]`, `label[1]`, ….
pub(super) struct Steps<T, E> {
    shared: Arc<Shared>,
    label: String,
    /// Those that still matter.
    members: Vec<Option<Awaited<StepOperation<T, E>>>>,
    outcomes: Vec<Option<Outcome<T, E>>>,
    checked: bool,
}

impl<T: Stored, E: Stored + Display> Steps<T, E> {
    pub(super) fn new(
        shared: &Arc<Shared>,
        label: String,
        steps: impl IntoIterator<Item = Step<T, E>>,
    ) -> Self {
        let members: Vec<_> = steps
            .into_iter()
            .enumerate()
            .map(|(index, step)| {
                let step = step.named(format!("{label}[{index}]"));
                Some(Awaited::new(shared, StepOperation::new(step)))
            })
            .collect();
        let outcomes = members.iter().map(|_| None).collect();
        Self { shared: Arc::clone(shared), label, members, outcomes, checked: false }
    }

    /// Remote steps that are all waited for tell of their ends together; not those whose results are kept from an
    /// earlier run, as nobody would tell of them.
    fn told_together(mut self) -> Self {
        let state = self.shared.lock();
        let tells = |index: usize, step: &Awaited<StepOperation<T, E>>| {
            let is_remote = matches!(step.operation.step.options.place, Place::Remote { .. });
            let name = StepName::parse(format!("{}[{index}]", self.label));
            is_remote && !name.is_ok_and(|name| state.replay.was_kept(&name))
        };
        let members = self.members.iter().enumerate();
        let telling: Vec<usize> = members
            .filter_map(|(index, step)| step.as_ref().is_some_and(|step| tells(index, step)).then_some(index))
            .collect();
        drop(state);
        if telling.len() < 2 {
            return self;
        }
        let label = digest(&self.label);
        let most = usize::from(JOIN_MAX);
        for (place, index) in telling.iter().enumerate() {
            let (item, of) = (place / most, (telling.len() - place / most * most).min(most));
            if let Some(Some(step)) = self.members.get_mut(*index) {
                step.operation.slot = slot(label, item, place % most, of);
            }
        }
        self
    }

    /// Polls those that haven't ended. Whether all have now.
    fn poll_all(&mut self, context: &mut Context<'_>) -> bool {
        for (step, outcome) in self.members.iter_mut().zip(&mut self.outcomes) {
            if let (None, Some(step)) = (&outcome, step)
                && let Poll::Ready(ended) = step.poll_unpin(context)
            {
                *outcome = Some(ended);
            }
        }
        self.outcomes.iter().all(Option::is_some)
    }

    /// Whether it may have so many steps. If not, the run ends.
    fn may_begin(&mut self) -> bool {
        if std::mem::replace(&mut self.checked, true) {
            return true;
        }
        let mut state = self.shared.lock();
        match state.replay.check_fan_out(self.members.len()) {
            Ok(()) => true,
            Err(reject) => {
                self.checked = false;
                state.fail(Error::new(reject.code(), format!("{}: {reject}", self.label)));
                false
            }
        }
    }

    fn take(&mut self) -> Vec<Outcome<T, E>> {
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

/// All of some steps, each with its outcome.
pub(super) struct JoinAll<T, E>(Steps<T, E>);

impl<T: Stored, E: Stored + Display> JoinAll<T, E> {
    pub(super) fn new(steps: Steps<T, E>) -> Self {
        Self(steps.told_together())
    }
}

impl<T, E> Unpin for Steps<T, E> {}

impl<T: Stored, E: Stored + Display> Future for JoinAll<T, E> {
    type Output = Vec<Outcome<T, E>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.0.may_begin() || !self.0.poll_all(context) {
            return Poll::Pending;
        }
        Poll::Ready(self.0.take())
    }
}

/// How each of some steps ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled<T, E> {
    /// By index.
    pub outcomes: Vec<Result<T, StepError<E>>>,
}

impl<T, E> Settled<T, E> {
    /// The results of those that completed, with their indexes.
    pub fn completed(&self) -> impl Iterator<Item = (usize, &T)> {
        self.by_index().filter_map(|(index, outcome)| Some((index, outcome.as_ref().ok()?)))
    }

    /// Why others failed, with their indexes; not those that were cancelled.
    pub fn failed(&self) -> impl Iterator<Item = (usize, &StepError<E>)> {
        let errors = self.by_index().filter_map(|(index, outcome)| Some((index, outcome.as_ref().err()?)));
        errors.filter(|(_, error)| !matches!(error, StepError::Cancelled { .. }))
    }

    /// The indexes of those that were cancelled.
    pub fn cancelled(&self) -> impl Iterator<Item = usize> {
        self.by_index()
            .filter(|(_, outcome)| matches!(outcome, Err(StepError::Cancelled { .. })))
            .map(|(index, _)| index)
    }

    fn by_index(&self) -> impl Iterator<Item = (usize, &Result<T, StepError<E>>)> {
        self.outcomes.iter().enumerate()
    }
}

/// No step of a race succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllTasksFailed<E> {
    /// Why, by index.
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

/// What a race is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// The first step to end, however.
    End,
    /// The first one with a result.
    Success,
}

/// A race between steps: which one decided it is remembered under its label.
struct Race<T, E> {
    steps: Steps<T, E>,
    goal: Goal,
    /// Whether the losers are ended.
    cancelling: bool,
    name: Option<StepName>,
}

/// What a race came to: its winner, or that there can be none.
enum Raced<T, E> {
    Won(usize, Outcome<T, E>),
    Nobody(Vec<StepError<E>>),
}

impl<T: Stored, E: Stored + Display> Race<T, E> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Raced<T, E>> {
        if !self.steps.may_begin() || !self.claim() {
            return Poll::Pending;
        }
        // All are polled also once it is decided: their names are in use, and who lost is told below.
        let all = self.steps.poll_all(context);
        let Some(winner) = self.decided().or_else(|| self.decide()) else {
            if !all || self.goal == Goal::End {
                return Poll::Pending;
            }
            let errors = self.steps.take().into_iter().filter_map(Result::err).collect();
            return Poll::Ready(Raced::Nobody(errors));
        };
        // At once, though the winner's result may still have to be read: losers don't begin any more.
        self.drop_losers(winner);
        match self.steps.outcomes.get_mut(winner).and_then(Option::take) {
            Some(outcome) => Poll::Ready(Raced::Won(winner, outcome)),
            None => Poll::Pending,
        }
    }

    fn claim(&mut self) -> bool {
        if self.name.is_some() {
            return true;
        }
        let mut state = self.steps.shared.lock();
        let label = self.steps.label.clone();
        if self.steps.members.is_empty() {
            state.fail(Error::new("invalid_step", format!("{label}: there is nothing to choose from")));
            return false;
        }
        match state.claim(&label) {
            Ok(name) => {
                self.name = Some(name);
                true
            }
            Err(ClaimProblem::Refused(problem)) => {
                state.fail(Error::new("invalid_step", problem));
                false
            }
            Err(ClaimProblem::Over) => false,
        }
    }

    /// Who won, as the journal has it.
    fn decided(&self) -> Option<usize> {
        let state = self.steps.shared.lock();
        let Standing::Captured(Payload::Inline(json)) = state.replay.standing(self.name.as_ref()?) else {
            return None;
        };
        codec::decode(json).ok()
    }

    /// Who wins now: the first by index of those that have ended.
    fn decide(&self) -> Option<usize> {
        let wins = |outcome: &Option<Outcome<T, E>>| match (self.goal, outcome) {
            (Goal::End, outcome) => outcome.is_some(),
            (Goal::Success, outcome) => outcome.as_ref().is_some_and(Result::is_ok),
        };
        let winner = self.steps.outcomes.iter().position(wins)?;
        let now = self.steps.shared.now();
        let value = Payload::Inline(Json::parse(winner.to_string())?);
        let name = self.name.clone()?;
        self.steps.shared.lock().replay.push(now, Happened::Captured { name, value });
        Some(winner)
    }

    fn drop_losers(&mut self, winner: usize) {
        let losers: Vec<_> = self
            .steps
            .members
            .iter_mut()
            .enumerate()
            .filter(|(index, _)| *index != winner)
            .filter_map(|(_, step)| step.take())
            .collect();
        self.steps.shared.drop_ending(self.cancelling, losers);
    }
}

/// The first of some steps to end.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Select<T, E>(Race<T, E>);

/// The first of some steps that has a result.
#[must_use = "futures do nothing unless they are awaited"]
pub struct SelectOk<T, E>(Race<T, E>);

impl<T: Stored, E: Stored + Display> Select<T, E> {
    pub(super) fn new(steps: Steps<T, E>) -> Self {
        Self(Race { steps, goal: Goal::End, cancelling: false, name: None })
    }

    /// Ends the others once one has ended. Without it, remote steps that lose go on by themselves; those that run
    /// in place end either way.
    pub fn cancelling(mut self) -> Self {
        self.0.cancelling = true;
        self
    }
}

impl<T: Stored, E: Stored + Display> SelectOk<T, E> {
    pub(super) fn new(steps: Steps<T, E>) -> Self {
        Self(Race { steps, goal: Goal::Success, cancelling: false, name: None })
    }

    /// Ends the others once one has a result. Without it, remote steps that lose go on by themselves; those that
    /// run in place end either way.
    pub fn cancelling(mut self) -> Self {
        self.0.cancelling = true;
        self
    }
}

impl<T: Stored, E: Stored + Display> Future for Select<T, E> {
    type Output = (usize, Result<T, StepError<E>>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0.poll(context) {
            Poll::Ready(Raced::Won(winner, outcome)) => Poll::Ready((winner, outcome)),
            Poll::Ready(Raced::Nobody(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl<T: Stored, E: Stored + Display> Future for SelectOk<T, E> {
    type Output = Result<(usize, T), AllTasksFailed<E>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0.poll(context) {
            Poll::Ready(Raced::Won(winner, Ok(value))) => Poll::Ready(Ok((winner, value))),
            Poll::Ready(Raced::Won(_, Err(error))) => {
                Poll::Ready(Err(AllTasksFailed { errors: vec![error] }))
            }
            Poll::Ready(Raced::Nobody(errors)) => Poll::Ready(Err(AllTasksFailed { errors })),
            Poll::Pending => Poll::Pending,
        }
    }
}
