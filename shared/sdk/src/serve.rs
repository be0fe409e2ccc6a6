//! A complete worker: `tickover::serve([fulfil]).await`.
//!
//! The environment decides how it runs. Inside Lambda it processes messages. With AWS configured it polls its queues. With
//! `TICKOVER_ENDPOINT` it works for the system at that address. Otherwise it runs the whole system in this process, so that `cargo run` is enough to try a workflow.

#[cfg(feature = "aws")]
mod aws;
#[cfg(feature = "embedded")]
mod embedded;
#[cfg(feature = "lambda")]
pub(crate) mod lambda;
#[cfg(feature = "client-local")]
mod remote;

use std::future::IntoFuture;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tickover_core::id::{Capability, NameError, QueueName};
use tickover_service::ServiceError;
use tickover_service::config::ProcessEnvironment;
use tickover_service::telemetry::{self, LogFormat};

use crate::registry::{Register, Registry, RegistryError};
use crate::step::StepHandler;
use crate::worker::WorkerSettings;

/// A worker for these workflows. Awaiting it runs it until the process gets SIGTERM or Ctrl-C.
///
/// The environment decides how it runs. Inside Lambda it processes the messages of its queues. With the variables of a
/// worker on AWS it polls its queues. With `TICKOVER_ENDPOINT` it works for the system at that address. Otherwise it runs
/// the whole system in one process. See [your first workflow](crate::guide::first_workflow#run-it).
///
/// ```no_run
/// # use tickover::prelude::*;
/// # #[tickover::workflow]
/// # async fn order(_: Ctx, cents: u32) -> Result<u32> { Ok(cents) }
/// #[tokio::main]
/// async fn main() {
///     tickover::serve(order).await;
/// }
/// ```
pub fn serve(workflows: impl Register) -> Serve {
    Serve {
        registry: Registry::new().with(workflows),
        settings: WorkerSettings::default(),
        allowed_hosts: vec![],
        #[cfg(feature = "client-local")]
        http: None,
        problem: None,
    }
}

/// The configuration of a worker. Awaiting it runs the worker. If the worker can't run, it logs the reason and ends the
/// process with status 1; [`Serve::run`] returns the reason instead.
#[must_use = "a worker does nothing until it is awaited"]
#[derive(Debug)]
pub struct Serve {
    registry: Registry,
    settings: WorkerSettings,
    allowed_hosts: Vec<String>,
    #[cfg(feature = "client-local")]
    http: Option<crate::client::Http>,
    problem: Option<ServeError>,
}

/// Why a worker can't run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The worker's workflows and steps have an error.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The name of a queue is invalid.
    #[error("queue {queue:?}: the name {problem}")]
    Queue {
        /// The name.
        queue: String,
        /// What is wrong with it.
        problem: NameError,
    },
    /// The name of something that the worker provides is invalid.
    #[error("provides {capability:?}: the name {problem}")]
    Capability {
        /// The name.
        capability: String,
        /// What is wrong with it.
        problem: NameError,
    },
    /// The crate was built without a feature that this environment needs.
    #[error("this environment needs the feature `{feature}`, which `tickover` was built without")]
    Feature {
        /// The feature's name.
        feature: &'static str,
    },
    /// A variable of the environment is missing or wrong, or the address is in use.
    #[error("{problem}")]
    Environment {
        /// What is wrong with it.
        problem: String,
    },
    /// The system can't be reached or read.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The local system or the Lambda runtime failed.
    #[error("{problem}")]
    System {
        /// Its error message.
        problem: String,
    },
}

impl Serve {
    /// Adds workflows: `serve(first).workflow(second)` is `serve((first, second))`.
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// # #[tickover::step]
    /// # async fn shout(text: String) -> Result<String> { Ok(text.to_uppercase()) }
    /// # #[tickover::workflow]
    /// # async fn first(_: Ctx, n: u32) -> Result<u32> { Ok(n) }
    /// # #[tickover::workflow]
    /// # async fn second(_: Ctx, text: String) -> Result<String> { Ok(text) }
    /// # #[tokio::main]
    /// # async fn main() {
    /// tickover::serve(first).workflow(second).await;
    /// # }
    /// ```
    pub fn workflow(mut self, workflows: impl Register) -> Self {
        self.registry = self.registry.with(workflows);
        self
    }

    /// Adds a step that workflows run remotely. Inline steps don't need it.
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// # #[tickover::step]
    /// # async fn shout(text: String) -> Result<String> { Ok(text.to_uppercase()) }
    /// # #[tickover::workflow]
    /// # async fn first(_: Ctx, n: u32) -> Result<u32> { Ok(n) }
    /// # #[tickover::workflow]
    /// # async fn second(_: Ctx, text: String) -> Result<String> { Ok(text) }
    /// # #[tokio::main]
    /// # async fn main() {
    /// tickover::serve(first).step::<shout>().await;
    /// # }
    /// ```
    pub fn step<S: StepHandler>(mut self) -> Self {
        self.registry = self.registry.with_step::<S>();
        self
    }

    /// Gives this value to all steps that ask for a state of its type: a connection, a client, settings. The worker
    /// doesn't start if a step asks for a state that is missing.
    ///
    /// ```no_run
    /// use std::collections::HashMap;
    /// use tickover::prelude::*;
    ///
    /// struct Prices(HashMap<String, u32>);
    ///
    /// #[tickover::step]
    /// async fn price(#[state] prices: &Prices, item: String) -> Result<u32> {
    ///     prices.0.get(&item).copied().ok_or_else(|| Error::new("unknown_item", item))
    /// }
    ///
    /// #[tickover::workflow]
    /// async fn quote(ctx: Ctx, item: String) -> Result<u32> {
    ///     Ok(ctx.step(price(item)).await?)
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() {
    /// let prices = Prices(HashMap::from([("bicycle".to_owned(), 500)]));
    /// tickover::serve(quote).state(prices).await;
    /// # }
    /// ```
    pub fn state<T: Send + Sync + 'static>(mut self, state: T) -> Self {
        self.registry = self.registry.with_state(state);
        self
    }

    /// Lets the worker start without a state of this type, although steps of this program ask for one. Use it in a
    /// worker that runs none of these steps.
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// # struct Printer;
    /// #[tickover::step("print-label", remote)]
    /// async fn print_label(#[state] printer: &Printer, address: String) -> Result<String> {
    ///     Ok(format!("label for {address}"))
    /// }
    ///
    /// #[tickover::workflow]
    /// async fn send(ctx: Ctx, address: String) -> Result<String> {
    ///     Ok(ctx.step(print_label(address)).await?)
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() {
    /// // Another worker has the printer. This one only runs the workflow.
    /// tickover::serve(send).without_state::<Printer>().await;
    /// # }
    /// ```
    pub fn without_state<T: 'static>(mut self) -> Self {
        self.registry = self.registry.without_state::<T>();
        self
    }

    /// Adds a queue to claim work from. Without this call, the worker uses the queues that its workflows and steps
    /// name.
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// # #[tickover::step]
    /// # async fn shout(text: String) -> Result<String> { Ok(text.to_uppercase()) }
    /// # #[tickover::workflow]
    /// # async fn first(_: Ctx, n: u32) -> Result<u32> { Ok(n) }
    /// # #[tickover::workflow]
    /// # async fn second(_: Ctx, text: String) -> Result<String> { Ok(text) }
    /// # #[tokio::main]
    /// # async fn main() {
    /// tickover::serve(first).queue("orders").await;
    /// # }
    /// ```
    pub fn queue(mut self, name: impl Into<String>) -> Self {
        let queue = name.into();
        match QueueName::parse(queue.as_str()) {
            Ok(name) => self.settings.queues.push(name),
            Err(problem) => {
                self.problem.get_or_insert(ServeError::Queue { queue, problem });
            }
        }
        self
    }

    /// Says that the worker provides something that a task may require, such as `gpu`. Tasks that require it and name no
    /// queue go to the worker's queues. A worker gets no task that requires what it doesn't provide.
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// # #[tickover::workflow]
    /// # async fn first(_: Ctx, n: u32) -> Result<u32> { Ok(n) }
    /// # #[tokio::main]
    /// # async fn main() {
    /// tickover::serve(first).queue("renders").provides("gpu").await;
    /// # }
    /// ```
    pub fn provides(mut self, name: impl Into<String>) -> Self {
        let capability = name.into();
        match Capability::parse(capability.as_str()) {
            Ok(name) => self.settings.provides.push(name),
            Err(problem) => {
                self.problem.get_or_insert(ServeError::Capability { capability, problem });
            }
        }
        self
    }

    /// Sets how many tasks and turns of each queue may run at once.
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// # #[tickover::step]
    /// # async fn shout(text: String) -> Result<String> { Ok(text.to_uppercase()) }
    /// # #[tickover::workflow]
    /// # async fn first(_: Ctx, n: u32) -> Result<u32> { Ok(n) }
    /// # #[tickover::workflow]
    /// # async fn second(_: Ctx, text: String) -> Result<String> { Ok(text) }
    /// # #[tokio::main]
    /// # async fn main() {
    /// tickover::serve(first).concurrency(4).await;
    /// # }
    /// ```
    pub fn concurrency(mut self, most: usize) -> Self {
        self.settings.concurrency = most;
        self
    }

    /// Allows one more host name or address in the `Host` header of requests to the local system, and callers on other
    /// machines. By default only `localhost` and loopback addresses are allowed, for callers on this machine, and requests
    /// from web pages of other sites are refused, because the local system doesn't authenticate its callers. `TICKOVER_ALLOW_HOST` adds names too, separated by commas. On
    /// AWS this call has no effect.
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// # #[tickover::workflow]
    /// # async fn order(_: Ctx, cents: u32) -> Result<u32> { Ok(cents) }
    /// # #[tokio::main]
    /// # async fn main() {
    /// // Reached by another container under the name `tickover`.
    /// tickover::serve(order).allow_host("tickover").await;
    /// # }
    /// ```
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.allowed_hosts.push(host.into());
        self
    }

    /// Makes the program a worker of the system at this address, with the headers or the signatures that it needs. It
    /// counts before the environment. See [a worker of another
    /// process](crate::guide::first_workflow#a-worker-of-another-process).
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// # #[tickover::workflow]
    /// # async fn order(_: Ctx, cents: u32) -> Result<u32> { Ok(cents) }
    /// # async fn example(token: &str) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// use tickover::client::Http;
    ///
    /// let http = Http::new("https://tasks.example.com")?.header("authorization", &format!("Bearer {token}"))?;
    /// tickover::serve(order).over(http).run().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "client-local")]
    pub fn over(mut self, http: crate::client::Http) -> Self {
        self.http = Some(http);
        self
    }

    /// Replaces all settings of the worker. Call it before [`queue`](Self::queue) and
    /// [`concurrency`](Self::concurrency), which change single settings.
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// # #[tickover::workflow]
    /// # async fn order(_: Ctx, cents: u32) -> Result<u32> { Ok(cents) }
    /// # #[tokio::main]
    /// # async fn main() {
    /// use tickover::{Millis, WorkerSettings};
    ///
    /// let settings = WorkerSettings { grace: Millis::from_secs(60), ..WorkerSettings::default() };
    /// tickover::serve(order).settings(settings).await;
    /// # }
    /// ```
    pub fn settings(mut self, settings: WorkerSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Runs the worker until the process gets SIGTERM or Ctrl-C.
    ///
    /// # Errors
    ///
    /// Returns why the worker can't run. Awaiting [`Serve`] itself logs this error and ends the process instead.
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// # #[tickover::workflow]
    /// # async fn order(_: Ctx, cents: u32) -> Result<u32> { Ok(cents) }
    /// #[tokio::main]
    /// async fn main() -> std::result::Result<(), tickover::ServeError> {
    ///     tickover::serve(order).run().await
    /// }
    /// ```
    pub async fn run(self) -> Result<(), ServeError> {
        let mut surroundings = ProcessEnvironment::from_env();
        surroundings.allow_hosts.extend(self.allowed_hosts);
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let (registry, settings) = (self.registry, self.settings);
        registry.check_all()?;
        #[cfg(feature = "client-local")]
        if let Some(http) = self.http {
            return remote::run(registry, settings, http, surroundings.log.as_deref()).await;
        }
        if surroundings.in_lambda {
            return in_lambda(registry, settings).await;
        }
        if surroundings.on_aws || surroundings.system.is_some() {
            return on_aws(registry, settings, surroundings.system).await;
        }
        if let Some(endpoint) = surroundings.worker_of() {
            return of_another(registry, settings, endpoint, surroundings.log.as_deref()).await;
        }
        embedded_worker(registry, settings, surroundings).await
    }
}

impl IntoFuture for Serve {
    type Output = ();
    type IntoFuture = BoxFuture<'static, ()>;

    fn into_future(self) -> Self::IntoFuture {
        async move {
            if let Err(error) = self.run().await {
                // If the worker failed before it initialised the log, the error would be lost.
                telemetry::init(telemetry::default_filter(), LogFormat::Text);
                tracing::error!(%error, "the worker can't run");
                std::process::exit(1);
            }
        }
        .boxed()
    }
}

#[cfg(feature = "lambda")]
async fn in_lambda(registry: Registry, settings: WorkerSettings) -> Result<(), ServeError> {
    lambda::run(registry, settings).await
}

#[cfg(not(feature = "lambda"))]
async fn in_lambda(_: Registry, _: WorkerSettings) -> Result<(), ServeError> {
    std::future::ready(Err(ServeError::Feature { feature: "lambda" })).await
}

#[cfg(feature = "aws")]
async fn on_aws(
    registry: Registry,
    settings: WorkerSettings,
    system: Option<String>,
) -> Result<(), ServeError> {
    aws::run(registry, settings, system).await
}

#[cfg(not(feature = "aws"))]
async fn on_aws(_: Registry, _: WorkerSettings, _: Option<String>) -> Result<(), ServeError> {
    std::future::ready(Err(ServeError::Feature { feature: "aws" })).await
}

#[cfg(feature = "client-local")]
async fn of_another(
    registry: Registry,
    settings: WorkerSettings,
    endpoint: &str,
    log: Option<&str>,
) -> Result<(), ServeError> {
    remote::run(registry, settings, remote::at(endpoint)?, log).await
}

#[cfg(not(feature = "client-local"))]
async fn of_another(_: Registry, _: WorkerSettings, _: &str, _: Option<&str>) -> Result<(), ServeError> {
    std::future::ready(Err(ServeError::Feature { feature: "client-local" })).await
}

#[cfg(feature = "embedded")]
async fn embedded_worker(
    registry: Registry,
    settings: WorkerSettings,
    surroundings: ProcessEnvironment,
) -> Result<(), ServeError> {
    embedded::run(registry, settings, surroundings).await
}

#[cfg(not(feature = "embedded"))]
async fn embedded_worker(_: Registry, _: WorkerSettings, _: ProcessEnvironment) -> Result<(), ServeError> {
    std::future::ready(Err(ServeError::Feature { feature: "embedded" })).await
}
