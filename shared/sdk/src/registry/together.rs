//! The code of a step that gets several tasks at once, without its types.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tickover_core::batch::Batch;
use tickover_core::payload::Json;

use super::erased::{ErasedStep, StepFailed, write_outcome};
use crate::codec;
use crate::step::{BatchOutcome, States, StepHandler, StepInfo, wrong_count};

/// The code of the failure of all tasks of a batch whose code returned too few or too many results.
const WRONG_COUNT: &str = "wrong_result_count";

/// One result for each input.
type Results = Vec<Result<Json, StepFailed>>;

type RunTogether = dyn Fn(Vec<(Json, StepInfo)>, &States) -> BoxFuture<'static, Results> + Send + Sync;

/// How a step runs several tasks.
#[derive(Clone)]
pub(super) struct Together {
    batch: Batch,
    run: Arc<RunTogether>,
}

impl Together {
    /// `None` if the step runs each task alone.
    pub(super) fn of<S: StepHandler>() -> Option<Self> {
        let batch = S::batch()?;
        Some(Self { batch, run: Arc::new(run::<S>) })
    }
}

impl ErasedStep {
    /// How many of its tasks run together, if they do.
    pub fn batch(&self) -> Option<Batch> {
        self.together.as_ref().map(|together| together.batch)
    }

    /// Runs one attempt of several tasks together. An input that doesn't fit its type fails alone. `None` if the step
    /// runs each task alone.
    pub(crate) fn run_together(
        &self,
        tasks: Vec<(Json, StepInfo)>,
        states: &States,
    ) -> Option<BoxFuture<'static, Results>> {
        self.together.as_ref().map(|together| (together.run)(tasks, states))
    }
}

fn run<S: StepHandler>(tasks: Vec<(Json, StepInfo)>, states: &States) -> BoxFuture<'static, Results> {
    let (mut inputs, mut infos, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for (input, info) in tasks {
        match codec::decode::<S::Input>(&input) {
            Ok(input) => {
                inputs.push(input);
                infos.push(info);
                refused.push(None);
            }
            Err(error) => refused.push(Some(StepFailed::invalid_input(S::NAME, &error))),
        }
    }
    let count = inputs.len();
    if count == 0 {
        return futures::future::ready(refused.into_iter().flatten().map(Err).collect()).boxed();
    }
    let attempt = S::run_batch(inputs, states).map(|attempt| StepInfo::scope_batch(infos, attempt));
    let attempt = async move {
        let mut results = match attempt {
            Ok(attempt) => settled::<S>(attempt.await, count),
            Err(missing) => failed(&StepFailed::missing(S::NAME, missing), count),
        }
        .into_iter();
        // There are as many results as inputs that weren't refused.
        refused.into_iter().filter_map(|refused| refused.map(Err).or_else(|| results.next())).collect()
    };
    attempt.boxed()
}

fn settled<S: StepHandler>(outcome: BatchOutcome<S::Output, S::Error>, count: usize) -> Results {
    match outcome {
        Ok(results) if results.len() == count => results.into_iter().map(write_outcome::<S>).collect(),
        Ok(results) => {
            let message = wrong_count(S::NAME, count, results.len());
            let retryable = S::options().retry.is_retryable(WRONG_COUNT);
            failed(&StepFailed { retryable, ..StepFailed::terminal(WRONG_COUNT, message) }, count)
        }
        Err(error) => failed(&StepFailed::of::<S>(&error), count),
    }
}

fn failed(of_all: &StepFailed, count: usize) -> Results {
    vec![Err(of_all.clone()); count]
}
