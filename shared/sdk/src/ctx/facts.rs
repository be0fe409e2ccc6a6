//! What a workflow's code can ask of its run at any time.

use tickover_core::duration::Millis;

use super::Ctx;
use crate::error::Error;

impl Ctx {
    /// Whether this run began with code that has this change: for branches that runs under way must not take. The
    /// name has to be among the workflow's `patches`; if it isn't, the run fails and says so.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow(patches("thanks"))]
    /// async fn sale(ctx: Ctx, (): ()) -> Result<bool> {
    ///     if ctx.patched("thanks") {
    ///         ctx.sleep("before-the-thanks", "1d").await?;
    ///     }
    ///     Ok(ctx.patched("thanks"))
    /// }
    /// # assert!(tickover::test::outcome(sale, &sale, ()));
    /// ```
    pub fn patched(&self, name: &str) -> bool {
        let mut state = self.shared.lock();
        if !state.facts.patches.contains(&name) {
            let problem = format!("patch {name:?} isn't declared: add it to the workflow's `patches`");
            state.fail(Error::new("unknown_patch", problem));
            return false;
        }
        state.replay.patches().is_some_and(|names| names.iter().any(|known| known == name))
    }

    /// How long there is until the run, the execution or the invocation ends, whichever is first. `None` without
    /// any deadline.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow(timeout = "1h")]
    /// async fn hurried(ctx: Ctx, (): ()) -> Result<bool> {
    ///     Ok(ctx.remaining().is_some_and(|left| left <= tickover::Millis::from_secs(3_600)))
    /// }
    /// # assert!(tickover::test::outcome(hurried, &hurried, ()));
    /// ```
    pub fn remaining(&self) -> Option<Millis> {
        let now = self.shared.now();
        self.shared.lock().remaining(now)
    }

    /// The execution's id.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn named(ctx: Ctx, (): ()) -> Result<String> {
    ///     Ok(ctx.execution_id().to_owned())
    /// }
    /// # assert!(!tickover::test::outcome(named, &named, ()).is_empty());
    /// ```
    pub fn execution_id(&self) -> String {
        self.shared.lock().facts.execution.to_string()
    }

    /// The trace that the execution belongs to, as in a `traceparent` header, and so do its remote steps and
    /// children. `None` where traces aren't carried, or whoever started it named none.
    pub fn traceparent(&self) -> Option<String> {
        self.shared.lock().facts.trace.map(|trace| trace.traceparent())
    }

    /// Which run of the execution this is, from 1.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn third(ctx: Ctx, (): ()) -> Result<u32> {
    ///     if ctx.run() < 3 { ctx.continue_as_new(()).await } else { Ok(ctx.run()) }
    /// }
    /// # assert_eq!(tickover::test::outcome(third, &third, ()), 3);
    /// ```
    pub fn run(&self) -> u32 {
        self.shared.lock().facts.run
    }

    /// Whether somebody wants the execution to end, as far as this turn has heard. No new step starts then; a long
    /// one may look at this and stop.
    pub fn is_cancelled(&self) -> bool {
        self.shared.lock().facts.cancelled
    }
}
