//! The lives of a system in a test: when it dies, what code goes on, and what was written.

use tickover_core::id::ExecutionId;

use super::{TestEnv, invalid};
use crate::client::ClientError;
use crate::registry::Register;

impl TestEnv {
    /// The worker, and with it the rest of the system, dies right after this write of the system's, counted from 1:
    /// after the commit, before anything else. A fresh one goes on. Writes of the test itself count as well.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn nap(ctx: Ctx, (): ()) -> Result<u32> { ctx.sleep("sleep", "2d").await?; Ok(7) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(nap);
    /// let run = env.start(&nap, ()).await.unwrap(); // the first write
    /// env.kill_after_write(env.writes() + 1);
    /// assert_eq!((run.result().await.unwrap(), env.deaths()), (7, 1));
    /// # }
    /// ```
    pub fn kill_after_write(&self, write: u64) {
        self.world.ledger.die_after(write);
    }

    /// The system dies now, and a fresh one goes on.
    pub fn kill(&self) {
        self.world.ledger.end_life();
    }

    /// Puts other code in the place of workflows of the same names, as a deployment does: the system dies, and the one
    /// that goes on has the new code.
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
        let mut held = self.system.lock().await;
        self.begun(&mut held)?.deploy(workflows).map_err(|problem| invalid("registry", &problem))?;
        self.kill();
        Ok(())
    }

    /// Writes so far.
    pub fn writes(&self) -> u64 {
        self.world.ledger.writes()
    }

    /// How often the system died.
    pub fn deaths(&self) -> u64 {
        self.world.ledger.deaths()
    }

    /// What happened to an execution so far, one line each.
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
        self.story(&id).await
    }
}
