//! A step as a type: what lets a worker offer it to workflows that run elsewhere.

use std::fmt::Display;

use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::state::{MissingState, StateType, States};
use crate::options::StepOptions;

/// An attempt that may begin, or the state that it can't do without.
pub type Attempt<T, E> = Result<BoxFuture<'static, Result<T, E>>, MissingState>;

/// The code of a step, by type. `#[tickover::step]` implements it for a type that has the function's name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a step",
    note = "a step is a function with the attribute `#[tickover::step]`"
)]
pub trait StepHandler: 'static {
    /// The name that workflows and tasks know it by.
    const NAME: &'static str;

    /// The argument: the only one as itself, several as a tuple, none as `()`. Cloned for each attempt.
    type Input: Clone + Serialize + DeserializeOwned + Send + Sync + 'static;

    /// What it results in.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// What it fails with.
    type Error: Serialize + DeserializeOwned + Display + Send + 'static;

    /// How it is run where a workflow says nothing else.
    fn options() -> StepOptions;

    /// The types of the states that it asks for.
    fn states() -> Vec<StateType> {
        vec![]
    }

    /// One attempt, with what the worker has for its steps.
    ///
    /// # Errors
    ///
    /// That a state is missing which it asks for.
    fn run(input: Self::Input, states: &States) -> Attempt<Self::Output, Self::Error>;
}

/// A result, whatever it is called: how the attributes find the types in an alias such as `Result<T>`.
#[diagnostic::on_unimplemented(
    message = "a step or workflow returns a `Result`, not `{Self}`",
    label = "write `Result<{Self}>` here"
)]
#[doc(hidden)]
pub trait Fallible {
    /// What is in `Ok`.
    type Output;
    /// What is in `Err`.
    type Error;
}

impl<T, E> Fallible for Result<T, E> {
    type Output = T;
    type Error = E;
}
