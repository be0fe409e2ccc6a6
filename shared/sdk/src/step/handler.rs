//! A step as a type, so that a worker can run it for workflows on other workers.

use std::fmt::Display;

use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tickover_core::batch::Batch;

use super::batch::{self, BatchAttempt};
use super::state::{MissingState, StateType, States};
use crate::options::StepOptions;

/// An attempt that can start, or the state that the worker lacks.
pub type Attempt<T, E> = Result<BoxFuture<'static, Result<T, E>>, MissingState>;

/// The code of a step, by type. `#[tickover::step]` implements it for a type that has the function's name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a step",
    note = "a step is a function with the attribute `#[tickover::step]`"
)]
pub trait StepHandler: 'static {
    /// The step's name, which is also the kind of its tasks.
    const NAME: &'static str;

    /// The argument: one argument as itself, several as a tuple, none as `()`. Cloned for each attempt.
    type Input: Clone + Serialize + DeserializeOwned + Send + Sync + 'static;

    /// The type of its result.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// The type of its error.
    type Error: Serialize + DeserializeOwned + Display + Send + 'static;

    /// The options that apply unless a workflow sets others.
    fn options() -> StepOptions;

    /// The types of the states that it asks for.
    fn states() -> Vec<StateType> {
        vec![]
    }

    /// Runs one attempt with the states of the worker.
    ///
    /// # Errors
    ///
    /// Fails if the worker lacks a state that the step asks for.
    fn run(input: Self::Input, states: &States) -> Attempt<Self::Output, Self::Error>;

    /// How many of its tasks a worker runs together, and how long the first one waits for others. `None`, the default:
    /// each task runs alone.
    fn batch() -> Option<Batch> {
        None
    }

    /// Runs one attempt of several tasks together. Each has its own result, in the order of the inputs. Workers call it
    /// only if [`Self::batch`] isn't `None`. By default it calls [`Self::run`] for each input.
    ///
    /// # Errors
    ///
    /// Fails if the worker lacks a state that the step asks for.
    fn run_batch(inputs: Vec<Self::Input>, states: &States) -> BatchAttempt<Self::Output, Self::Error>
    where
        Self: Sized,
    {
        batch::separately::<Self>(inputs, states)
    }
}

/// A result under any name: the attributes use it to find the types in an alias such as `Result<T>`.
#[diagnostic::on_unimplemented(
    message = "a step or workflow returns a `Result`, not `{Self}`",
    label = "write `Result<{Self}>` here"
)]
#[doc(hidden)]
pub trait Fallible {
    /// The type in `Ok`.
    type Output;
    /// The type in `Err`.
    type Error;
}

impl<T, E> Fallible for Result<T, E> {
    type Output = T;
    type Error = E;
}
