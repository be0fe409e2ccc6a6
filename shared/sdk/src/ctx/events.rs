//! What a workflow can do with events: receive its own, and send events to other executions.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::event::{CountEvents, EventError, EventQuery, Peek, Wait, Within};
use super::operation::Awaited;
use super::request::Requests;
use super::{Ctx, send};
use crate::error::{Failure, Result};
use crate::step::StepError;

impl Ctx {
    /// Waits for an event of this name and takes the oldest one that isn't taken yet.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn shipment(ctx: Ctx, (): ()) -> Result<String> {
    ///     match ctx.wait_for_event::<String>("shipped", within("7d")).await {
    ///         Ok(carrier) => Ok(carrier),
    ///         Err(tickover::EventError::Timeout { .. }) => Ok("lost".to_owned()),
    ///         Err(error) => Err(error.into()),
    ///     }
    /// }
    /// # assert_eq!(tickover::test::outcome(shipment, &shipment, ()), "lost");
    /// ```
    pub fn wait_for_event<T: DeserializeOwned + Send + 'static>(
        &self,
        event: impl Into<String>,
        within: Within,
    ) -> BoxFuture<'static, Result<T, EventError>> {
        let event = Awaited::new(&self.shared, Wait::new(event.into(), within));
        event.map(|event| event.map(|(_, payload)| payload)).boxed()
    }

    /// Events of this name whose senders wait for an answer: [`Requests::next`] takes the oldest, [`Request::answer`](super::Request::answer) ends it.
    ///
    /// A request is an event, so it waits until the code takes it, is taken once, and its id counts once. Its answer is a
    /// stored value: the sender gets it once the turn has written it, however often the code is replayed. An event that was
    /// sent without an id is a request too, whose answer nobody can ask for.
    ///
    /// ```
    /// use tickover::prelude::*;
    /// use tickover::test::TestEnv;
    ///
    /// #[tickover::workflow]
    /// async fn basket(ctx: Ctx, size: usize) -> Result<Vec<String>> {
    ///     let (mut items, adds) = (vec![], ctx.requests::<String, usize>("add-item"));
    ///     while items.len() < size {
    ///         let add = adds.next(forever()).await?;
    ///         items.push(add.body().clone());
    ///         add.answer(items.len()).await?;
    ///     }
    ///     Ok(items)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let env = TestEnv::new().workflow(basket);
    /// let run = env.start(&basket, 2).await?;
    /// assert_eq!(run.request::<usize>("add-item", "a lamp").await?, 1);
    /// assert_eq!(run.request::<usize>("add-item", "a chair").await?, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn requests<Q, A>(&self, event: impl Into<String>) -> Requests<Q, A> {
        Requests::new(self, event.into())
    }

    /// Returns the event that the next wait of this name would take, and leaves it there.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn glance(ctx: Ctx, (): ()) -> Result<Option<u32>> {
    ///     ctx.peek_event::<u32>("bid").await
    /// }
    /// # assert_eq!(tickover::test::outcome(glance, &glance, ()), None);
    /// ```
    pub fn peek_event<T: DeserializeOwned + Send + 'static>(
        &self,
        event: impl Into<String>,
    ) -> BoxFuture<'static, Result<Option<T>>> {
        Awaited::new(&self.shared, Peek::new(event.into())).boxed()
    }

    /// The number of events of this name that aren't taken yet.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn bids(ctx: Ctx, (): ()) -> Result<usize> {
    ///     ctx.sleep("auction", "1h").await?;
    ///     ctx.count_events("bid").await
    /// }
    /// # assert_eq!(tickover::test::outcome(bids, &bids, ()), 0);
    /// ```
    pub fn count_events(&self, event: impl Into<String>) -> BoxFuture<'static, Result<usize>> {
        let operation = CountEvents { event: event.into(), query: EventQuery::Count };
        Awaited::new(&self.shared, operation).boxed()
    }

    /// Deletes all events of this name that aren't taken yet. Returns how many there were.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn fresh_start(ctx: Ctx, (): ()) -> Result<usize> {
    ///     ctx.clear_events("bid").await
    /// }
    /// # assert_eq!(tickover::test::outcome(fresh_start, &fresh_start, ()), 0);
    /// ```
    pub fn clear_events(&self, event: impl Into<String>) -> BoxFuture<'static, Result<usize>> {
        let operation = CountEvents { event: event.into(), query: EventQuery::ClearEvents };
        Awaited::new(&self.shared, operation).boxed()
    }

    /// Sends an event to another execution, as a step of this name. The event is stored exactly once, even if a worker
    /// is lost meanwhile.
    ///
    /// If the execution doesn't exist or has ended, the error is [`StepError::Failed`] with the code that the HTTP API
    /// returns.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn tell(ctx: Ctx, order: String) -> Result<bool> {
    ///     match ctx.send_event("tell", order, "shipped", &"a bicycle").await {
    ///         Ok(()) => Ok(true),
    ///         // There is no such order, or it has ended.
    ///         Err(StepError::Failed { .. }) => Ok(false),
    ///         Err(error) => Err(error.into()),
    ///     }
    /// }
    /// # assert!(!tickover::test::outcome(tell, &tell, "order-7".to_owned()));
    /// ```
    pub fn send_event(
        &self,
        name: impl Into<String>,
        execution: impl Into<String>,
        event: impl Into<String>,
        payload: &impl Serialize,
    ) -> BoxFuture<'static, Result<(), StepError<Failure>>> {
        let name = name.into();
        let sending = send::send(&self.shared, name.clone(), execution.into(), event.into(), payload);
        let sent = self.step(sending);
        async move { sent.await?.map_err(|error| StepError::Failed { step: name, error }) }.boxed()
    }
}
