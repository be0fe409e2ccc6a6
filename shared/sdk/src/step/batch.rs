//! Steps whose code gets several tasks at once.

use futures::future::{BoxFuture, join_all};

use super::handler::{Attempt, StepHandler};
use super::state::{MissingState, States};

/// An attempt of several tasks that can start, or the state that the worker lacks. Either it fails for all tasks, or
/// each has its own result, in the order of the inputs.
pub type BatchAttempt<T, E> = Result<BoxFuture<'static, BatchOutcome<T, E>>, MissingState>;

/// One result for each task, or an error for all of them.
pub type BatchOutcome<T, E> = Result<Vec<Result<T, E>>, E>;

/// What a step with a batch returns: one result for each input, or an error for all of them.
#[diagnostic::on_unimplemented(
    message = "a step with a batch returns one result for each input, not `{Self}`",
    label = "write `Vec<Result<…>>`, or `Result<Vec<Result<…>>>`"
)]
#[doc(hidden)]
pub trait BatchReturned {
    /// The type in each `Ok`.
    type Output;
    /// The type in each `Err`.
    type Error;

    /// The results, or the error of all.
    fn settle(self) -> BatchOutcome<Self::Output, Self::Error>;
}

impl<T, E> BatchReturned for Vec<Result<T, E>> {
    type Output = T;
    type Error = E;

    fn settle(self) -> Result<Self, E> {
        Ok(self)
    }
}

impl<T, E> BatchReturned for Result<Vec<Result<T, E>>, E> {
    type Output = T;
    type Error = E;

    fn settle(self) -> Self {
        self
    }
}

/// Runs the code of a batch for one input, whose result is the only one. The panic is a failed attempt, like any other
/// panic of a step.
pub fn only_one<T: Send + 'static, E: Send + 'static>(
    name: &'static str,
    batch: BatchAttempt<T, E>,
) -> Attempt<T, E> {
    let batch = batch?;
    Ok(Box::pin(async move {
        let mut results = batch.await?;
        match (results.pop(), results.len()) {
            (Some(result), 0) => result,
            (last, others) => {
                let count = others + usize::from(last.is_some());
                std::panic::panic_any(wrong_count(name, 1, count))
            }
        }
    }))
}

/// Says that a step returned too few or too many results.
pub(crate) fn wrong_count(name: &str, inputs: usize, results: usize) -> String {
    format!("step `{name}` got {inputs} inputs and returned {results} results")
}

/// Runs each input in an attempt of its own, all at the same time.
pub(super) fn separately<H: StepHandler>(
    inputs: Vec<H::Input>,
    states: &States,
) -> BatchAttempt<H::Output, H::Error> {
    let attempts: Result<Vec<_>, MissingState> =
        inputs.into_iter().map(|input| H::run(input, states)).collect();
    let attempts = attempts?;
    Ok(Box::pin(async move { Ok(join_all(attempts).await) }))
}
