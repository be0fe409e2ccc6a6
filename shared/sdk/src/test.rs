//! Workflows in a test: the whole system in memory, in virtual time.
//!
//! A [`TestEnv`] has a store, queues, a worker, timers and a tick. Its clock doesn't move while there is work to do.
//! Then it jumps to the next instant at which something happens: a sleep of a week takes no real time. The rules are
//! those of a real system: a dead worker's lease has to expire, a message in flight stays hidden, and the tick comes
//! once a minute. The guide has [a page on testing](crate::guide::testing).
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
//! Tokio's clock moves with the virtual one: `tokio::time::sleep` of a step takes virtual time. For that it is paused, as
//! by [`tokio::time::pause`], while the test waits for the system, and as long as work is open. Only a current-thread
//! runtime with timers allows this, as `#[tokio::test]` makes one. With several threads, each wait is an error.
//!
//! Code under test may wait for its context and for other tasks of the test. The clock can't detect a wait for
//! something outside of the test, and would jump. [`TestEnv::real_timeout`] makes the clock wait for it.

mod answers;
mod clock;
mod death;
mod drive;
mod each_death;
mod example;
mod ledger;
mod ports;
mod replay;
mod run;
mod setup;
mod steer;
mod system;
mod timeline;
mod work;

use std::fmt;
use std::future::{Future, IntoFuture as _, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt as _;
use futures::lock::Mutex;
use serde::Serialize;
use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::execution::journal::Happened;
use tickover_core::execution::{Execution, ExecutionState, Stuck};
use tickover_core::id::ExecutionId;
use tickover_core::time::{Timestamp, earliest};
use tickover_service::Service;
use tickover_service::ports::Clock as _;

pub use death::Death;
pub use each_death::with_each_death;
#[doc(hidden)]
pub use example::outcome;
pub use replay::{ReplayError, Replayed};
pub use run::Run;

use crate::client::{Client, ClientError, StartExecution};
use crate::options::IntoMillis;
use crate::registry::Registry;
use crate::workflow::AsWorkflow;
use drive::{Driven, Until};
use system::{Progress, System, World};

/// The instant at which the clock of a test starts: 2026-01-01T00:00:00Z.
pub const BEGINNING: Timestamp = Timestamp::from_millis(1_767_225_600_000);
/// How long a test waits without news for an execution that nothing continues by itself.
const NOTHING_NEW: Millis = Millis::from_secs(26 * 3_600);
/// After so many more tries of code that can't continue, a test gives it up. Code that panics has failed by then.
const MORE_TRIES: u32 = 20;
/// How many generations of children are searched for one that continues by itself.
const GENERATIONS: u32 = 8;

/// A whole system for a test.
pub struct TestEnv {
    world: Arc<World>,
    service: Service,
    client: Client,
    registry: Registry,
    real_timeout: Duration,
    /// Created when the test first waits for something.
    system: Mutex<Option<System>>,
    progress: Arc<Progress>,
}

impl TestEnv {
    /// An empty system. Its clock starts at [`BEGINNING`].
    ///
    /// ```
    /// use tickover::test::{BEGINNING, TestEnv};
    ///
    /// assert_eq!(TestEnv::new().now(), BEGINNING);
    /// ```
    pub fn new() -> Self {
        let world = Arc::new(World::new(BEGINNING));
        let service = world.outside();
        Self {
            world,
            client: service.clone().into(),
            service,
            registry: Registry::new(),
            real_timeout: Duration::ZERO,
            system: Mutex::new(None),
            progress: Arc::default(),
        }
    }

    /// A client of this system: for starts with options, tasks, crons and lists. If a call waits for the system, such
    /// as for a result, await it through [`Self::run`], which lets time pass.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn nap(ctx: Ctx, (): ()) -> Result<u32> { ctx.sleep("sleep", "2d").await?; Ok(7) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(nap);
    /// env.start(&nap, ()).await.unwrap();
    /// let page = env.client().list("nap").await.unwrap();
    /// assert_eq!(page.executions.len(), 1);
    /// # }
    /// ```
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The service below the client, with this system's clock. It continues when the system dies. Most tests need
    /// [`Self::client`] instead.
    ///
    /// ```
    /// # use tickover::test::TestEnv;
    /// let env = TestEnv::new();
    /// assert_eq!(env.service().now(), env.now());
    /// ```
    pub const fn service(&self) -> &Service {
        &self.service
    }

    /// The time by this system's clock.
    ///
    /// ```
    /// # use tickover::Millis;
    /// # use tickover::test::BEGINNING;
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn nap(ctx: Ctx, (): ()) -> Result<u32> { ctx.sleep("sleep", "2d").await?; Ok(7) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(nap);
    /// env.start(&nap, ()).await.unwrap().result().await.unwrap();
    /// assert_eq!(env.now().since(BEGINNING), Millis::from_secs(2 * 86_400));
    /// # }
    /// ```
    pub fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    /// Starts an execution. Its code runs once the test waits for something or lets time pass.
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
    /// assert_eq!(run.result().await.unwrap(), 7);
    /// # }
    /// ```
    pub async fn start<W: AsWorkflow<Input: Serialize, Output: Send + 'static>>(
        &self,
        workflow: &W,
        input: W::Input,
    ) -> Result<Run<'_, W::Output>, ClientError> {
        self.submit(self.client.start(workflow, input)).await
    }

    /// Starts an execution with options: an id, a delay, other timeouts.
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

    /// Sends an event to an execution by its id. [`Run::send_event`] is shorter. The code takes it once the test waits
    /// for something or lets time pass.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn ask(ctx: Ctx, (): ()) -> Result<u32> { Ok(ctx.wait_for_event("answer", forever()).await?) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(ask);
    /// let run = env.submit(env.client().start(&ask, ()).id("ask-7")).await.unwrap();
    /// env.send_event("ask-7", "answer", 42).await.unwrap();
    /// assert_eq!(run.result().await.unwrap(), 42);
    /// # }
    /// ```
    pub async fn send_event(
        &self,
        execution: impl Into<String>,
        event: &str,
        payload: impl Serialize,
    ) -> Result<(), ClientError> {
        let handle = self.client.handle::<()>(execution)?;
        self.run(handle.send_event(event, payload).into_future()).await??;
        Ok(())
    }

    /// Lets this much time pass, and runs everything that happens in it.
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

    /// Runs everything that can run now: until each execution has ended, sleeps, or waits for something. The clock
    /// moves only as far as it must for running work, and for work of a dead worker.
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

    /// Lets time pass until a future is done, such as a call of this system's client.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn nap(ctx: Ctx, (): ()) -> Result<u32> { ctx.sleep("sleep", "2d").await?; Ok(7) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(nap);
    /// env.submit(env.client().start(&nap, ()).id("nap-7")).await.unwrap();
    /// let handle = env.client().handle::<u32>("nap-7").unwrap();
    /// assert_eq!(env.run(handle.result()).await.unwrap(), Ok(7));
    /// # }
    /// ```
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
        let tries_before = self.peek(id).map_or(0, |execution| tries(&execution));
        let ended = poll_fn(|_| {
            let Some(execution) = self.peek(id).filter(|execution| execution.closed().is_none()) else {
                return Poll::Ready(true);
            };
            let no_deadline = earliest([execution.deadline_at, execution.run_deadline_at]).is_none();
            if no_deadline && tries(&execution) >= tries_before + MORE_TRIES {
                return Poll::Ready(false);
            }
            let is_quiet = self.world.ledger.news() == news;
            if is_quiet && self.now().since(since) <= NOTHING_NEW {
                return Poll::Pending;
            }
            if is_quiet && !self.continues_by_itself(&execution, GENERATIONS) {
                return Poll::Ready(false);
            }
            (news, since) = (self.world.ledger.news(), self.now());
            Poll::Pending
        });
        match self.drive(Until::Done, ended).await? {
            Driven::Done(true) => Ok(()),
            Driven::Done(false) | Driven::Reached | Driven::Stalled => {
                let (unanswered, handle) = (self.unanswered(), self.client.handle::<()>(id.as_str())?);
                let waits = match handle.describe().await?.stuck {
                    Some(stuck) => format!("it is stuck, {}: {}", stuck.code, stuck.message),
                    None if unanswered.is_empty() => {
                        "nothing that would end it will happen any more by itself".to_owned()
                    }
                    None => format!("nobody answers its steps of the kinds {}", unanswered.join(", ")),
                };
                Err(stalled(&format!("{waits}\n{}", self.timeline_of(id).await?)))
            }
        }
    }

    async fn timeline_of(&self, id: &ExecutionId) -> Result<String, ClientError> {
        let Some(execution) = self.peek(id) else {
            return Err(
                tickover_service::ServiceError::Rejected(tickover_core::error::Reject::NoExecution).into()
            );
        };
        let journal = self.service.journal_of(&execution).await?;
        Ok(timeline::timeline(&execution, &journal))
    }

    /// Whether an execution, or a child that it may wait for, continues by itself at a known instant.
    fn continues_by_itself(&self, execution: &Execution, generations: u32) -> bool {
        if has_wake_instant(execution) || execution.open_steps == 0 || generations == 0 {
            return has_wake_instant(execution);
        }
        let journal = self.service.journal_of(execution).now_or_never();
        let mut children = journal.into_iter().flatten().flatten().filter_map(|entry| match entry.what {
            Happened::Child { execution, .. } => self.peek(&execution),
            _ => None,
        });
        children.any(|child| child.closed().is_none() && self.continues_by_itself(&child, generations - 1))
    }

    /// Reads a record without a trace in the ledger. The store in memory answers at once.
    fn peek(&self, id: &ExecutionId) -> Option<Execution> {
        self.world.store.execution(id).now_or_never()?.ok()?
    }

    /// The system, created when it is first needed.
    fn started_system<'a>(&self, system: &'a mut Option<System>) -> Result<&'a mut System, ClientError> {
        match system {
            Some(system) => Ok(system),
            none => {
                let system = System::new(Arc::clone(&self.world), self.registry.clone());
                Ok(none.insert(system.map_err(|problem| invalid("registry", &problem))?))
            }
        }
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

/// How many times in a row the code couldn't continue.
const fn tries(execution: &Execution) -> u32 {
    match &execution.stuck {
        Some(Stuck::Code { tries, .. } | Stuck::UnknownWorkflow { tries }) => *tries,
        Some(Stuck::Unreadable(_)) | None => 0,
    }
}

/// Whether an execution continues by itself at a known instant.
fn has_wake_instant(execution: &Execution) -> bool {
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
