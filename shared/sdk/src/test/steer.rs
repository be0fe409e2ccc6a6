//! Controls the lives of a test's system: when it dies, and which code continues.

use tickover_core::id::ExecutionId;

use super::{TestEnv, invalid};
use crate::client::ClientError;
use crate::registry::Register;

impl TestEnv {
    /// Kills the system right after this write, counted from 1: after the commit, and before anything else. A new
    /// system continues. Writes of the test itself count too.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn nap(ctx: Ctx, (): ()) -> Result<u32> { ctx.sleep("sleep", "2d").await?; Ok(7) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(nap);
    /// let run = env.start(&nap, ()).await.unwrap(); // writes as well
    /// env.kill_after_write(env.writes() + 1);
    /// assert_eq!((run.result().await.unwrap(), env.deaths()), (7, 1));
    /// # }
    /// ```
    pub fn kill_after_write(&self, write: u64) {
        self.world.ledger.die_after(write);
    }

    /// Kills the system now: worker, timers and tick. A new system continues after the dead worker's leases have
    /// expired.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn nap(ctx: Ctx, (): ()) -> Result<u32> { ctx.sleep("sleep", "2d").await?; Ok(7) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(nap);
    /// let run = env.start(&nap, ()).await.unwrap();
    /// env.advance("1d").await.unwrap();
    /// env.kill();
    /// assert_eq!((run.result().await.unwrap(), env.deaths()), (7, 1));
    /// # }
    /// ```
    pub fn kill(&self) {
        self.world.ledger.end_life();
    }

    /// Replaces workflows with others of the same names, as a deployment does: the system dies, and a new system with
    /// the new code continues.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # mod old {
    /// #     use tickover::prelude::*;
    /// #     #[tickover::workflow]
    /// #     pub async fn price(ctx: Ctx, (): ()) -> Result<u32> { ctx.sleep("sleep", "2d").await?; Ok(7) }
    /// # }
    /// # mod new {
    /// #     use tickover::prelude::*;
    /// #     #[tickover::workflow]
    /// #     pub async fn price(ctx: Ctx, (): ()) -> Result<u32> { ctx.sleep("sleep", "2d").await?; Ok(8) }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(old::price);
    /// let run = env.start(&old::price, ()).await.unwrap();
    /// env.advance("1d").await.unwrap();
    /// env.deploy(new::price).await.unwrap();
    /// assert_eq!(run.result().await.unwrap(), 8);
    /// # }
    /// ```
    pub async fn deploy(&self, workflows: impl Register) -> Result<(), ClientError> {
        let mut system_guard = self.system.lock().await;
        self.started_system(&mut system_guard)?
            .deploy(workflows)
            .map_err(|problem| invalid("registry", &problem))?;
        self.kill();
        Ok(())
    }

    /// The number of writes so far, to choose a write after which to kill the system.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn nap(ctx: Ctx, (): ()) -> Result<u32> { ctx.sleep("sleep", "2d").await?; Ok(7) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(nap);
    /// let run = env.start(&nap, ()).await.unwrap();
    /// let before = env.writes();
    /// run.result().await.unwrap();
    /// assert!(env.writes() > before);
    /// # }
    /// ```
    pub fn writes(&self) -> u64 {
        self.world.ledger.writes()
    }

    /// How often the system died.
    ///
    /// ```
    /// # use tickover::test::TestEnv;
    /// let env = TestEnv::new();
    /// env.kill();
    /// assert_eq!(env.deaths(), 1);
    /// ```
    pub fn deaths(&self) -> u64 {
        self.world.ledger.deaths()
    }

    /// What happened to an execution so far, one line for each entry.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn nap(ctx: Ctx, (): ()) -> Result<u32> { ctx.sleep("sleep", "2d").await?; Ok(7) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(nap);
    /// let run = env.submit(env.client().start(&nap, ()).id("nap-7")).await.unwrap();
    /// run.result().await.unwrap();
    /// println!("{}", env.timeline("nap-7").await.unwrap());
    /// # }
    /// ```
    pub async fn timeline(&self, execution: &str) -> Result<String, ClientError> {
        let id = ExecutionId::parse(execution).map_err(|problem| invalid("id", &problem))?;
        self.timeline_of(&id).await
    }
}
