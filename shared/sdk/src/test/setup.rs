//! The parts of a test's system, set before it starts: workflows, steps, states, mocks of steps.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Death, TestEnv};
use crate::error::Failure;
use crate::registry::Register;
use crate::step::StepHandler;

impl TestEnv {
    /// Adds one or more workflows: one, an array of one type, or a tuple of up to eight.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn parcel(_: Ctx, number: u32) -> Result<u32> { Ok(number) }
    /// #[tickover::workflow]
    /// async fn order(ctx: Ctx, number: u32) -> Result<u32> {
    ///     Ok(ctx.child(&parcel, number).id(format!("parcel-{number}")).await?)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow((order, parcel));
    /// assert_eq!(env.start(&order, 7).await.unwrap().result().await.unwrap(), 7);
    /// # }
    /// ```
    #[must_use]
    pub fn workflow(mut self, workflows: impl Register) -> Self {
        self.registry = self.registry.with(workflows);
        self
    }

    /// Adds a worker for a step that workflows run remotely. Inline steps don't need it.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// #[tickover::step("print-label", remote)]
    /// async fn print_label(address: String) -> Result<String> {
    ///     Ok(format!("label for {address}"))
    /// }
    /// # #[tickover::workflow]
    /// # async fn send(ctx: Ctx, to: String) -> Result<String> { Ok(ctx.step(print_label(to)).await?) }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(send).step::<print_label>();
    /// let run = env.start(&send, "Ada".to_owned()).await.unwrap();
    /// assert_eq!(run.result().await.unwrap(), "label for Ada");
    /// # }
    /// ```
    #[must_use]
    pub fn step<S: StepHandler>(mut self) -> Self {
        self.registry = self.registry.with_step::<S>();
        self
    }

    /// Gives this value to all steps that ask for a state of its type.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// struct Rate(u32);
    ///
    /// #[tickover::step]
    /// async fn convert(#[state] rate: &Rate, cents: u32) -> Result<u32> {
    ///     Ok(cents * rate.0)
    /// }
    /// # #[tickover::workflow]
    /// # async fn price(ctx: Ctx, cents: u32) -> Result<u32> { Ok(ctx.step(convert(cents)).await?) }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(price).state(Rate(3));
    /// assert_eq!(env.start(&price, 5).await.unwrap().result().await.unwrap(), 15);
    /// # }
    /// ```
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, state: T) -> Self {
        self.registry = self.registry.with_state(state);
        self
    }

    /// Replaces the code of a step, inline or remote. A mocked remote step needs no worker. The step's retries and
    /// timeouts still apply.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// #[tickover::step]
    /// async fn fetch(url: String) -> Result<String> {
    ///     Err(Error::new("offline", url))
    /// }
    /// # #[tickover::workflow]
    /// # async fn read(ctx: Ctx, url: String) -> Result<String> { Ok(ctx.step(fetch(url)).await?) }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(read).mock::<fetch>(|url| Ok(format!("what is at {url}")));
    /// let run = env.start(&read, "/a".to_owned()).await.unwrap();
    /// assert_eq!(run.result().await.unwrap(), "what is at /a");
    /// # }
    /// ```
    #[must_use]
    pub fn mock<S: StepHandler>(
        mut self,
        mock: impl Fn(S::Input) -> Result<S::Output, S::Error> + Send + Sync + 'static,
    ) -> Self {
        let mock = Arc::new(mock);
        self.registry = self.registry.with_mock::<S>(move |input| {
            let mock = Arc::clone(&mock);
            async move { mock(input) }.boxed()
        });
        self
    }

    /// Answers the remote steps of a kind that this crate has no code for. Without an answer such a step waits; see
    /// [`Self::unanswered`]. An `Err` is a failed attempt.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// #[tickover::workflow]
    /// async fn greet(ctx: Ctx, name: String) -> Result<String> {
    ///     Ok(ctx.step(remote("translate", &name)).await?)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(greet).answer("translate", |name: String| Ok(format!("salut {name}")));
    /// let run = env.start(&greet, "Ada".to_owned()).await.unwrap();
    /// assert_eq!(run.result().await.unwrap(), "salut Ada");
    /// # }
    /// ```
    #[must_use]
    pub fn answer<I, O, F>(self, kind: impl Into<String>, answer: F) -> Self
    where
        I: DeserializeOwned,
        O: Serialize,
        F: Fn(I) -> Result<O, Failure> + Send + Sync + 'static,
    {
        self.world.answers.add(kind.into(), answer);
        self
    }

    /// Sets a timeout in real time for code that waits for something outside of the test: a thread, a file, a server.
    /// Before each jump, the clock of the test waits up to this long for such code, while Tokio's timers stand still. Zero
    /// by default.
    ///
    /// Code that sleeps by Tokio's clock doesn't need it, and neither does `tokio::task::spawn_blocking`, for which the
    /// clock waits in any case.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickover::prelude::*;
    /// # use tickover::test::{BEGINNING, TestEnv};
    /// #[tickover::step]
    /// async fn count(text: String) -> Result<usize> {
    ///     let (sender, answer) = tokio::sync::oneshot::channel();
    ///     std::thread::spawn(move || sender.send(text.len())); // a real thread
    ///     Ok(answer.await?)
    /// }
    /// # #[tickover::workflow]
    /// # async fn measure(ctx: Ctx, text: String) -> Result<usize> { Ok(ctx.step(count(text)).await?) }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(measure).real_timeout(Duration::from_secs(10));
    /// let run = env.start(&measure, "abc".to_owned()).await.unwrap();
    /// assert_eq!((run.result().await.unwrap(), env.now()), (3, BEGINNING)); // the clock didn't leap
    /// # }
    /// ```
    #[must_use]
    pub const fn real_timeout(mut self, real_timeout: Duration) -> Self {
        self.real_timeout = real_timeout;
        self
    }

    /// Calls this closure after each death of the system, before a new system continues. Use it to check the effects on
    /// the outside world so far.
    ///
    /// ```
    /// # use std::sync::atomic::{AtomicUsize, Ordering};
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn nap(ctx: Ctx, (): ()) -> Result<u32> { ctx.sleep("sleep", "2d").await?; Ok(7) }
    /// static DEATHS: AtomicUsize = AtomicUsize::new(0);
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(nap).on_death(|death| {
    ///     assert!(death.completed.is_empty()); // no step had ended
    ///     DEATHS.fetch_add(1, Ordering::SeqCst);
    /// });
    /// let run = env.start(&nap, ()).await.unwrap();
    /// env.kill_after_write(env.writes() + 1);
    /// assert_eq!((run.result().await.unwrap(), DEATHS.load(Ordering::SeqCst)), (7, 1));
    /// # }
    /// ```
    #[must_use]
    pub fn on_death(self, death_hook: impl Fn(&Death) + Send + Sync + 'static) -> Self {
        *self.world.death_hook.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(death_hook));
        self
    }
}
