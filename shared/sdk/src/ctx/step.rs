//! Steps as a workflow's code waits for them, and what is made of their stored outcomes.

use std::any::type_name;
use std::fmt::Display;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tickover_core::duration::Millis;
use tickover_core::execution::journal::StepOutcome;
use tickover_core::execution::replay::{Standing, StepPolicy};
use tickover_core::id::{QueueName, StepName, TaskKind};
use tickover_core::payload::{Json, Payload};
use tickover_core::retry::MaxAttempts;
use tickover_core::task;
use tickover_core::time::Timestamp;
use tickover_core::timeout::{LifeTimeout, Timeouts};
use tickover_service::executions::RemoteStep;

use super::operation::{Awaited, Look, Operation};
use crate::codec;
use crate::error::{Failure, failure_of};
use crate::options::{Place, StepOptions};
use crate::registry::{ErasedStep, StepFailed};
use crate::step::{MISSING_STATE, Run, States, Step, StepError};
use crate::turn::need::{Attempted, Inline, Need, Runner, Stage};
use crate::turn::state::{ClaimProblem, Shared, State, Verdict};

/// What a step's result and error have to be able to do.
pub trait Stored: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Stored for T {}

/// A step that is waited for.
pub(crate) struct StepOperation<T, E> {
    pub(crate) step: Step<T, E>,
    /// Its place in a join.
    pub(crate) slot: crate::turn::state::Place,
    name: Option<StepName>,
}

impl<T, E> StepOperation<T, E> {
    pub(crate) fn new(step: Step<T, E>) -> Self {
        Self { step, slot: None, name: None }
    }
}

/// What is said of a step that something else than a workflow's own code awaits.
const NO_WORKFLOW: &str = "only a workflow's own code can await a step, and not what runs beside it, as by \
     `tokio::spawn`, nor another step: there, call what the step's function calls";

/// `charge(order).await` is `ctx.step(charge(order)).await` with the context of the workflow whose code it is in.
/// Anywhere else it is an error, [`StepError::Invalid`], that says so.
impl<T: Stored, E: Stored + Display> IntoFuture for Step<T, E> {
    type Output = Result<T, StepError<E>>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        // Whose code it is in shows when it is polled.
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

    fn begin(&mut self, state: &mut State, now: Timestamp) -> Look<Self::Output> {
        let name = match self.claim(state) {
            Ok(name) => name,
            Err(look) => return look,
        };
        let need = match state.replay.standing(&name) {
            Standing::Ended { .. } | Standing::Remote | Standing::Child { .. } => Ok(Need::Outcome { name }),
            Standing::Fresh | Standing::Begun { .. } | Standing::Failed { .. } => {
                match self.step.options.place.clone() {
                    Place::Inline => {
                        if let Some(missing) = self.missing_state(state) {
                            state.verdict.get_or_insert(Verdict::Stuck(missing));
                            return Look::Over;
                        }
                        self.inline(name, state)
                    }
                    Place::Remote { queue } => {
                        let left = state.facts.deadline_at.map(|at| at.since(now));
                        let queue = queue.unwrap_or_else(|| state.facts.queue.clone());
                        self.remote(name, queue, left)
                    }
                }
            }
            other @ (Standing::Captured(_) | Standing::Until(_) | Standing::Fired | Standing::Waited(_)) => {
                Err(self.step.invalid(format!("the run remembers {} of that name", other.kind())))
            }
        };
        match need {
            Ok(need) => Look::Needs(need),
            Err(error) => Look::Ready(Err(error)),
        }
    }

    fn end(&mut self, state: &mut State) -> Option<Self::Output> {
        let name = self.name.clone()?;
        let Standing::Ended { outcome, attempts } = state.replay.standing(&name).clone() else {
            return Some(Err(self.step.invalid("how it ended isn't known")));
        };
        // What was counted elsewhere was all that the policy allows, or it wouldn't be exhausted.
        let all = || match self.step.options.retry.max_attempts {
            MaxAttempts::Limited(limit) => limit.get(),
            MaxAttempts::Skip | MaxAttempts::Unlimited => 1,
        };
        read_outcome(state, &self.step.name, &outcome, attempts.unwrap_or_else(all))
    }
}

impl<T: Stored, E: Stored + Display> StepOperation<T, E> {
    fn claim(&mut self, state: &mut State) -> Result<StepName, Look<Result<T, StepError<E>>>> {
        if let Some(problem) = self.step.problem() {
            return Err(Look::Ready(Err(self.step.invalid(problem))));
        }
        match state.claim(&self.step.name) {
            Ok(name) => {
                self.name = Some(name.clone());
                Ok(name)
            }
            Err(ClaimProblem::Refused(problem)) => Err(Look::Ready(Err(self.step.invalid(problem)))),
            Err(ClaimProblem::Over) => Err(Look::Over),
        }
    }

    /// Why it can't begin on this worker: it asks for a state that there is none of.
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
            (Some(mock), _) => mocked(mock.clone(), self.step.input()?),
            (None, Some(run)) => erased(Arc::clone(run), state.facts.states.clone()),
            (None, None) => return Err(self.step.invalid("its code isn't here: it runs remotely only")),
        };
        let options = &self.step.options;
        if options.heartbeat.is_some() {
            return Err(self.step.invalid(
                "heartbeat: a step that runs in place has none; run it remotely with `.remote()`, or limit its \
                 attempts with `attempt_timeout`",
            ));
        }
        Ok(Need::Inline(Box::new(Inline {
            name,
            shown: self.step.name.clone(),
            policy: policy_of(options),
            noted_first: options.at_most_once || options.durable_timeout,
            runner,
            stage: Stage::Unknown,
            progress: None,
            unwritten: None,
        })))
    }

    fn remote(
        &self,
        name: StepName,
        queue: QueueName,
        deadline: Option<Millis>,
    ) -> Result<Need, StepError<E>> {
        let kind = TaskKind::parse(self.step.kind.as_str());
        let kind = kind.map_err(|error| self.step.invalid(format!("kind {:?} {error}", self.step.kind)))?;
        Ok(Need::Remote(Box::new(RemoteStep {
            name,
            kind,
            queue,
            input: Some(self.step.input()?),
            retry: self.step.options.retry.clone(),
            timeouts: timeouts_of(&self.step.options, deadline),
            slot: self.slot,
        })))
    }
}

fn policy_of(options: &StepOptions) -> StepPolicy {
    StepPolicy {
        retry: options.retry.clone(),
        timeout: options.all_attempts(),
        attempt_timeout: options.each_attempt(),
        at_most_once: options.at_most_once,
    }
}

/// A remote step's timeouts, capped by what its run and execution have left.
fn timeouts_of(options: &StepOptions, left: Option<Millis>) -> Timeouts {
    let whole = [options.all_attempts(), left].into_iter().flatten().min();
    Timeouts {
        schedule_to_close: whole.map(|after| LifeTimeout { after, is_error: true }),
        schedule_to_start: None,
        heartbeat: options.heartbeat(),
        start_to_close: options.each_attempt(),
    }
}

/// A step's code without its types.
fn erased<T: Stored, E: Stored + Display>(run: Run<T, E>, states: States) -> Runner {
    Arc::new(move |info| {
        let (run, states) = (Arc::clone(&run), states.clone());
        info.scope(async move {
            let attempt = match run(&states) {
                Ok(attempt) => attempt,
                // Only one that didn't say that it asks for it.
                Err(missing) => return unwritable(MISSING_STATE, &missing.to_string()),
            };
            match attempt.await {
                Ok(output) => codec::encode(&output).map_or_else(
                    |error| unwritable("invalid_output", &format!("its result can't be written: {error}")),
                    Attempted::Done,
                ),
                Err(error) => {
                    let failure = task::Failure::from(failure_of(&error));
                    codec::encode(&error).map_or_else(
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

/// Other code in a step's place.
fn mocked(mock: ErasedStep, input: Json) -> Runner {
    Arc::new(move |info| {
        let run = mock.run(&input, &States::default());
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

/// What a stored outcome is to the code. `None` if it can't be read: then the execution waits for an operator.
pub(crate) fn read_outcome<T: Stored, E: Stored>(
    state: &mut State,
    step: &str,
    outcome: &StepOutcome,
    attempts: u32,
) -> Option<Result<T, StepError<E>>> {
    let step = step.to_owned();
    let error = match outcome {
        StepOutcome::Completed { output } => {
            let output = output.clone().unwrap_or_else(nothing);
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
        StepOutcome::TimedOut => StepError::TimedOut { step },
        StepOutcome::DeadlineExceeded => StepError::DeadlineExceeded { step },
        StepOutcome::Cancelled => StepError::Cancelled { step },
        StepOutcome::ResultExpired => StepError::ResultExpired { step },
    };
    Some(Err(error))
}

/// The payload that stands for none.
pub(crate) fn nothing() -> Payload {
    Payload::Inline(Json::parse("null").unwrap_or_else(|| Json::string("")))
}

/// Reads a stored value. One that doesn't fit ends the turn: the execution waits for an operator.
pub(crate) fn read<T: DeserializeOwned>(state: &mut State, name: &str, payload: &Payload) -> Option<T> {
    let text = text_of::<T>(state, name, payload)?;
    codec::decode(&text).map_err(|error| unreadable::<T>(state, name, &error.to_string())).ok()
}

/// A stored value's text, which is read before the code is told of the value.
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
    state.verdict.get_or_insert(Verdict::Unreadable(error.failure().into()));
}

/// Reads a stored error: of the step's own type, or the failure that it is where it isn't of that type: a panic, a
/// worker lost too often, a worker that knows nothing of types.
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
    // Workers in other languages name a variant by its code, or send it as their message.
    let guesses = [Json::string(&failure.code)].into_iter().chain(Json::parse(failure.message.as_str()));
    let own = guesses.map(|guess| codec::decode::<E>(&guess)).find_map(Result::ok);
    Some(own.ok_or(failure))
}
