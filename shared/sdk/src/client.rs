//! Starts executions, schedules tasks, and controls them from outside.
//!
//! A [`Client`] reaches the system over HTTP or, if the program contains the service, directly. The calls are the same.
//! The client owns no rules: the service decides what a call does.

mod api;
#[cfg(feature = "client-aws")]
pub mod aws;
#[cfg_attr(
    not(any(feature = "direct", feature = "client-local")),
    expect(dead_code, reason = "without a transport no call is sent")
)]
mod call;
mod cron;
#[cfg(feature = "direct")]
mod direct;
mod error;
mod event;
mod handle;
#[cfg(feature = "client-local")]
mod http;
mod list;
mod operation;
mod outcome;
mod request;
mod retries;
mod start;
mod task;
mod value;

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
#[cfg(feature = "direct")]
use tickover_service::Service;
#[cfg(feature = "client-local")]
use tickover_service::config::ProcessEnvironment;
use tickover_service::transact::Prepared;

pub use api::Api;
pub use cron::{CronHandle, CronTarget, DefineCron, ListCrons};
pub use error::{ClientError, ExecutionError, TaskError};
pub use event::{SendEvent, SendRequest};
pub use handle::{Ended, Handle, Rerun};
#[cfg(feature = "client-local")]
pub use http::Http;
pub use list::ListExecutions;
pub use operation::{OnExecutions, OnTasks, OperationHandle};
pub use outcome::Outcome;
#[cfg(feature = "test")]
pub(crate) use outcome::null;
pub use start::StartExecution;
pub use task::{ListTasks, ScheduleTask, TaskHandle, TaskOutcome};
pub use tickover_core::cron::plan::{Missed, Overlap};
pub use tickover_core::execution::{DeadlineKind, ExecutionStatus};
pub use tickover_core::id::{
    CronId, EventId, EventName, ExecutionId, OperationId, StepName, TaskId, TaskKind, WorkerName,
    WorkerVersion, WorkflowName,
};
pub use tickover_core::operation::Action;
pub use tickover_core::retry::MaxAttempts;
pub use tickover_core::task::Status as TaskStatus;
pub use tickover_core::timeout::TimeoutKind;
/// The requests and answers of the HTTP API, and the values in them.
pub use tickover_wire as wire;
pub use value::Published;
pub use wire::answer::{
    AttemptOutcome, AttemptView as Attempt, CronStatus, CronView as CronDescription, CronsAnswer as Crons,
    EventView as Event, ExecutionView as Description, ExecutionsAnswer as Executions, ListAnswer as Tasks,
    NextView as Next, OperationStatus, OperationView as OperationDescription, Problem, RunState,
    RunView as CronRun, SendEventAnswer as EventSent, TaskView as TaskDescription,
    TimelineEntryView as TimelineEntry, WaitView as Wait,
};

use crate::step::Step;
use crate::workflow::AsWorkflow;

/// The default endpoint: a system on this machine.
#[cfg(feature = "client-local")]
const LOCAL: &str = "http://127.0.0.1:7070";

/// Calls the system that runs executions. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    api: Api,
}

impl Client {
    /// A client that uses the table and the queues of a deployment directly, without its HTTP API. The program needs
    /// credentials for them. Like a worker that polls, the client reads their names from the environment
    /// (`TICKOVER_TABLE`, `TICKOVER_QUEUES`, `TICKOVER_TIMERS`). It finds the credentials where AWS's own tools find
    /// them.
    ///
    /// # Errors
    ///
    /// [`ClientError::Invalid`] with the field `environment`. It names all variables that are missing or can't be read.
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// # #[tickover::workflow]
    /// # async fn order(_: Ctx, cents: u32) -> Result<u32> { Ok(cents) }
    /// # async fn example() -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let client = tickover::Client::direct().await?;
    /// client.start(&order, 500).id("order-7").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(any(feature = "aws", feature = "lambda"))]
    pub async fn direct() -> Result<Self, ClientError> {
        let service = tickover_lambda::boot::service().await;
        Ok(direct::of_process(service.map_err(|problem| ClientError::invalid("environment", problem))?))
    }

    /// A client that uses the table and the queues of a deployment directly, found by the name of its stack (of
    /// `infra/core.yaml`), with the credentials and the region that AWS's own tools would use. For a choice of these, see
    /// [`aws::Aws::core`].
    ///
    /// # Errors
    ///
    /// [`AwsError`](aws::AwsError): without credentials or a region, if the region has no such stack, or if its table
    /// can't be read.
    ///
    /// ```no_run
    /// # async fn example() -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let client = tickover::Client::direct_to_stack("tickover").await?;
    /// println!("order-7: {:?}", client.handle::<u32>("order-7")?.describe().await?.status);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(all(feature = "aws", feature = "client-aws"))]
    pub async fn direct_to_stack(stack: &str) -> Result<Self, aws::AwsError> {
        aws::Aws::from_env().await?.core(stack).await?.client().await
    }

    /// A client for the HTTP endpoint in `TICKOVER_ENDPOINT`, which the command-line tool uses too. Without this
    /// variable, it uses a system on this machine, at `http://127.0.0.1:7070`.
    ///
    /// ```no_run
    /// # async fn example() -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let client = tickover::Client::from_env()?;
    /// println!("order-7: {:?}", client.handle::<u32>("order-7")?.describe().await?.status);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "client-local")]
    pub fn from_env() -> Result<Self, ClientError> {
        Self::at(ProcessEnvironment::from_env().endpoint.as_deref())
    }

    #[cfg(feature = "client-local")]
    fn at(endpoint: Option<&str>) -> Result<Self, ClientError> {
        Self::http(endpoint.unwrap_or(LOCAL))
    }

    /// A client for the HTTP endpoint at this address, such as `http://127.0.0.1:7070`.
    ///
    /// ```
    /// let client = tickover::Client::http("http://127.0.0.1:7070")?;
    /// # Ok::<(), tickover::client::ClientError>(())
    /// ```
    #[cfg(feature = "client-local")]
    pub fn http(url: &str) -> Result<Self, ClientError> {
        Ok(Http::new(url)?.into())
    }

    /// A client for the deployment whose stack has this name. It finds the address in AWS, and signs each call, with
    /// the credentials and the region that AWS's own tools would use. For a choice of these, and for an address that is
    /// known, see [`aws`].
    ///
    /// # Errors
    ///
    /// [`AwsError`](aws::AwsError): without credentials or a region, or if the region has no such stack.
    ///
    /// ```no_run
    /// # async fn example() -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let client = tickover::Client::of_stack("tickover").await?;
    /// println!("order-7: {:?}", client.handle::<u32>("order-7")?.describe().await?.status);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "client-aws")]
    pub async fn of_stack(stack: &str) -> Result<Self, aws::AwsError> {
        let aws = aws::Aws::from_env().await?;
        Ok(aws.deployment(stack).await?.http(&aws)?.into())
    }

    /// Starts an execution of a workflow when the returned value is awaited.
    ///
    /// By default the execution has the queue and the timeouts of the workflow. If the input can't be written as JSON,
    /// the await returns an error.
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// # #[tickover::workflow]
    /// # async fn order(_: Ctx, cents: u32) -> Result<u32> { Ok(cents) }
    /// # async fn example() -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let client = tickover::Client::from_env()?;
    /// let run = client.start(&order, 500).id("order-7").await?;
    /// run.send_event("shipped", "a bicycle").await?;
    /// let receipt: u32 = run.result().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn start<W: AsWorkflow<Input: Serialize>>(
        &self,
        workflow: &W,
        input: W::Input,
    ) -> StartExecution<W::Output> {
        StartExecution::of(self.clone(), &workflow.as_workflow(), &input)
    }

    /// Starts an execution of a workflow whose code isn't in this program. Its result is read as `O`.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let run = client.start_by_name::<u32>("order", "workflows", 500).await?;
    /// println!("{} gave {}", run.id(), run.result().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn start_by_name<O>(&self, workflow: &str, queue: &str, input: impl Serialize) -> StartExecution<O> {
        StartExecution::named(self.clone(), workflow, queue, &input)
    }

    /// The execution with this id, whose result is read as `O`. This makes no call: the execution may not exist.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let run = client.handle::<u32>("order-7")?;
    /// println!("it is {:?}", run.describe().await?.status);
    /// # Ok(())
    /// # }
    /// ```
    pub fn handle<O>(&self, id: impl Into<String>) -> Result<Handle<O>, ClientError> {
        let id = ExecutionId::parse(id.into()).map_err(|problem| ClientError::invalid("id", problem))?;
        Ok(Handle::new(self.clone(), id))
    }

    /// Lists the executions of a workflow, newest first.
    ///
    /// ```no_run
    /// # async fn example() -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let client = tickover::Client::from_env()?;
    /// let page = client.list("order").limit(50).await?;
    /// println!("{} executions, and more: {}", page.executions.len(), page.cursor.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(&self, workflow: impl Into<String>) -> ListExecutions {
        ListExecutions::new(self.clone(), Some(workflow.into()))
    }

    /// Lists the executions of all workflows, newest first. A local server can, and a deployment on AWS with
    /// `TICKOVER_LISTS=all`; any other one lists only those with the statuses `failed` and `timed_out`.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let late = client.list_all().label("customer", "7").error_code("card_declined").await?;
    /// # drop(late);
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_all(&self) -> ListExecutions {
        ListExecutions::new(self.clone(), None)
    }

    /// Schedules a task of a kind when the returned value is awaited. Its worker can be written in any language. Its
    /// result is read as `O`.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let mail = client.task::<String>("email", "ada@example.com").queue("mail").retry("fixed(3, 2s)").await?;
    /// println!("{} gave {}", mail.id(), mail.result().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn task<O>(&self, kind: &str, input: impl Serialize) -> ScheduleTask<O> {
        ScheduleTask::named(self.clone(), kind, &input)
    }

    /// Schedules a step as a task of its own, outside of any workflow: with its options, on its queue if it has one. A
    /// worker that serves the step runs it.
    ///
    /// Options that only apply in a workflow are ignored: the name in a run and `at_most_once`.
    ///
    /// ```no_run
    /// # use tickover::prelude::*;
    /// #[tickover::step(retry = "fixed(3, 2s)")]
    /// async fn greet(name: String) -> Result<String> {
    ///     Ok(format!("salut {name}"))
    /// }
    ///
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let task = client.schedule(greet("Ada".to_owned())).delay("1h").await?;
    /// assert_eq!(task.result().await?, "salut Ada");
    /// # Ok(())
    /// # }
    /// ```
    pub fn schedule<O, E>(&self, step: Step<O, E>) -> ScheduleTask<O> {
        ScheduleTask::of(self.clone(), step)
    }

    /// The task with this id, whose result is read as `O`. This makes no call: the task may not exist.
    ///
    /// ```no_run
    /// # async fn example() -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let client = tickover::Client::from_env()?;
    /// client.task_handle::<u32>("welcome-ada")?.cancel().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn task_handle<O>(&self, id: impl Into<String>) -> Result<TaskHandle<O>, ClientError> {
        let id = TaskId::parse(id).map_err(|problem| ClientError::invalid("id", problem))?;
        Ok(TaskHandle::new(self.clone(), id))
    }

    /// Lists tasks, including the remote steps of executions.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let page = client.list_tasks().queue("mail").limit(100).await?;
    /// for task in &page.tasks {
    ///     println!("{} is {}", task.id, task.status);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_tasks(&self) -> ListTasks {
        ListTasks::new(self.clone())
    }

    /// Does the same with many executions: retries, restarts, cancels or terminates those that fit what is asked for.
    /// The system carries it out, page by page, also if processes die. See [`OperationHandle`].
    ///
    /// ```no_run
    /// # use tickover::client::Action;
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let declined = || client.on_executions(Action::Retry).workflow("order").error_code("card_declined");
    /// println!("{} of them", declined().dry_run().await?.ended().await?.matched);
    /// let retried = declined().await?.ended().await?;
    /// println!("{} retried, refused: {:?}", retried.changed, retried.refused);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_executions(&self, action: Action) -> OnExecutions {
        OnExecutions::new(self.clone(), action)
    }

    /// Sends an event to many executions that are open. Each takes it once.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// client.send_event_to_many("prices-changed", &7).workflow("order").await?.ended().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn send_event_to_many(&self, name: &str, payload: &(impl Serialize + ?Sized)) -> OnExecutions {
        self.on_executions(Action::SendEvent).event(name, payload)
    }

    /// Does the same with many tasks: retries, cancels or terminates those that fit what is asked for.
    ///
    /// ```no_run
    /// # use tickover::client::Action;
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// client.on_tasks(Action::Cancel).queue("mail").kind("newsletter").await?.ended().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_tasks(&self, action: Action) -> OnTasks {
        OnTasks::new(self.clone(), action)
    }

    /// The operation with this id. This makes no call: the operation may not exist.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// client.operation("retry-of-monday")?.stop().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn operation(&self, id: impl Into<String>) -> Result<OperationHandle, ClientError> {
        OperationHandle::new(self.clone(), id)
    }

    /// The cron with this id. This makes no call: the cron may not exist.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let weekly = client.cron("weekly-report")?;
    /// weekly.create(client.task::<()>("report", "sales")).cron("0 9 * * MON").await?;
    /// weekly.trigger().await?; // one at once
    /// # Ok(())
    /// # }
    /// ```
    pub fn cron(&self, id: impl Into<String>) -> Result<CronHandle, ClientError> {
        let id = CronId::parse(id).map_err(|problem| ClientError::invalid("id", problem))?;
        Ok(CronHandle::new(self.clone(), id))
    }

    /// Lists crons.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// for schedule in client.list_crons().await?.crons {
    ///     println!("{} is {:?}", schedule.id, schedule.status);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_crons(&self) -> ListCrons {
        ListCrons::new(self.clone())
    }

    /// Sends the hints of work that [`StartExecution::prepare`] prepared. Call it after the writes are committed.
    /// Without this call the work starts some minutes later.
    pub async fn announce(&self, prepared: Prepared<ExecutionId>) -> Result<(), ClientError> {
        self.api.announce(prepared).await
    }

    /// The calls of the HTTP API, one method each, with the API's own requests and answers. It has also the calls for
    /// queues and for workers in other processes.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let queue = tickover::QueueName::parse("mail")?;
    /// println!("{} tasks wait", client.api().queue(&queue).await?.queue.depth);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn api(&self) -> &Api {
        &self.api
    }

    /// The same client with a reason, of at most 128 bytes: what its operators' calls and cancellations change says why.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// client.because("ticket 42").handle::<u32>("order-7")?.cancel().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn because(&self, reason: &str) -> Self {
        Self { api: self.api.because(reason) }
    }
}

/// A client for a service in the same process.
#[cfg(feature = "direct")]
impl From<Service> for Client {
    fn from(service: Service) -> Self {
        Self { api: Api::new(direct::Direct::new(service)) }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Client").field(&self.api.place()).finish()
    }
}

/// Marks the type that a result is read as, without a value of it.
type Reads<O> = PhantomData<fn() -> O>;

#[cfg(all(test, feature = "client-local"))]
mod tests {
    use super::*;

    #[test]
    fn without_an_endpoint_in_the_environment_it_is_the_system_on_this_machine() {
        let place = |endpoint| format!("{:?}", Client::at(endpoint).unwrap());
        assert_eq!(place(None), place(Some(LOCAL)));
        assert!(place(Some("https://tasks.example.com")).contains("tasks.example.com"));
        assert!(Client::at(Some("tasks")).is_err());
    }
}
