//! A workflow's way to everything outside of it.
//!
//! Whatever a workflow does by its context has a name and is remembered by it. When the workflow's code runs again,
//! from its top, on this worker or another, what has a result gives it at once.

mod capture;
mod child;
mod combine;
mod event;
mod map;
pub(crate) mod operation;
mod send;
pub(crate) mod step;
mod time;

use std::fmt;
use std::fmt::Display;
use std::future::pending;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::time::Timestamp;

pub use child::{Child, StartChild, StartedChild};
pub(crate) use child::{elsewhere, is_ours};
pub use combine::{AllTasksFailed, Select, SelectOk, Settled};
pub use event::{EventError, Within, forever, within};
pub use map::{Map, Mapping, TooManyFailed};
pub use step::Stored;
pub use time::{Elapsed, Timeout};

use crate::codec;
use crate::error::{Error, Failure, Result};
use crate::options::IntoMillis;
use crate::step::{Step, StepError};
use crate::turn::state::{Shared, Verdict};
use crate::workflow::Workflow;
use capture::{Found, Remembered};
use child::ChildOperation;
use combine::{JoinAll, Steps};
use event::{Counted, Peek, Question, Wait};
use operation::Awaited;
use step::StepOperation;
use time::{End, Sleep};

/// A workflow's context. Cheap to clone.
#[derive(Clone)]
pub struct Ctx {
    shared: Arc<Shared>,
}

impl Ctx {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Runs a step, or gives its result if it has one.
    pub fn step<T: Stored, E: Stored + Display>(
        &self,
        step: Step<T, E>,
    ) -> BoxFuture<'static, Result<T, StepError<E>>> {
        Awaited::new(&self.shared, StepOperation::new(step)).boxed()
    }

    /// Runs steps side by side, named `label[0]`, `label[1]`, …, and waits for all of them. If some fail, the error
    /// is that of the first by index; [`Ctx::join_all_settled`] has them all.
    pub fn join_all<T: Stored, E: Stored + Display>(
        &self,
        label: impl Into<String>,
        steps: impl IntoIterator<Item = Step<T, E>>,
    ) -> BoxFuture<'static, Result<Vec<T>, StepError<E>>> {
        let joined = JoinAll::new(Steps::new(&self.shared, label.into(), steps));
        joined.map(|outcomes| outcomes.into_iter().collect()).boxed()
    }

    /// Runs steps side by side, named as by [`Ctx::join_all`], and waits for how each of them ends.
    pub fn join_all_settled<T: Stored, E: Stored + Display>(
        &self,
        label: impl Into<String>,
        steps: impl IntoIterator<Item = Step<T, E>>,
    ) -> BoxFuture<'static, Settled<T, E>> {
        let joined = JoinAll::new(Steps::new(&self.shared, label.into(), steps));
        joined.map(|outcomes| Settled { outcomes }).boxed()
    }

    /// Runs a step for each of some items, named `label[0]`, `label[1]`, …, and waits for all of them; so many at once
    /// and with as many failures as [`Map`] is told. What runs when too many have failed is ended.
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

    /// Runs steps side by side, named as by [`Ctx::join_all`], and waits for the first to end, well or not: its
    /// index and its outcome.
    pub fn select<T: Stored, E: Stored + Display>(
        &self,
        label: impl Into<String>,
        steps: impl IntoIterator<Item = Step<T, E>>,
    ) -> Select<T, E> {
        Select::new(Steps::new(&self.shared, label.into(), steps))
    }

    /// Runs steps side by side, named as by [`Ctx::join_all`], and waits for the first that has a result: its index
    /// and the result.
    pub fn select_ok<T: Stored, E: Stored + Display>(
        &self,
        label: impl Into<String>,
        steps: impl IntoIterator<Item = Step<T, E>>,
    ) -> SelectOk<T, E> {
        SelectOk::new(Steps::new(&self.shared, label.into(), steps))
    }

    /// Gives a future made of this context's so much time, with a limit of this name. What it waits for when the time
    /// is over is ended.
    pub fn timeout<F: Future>(
        &self,
        name: impl Into<String>,
        after: impl IntoMillis,
        future: F,
    ) -> Timeout<F> {
        Timeout::new(&self.shared, name.into(), after, future)
    }

    /// Sleeps: nothing runs meanwhile, however long it is.
    pub fn sleep(&self, name: impl Into<String>, span: impl IntoMillis) -> BoxFuture<'static, Result<()>> {
        let end = End::After(span.into_millis(ZeroRule::Allow));
        Awaited::new(&self.shared, Sleep::new(name.into(), end)).boxed()
    }

    /// Sleeps until an instant. One that has passed isn't waited for.
    pub fn sleep_until(
        &self,
        name: impl Into<String>,
        instant: impl Into<Timestamp>,
    ) -> BoxFuture<'static, Result<()>> {
        let end = End::At(instant.into());
        Awaited::new(&self.shared, Sleep::new(name.into(), end)).boxed()
    }

    /// Waits for an event of this name and takes it: the oldest that nobody has taken.
    pub fn wait_for_event<T: DeserializeOwned + Send + 'static>(
        &self,
        event: impl Into<String>,
        within: Within,
    ) -> BoxFuture<'static, Result<T, EventError>> {
        Awaited::new(&self.shared, Wait::new(event.into(), within)).boxed()
    }

    /// Looks at the event that the next wait of its name would take, and leaves it there.
    pub fn peek_event<T: DeserializeOwned + Send + 'static>(
        &self,
        event: impl Into<String>,
    ) -> BoxFuture<'static, Result<Option<T>>> {
        Awaited::new(&self.shared, Peek::new(event.into())).boxed()
    }

    /// How many events of this name nobody has taken.
    pub fn count_events(&self, event: impl Into<String>) -> BoxFuture<'static, Result<usize>> {
        let counted = Counted { event: event.into(), question: Question::Count };
        Awaited::new(&self.shared, counted).boxed()
    }

    /// Throws away all events of this name that nobody has taken: how many there were.
    pub fn drain_events(&self, event: impl Into<String>) -> BoxFuture<'static, Result<usize>> {
        let counted = Counted { event: event.into(), question: Question::Drain };
        Awaited::new(&self.shared, counted).boxed()
    }

    /// Sends an event to another execution, as a step of this name: once, whatever dies meanwhile.
    ///
    /// An execution that doesn't exist or has ended is an error, [`StepError::Failed`] with the code that the HTTP API
    /// answers.
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

    /// Calls the closure once and remembers its value: for whatever would differ the next time.
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
                // Not under the lock: it is the user's code.
                Found::Missing => remembered.take(&closure())?,
                Found::Refused(error) => return Err(error),
                Found::Over => return pending().await,
            }
            Awaited::new(&shared, remembered).await
        }
        .boxed()
    }

    /// The time, the same in every replay.
    pub fn now(&self, name: impl Into<String>) -> BoxFuture<'static, Result<Timestamp>> {
        let shared = Arc::clone(&self.shared);
        self.capture(name, move || shared.now())
    }

    /// An id that nobody else has, the same in every replay: a UUID of version 8, made from the run and the name.
    pub fn uuid(&self, name: impl Into<String>) -> BoxFuture<'static, Result<String>> {
        let (name, key) = (name.into(), self.shared.lock().facts.key.clone());
        let id = uuid(&key, &name);
        self.capture(name, move || id)
    }

    /// Starts an execution of a workflow as a child of this one, and waits for its result; [`Child::start`] doesn't
    /// wait.
    pub fn child<I: Serialize, O: Stored>(
        &self,
        workflow: &Workflow<I, O>,
        id: impl Into<String>,
        input: &I,
    ) -> Child<O> {
        Child::new(&self.shared, workflow, id.into(), input)
    }

    /// Waits for the result of an execution that isn't this one's child. It is looked at now and then: the longer
    /// this waits, the more seldom, at most five minutes apart.
    pub fn wait_for_execution<O: Stored>(
        &self,
        id: impl Into<String>,
    ) -> BoxFuture<'static, Result<O, StepError<Failure>>> {
        Awaited::new(&self.shared, ChildOperation::found(id.into())).boxed()
    }

    /// Ends this run and begins the next one with this input: same execution, a fresh journal. Events that nobody
    /// has taken are kept. Nothing after it runs.
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

    /// Whether this run began with code that has this change: for branches that runs under way must not take. The
    /// name has to be among the workflow's `patches`; if it isn't, the run fails and says so.
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
    pub fn remaining(&self) -> Option<Millis> {
        let now = self.shared.now();
        self.shared.lock().remaining(now)
    }

    /// The execution's id.
    pub fn execution_id(&self) -> String {
        self.shared.lock().facts.execution.to_string()
    }

    /// The trace that the execution belongs to, as in a `traceparent` header, and so do its remote steps and
    /// children. `None` where traces aren't carried, or whoever started it named none.
    pub fn traceparent(&self) -> Option<String> {
        self.shared.lock().facts.trace.map(|trace| trace.traceparent())
    }

    /// Which run of the execution this is, from 1.
    pub fn run(&self) -> u32 {
        self.shared.lock().facts.run
    }

    /// Whether somebody wants the execution to end, as far as this turn has heard. No new step starts then; a long
    /// one may look at this and stop.
    pub fn is_cancelled(&self) -> bool {
        self.shared.lock().facts.cancelled
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

/// Version 8 is for ids that are made in a way of one's own.
fn uuid(key: &str, name: &str) -> String {
    let hash = Sha256::new().chain_update(key).chain_update([0]).chain_update(name).finalize();
    let mut bits = hash.iter().take(16).fold(0_u128, |bits, byte| (bits << 8) | u128::from(*byte));
    bits = (bits & !(0xF << 76)) | (8 << 76);
    bits = (bits & !(0b11 << 62)) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}
