//! A task, and its calls.

mod list;
mod outcome;
mod schedule;

use std::fmt;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use tickover_core::duration::Millis;
use tickover_core::id::TaskId;

pub use list::ListTasks;
pub use outcome::TaskOutcome;
pub use schedule::ScheduleTask;

use super::retries::Retries;
use super::{Client, ClientError, Ended, Reads, TaskDescription, TaskError};

/// The pause after the first call for a task that hasn't ended. It doubles each time.
const POLL_AFTER: Millis = Millis::new(100);
/// The longest pause.
const POLL_AFTER_MAX: Millis = Millis::from_secs(5);

/// A task whose result is read as `O`. Cheap to clone; dropping it changes nothing.
pub struct TaskHandle<O> {
    client: Client,
    id: TaskId,
    _reads: Reads<O>,
}

impl<O> TaskHandle<O> {
    pub(super) const fn new(client: Client, id: TaskId) -> Self {
        Self { client, id, _reads: PhantomData }
    }

    /// Its id.
    pub const fn id(&self) -> &TaskId {
        &self.id
    }

    /// Waits until it has ended, without a limit. Returns its result, or the reason why it has none. A task without a
    /// result has `null`.
    ///
    /// It polls: first after 100 ms, later every five seconds. Each poll is a call.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let task = client.task_handle::<u32>("mail-7")?;
    /// println!("{} letters", task.result().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn result(&self) -> Result<O, TaskError>
    where
        O: DeserializeOwned,
    {
        let (mut retries, mut pause) = (Retries::default(), POLL_AFTER);
        loop {
            let found = self.client.api.task(&self.id).await;
            match found.and_then(|found| TaskOutcome::of(&found.task)) {
                Ok(Some(outcome)) => return outcome.into_result(),
                Ok(None) => {
                    retries = Retries::default();
                    self.client.api.sleep(pause).await;
                    pause = pause.saturating_mul(2).min(POLL_AFTER_MAX);
                }
                Err(error) => retries.wait_or_fail(error, &self.client).await?,
            }
        }
    }

    /// Its current state, with its payloads, and what happens next without another call.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let task = client.task_handle::<()>("mail-7")?.describe().await?;
    /// println!("{} in its attempt {}; next: {}", task.status, task.attempt, task.next.what);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn describe(&self) -> Result<TaskDescription, ClientError> {
        Ok(self.client.api.task(&self.id).await?.task)
    }

    /// Asks it to end. A task that no worker has leased ends at once.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// use tickover::client::Ended;
    ///
    /// let task = client.task_handle::<()>("mail-7")?;
    /// if task.cancel().await? == Ended::Requested {
    ///     task.terminate().await?; // without asking its worker
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel(&self) -> Result<Ended, ClientError> {
        self.client.api.cancel_task(&self.id, false).await?.outcome.try_into()
    }

    /// Ends it at once, even while a worker has leased it. The worker's report is then refused.
    pub async fn terminate(&self) -> Result<Ended, ClientError> {
        self.client.api.cancel_task(&self.id, true).await?.outcome.try_into()
    }

    /// Retries it after it ended without a result. Its old deadline is cleared, and its timeout then applies to each
    /// attempt. Refused with `not_terminal` if it hasn't ended, and with `already_terminal` if it has a result.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// use tickover::client::TaskStatus;
    ///
    /// for task in client.list_tasks().queue("mail").status(TaskStatus::Failed).await?.tasks {
    ///     client.task_handle::<()>(task.id)?.retry().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn retry(&self) -> Result<TaskDescription, ClientError> {
        Ok(self.client.api.retry_task(&self.id).await?.task)
    }
}

impl<O> Clone for TaskHandle<O> {
    fn clone(&self) -> Self {
        Self::new(self.client.clone(), self.id.clone())
    }
}

impl<O> fmt::Debug for TaskHandle<O> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("TaskHandle").field(&self.id).finish()
    }
}
