//! What a workflow's code can read about its run at any time.

use tickover_core::duration::Millis;

use super::Ctx;
use crate::error::Error;

impl Ctx {
    /// Whether this run started with code that has this patch. Use it for changes that open runs must not see. The
    /// workflow's `patches` must name the patch; otherwise the run fails with `unknown_patch`. See
    /// [versions](crate::guide::versions#patches).
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
            state.refuse_code(Error::new("unknown_patch", problem));
            return false;
        }
        state.replay.patches().is_some_and(|names| names.iter().any(|known| known == name))
    }

    /// The time left until the deadline of the run or of the execution, or the end of the invocation, whichever is
    /// first. `None` if there is none of them.
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

    /// The trace that the execution belongs to, in the form of a `traceparent` header. Its remote steps and children
    /// belong to it too. `None` unless the system keeps traces (`TICKOVER_TRACE=carry`) and the start named one.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn order(ctx: Ctx, (): ()) -> Result<String> {
    ///     Ok(ctx.traceparent().unwrap_or_else(|| "no trace".to_owned()))
    /// }
    /// # assert_eq!(tickover::test::outcome(order, &order, ()), "no trace"); // a test keeps none
    /// ```
    pub fn traceparent(&self) -> Option<String> {
        self.shared.lock().facts.trace.map(|trace| trace.traceparent())
    }

    /// The number of this run in the execution, from 1.
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

    /// Whether a cancellation of the execution was requested, as far as this turn knows. In that case no new step
    /// starts, and the code is stopped when it next waits. Check it in code between steps that takes long, and return
    /// early. An error that it returns then doesn't matter: the execution is cancelled.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn compare(ctx: Ctx, numbers: Vec<u32>) -> Result<usize> {
    ///     let mut larger = 0;
    ///     for (n, number) in numbers.iter().enumerate() {
    ///         if ctx.is_cancelled() {
    ///             return Err(Error::new("cancelled", format!("stopped at {n}")));
    ///         }
    ///         larger += numbers.iter().filter(|other| *other > number).count();
    ///     }
    ///     Ok(larger)
    /// }
    /// # assert_eq!(tickover::test::outcome(compare, &compare, vec![1, 2, 3]), 3);
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.shared.lock().facts.cancelled
    }
}
