//! The context: a workflow's code uses it for everything outside of itself.
//!
//! Each step, sleep and wait has a name. Its outcome is stored in the journal under this name. When a worker replays
//! the workflow's code from its first line, the context returns a stored outcome without running anything.

mod callback;
mod capture;
mod child;
mod chunk;
mod combine;
mod event;
mod events;
mod facts;
mod map;
pub(crate) mod operation;
mod paged;
mod pages;
mod race;
mod request;
mod send;
pub(crate) mod step;
mod time;
mod undo;

use std::borrow::Borrow;
use std::fmt;
use std::fmt::Display;
use std::future::pending;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Serialize;
use tickover_core::duration::ZeroRule;
use tickover_core::time::Timestamp;

pub use callback::{Callback, CallbackError};
pub(crate) use child::probe_later;
pub use child::{Child, StartChild, StartedChild};
pub(crate) use chunk::{CHUNK, chunk_workflow};
pub use combine::{AllTasksFailed, Select, SelectOk, Settled};
pub use event::{EventError, Within, forever, within};
pub use map::{Map, Mapping, TooManyFailed};
pub use paged::Paged;
pub use pages::Pages;
pub use race::Either;
pub use request::{Request, Requests};
pub use step::Stored;
pub use time::{Elapsed, Timeout};
pub use undo::Undo;
pub(crate) use undo::UndoStep;

use crate::codec;
use crate::error::{Error, Failure, Result};
use crate::options::IntoMillis;
use crate::step::{Step, StepError};
use crate::turn::shared::Shared;
use crate::turn::state::Verdict;
use crate::workflow::AsWorkflow;
use capture::{Found, Remembered};
use child::ChildOperation;
use combine::{JoinAll, Steps};

use operation::Awaited;
use step::StepOperation;
use time::{End, Sleep};

/// A workflow's context: it runs steps, sleeps, waits, and starts other executions. Cheap to clone.
///
/// The [guide](crate::guide) explains all of these.
#[derive(Clone)]
pub struct Ctx {
    shared: Arc<Shared>,
}

impl Ctx {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The input doesn't fit the code. A run that has done nothing yet fails. The code of any other was changed: it waits for
    /// an operator, as it does if a result doesn't fit.
    pub(crate) async fn refuse_input<T>(self, error: Error) -> Result<T, Error> {
        {
            let mut state = self.shared.lock();
            if state.replay.entries() == 0 {
                return Err(error);
            }
            let failure = Failure::from(error).into();
            state.verdict.get_or_insert(Verdict::Unreadable(failure, None));
        }
        pending().await
    }

    /// Runs a step, or returns its stored result.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # #[tickover::step]
    /// # async fn charge(cents: u32) -> Result<u32> { Ok(cents) }
    /// #[tickover::workflow]
    /// async fn pay(ctx: Ctx, cents: u32) -> Result<u32> {
    ///     let charged = ctx.step(charge(cents).retry("fixed(3, 10s)")).await?;
    ///     Ok(charged)
    /// }
    /// # assert_eq!(tickover::test::outcome(pay, &pay, 5), 5);
    /// ```
    pub fn step<T: Stored, E: Stored + Display>(
        &self,
        step: Step<T, E>,
    ) -> BoxFuture<'static, Result<T, StepError<E>>> {
        Awaited::new(&self.shared, StepOperation::new(step)).boxed()
    }

    /// Runs steps in parallel, with the names `label[0]`, `label[1]`, …, and waits for all of them. If some fail,
    /// returns the error of the failed step with the lowest index. [`Ctx::join_all_settled`] returns all outcomes.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # #[tickover::step]
    /// # async fn charge(cents: u32) -> Result<u32> { Ok(cents) }
    /// #[tickover::workflow]
    /// async fn pay_all(ctx: Ctx, amounts: Vec<u32>) -> Result<u32> {
    ///     let charged = ctx.join_all("charge", amounts.into_iter().map(charge)).await?;
    ///     Ok(charged.iter().sum())
    /// }
    /// # assert_eq!(tickover::test::outcome(pay_all, &pay_all, vec![1, 2]), 3);
    /// ```
    pub fn join_all<T: Stored, E: Stored + Display>(
        &self,
        label: impl Into<String>,
        steps: impl IntoIterator<Item = Step<T, E>>,
    ) -> BoxFuture<'static, Result<Vec<T>, StepError<E>>> {
        let joined = JoinAll::new(Steps::new(&self.shared, label.into(), steps));
        joined.map(|outcomes| outcomes.into_iter().collect()).boxed()
    }

    /// Runs steps in parallel, with names as in [`Ctx::join_all`]. Waits until all have ended, and returns the outcome
    /// of each.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # #[tickover::step]
    /// # async fn charge(cents: u32) -> Result<u32> { Ok(cents) }
    /// #[tickover::workflow]
    /// async fn try_all(ctx: Ctx, amounts: Vec<u32>) -> Result<(usize, usize)> {
    ///     let settled = ctx.join_all_settled("charge", amounts.into_iter().map(charge)).await;
    ///     Ok((settled.completed().count(), settled.failed().count()))
    /// }
    /// # assert_eq!(tickover::test::outcome(try_all, &try_all, vec![1, 2]), (2, 0));
    /// ```
    pub fn join_all_settled<T: Stored, E: Stored + Display>(
        &self,
        label: impl Into<String>,
        steps: impl IntoIterator<Item = Step<T, E>>,
    ) -> BoxFuture<'static, Settled<T, E>> {
        let joined = JoinAll::new(Steps::new(&self.shared, label.into(), steps));
        joined.map(|outcomes| Settled { outcomes }).boxed()
    }

    /// Runs a step for each item, with the names `label[0]`, `label[1]`, …, and waits for all of them.
    /// [`Map::concurrency`] limits how many run at once, [`Map::tolerate`] how many may fail. If more fail, the steps
    /// that still run are ended.
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// # #[tickover::step]
    /// # async fn fetch(page: u32) -> Result<String> { Ok(page.to_string()) }
    /// #[tickover::workflow]
    /// async fn crawl(ctx: Ctx, pages: Vec<u32>) -> Result<Vec<String>> {
    ///     let fetched = ctx.map("page", pages, fetch).concurrency(8).tolerate("10%").await?;
    ///     Ok(fetched.completed().map(|(_, page)| page.clone()).collect())
    /// }
    /// ```
    pub fn map<I, T: Stored, E: Stored + Display>(
        &self,
        label: impl Into<String>,
        items: impl IntoIterator<Item = I>,
        step: impl FnMut(I) -> Step<T, E>,
    ) -> Map<T, E> {
        Map::new(&self.shared, label.into(), items.into_iter().map(step).collect())
    }

    /// Runs steps in parallel, with names as in [`Ctx::join_all`], and waits until the first one ends, with a result or
    /// an error. Returns its index and its outcome.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # #[tickover::step]
    /// # async fn charge(cents: u32) -> Result<u32> { Ok(cents) }
    /// #[tickover::workflow]
    /// async fn first(ctx: Ctx, amounts: Vec<u32>) -> Result<usize> {
    ///     let (winner, charged) = ctx.select("charge", amounts.into_iter().map(charge)).cancelling().await;
    ///     charged?;
    ///     Ok(winner)
    /// }
    /// # assert!(tickover::test::outcome(first, &first, vec![1, 2]) < 2);
    /// ```
    pub fn select<T: Stored, E: Stored + Display>(
        &self,
        label: impl Into<String>,
        steps: impl IntoIterator<Item = Step<T, E>>,
    ) -> Select<T, E> {
        Select::new(Steps::new(&self.shared, label.into(), steps))
    }

    /// Runs steps in parallel, with names as in [`Ctx::join_all`], and waits until the first one succeeds. Returns its
    /// index and its result. Without any step, the execution fails: there is nothing to choose from.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # #[tickover::step]
    /// # async fn charge(cents: u32) -> Result<u32> { Ok(cents) }
    /// #[tickover::workflow]
    /// async fn any(ctx: Ctx, amounts: Vec<u32>) -> Result<u32> {
    ///     let (_, charged) = ctx.select_ok("charge", amounts.into_iter().map(charge)).await?;
    ///     Ok(charged)
    /// }
    /// # assert!(tickover::test::outcome(any, &any, vec![1, 2]) > 0);
    /// ```
    pub fn select_ok<T: Stored, E: Stored + Display>(
        &self,
        label: impl Into<String>,
        steps: impl IntoIterator<Item = Step<T, E>>,
    ) -> SelectOk<T, E> {
        SelectOk::new(Steps::new(&self.shared, label.into(), steps))
    }

    /// Adds a timeout with this name to a future of this context. When it passes, the step or wait behind the future is
    /// ended, and the result is [`Elapsed`].
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn approval(ctx: Ctx, (): ()) -> Result<bool> {
    ///     let approved = ctx.wait_for_event::<bool>("approved", forever());
    ///     match ctx.timeout("too-late", "2d", approved).await {
    ///         Ok(approved) => Ok(approved?),
    ///         Err(_elapsed) => Ok(false),
    ///     }
    /// }
    /// # assert!(!tickover::test::outcome(approval, &approval, ()));
    /// ```
    pub fn timeout<F: Future>(
        &self,
        name: impl Into<String>,
        after: impl IntoMillis,
        future: F,
    ) -> Timeout<F> {
        Timeout::new(&self.shared, name.into(), after, future)
    }

    /// Sleeps. No worker is in use during a sleep, however long it is.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn weeks(ctx: Ctx, count: u32) -> Result<u32> {
    ///     for week in 0..count {
    ///         ctx.sleep(format!("week[{week}]"), "7d").await?;
    ///     }
    ///     Ok(count)
    /// }
    /// # assert_eq!(tickover::test::outcome(weeks, &weeks, 3), 3);
    /// ```
    pub fn sleep(&self, name: impl Into<String>, span: impl IntoMillis) -> BoxFuture<'static, Result<()>> {
        let end = End::After(span.into_millis(ZeroRule::Allow));
        Awaited::new(&self.shared, Sleep::new(name.into(), end)).boxed()
    }

    /// Sleeps until an instant. Returns at once if it has passed.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn tomorrow(ctx: Ctx, (): ()) -> Result<bool> {
    ///     let now = ctx.now("begun").await?;
    ///     let then = now.plus(tickover::Millis::from_secs(86_400));
    ///     ctx.sleep_until("tomorrow", then).await?;
    ///     Ok(ctx.now("woken").await? >= then)
    /// }
    /// # assert!(tickover::test::outcome(tomorrow, &tomorrow, ()));
    /// ```
    pub fn sleep_until(
        &self,
        name: impl Into<String>,
        instant: impl Into<Timestamp>,
    ) -> BoxFuture<'static, Result<()>> {
        let end = End::At(instant.into());
        Awaited::new(&self.shared, Sleep::new(name.into(), end)).boxed()
    }

    /// Calls the closure once and stores its value. Use it for values that would differ in a later replay.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn code_word(ctx: Ctx, (): ()) -> Result<usize> {
    ///     let word = ctx.capture("word", || std::env::args().count().to_string()).await?;
    ///     Ok(word.len())
    /// }
    /// # assert!(tickover::test::outcome(code_word, &code_word, ()) > 0);
    /// ```
    pub fn capture<T, C>(&self, name: impl Into<String>, closure: C) -> BoxFuture<'static, Result<T>>
    where
        T: Stored,
        C: FnOnce() -> T + Send + 'static,
    {
        let (shared, text) = (Arc::clone(&self.shared), name.into());
        async move {
            let mut remembered = Remembered::<T>::new(text);
            let found = remembered.find(&mut shared.lock());
            match found {
                Found::Known => {}
                // The lock isn't held here: the closure is the user's code.
                Found::Missing => remembered.take(&closure())?,
                Found::Refused(error) => return Err(error),
                Found::Over => return pending().await,
            }
            Awaited::new(&shared, remembered).await
        }
        .boxed()
    }

    /// The current time, which stays the same in every replay.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn lasted(ctx: Ctx, (): ()) -> Result<u64> {
    ///     let begun = ctx.now("begun").await?;
    ///     ctx.sleep("nap", "90s").await?;
    ///     Ok(ctx.now("done").await?.since(begun).as_u64())
    /// }
    /// # assert_eq!(tickover::test::outcome(lasted, &lasted, ()), 90_000);
    /// ```
    pub fn now(&self, name: impl Into<String>) -> BoxFuture<'static, Result<Timestamp>> {
        let shared = Arc::clone(&self.shared);
        self.capture(name, move || shared.now())
    }

    /// A unique id, the same in every replay: a UUID of version 8, made from the run and the name.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn key(ctx: Ctx, (): ()) -> Result<String> {
    ///     ctx.uuid("payment").await
    /// }
    /// # assert_eq!(tickover::test::outcome(key, &key, ()).len(), 36);
    /// ```
    pub fn uuid(&self, name: impl Into<String>) -> BoxFuture<'static, Result<String>> {
        let name = name.into();
        let id = self.shared.lock().facts.identity(&name);
        self.capture(name, move || id)
    }

    /// Starts an execution of a workflow as a child of this one, and waits for its result. [`Child::start`] doesn't
    /// wait. Its id follows from this execution and the child's name, which is that of its workflow, unless
    /// [`Child::id`] or [`Child::named`] says another: a run has one child of each name.
    ///
    /// A rerun and a retry of the step keep a child that has completed, and run one that has failed again from its last
    /// results. After a restart, in the next run of [`continue_as_new`](Self::continue_as_new) and after a retry of the
    /// run, a child that has ended runs again as new. One that is open is taken over.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn parcel(ctx: Ctx, number: u32) -> Result<u32> {
    ///     ctx.sleep("transport", "2d").await?;
    ///     Ok(number)
    /// }
    ///
    /// #[tickover::workflow]
    /// async fn order(ctx: Ctx, number: u32) -> Result<u32> {
    ///     let delivered = ctx.child(&parcel, number).await?;
    ///     Ok(delivered)
    /// }
    /// # assert_eq!(tickover::test::outcome((order, parcel), &order, 7), 7);
    /// ```
    pub fn child<W: AsWorkflow<Input: Serialize, Output: Stored>>(
        &self,
        workflow: &W,
        input: impl Borrow<W::Input>,
    ) -> Child<W::Output> {
        Child::new(&self.shared, &workflow.as_workflow(), input.borrow())
    }

    /// Waits for the result of an execution that isn't a child of this one. The worker checks that execution
    /// periodically: first after 2 seconds, then less often, but at least every 5 minutes. To wait for this execution
    /// itself is an error, [`StepError::Invalid`].
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn after(ctx: Ctx, order: String) -> Result<Option<u32>> {
    ///     match ctx.wait_for_execution::<u32>(order).await {
    ///         Ok(receipt) => Ok(Some(receipt)),
    ///         Err(_never_started_or_failed) => Ok(None),
    ///     }
    /// }
    /// ```
    pub fn wait_for_execution<O: Stored>(
        &self,
        id: impl Into<String>,
    ) -> BoxFuture<'static, Result<O, StepError<Failure>>> {
        Awaited::new(&self.shared, ChildOperation::found(id.into())).boxed()
    }

    /// Publishes a value under a name, for callers and operators: the stage of the work, or how far it has come. It takes the
    /// place of the one before. It is seen once the turn writes next: when a step has ended, when the code waits, and with a
    /// heartbeat during a long step. It costs no write of its own. A value stays when the run ends, also in the next run
    /// and after the end of the execution.
    ///
    /// At most 16 names, and 350 KiB in all. Read it with [`Handle::value`](crate::client::Handle::value), wait for a later
    /// version with [`Handle::value_after`](crate::client::Handle::value_after).
    ///
    /// ```
    /// use tickover::prelude::*;
    /// use tickover::test::TestEnv;
    ///
    /// #[tickover::workflow]
    /// async fn order(ctx: Ctx, boxes: u32) -> Result<u32> {
    ///     ctx.publish("stage", "packing")?;
    ///     ctx.sleep("packing", "1h").await?;
    ///     ctx.publish("stage", "on its way")?;
    ///     ctx.wait_for_event::<()>("arrived", forever()).await?;
    ///     Ok(boxes)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let env = TestEnv::new().workflow(order);
    /// let run = env.start(&order, 3).await?;
    /// env.run_until_idle().await?;
    /// assert_eq!(run.handle().value::<String>("stage").await?.unwrap().value, "packing");
    /// env.advance("1h").await?;
    /// let stage = run.handle().value_after::<String>("stage", 1).await?.unwrap();
    /// assert_eq!((stage.version, stage.value.as_str()), (2, "on its way"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid_value` if the name isn't one, the value can't be written as JSON, or there is too much of it. The same in
    /// each replay.
    pub fn publish(&self, name: impl AsRef<str>, value: impl Serialize) -> Result<()> {
        let value = codec::encode(&value).map_err(|error| Error::new("invalid_value", error.to_string()))?;
        let bytes_max = self.shared.service().limits().payload_bytes;
        self.shared.lock().published.publish(name.as_ref(), value, bytes_max)
    }

    /// Ends this run and starts the next run of the same execution, with this input and an empty journal. Events that
    /// wait are kept. No code after this call runs.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn monthly(ctx: Ctx, month: u32) -> Result<u32> {
    ///     ctx.sleep("month", "30d").await?;
    ///     if month < 12 { ctx.continue_as_new(month + 1).await } else { Ok(month) }
    /// }
    /// # assert_eq!(tickover::test::outcome(monthly, &monthly, 1), 12);
    /// ```
    pub fn continue_as_new<T>(&self, input: impl Serialize) -> BoxFuture<'static, Result<T>>
    where
        T: Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        let input = codec::encode(&input);
        async move {
            let input = input.map_err(|error| Error::new("invalid_input", error.to_string()))?;
            shared.lock().verdict.get_or_insert(Verdict::ContinueAsNew(input));
            pending().await
        }
        .boxed()
    }
}

impl fmt::Debug for Ctx {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        let facts = &state.facts;
        formatter
            .debug_struct("Ctx")
            .field("execution", &facts.execution)
            .field("run", &facts.run)
            .finish_non_exhaustive()
    }
}
