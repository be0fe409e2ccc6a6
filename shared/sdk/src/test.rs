//! Workflows in a test: the whole system in memory, in a time of its own.
//!
//! A [`TestEnv`] has a store, queues, a worker, timers and a tick. Its clock stands still while there is anything to
//! do, and then leaps to where something happens next: a week's sleep takes no time. Nothing in it is made easier than
//! it is outside: a worker's death leaves its lease to run out, a message in flight stays hidden, and the tick comes
//! once a minute.
//!
//! ```
//! use tickover::prelude::*;
//! use tickover::test::TestEnv;
//!
//! #[tickover::workflow]
//! async fn greet(ctx: Ctx, name: String) -> Result<String> {
//!     ctx.sleep("think", "7d").await?;
//!     let answer: String = ctx.step(remote("translate", &name)).await?;
//!     Ok(format!("{answer}!"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
//! let env = TestEnv::new().workflow(greet).answer("translate", |name: String| Ok(format!("salut {name}")));
//! let run = env.start(&greet, "Ada".to_owned()).await?;
//! assert_eq!(run.result().await?, "salut Ada!");
//! # Ok(())
//! # }
//! ```
//!
//! Code under test may wait for its context and for other tasks of the test. What it waits for of the real world, the
//! clock doesn't see: it would leap meanwhile. [`TestEnv::patience`] makes it wait a little.

mod answers;
mod death;
mod each_death;
mod example;
mod ledger;
mod ports;
mod run;
mod steer;
mod system;
mod timeline;
mod work;

use std::fmt;
use std::future::{Future, IntoFuture as _, poll_fn};
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::FutureExt as _;
use futures::lock::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::execution::journal::Happened;
use tickover_core::execution::{Execution, ExecutionState};
use tickover_core::id::ExecutionId;
use tickover_core::time::Timestamp;
use tickover_service::Service;
use tickover_service::ports::{Clock as _, Store as _};

pub use death::Death;
pub use each_death::with_each_death;
#[doc(hidden)]
pub use example::outcome;
pub use run::Run;

use crate::client::{Client, ClientError, StartExecution};
use crate::error::Failure;
use crate::options::IntoMillis;
use crate::registry::{Register, Registry};
use crate::step::StepHandler;
use crate::workflow::Workflow;
use system::{Progress, System, World};

/// When the clock of a test begins: 2026-01-01T00:00:00Z.
pub const BEGINNING: Timestamp = Timestamp::from_millis(1_767_225_600_000);
/// How long an execution that nothing wakes by itself is waited for though nothing new happens.
const NOTHING_NEW: Millis = Millis::from_secs(26 * 3_600);
/// How many generations of children are looked at for something that wakes by itself.
const GENERATIONS: u32 = 8;

/// A whole system for a test.
pub struct TestEnv {
    world: Arc<World>,
    service: Service,
    client: Client,
    registry: Registry,
    patience: Duration,
    /// Begun with the first thing that is waited for.
    system: Mutex<Option<System>>,
    progress: Arc<Progress>,
}

/// How far time is let pass at most.
#[derive(Clone, Copy)]
enum Until {
    /// As far as it takes.
    Done,
    /// Until nobody is at work.
    Idle,
    /// To an instant, with all that happens at it.
    Instant(Timestamp),
}

/// What became of the wait for something.
enum Driven<T> {
    Done(T),
    /// As far as was said.
    Reached,
    /// Nothing will ever happen by itself.
    Stalled,
}

impl TestEnv {
    /// A system that knows no workflow yet. Its clock stands at [`BEGINNING`].
    pub fn new() -> Self {
        let world = Arc::new(World::new(BEGINNING));
        let service = world.outside();
        Self {
            world,
            client: service.clone().into(),
            service,
            registry: Registry::new(),
            patience: Duration::ZERO,
            system: Mutex::new(None),
            progress: Arc::default(),
        }
    }

    /// With one or more workflows.
    #[must_use]
    pub fn workflow(mut self, workflows: impl Register) -> Self {
        self.registry = self.registry.with(workflows);
        self
    }

    /// With a worker for a step that workflows run remotely.
    #[must_use]
    pub fn step<S: StepHandler>(mut self) -> Self {
        self.registry = self.registry.with_step::<S>();
        self
    }

    /// With this for all steps that ask for a state of its type.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, state: T) -> Self {
        self.registry = self.registry.with_state(state);
        self
    }

    /// With other code for a step, wherever it runs: in place, or remotely without a worker for it.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// #[tickover::step]
    /// async fn fetch(url: String) -> Result<String> {
    ///     Err(Error::new("offline", url))
    /// }
    ///
    /// let env = TestEnv::new().mock::<fetch>(|url| Ok(format!("what is at {url}")));
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

    /// With an answer to remote steps of a kind that no code here serves, instead of a worker for them. Without
    /// either, such steps wait.
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

    /// With this much of the real time for whoever is at work, each time before the clock leaps: for code that waits
    /// for something outside of the test. None by default.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// With somebody who is told of each death of the system, before a fresh one goes on: to compare later what the
    /// outside had seen by then.
    #[must_use]
    pub fn on_death(self, mourner: impl Fn(&Death) + Send + Sync + 'static) -> Self {
        *self.world.mourner.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(mourner));
        self
    }

    /// From now on with an answer to remote steps of a kind, those that wait already included. That none of this kind
    /// waits is an error that says which do: [`Self::answer`] is for steps to come.
    pub async fn answer_now<I, O, F>(&self, kind: &str, answer: F) -> Result<(), ClientError>
    where
        I: DeserializeOwned,
        O: Serialize,
        F: Fn(I) -> Result<O, Failure> + Send + Sync + 'static,
    {
        let waiting = self.unanswered();
        if !waiting.iter().any(|waits| waits == kind) {
            let which = if waiting.is_empty() { "no step does".to_owned() } else { waiting.join(", ") };
            return Err(invalid(
                "kind",
                &format!("no step of the kind `{kind}` waits to be answered; these do: {which}"),
            ));
        }
        self.world.answers.add(kind.to_owned(), answer);
        self.world.let_go(kind).await;
        Ok(())
    }

    /// The kinds of the remote steps that wait because nobody here answers them.
    pub fn unanswered(&self) -> Vec<String> {
        self.world.held().values().map(|held| held.kind.clone()).collect()
    }

    /// A client of this system, for whatever isn't offered here. What waits has to be awaited through [`Self::run`].
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The service behind it, for whatever isn't offered here: it shares this system's clock and never dies.
    pub const fn service(&self) -> &Service {
        &self.service
    }

    /// The time by this system's clock.
    pub fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    /// Starts an execution. Nothing of it runs before time is let pass or something is waited for.
    pub async fn start<I: Serialize, O: Send + 'static>(
        &self,
        workflow: &Workflow<I, O>,
        input: I,
    ) -> Result<Run<'_, O>, ClientError> {
        self.submit(self.client.start(workflow, input)).await
    }

    /// The same with options: `env.submit(env.client().start(&fulfil, order).id("order-7"))`.
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
    /// assert_eq!(run.id().as_str(), "nap-7");
    /// # }
    /// ```
    pub async fn submit<O: Send + 'static>(
        &self,
        start: StartExecution<O>,
    ) -> Result<Run<'_, O>, ClientError> {
        let handle = self.run(start.into_future()).await??;
        Ok(Run::new(self, handle))
    }

    /// Offers an event to an execution. It is taken once time is let pass or something is waited for.
    pub async fn offer(
        &self,
        execution: impl Into<String>,
        event: &str,
        payload: impl Serialize,
    ) -> Result<(), ClientError> {
        let handle = self.client.handle::<()>(execution)?;
        self.run(handle.offer(event, payload).into_future()).await??;
        Ok(())
    }

    /// Lets this much time pass, with all that happens in it.
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
    /// env.advance("47h").await.unwrap();
    /// assert!(run.describe().await.unwrap().is_live());
    /// # }
    /// ```
    pub async fn advance(&self, span: impl IntoMillis) -> Result<(), ClientError> {
        let span = span.into_millis(ZeroRule::Allow).map_err(|problem| invalid("span", &problem))?;
        let until = Until::Instant(self.now().plus(span));
        self.pass(until).await
    }

    /// Lets everything happen that can without anybody waiting: until all executions have ended, sleep, or wait for
    /// something. Time passes only as far as work under way needs it, or work that a dead worker left.
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
    /// assert!(run.timeline().await.unwrap().contains("sleep: waits until"));
    /// # }
    /// ```
    pub async fn run_until_idle(&self) -> Result<(), ClientError> {
        self.pass(Until::Idle).await
    }

    /// Lets time pass until a future is done: for what waits for this system in other ways.
    pub async fn run<F: Future>(&self, future: F) -> Result<F::Output, ClientError> {
        match self.drive(Until::Done, future).await? {
            Driven::Done(output) => Ok(output),
            Driven::Reached | Driven::Stalled => Err(stalled("nothing will happen any more by itself")),
        }
    }

    async fn pass(&self, until: Until) -> Result<(), ClientError> {
        match self.drive(until, std::future::pending::<()>()).await? {
            Driven::Done(()) | Driven::Reached | Driven::Stalled => Ok(()),
        }
    }

    /// Lets time pass until an execution has ended.
    async fn ended(&self, id: &ExecutionId) -> Result<(), ClientError> {
        let (mut news, mut since) = (self.world.ledger.news(), self.now());
        let ended = poll_fn(|_| {
            let Some(execution) = self.peek(id).filter(|execution| execution.closed().is_none()) else {
                return Poll::Ready(true);
            };
            let is_quiet = self.world.ledger.news() == news;
            if is_quiet && self.now().since(since) <= NOTHING_NEW {
                return Poll::Pending;
            }
            if is_quiet && !self.wakes(&execution, GENERATIONS) {
                return Poll::Ready(false);
            }
            (news, since) = (self.world.ledger.news(), self.now());
            Poll::Pending
        });
        match self.drive(Until::Done, ended).await? {
            Driven::Done(true) => Ok(()),
            Driven::Done(false) | Driven::Reached | Driven::Stalled => {
                let unanswered = self.unanswered();
                let waits = if unanswered.is_empty() {
                    "nothing that would end it will happen any more by itself".to_owned()
                } else {
                    format!("nobody answers its steps of the kinds {}", unanswered.join(", "))
                };
                Err(stalled(&format!("{waits}\n{}", self.story(id).await?)))
            }
        }
    }

    async fn story(&self, id: &ExecutionId) -> Result<String, ClientError> {
        let Some(execution) = self.peek(id) else {
            return Err(
                tickover_service::ServiceError::Rejected(tickover_core::error::Reject::NoExecution).into()
            );
        };
        let journal = self.service.journal_of(&execution).await?;
        Ok(timeline::timeline(&execution, &journal))
    }

    /// Whether an execution, or a child that it may wait for, goes on by itself at an instant that it knows.
    fn wakes(&self, execution: &Execution, generations: u32) -> bool {
        if will_wake(execution) || execution.open_steps == 0 || generations == 0 {
            return will_wake(execution);
        }
        let journal = self.service.journal_of(execution).now_or_never();
        let mut children = journal.into_iter().flatten().flatten().filter_map(|entry| match entry.what {
            Happened::Child { execution, .. } => self.peek(&execution),
            _ => None,
        });
        children.any(|child| child.closed().is_none() && self.wakes(&child, generations - 1))
    }

    /// A look at a record that nobody notices. The store in memory answers at once.
    fn peek(&self, id: &ExecutionId) -> Option<Execution> {
        self.world.store.execution(id).now_or_never()?.ok()?
    }

    /// The system, which begins when it is first needed.
    fn begun<'a>(&self, held: &'a mut Option<System>) -> Result<&'a mut System, ClientError> {
        match held {
            Some(system) => Ok(system),
            none => {
                let system = System::new(Arc::clone(&self.world), self.registry.clone());
                Ok(none.insert(system.map_err(|problem| invalid("registry", &problem))?))
            }
        }
    }

    /// Lets the system go on, and time pass, until something is done.
    async fn drive<F: Future>(&self, until: Until, goal: F) -> Result<Driven<F::Output>, ClientError> {
        let mut goal = pin!(goal);
        let mut held = self.system.lock().await;
        let system = self.begun(&mut held)?;
        let waker = Waker::from(Arc::clone(&self.progress));
        loop {
            let polled = poll_fn(|_| Poll::Ready(goal.as_mut().poll(&mut Context::from_waker(&waker)))).await;
            if let Poll::Ready(output) = polled {
                return Ok(Driven::Done(output));
            }
            let went_on = system.go_on(&self.progress).await;
            // Tasks of the test's own get their turn, and whoever merely made way for others is woken in it.
            tokio::task::yield_now().await;
            // What went on may be what is waited for, and what was woken may go on.
            let is_busy = self.progress.take() || went_on;
            if is_busy || (system.is_at_work() && self.waited_for_news().await) {
                continue;
            }
            let next = system.next_instant().await;
            let at = match (until, next) {
                (Until::Idle, _) if system.is_idle().await => return Ok(Driven::Reached),
                (Until::Instant(end), next) if next.is_none_or(|next| next > end) => {
                    self.world.clock.set(end);
                    return Ok(Driven::Reached);
                }
                (Until::Done | Until::Idle | Until::Instant(_), Some(next)) => next,
                (Until::Done | Until::Idle | Until::Instant(_), None) => return Ok(Driven::Stalled),
            };
            self.world.clock.set(at);
            system.tick(&self.progress).await;
        }
    }

    async fn waited_for_news(&self) -> bool {
        !self.patience.is_zero()
            && tokio::time::timeout(self.patience, self.progress.woken.notified()).await.is_ok()
    }
}

impl Default for TestEnv {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TestEnv {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TestEnv")
            .field("now", &self.now().to_rfc3339())
            .field("writes", &self.writes())
            .finish_non_exhaustive()
    }
}

/// Whether an execution goes on by itself at an instant that it knows.
fn will_wake(execution: &Execution) -> bool {
    match &execution.state {
        ExecutionState::Waiting(waiting) => {
            waiting.until.is_some() || execution.deadline_at.is_some() || execution.run_deadline_at.is_some()
        }
        ExecutionState::Pending(ready) => ready.hint_later,
        ExecutionState::Running(_) | ExecutionState::Closing(_) | ExecutionState::Ended(_) => false,
    }
}

fn invalid(field: &str, problem: &dyn fmt::Display) -> ClientError {
    ClientError::Invalid { field: field.to_owned(), problem: problem.to_string() }
}

fn stalled(message: &str) -> ClientError {
    ClientError::refused("stalled", message)
}
