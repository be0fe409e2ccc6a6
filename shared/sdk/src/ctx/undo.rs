//! Steps that undo what a workflow has done if it fails: sagas.

use std::fmt::{self, Display};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use tickover_core::execution::journal::UNDO_PREFIX;
use tickover_core::id::StepName;
use tickover_core::time::Timestamp;
use tickover_service::telemetry::field;

use super::Ctx;
use super::operation::{Awaited, FirstPoll, Operation};
use super::step::{StepOperation, Stored};
use crate::error::{Error, Failure};
use crate::step::Step;
use crate::turn::need::Need;
use crate::turn::shared::Shared;
use crate::turn::state::{State, UndoStage};

/// A step to run if the code fails or is cancelled. It returns why it failed, if it did.
pub(crate) type UndoStep = Box<dyn FnOnce(&Arc<Shared>) -> BoxFuture<'static, Result<(), Failure>> + Send>;

/// An undo step that is registered; see [`Ctx::on_undo`].
pub struct Undo {
    shared: Arc<Shared>,
    number: usize,
}

impl Ctx {
    /// Registers a step that runs, as `undo:name`, if the workflow's code fails or is cancelled. The step that was
    /// registered last runs first. Call this before or after the work that the step undoes, depending on what the undo step can handle.
    ///
    /// Each undo step needs its own name. If the name is in use, or isn't a valid step name, the execution fails at
    /// once. When the code has ended, its remote steps that still run are ended before the first undo step.
    ///
    /// Undo steps are like other steps: their results are stored, they are retried by their policies, and another
    /// worker can continue them. If one fails for good, the others still run, and the execution fails with the error of
    /// its code in any case. `on_failure` runs after them. Undo steps run when the code returns an error, and when the
    /// execution is cancelled: then the code stops where it waits, its undo steps run, and `on_cancel` runs after them.
    /// They don't run when the execution is terminated, or when the deadline of the execution or of the run passes,
    /// because no code runs after that: limit slow work with [`Ctx::timeout`]. An operator can have a failed undo step
    /// retried (`retry_step`). A run that was undone can't continue: restart the execution, or rerun it with all its steps.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::step]
    /// # async fn charge(cents: u32) -> Result<u32> { Ok(cents) }
    /// # #[tickover::step]
    /// # async fn refund(cents: u32) -> Result<()> { Ok(()) }
    /// # #[tickover::step]
    /// # async fn ship(cents: u32) -> Result<()> { Err(Error::new("no_stock", "sold out")) }
    /// #[tickover::workflow]
    /// async fn order(ctx: Ctx, cents: u32) -> Result<()> {
    ///     ctx.step(charge(cents)).await?;
    ///     let charged = ctx.on_undo("refund", refund(cents));
    ///     ctx.step(ship(cents)).await?; // if it fails, the charge is refunded
    ///     charged.forget(); // from here on it isn't
    ///     Ok(())
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let env = TestEnv::new().workflow(order);
    /// # let run = env.start(&order, 500).await.unwrap();
    /// # assert!(run.result().await.is_err());
    /// # assert!(env.timeline(run.id().as_str()).await.unwrap().contains("undo:refund"));
    /// # }
    /// ```
    pub fn on_undo<T: Stored, E: Stored + Display>(&self, name: impl Display, step: Step<T, E>) -> Undo {
        let step = step.named(format!("{UNDO_PREFIX}{name}"));
        let name = step.name.clone();
        let problem = step.problem();
        let undoing = move |shared: &Arc<Shared>| {
            let awaited = Awaited::new(shared, StepOperation::new(step));
            awaited.map(|ended| ended.map(drop).map_err(|error| error.failure())).boxed()
        };
        let mut state = self.shared.lock();
        let is_taken = state.undoing.iter().any(|(taken, undoing)| *taken == name && undoing.is_some());
        // Checked now, because an invalid step would be skipped when the code fails.
        if let Some(problem) = problem.or_else(|| is_taken.then(|| "the name is in use".to_owned())) {
            state.fail(Error::new("invalid_step", format!("`{name}` can't be used: {problem}")));
        }
        let number = state.undoing.len();
        state.undoing.push((name, Some(Box::new(undoing))));
        Undo { shared: Arc::clone(&self.shared), number }
    }

    /// Ends the remote steps of the code that has failed or was stopped, then runs its undo steps, in reverse order of registration. If
    /// there is none, the steps are ended only if other code runs afterwards.
    pub(crate) async fn undo(&self, continues: bool) {
        {
            let mut state = self.shared.lock();
            if state.undo == UndoStage::NotYet {
                state.undo = UndoStage::Failure;
            }
        }
        if !continues && self.shared.lock().undoing.iter().all(|(_, undoing)| undoing.is_none()) {
            return;
        }
        self.end_steps(State::open_steps).await;
        loop {
            let Some((_, undoing)) = self.shared.lock().undoing.pop() else { return };
            let Some(undoing) = undoing else { continue };
            if let Err(failure) = undoing(&self.shared).await {
                tracing::warn!(
                    { field::EXECUTION_ID } = %self.shared.lock().facts.execution, { field::ERROR_CODE } = failure.code,
                    "an undo step failed"
                );
            }
        }
    }

    /// Ends remote steps, and waits until they have ended.
    pub(crate) async fn end_steps(&self, which: impl FnOnce(&State) -> Vec<StepName>) {
        let open = {
            let mut state = self.shared.lock();
            let open = which(&state);
            state.losers.extend(open.iter().cloned());
            open
        };
        join_all(open.into_iter().map(|name| Awaited::new(&self.shared, Ended(name)))).await;
    }
}

/// Waits for the end of a remote step whose result isn't needed.
struct Ended(StepName);

impl Operation for Ended {
    type Output = ();

    fn begin(&mut self, _: &mut State, _: Timestamp) -> FirstPoll<()> {
        FirstPoll::Needs(Need::Outcome { name: self.0.clone() })
    }

    fn end(&mut self, _: &mut State) -> Option<()> {
        Some(())
    }
}

impl Undo {
    /// Unregisters the undo step.
    pub fn forget(self) {
        let undoing = self.shared.lock().undoing.get_mut(self.number).and_then(|(_, undoing)| undoing.take());
        // The lock isn't held here: the step's captured values are the user's.
        drop(undoing);
    }
}

impl fmt::Debug for Undo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Undo").field(&self.number).finish()
    }
}
