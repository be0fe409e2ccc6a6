//! An execution, and its calls.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tickover_core::duration::Millis;
use tickover_core::id::{EventName, ExecutionId, StepName};
use tickover_core::limits::WAIT_MAX;
use tickover_wire::answer::CancelOutcome;
use tickover_wire::request::{PageQuery, RerunRequest, RetryStepRequest};
use tickover_wire::{OpenCancelOutcome, OpenEnum};

use super::request::payload;
use super::retries::Retries;
use super::{
    Client, ClientError, Description, Event, ExecutionError, Outcome, Reads, SendEvent, SendRequest,
    TimelineEntry,
};

/// An execution whose result is read as `O`. Cheap to clone; dropping it changes nothing.
pub struct Handle<O> {
    client: Client,
    id: ExecutionId,
    _reads: Reads<O>,
}

/// The outcome of a request to end an execution or a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The request ended it.
    Now,
    /// It will end: an execution's code stops at its next step, and its undo steps run; a task's worker is notified with
    /// its next heartbeat.
    Requested,
    /// It had ended before.
    Before,
}

/// Which results of the last run a rerun keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rerun {
    /// Those of all steps that completed, except for these steps.
    Steps(Vec<String>),
    /// Those of all steps that completed: only what failed runs again.
    Failed,
    /// Those of the steps and children that began before this step.
    From(String),
    /// Only captured values: every step runs again.
    All,
}

fn rerun_request(rerun: Rerun) -> Result<RerunRequest, ClientError> {
    let (names, from, preserve) = match rerun {
        Rerun::Steps(names) => (names, None, true),
        Rerun::Failed => (vec![], None, true),
        Rerun::From(name) => (vec![], Some(step_name(name)?), true),
        Rerun::All => (vec![], None, false),
    };
    let steps: Result<_, ClientError> = names.into_iter().map(step_name).collect();
    Ok(RerunRequest { steps: Some(steps?), from, input: None, preserve: Some(preserve) })
}

impl<O> Handle<O> {
    pub(super) const fn new(client: Client, id: ExecutionId) -> Self {
        Self { client, id, _reads: PhantomData }
    }

    pub(super) const fn client(&self) -> &Client {
        &self.client
    }

    /// Its id.
    pub const fn id(&self) -> &ExecutionId {
        &self.id
    }

    /// Waits until it has ended, without a limit. Returns its result, or the reason why it has none.
    ///
    /// ```no_run
    /// # async fn example(run: tickover::client::Handle<u32>) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let receipt: u32 = run.result().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn result(&self) -> Result<O, ExecutionError>
    where
        O: DeserializeOwned,
    {
        let mut retries = Retries::default();
        loop {
            let found = self.client.api.execution(&self.id, WAIT_MAX).await;
            match found.and_then(|found| Outcome::of(&found.execution)) {
                Ok(Some(outcome)) => return outcome.into_result(),
                Ok(None) => retries = Retries::default(),
                Err(error) => retries.wait_or_fail(error, &self.client).await?,
            }
        }
    }

    /// Its current state.
    ///
    /// ```no_run
    /// # async fn example(run: tickover::client::Handle<u32>) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let now = run.describe().await?;
    /// println!("{:?} in run {}", now.status, now.run);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn describe(&self) -> Result<Description, ClientError> {
        Ok(self.client.api.execution(&self.id, Millis::ZERO).await?.execution)
    }

    /// What happened to it, in order of time: its start, the last run's steps, sleeps, waits and events, and its end.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// for entry in client.handle::<()>("order-7")?.timeline().await? {
    ///     println!("{} {} {}", entry.at.to_rfc3339(), entry.kind, entry.name.unwrap_or_default());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn timeline(&self) -> Result<Vec<TimelineEntry>, ClientError> {
        Ok(self.client.api.timeline(&self.id, None).await?.entries)
    }

    /// Sends an event to it when the returned value is awaited. The event waits until the execution's code takes it.
    ///
    /// ```no_run
    /// # async fn example(run: tickover::client::Handle<u32>) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// run.send_event("shipped", "a bicycle").id("shipment-7").await?; // once, however often it is sent
    /// # Ok(())
    /// # }
    /// ```
    pub fn send_event(&self, event: impl Into<String>, payload: impl Serialize) -> SendEvent {
        SendEvent::new(self.client.clone(), self.id.clone(), event.into(), &payload)
    }

    /// Sends a request to it when the returned value is awaited, and waits for the answer of its code, without a limit. The code
    /// takes it by [`Ctx::requests`](crate::Ctx::requests).
    ///
    /// ```no_run
    /// # async fn example(run: tickover::client::Handle<u32>) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let items: usize = run.request("add-item", "a lamp").id("add-7").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn request<A>(&self, event: impl Into<String>, payload: impl Serialize) -> SendRequest<A> {
        SendRequest::new(self.send_event(event, payload))
    }

    /// The events that wait for it, oldest first.
    ///
    /// ```no_run
    /// # async fn example(run: tickover::client::Handle<u32>) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// for event in run.events().await? {
    ///     println!("{} since {:?}", event.name, event.sent_at);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn events(&self) -> Result<Vec<Event>, ClientError> {
        let (mut events, mut query) = (Vec::new(), PageQuery::default());
        loop {
            let page = self.client.api.events(&self.id, &query).await?;
            events.extend(page.events);
            if page.cursor.is_none() {
                return Ok(events);
            }
            query.cursor = page.cursor;
        }
    }

    /// Clears the waiting events of a name, and returns their number.
    ///
    /// ```no_run
    /// # async fn example(run: tickover::client::Handle<u32>) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let thrown_away = run.clear_events("reminder").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn clear_events(&self, event: impl Into<String>) -> Result<u32, ClientError> {
        let name = EventName::parse(event).map_err(|problem| ClientError::invalid("event", problem))?;
        Ok(self.client.api.clear_events(&self.id, &name).await?.cleared)
    }

    /// Asks it to end: its code stops at its next step, its undo steps run, and then its `on_cancel`.
    ///
    /// ```no_run
    /// # async fn example(run: tickover::client::Handle<u32>) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// use tickover::client::Ended;
    ///
    /// match run.cancel().await? {
    ///     Ended::Now => println!("it has ended"),
    ///     Ended::Requested => println!("its code stops at its next step"),
    ///     Ended::Before => println!("it was over already"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel(&self) -> Result<Ended, ClientError> {
        self.client.api.cancel(&self.id).await?.outcome.try_into()
    }

    /// Ends it at once, whatever its code is doing.
    ///
    /// ```no_run
    /// # async fn example(run: tickover::client::Handle<u32>) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// run.terminate().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn terminate(&self) -> Result<Ended, ClientError> {
        self.client.api.terminate(&self.id).await?.outcome.try_into()
    }

    /// Pauses it: it starts no new work, and its deadlines keep running. Returns whether the call changed its state.
    ///
    /// ```no_run
    /// # async fn example(run: tickover::client::Handle<u32>) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// if run.pause().await? {
    ///     println!("it begins nothing new");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pause(&self) -> Result<bool, ClientError> {
        Ok(self.client.api.pause(&self.id).await?.changed)
    }

    /// Continues it if it is paused or stuck. Returns whether the call changed its state.
    ///
    /// ```no_run
    /// # async fn example(run: tickover::client::Handle<u32>) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// run.resume().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn resume(&self) -> Result<bool, ClientError> {
        Ok(self.client.api.resume(&self.id).await?.changed)
    }

    /// Starts a new run after it has ended, with the same input and new deadlines.
    ///
    /// ```no_run
    /// # async fn example(run: tickover::client::Handle<u32>) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// assert_eq!(run.restart().await?.run, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn restart(&self) -> Result<Description, ClientError> {
        Ok(self.client.api.restart(&self.id).await?.execution)
    }

    /// Starts a new run like [`restart`](Self::restart), but keeps results of the last run.
    ///
    /// ```no_run
    /// # async fn example(run: tickover::client::Handle<u32>) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// use tickover::client::Rerun;
    ///
    /// // Only what failed runs again.
    /// run.rerun(Rerun::Failed).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn rerun(&self, rerun: Rerun) -> Result<Description, ClientError> {
        let request = rerun_request(rerun)?;
        Ok(self.client.api.rerun(&self.id, &request).await?.execution)
    }

    /// The same with another input. Results that are kept are those of the last run's input.
    pub async fn rerun_with(
        &self,
        rerun: Rerun,
        input: &(impl Serialize + ?Sized),
    ) -> Result<Description, ClientError> {
        let request = RerunRequest { input: Some(payload("input", input)?), ..rerun_request(rerun)? };
        Ok(self.client.api.rerun(&self.id, &request).await?.execution)
    }

    /// Runs a step again in the same run, after the execution failed because of it.
    ///
    /// ```no_run
    /// # async fn example(run: tickover::client::Handle<u32>) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// run.retry_step("charge").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn retry_step(&self, name: impl Into<String>) -> Result<Description, ClientError> {
        let name = step_name(name.into())?;
        Ok(self.client.api.retry_step(&self.id, &name, &RetryStepRequest::default()).await?.execution)
    }

    /// The same for a remote step, with another input. Its code gets that at each attempt in this run; a step that isn't
    /// remote has the input that the workflow's code gives it, and refuses another one.
    pub async fn retry_step_with(
        &self,
        name: impl Into<String>,
        input: &(impl Serialize + ?Sized),
    ) -> Result<Description, ClientError> {
        let (name, request) =
            (step_name(name.into())?, RetryStepRequest { input: Some(payload("input", input)?) });
        Ok(self.client.api.retry_step(&self.id, &name, &request).await?.execution)
    }
}

impl TryFrom<OpenCancelOutcome> for Ended {
    type Error = ClientError;

    fn try_from(outcome: OpenCancelOutcome) -> Result<Self, ClientError> {
        match outcome {
            OpenEnum::Known(CancelOutcome::Cancelled) => Ok(Self::Now),
            OpenEnum::Known(CancelOutcome::Requested) => Ok(Self::Requested),
            OpenEnum::Known(CancelOutcome::AlreadyFinished) => Ok(Self::Before),
            OpenEnum::Other(word) => Err(ClientError::unknown("outcome", &word)),
        }
    }
}

fn step_name(name: String) -> Result<StepName, ClientError> {
    StepName::parse(name).map_err(|problem| ClientError::invalid("step", problem))
}

impl<O> Clone for Handle<O> {
    fn clone(&self) -> Self {
        Self::new(self.client.clone(), self.id.clone())
    }
}

impl<O> fmt::Debug for Handle<O> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Handle").field(&self.id).finish()
    }
}
