//! What takes back what a workflow has done, should it fail: sagas.

use std::fmt::{self, Display};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tickover_core::id::StepName;
use tickover_service::telemetry::field;

use super::Ctx;
use super::operation::Awaited;
use super::step::{StepOperation, Stored};
use crate::error::Failure;
use crate::step::Step;
use crate::turn::state::Shared;

/// What the names of undoing steps begin with.
const UNDO: &str = "undo";

/// Whether a name is that of a step that undoes another one.
pub(crate) fn is_undoing(name: &StepName) -> bool {
    name.as_str().strip_prefix(UNDO).is_some_and(|rest| rest.starts_with([':', '.']))
}

/// A step to run if the code fails. What is left of it once it has run is why it couldn't.
pub(crate) type Undoing = Box<dyn FnOnce(&Arc<Shared>) -> BoxFuture<'static, Result<(), Failure>> + Send>;

/// Something that is undone if the workflow fails; see [`Ctx::on_undo`].
pub struct Undo {
    shared: Arc<Shared>,
    number: usize,
}

impl Ctx {
    /// Runs this step, as `undo:name`, if the workflow's code fails: what was registered last first. Call it before what
    /// is to be undone, or after it, as the step can bear it.
    ///
    /// The undoing steps are steps like others: remembered, retried by their policy, gone on with by another worker. One
    /// that fails for good doesn't keep the others from running, and the execution fails with the error of its code
    /// either way; `on_failure` runs after them. They run where the code returns an error, and not where somebody
    /// cancels the execution or where its own or its run's deadline ends it, after which no code runs: limit what may take long by
    /// [`Ctx::timeout`].
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
        let name = name.to_string();
        let undoing = move |shared: &Arc<Shared>| {
            let step = match shared.lock().facts.reopened {
                0 => step.named(format!("{UNDO}:{name}")),
                // What was undone after an earlier failure is undone again after this one.
                times => step.named(format!("{UNDO}.{times}:{name}")),
            };
            let awaited = Awaited::new(shared, StepOperation::new(step));
            awaited.map(|ended| ended.map(drop).map_err(|error| error.failure())).boxed()
        };
        let mut state = self.shared.lock();
        let number = state.undoing.len();
        state.undoing.push(Some(Box::new(undoing)));
        Undo { shared: Arc::clone(&self.shared), number }
    }

    /// Runs what was registered, the last first.
    pub(crate) async fn undo(&self) {
        loop {
            let Some(undoing) = self.shared.lock().undoing.pop() else { return };
            let Some(undoing) = undoing else { continue };
            if let Err(failure) = undoing(&self.shared).await {
                tracing::warn!(
                    { field::EXECUTION_ID } = %self.shared.lock().facts.execution, { field::ERROR_CODE } = failure.code,
                    "a step that was to undo another one failed itself"
                );
            }
        }
    }
}

impl Undo {
    /// It isn't undone any more.
    pub fn forget(self) {
        let undoing = self.shared.lock().undoing.get_mut(self.number).and_then(Option::take);
        // Not under the lock: what is in it is the user's.
        drop(undoing);
    }
}

impl fmt::Debug for Undo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Undo").field(&self.number).finish()
    }
}
