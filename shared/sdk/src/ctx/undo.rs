//! What takes back what a workflow has done, should it fail: sagas.

use std::fmt::{self, Display};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use tickover_core::execution::journal::UNDO_PREFIX;
use tickover_core::id::StepName;
use tickover_core::time::Timestamp;
use tickover_service::telemetry::field;

use super::Ctx;
use super::operation::{Awaited, Look, Operation};
use super::step::{StepOperation, Stored};
use crate::error::{Error, Failure};
use crate::step::Step;
use crate::turn::need::Need;
use crate::turn::state::{Shared, State};

/// Whether a name is that of a step that undoes another one.
pub(crate) fn is_undoing(name: &StepName) -> bool {
    name.as_str().starts_with(UNDO_PREFIX)
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
    /// Each has a name of its own; one that is in use, or can't be a step's, fails the execution at once. Remote steps that
    /// still run when the code fails are ended before.
    ///
    /// The undoing steps are steps like others: remembered, retried by their policy, gone on with by another worker. One
    /// that fails for good doesn't keep the others from running, and the execution fails with the error of its code
    /// either way; `on_failure` runs after them. They run where the code returns an error, and not where somebody
    /// cancels the execution or where its own or its run's deadline ends it, after which no code runs: limit what may take long by
    /// [`Ctx::timeout`]. An operator can have one that failed tried again (`retry_step`); what was undone isn't built on: such
    /// an execution is restarted, or run again with all its steps.
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
        // Found out when it is to run, it would be left out.
        if let Some(problem) = problem.or_else(|| is_taken.then(|| "the name is in use".to_owned())) {
            state.fail(Error::new("invalid_step", format!("`{name}` can't be used: {problem}")));
        }
        let number = state.undoing.len();
        state.undoing.push((name, Some(Box::new(undoing))));
        Undo { shared: Arc::clone(&self.shared), number }
    }

    /// Runs what was registered, the last first, once what the code had begun elsewhere is ended.
    pub(crate) async fn undo(&self) {
        if self.shared.lock().undoing.iter().all(|(_, undoing)| undoing.is_none()) {
            return;
        }
        let open = self.shared.lock().replay.open_remote();
        self.shared.lock().losers.extend(open.iter().cloned());
        join_all(open.into_iter().map(|name| Awaited::new(&self.shared, Ended(name)))).await;
        loop {
            let Some((_, undoing)) = self.shared.lock().undoing.pop() else { return };
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

/// A remote step that nobody waits for any more, until it has ended.
struct Ended(StepName);

impl Operation for Ended {
    type Output = ();

    fn begin(&mut self, _: &mut State, _: Timestamp) -> Look<()> {
        Look::Needs(Need::Outcome { name: self.0.clone() })
    }

    fn end(&mut self, _: &mut State) -> Option<()> {
        Some(())
    }
}

impl Undo {
    /// It isn't undone any more.
    pub fn forget(self) {
        let undoing = self.shared.lock().undoing.get_mut(self.number).and_then(|(_, undoing)| undoing.take());
        // Not under the lock: what is in it is the user's.
        drop(undoing);
    }
}

impl fmt::Debug for Undo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Undo").field(&self.number).finish()
    }
}
