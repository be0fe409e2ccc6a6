//! Futures of any type in parallel: wait for the first to end, or for both.

use std::future::{Future, IntoFuture, pending};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{self, BoxFuture};

use super::child::Child;
use super::step::Stored;
use super::{Ctx, Error};
use crate::error::Failure;
use crate::step::StepError;

/// The output of the first of two futures to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first future ended first.
    Left(A),
    /// The second future ended first.
    Right(B),
}

impl Ctx {
    /// Waits for the first of two futures of this context to end. Then it ends the step or wait behind the other
    /// future. A child that loses continues.
    ///
    /// The timeline shows under this name which future won. The winner is the same in every replay. This is also true
    /// of `tokio::select!` and other combinators over futures of the context.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// use tickover::Either;
    ///
    /// #[tickover::workflow]
    /// async fn approval(ctx: Ctx, (): ()) -> Result<bool> {
    ///     let approved = ctx.wait_for_event::<bool>("approved", forever());
    ///     let expired = ctx.sleep("expiry", "2d");
    ///     match ctx.race("decision", approved, expired).await {
    ///         Either::Left(approved) => Ok(approved?),
    ///         Either::Right(_) => Ok(false),
    ///     }
    /// }
    /// # assert!(!tickover::test::outcome(approval, &approval, ()));
    /// ```
    pub fn race<'f, A, B>(
        &self,
        name: impl Into<String>,
        first: A,
        second: B,
    ) -> BoxFuture<'f, Either<A::Output, B::Output>>
    where
        A: IntoFuture<IntoFuture: Send + 'f, Output: Send + 'f>,
        B: IntoFuture<IntoFuture: Send + 'f, Output: Send + 'f>,
    {
        let (ctx, name) = (self.clone(), name.into());
        let (first, second) = (Box::pin(first.into_future()), Box::pin(second.into_future()));
        async move {
            match future::select(first, second).await {
                future::Either::Left((ended, loser)) => {
                    ctx.decided(name, 0, loser).await;
                    Either::Left(ended)
                }
                future::Either::Right((ended, loser)) => {
                    ctx.decided(name, 1, loser).await;
                    Either::Right(ended)
                }
            }
        }
        .boxed()
    }

    /// Waits for the first of many futures of one type to end. Returns its index, from 0, and its output. Otherwise it
    /// works like [`Ctx::race`]. Without any future, the execution fails.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// #[tickover::workflow]
    /// async fn nearest(ctx: Ctx, hours: Vec<u64>) -> Result<usize> {
    ///     let sleeps = hours.iter().map(|hours| ctx.sleep(format!("hours-{hours}"), format!("{hours}h")));
    ///     let (winner, slept) = ctx.race_all("nearest", sleeps).await;
    ///     slept?;
    ///     Ok(winner)
    /// }
    /// # assert_eq!(tickover::test::outcome(nearest, &nearest, vec![5, 2, 9]), 1);
    /// ```
    pub fn race_all<'f, F>(
        &self,
        name: impl Into<String>,
        futures: impl IntoIterator<Item = F>,
    ) -> BoxFuture<'f, (usize, F::Output)>
    where
        F: IntoFuture<IntoFuture: Send + 'f, Output: Send + 'f>,
    {
        let (ctx, name) = (self.clone(), name.into());
        let futures: Vec<_> = futures.into_iter().map(|future| Box::pin(future.into_future())).collect();
        async move {
            if futures.is_empty() {
                let problem = format!("{name}: there is nothing to choose from");
                return ctx.give_up(Error::new("invalid_step", problem)).await;
            }
            let (ended, winner, losers) = future::select_all(futures).await;
            ctx.decided(name, winner, losers).await;
            (winner, ended)
        }
        .boxed()
    }

    /// Waits for two futures of this context, of any types, that run in parallel. For more futures use `tokio::join!`.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # #[tickover::step]
    /// # async fn charge(cents: u32) -> Result<u32> { Ok(cents) }
    /// #[tickover::workflow]
    /// async fn both(ctx: Ctx, cents: u32) -> Result<u32> {
    ///     let (charged, slept) = ctx.join(charge(cents), ctx.sleep("settle", "1h")).await;
    ///     slept?;
    ///     Ok(charged?)
    /// }
    /// # assert_eq!(tickover::test::outcome(both, &both, 5), 5);
    /// ```
    pub fn join<A: IntoFuture, B: IntoFuture>(
        &self,
        first: A,
        second: B,
    ) -> impl Future<Output = (A::Output, B::Output)> + use<A, B> {
        future::join(first.into_future(), second.into_future())
    }

    /// Starts children in parallel and waits for all of them. If some fail, returns the error of the failed child with
    /// the lowest index.
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
    /// async fn order(ctx: Ctx, parcels: u32) -> Result<u32> {
    ///     let children = (0..parcels).map(|number| ctx.child(&parcel, number).id(format!("parcel-{number}")));
    ///     let delivered = ctx.join_children(children).await?;
    ///     Ok(delivered.iter().sum())
    /// }
    /// # assert_eq!(tickover::test::outcome((order, parcel), &order, 4), 6);
    /// ```
    pub fn join_children<O: Stored>(
        &self,
        children: impl IntoIterator<Item = Child<O>>,
    ) -> BoxFuture<'static, Result<Vec<O>, StepError<Failure>>> {
        future::join_all(children).map(|ended| ended.into_iter().collect()).boxed()
    }

    /// Ends what the losers wait for, and records the winner's index.
    async fn decided<F>(&self, name: String, winner: usize, losers: F) {
        self.shared.drop_ending(true, losers);
        if let Err(error) = self.capture(name, move || winner).await {
            self.give_up::<()>(error).await;
        }
    }

    /// Fails the run.
    async fn give_up<T>(&self, error: Error) -> T {
        Arc::clone(&self.shared).lock().fail(error);
        pending().await
    }
}
