//! An execution in a test.

use std::future::IntoFuture as _;
use std::ops::Deref;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::TestEnv;
use crate::client::{ClientError, EventSent, ExecutionError, Handle};

/// An execution in a test. It has all methods of a [`Handle`], such as `describe`, `cancel` and `retry_step`.
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
/// env.run_until_idle().await.unwrap();
/// run.cancel().await.unwrap();
/// assert_eq!(run.result().await.unwrap_err().to_string(), "the execution was cancelled");
/// # }
/// ```
#[derive(Debug)]
pub struct Run<'e, O> {
    env: &'e TestEnv,
    handle: Handle<O>,
}

impl<'e, O> Run<'e, O> {
    pub(super) const fn new(env: &'e TestEnv, handle: Handle<O>) -> Self {
        Self { env, handle }
    }

    /// The handle itself, for example to clone it or to send an event with an id.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn ask(ctx: Ctx, (): ()) -> Result<u32> { Ok(ctx.wait_for_event("answer", forever()).await?) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(ask);
    /// let run = env.start(&ask, ()).await.unwrap();
    /// for _ in 0..2 {
    ///     run.handle().send_event("answer", 42).id("answer-1").await.unwrap(); // the second one is a duplicate
    /// }
    /// assert_eq!(run.events().await.unwrap().len(), 1);
    /// # }
    /// ```
    pub const fn handle(&self) -> &Handle<O> {
        &self.handle
    }

    /// Lets time pass until the execution has ended, and returns its result. If nothing is left that could end it, this
    /// is an error that says what it waits for, or why it is stuck, and shows the timeline.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn ask(ctx: Ctx, (): ()) -> Result<u32> { Ok(ctx.wait_for_event("answer", forever()).await?) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(ask);
    /// let run = env.start(&ask, ()).await.unwrap();
    /// let error = run.result().await.unwrap_err(); // nobody sends the event
    /// assert!(error.to_string().contains("stalled"));
    /// # }
    /// ```
    pub async fn result(&self) -> Result<O, ExecutionError>
    where
        O: DeserializeOwned,
    {
        self.env.ended(self.handle.id()).await?;
        self.handle.result().await
    }

    /// Sends an event to it. The code takes it once the test waits for something or lets time pass.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn ask(ctx: Ctx, (): ()) -> Result<u32> { Ok(ctx.wait_for_event("answer", forever()).await?) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(ask);
    /// let run = env.start(&ask, ()).await.unwrap();
    /// run.send_event("answer", 42).await.unwrap();
    /// assert_eq!(run.result().await.unwrap(), 42);
    /// # }
    /// ```
    pub async fn send_event(&self, event: &str, payload: impl Serialize) -> Result<EventSent, ClientError> {
        self.env.run(self.handle.send_event(event, payload).into_future()).await?
    }

    /// Sends a request to it, and lets time pass until its code has answered it. See [`Ctx::requests`](crate::Ctx::requests).
    pub async fn request<A: DeserializeOwned + 'static>(
        &self,
        event: &str,
        payload: impl Serialize,
    ) -> Result<A, ClientError> {
        self.env.run(self.handle.request(event, payload).into_future()).await?
    }

    /// What happened to it so far, one line for each entry, with the time since the run started.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn ask(ctx: Ctx, (): ()) -> Result<u32> { Ok(ctx.wait_for_event("answer", forever()).await?) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(ask);
    /// let run = env.start(&ask, ()).await.unwrap();
    /// run.send_event("answer", 42).await.unwrap();
    /// run.result().await.unwrap();
    /// assert!(run.timeline().await.unwrap().contains("+0ms  completed with 42"));
    /// # }
    /// ```
    pub async fn timeline(&self) -> Result<String, ClientError> {
        self.env.timeline(self.handle.id().as_str()).await
    }
}

impl<O> Deref for Run<'_, O> {
    type Target = Handle<O>;

    fn deref(&self) -> &Handle<O> {
        &self.handle
    }
}
