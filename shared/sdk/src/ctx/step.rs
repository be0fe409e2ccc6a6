//! Steps as futures of a workflow's code, and the conversion of their stored outcomes.

use std::any::type_name;
use std::fmt::Display;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tickover_core::duration::Millis;
use tickover_core::execution::journal::StepOutcome;
use tickover_core::execution::replay::{NameState, StepPolicy};
use tickover_core::flow::FlowRequest;
use tickover_core::id::{QueueName, StepName, TaskKind};
use tickover_core::payload::{Json, Payload};
use tickover_core::reported::Reported;
use tickover_core::retry::MaxAttempts;
use tickover_core::task;
use tickover_core::time::Timestamp;
use tickover_core::timeout::{Expired, LifeTimeout, Timeouts};
use tickover_service::executions::RemoteStep;

use super::operation::{Awaited, FirstPoll, Operation};
use super::time::other_kind;
use crate::codec;
use crate::error::{Failure, failure_of};
use crate::options::{Place, StepOptions};
use crate::registry::{ErasedStep, StepFailed};
use crate::step::{MISSING_STATE, Run, States, Step, StepError};
use crate::turn::facts::Facts;
use crate::turn::need::{Attempted, Inline, Need, Runner, Stage};
use crate::turn::shared::Shared;
use crate::turn::state::{ClaimProblem, State, Verdict};

/// The bounds on a step's result and error type.
pub trait Stored: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Stored for T {}

/// A step that the code waits for.
pub(crate) struct StepOperation<T, E> {
    pub(crate) step: Step<T, E>,
    /// Its slot in a join.
    pub(crate) slot: crate::turn::state::JoinSlot,
    name: Option<StepName>,
}

impl<T, E> StepOperation<T, E> {
    pub(crate) fn new(step: Step<T, E>) -> Self {
        Self { step, slot: None, name: None }
    }
}

/// The error of a step that is awaited outside of a workflow's own code.
const NO_WORKFLOW: &str = "only a workflow's own code can await a step; a spawned task (`tokio::spawn`) or \
     another step can't: there, call the code that the step's function calls";

/// `charge(order).await` is the same as `ctx.step(charge(order)).await` with the context of the workflow that awaits
/// it. Outside of a workflow's code it returns the error [`StepError::Invalid`], which says so.
impl<T: Stored, E: Stored + Display> IntoFuture for Step<T, E> {
    type Output = Result<T, StepError<E>>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        // The workflow is known only when the future is polled.
        let awaited = async move {
            match Shared::polled() {
                Some(shared) => Awaited::new(&shared, StepOperation::new(self)).await,
                None => Err(self.invalid(NO_WORKFLOW)),
            }
        };
        awaited.boxed()
    }
}

impl<T: Stored, E: Stored + Display> Operation for StepOperation<T, E> {
    type Output = Result<T, StepError<E>>;

    fn begin(&mut self, state: &mut State, now: Timestamp) -> FirstPoll<Self::Output> {
        let name = match self.claim(state) {
            Ok(name) => name,
            Err(poll) => return poll,
        };
        let need = match state.replay.name_state(&name) {
            NameState::Ended { .. } | NameState::Remote | NameState::Child { .. } => {
                Ok(Need::Outcome { name })
            }
            NameState::Fresh | NameState::InProgress { .. } | NameState::Failed { .. } => {
                match self.step.options.place.clone() {
                    Place::Inline => {
                        if let Some(missing) = self.missing_state(state) {
                            state.verdict.get_or_insert(Verdict::Stuck(missing));
                            return FirstPoll::Over;
                        }
                        self.inline(name, state)
                    }
                    Place::Remote { queue } => {
                        let left = state.facts.deadline_at.map(|at| at.since(now));
                        let any_queue = queue.is_none();
                        let queue = queue.unwrap_or_else(|| state.facts.queue.clone());
                        self.remote(name, (queue, any_queue), left, &state.facts)
                    }
                }
            }
            other @ (NameState::Captured(_)
            | NameState::Until(_)
            | NameState::Fired
            | NameState::Waited(_)) => {
                let found = other.kind();
                return other_kind(state, &self.step.name, found);
            }
        };
        match need {
            Ok(need) => FirstPoll::Needs(need),
            Err(error) => FirstPoll::Ready(Err(error)),
        }
    }

    fn end(&mut self, state: &mut State) -> Option<Self::Output> {
        let name = self.name.clone()?;
        let NameState::Ended { outcome, attempts, expired, last_error } =
            state.replay.name_state(&name).clone()
        else {
            return Some(Err(self.step.invalid("the journal has no outcome of it")));
        };
        // The journal has no number of attempts for a remote step. An exhausted step has used all attempts of its
        // policy.
        let all = || match self.step.options.retry.max_attempts {
            MaxAttempts::Limited(limit) => limit.get(),
            MaxAttempts::Skip | MaxAttempts::Unlimited => 1,
        };
        let ended = EndedBy { attempts: attempts.unwrap_or_else(all), expired, last_error };
        read_outcome(state, &self.step.name, &outcome, ended)
    }
}

impl<T: Stored, E: Stored + Display> StepOperation<T, E> {
    fn claim(&mut self, state: &mut State) -> Result<StepName, FirstPoll<Result<T, StepError<E>>>> {
        if let Some(problem) = self.step.problem() {
            return Err(FirstPoll::Ready(Err(self.step.invalid(problem))));
        }
        match state.claim(&self.step.name) {
            Ok(name) => {
                self.name = Some(name.clone());
                state.note_input(|| self.step.input().ok());
                Ok(name)
            }
            Err(ClaimProblem::Refused(problem)) => Err(FirstPoll::Ready(Err(self.step.invalid(problem)))),
            Err(ClaimProblem::Over) => Err(FirstPoll::Over),
        }
    }

    /// The error if this worker lacks a state that the step asks for.
    fn missing_state(&self, state: &State) -> Option<task::Failure> {
        let facts = &state.facts;
        if facts.mocks.contains_key(&self.step.kind) {
            return None;
        }
        let missing = self.step.states.iter().find_map(|wanted| facts.states.check(*wanted).err())?;
        Some(task::Failure::new(MISSING_STATE, format!("step `{}`: {missing}", self.step.name)))
    }

    fn inline(&self, name: StepName, state: &State) -> Result<Need, StepError<E>> {
        let runner = match (state.facts.mocks.get(&self.step.kind), &self.step.run) {
            (Some(mock), _) => mocked(mock.clone(), self.step.input()?, States::default()),
            (None, Some(run)) => erased(Arc::clone(run), state.facts.states.clone()),
            (None, None) => match &self.step.code {
                Some(code) => mocked(code.clone(), self.step.input()?, state.facts.states.clone()),
                None => {
                    return Err(self.step.invalid("this worker lacks its code: run it remotely"));
                }
            },
        };
        let options = &self.step.options;
        if options.flow != FlowRequest::default() {
            return Err(self.step.invalid(
                "concurrency, rate, priority, fairness_key and requires order and limit the starts of tasks; run the \
                 step remotely with `.remote()`",
            ));
        }
        if options.schedule_to_start.is_some() {
            return Err(self.step.invalid(
                "schedule_to_start limits how long a task waits for a worker; run the step remotely with `.remote()`",
            ));
        }
        Ok(Need::Inline(Box::new(Inline {
            name,
            given_name: self.step.name.clone(),
            policy: policy_of(options),
            runner,
            stage: Stage::Unknown,
            reported: Reported::default(),
            recording: None,
            unwritten: None,
            failures: vec![],
        })))
    }

    fn remote(
        &self,
        name: StepName,
        (queue, any_queue): (QueueName, bool),
        left: Option<Millis>,
        facts: &Facts,
    ) -> Result<Need, StepError<E>> {
        let kind = TaskKind::parse(self.step.kind.as_str());
        let kind = kind.map_err(|error| self.step.invalid(format!("kind {:?} {error}", self.step.kind)))?;
        if let Some(problem) = facts.own_key(&self.step.options.flow) {
            return Err(self.step.invalid(problem));
        }
        Ok(Need::Remote(Box::new(RemoteStep {
            name,
            kind,
            queue,
            any_queue,
            input: Some(self.step.input()?),
            retry: self.step.options.retry.clone(),
            timeouts: timeouts_of(&self.step.options),
            at_most: left,
            flow: self.step.options.flow.clone(),
            given: self.step.options.given.clone(),
            slot: self.slot,
        })))
    }
}

fn policy_of(options: &StepOptions) -> StepPolicy {
    StepPolicy {
        retry: options.retry.clone(),
        timeout: options.all_attempts(),
        attempt_timeout: options.each_attempt(),
        heartbeat: options.heartbeat(),
        at_most_once: options.at_most_once,
    }
}

/// A remote step's own timeouts.
fn timeouts_of(options: &StepOptions) -> Timeouts {
    Timeouts {
        schedule_to_close: options.all_attempts().map(|after| LifeTimeout { after, is_error: true }),
        schedule_to_start: options.schedule_to_start(),
        heartbeat: options.heartbeat(),
        start_to_close: options.each_attempt(),
    }
}

/// A step's code with JSON instead of its types.
fn erased<T: Stored, E: Stored + Display>(run: Run<T, E>, states: States) -> Runner {
    Arc::new(move |info| {
        let (run, states) = (Arc::clone(&run), states.clone());
        info.scope(async move {
            let attempt = match run(&states) {
                Ok(attempt) => attempt,
                // Only a handler that doesn't list this state in `states()` gets here.
                Err(missing) => return unwritable(MISSING_STATE, &missing.to_string()),
            };
            match attempt.await {
                Ok(output) => codec::encode_stored(&output).map_or_else(
                    |error| unwritable("invalid_output", &format!("its result can't be written: {error}")),
                    Attempted::Done,
                ),
                Err(error) => {
                    let failure = task::Failure::from(failure_of(&error));
                    codec::encode_stored(&error).map_or_else(
                        |problem| {
                            unwritable(&failure.code, &format!("{error} (it can't be written: {problem})"))
                        },
                        |error| Attempted::Failed { error, failure: failure.clone() },
                    )
                }
            }
        })
        .boxed()
    })
}

/// Code without types: a mock that runs instead of a step's code, or an item of a map.
fn mocked(mock: ErasedStep, input: Json, states: States) -> Runner {
    Arc::new(move |info| {
        let run = mock.run(&input, &states);
        info.scope(async move {
            match run.await {
                Ok(output) => Attempted::Done(output),
                Err(StepFailed { failure, error: Some(error), .. }) => {
                    Attempted::Failed { error, failure: failure.into() }
                }
                Err(StepFailed { failure, error: None, .. }) => Attempted::Unwritable(failure.into()),
            }
        })
        .boxed()
    })
}

fn unwritable(code: &str, message: &str) -> Attempted {
    Attempted::Unwritable(task::Failure::new(code, message))
}

/// How a step came to its outcome.
#[derive(Debug, Default)]
pub(crate) struct EndedBy {
    /// The number of attempts.
    pub(crate) attempts: u32,
    /// The time limit that ended it.
    pub(crate) expired: Option<Expired>,
    /// The failure of its last attempt that failed, if it timed out.
    pub(crate) last_error: Option<task::Failure>,
}

/// Converts a stored outcome to the step's types. `None` if it can't be read: then the execution waits for an operator.
pub(crate) fn read_outcome<T: Stored, E: Stored>(
    state: &mut State,
    step: &str,
    outcome: &StepOutcome,
    EndedBy { attempts, expired, last_error }: EndedBy,
) -> Option<Result<T, StepError<E>>> {
    let step = step.to_owned();
    let error = match outcome {
        StepOutcome::Completed { output } => {
            let output = output.clone().unwrap_or_else(null_payload);
            return read(state, &step, &output).map(Ok);
        }
        StepOutcome::Failed { error } => match read_error(state, &step, error)? {
            Ok(error) => StepError::Failed { step, error },
            Err(failure) => StepError::Broken { step, attempts, failure },
        },
        StepOutcome::Exhausted { error } => match read_error(state, &step, error)? {
            Ok(last_error) => StepError::RetryExhausted { step, attempts, last_error },
            Err(failure) => StepError::Broken { step, attempts, failure },
        },
        StepOutcome::TimedOut => {
            let last_error = last_error.map(|error| Failure::new(error.code, error.message));
            StepError::TimedOut { step, expired, last_error }
        }
        StepOutcome::DeadlineExceeded => StepError::DeadlineExceeded { step },
        StepOutcome::Cancelled => StepError::Cancelled { step, expired },
        StepOutcome::ResultExpired => StepError::ResultExpired { step },
    };
    Some(Err(error))
}

/// The payload of a result that has none: `null`.
pub(crate) fn null_payload() -> Payload {
    Payload::Inline(Json::parse("null").unwrap_or_else(|| Json::string("")))
}

/// Reads a stored value. If it doesn't fit its type, the turn ends and the execution waits for an operator.
pub(crate) fn read<T: DeserializeOwned>(state: &mut State, name: &str, payload: &Payload) -> Option<T> {
    let text = text_of::<T>(state, name, payload)?;
    codec::decode(&text).map_err(|error| unreadable::<T>(state, name, &error.to_string())).ok()
}

/// A stored value's text. The turn reads it before it delivers the value to the code.
pub(super) fn text_of<T>(state: &mut State, name: &str, payload: &Payload) -> Option<Json> {
    let text = state.text(payload);
    if text.is_none() {
        unreadable::<T>(state, name, "it wasn't read");
    }
    text
}

fn unreadable<T>(state: &mut State, name: &str, problem: &str) {
    let error = StepError::<Failure>::Unreadable {
        step: name.to_owned(),
        type_name: type_name::<T>().to_owned(),
        problem: problem.to_owned(),
    };
    state.verdict.get_or_insert(Verdict::Unreadable(error.failure().into(), Some(name.to_owned())));
}

/// Reads a stored error of the step's own type. If it isn't of that type, returns it as a failure: a panic, a worker
/// that was lost too often, a worker that doesn't know the type.
fn read_error<E: Stored>(state: &mut State, name: &str, payload: &Payload) -> Option<Result<E, Failure>> {
    let text = text_of::<E>(state, name, payload)?;
    let problem = match codec::decode::<E>(&text) {
        Ok(error) => return Some(Ok(error)),
        Err(problem) => problem,
    };
    let Ok(failure) = codec::decode::<Failure>(&text) else {
        unreadable::<E>(state, name, &problem.to_string());
        return None;
    };
    // Workers in other languages send an enum's variant as the code, or the whole error as the message.
    let guesses = [Json::string(&failure.code)].into_iter().chain(Json::parse(failure.message.as_str()));
    let own = guesses.map(|guess| codec::decode::<E>(&guess)).find_map(Result::ok);
    Some(own.ok_or(failure))
}
