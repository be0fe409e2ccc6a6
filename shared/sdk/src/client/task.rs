//! A task, and what can be done to it.

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

/// The pause after the first look at a task that hasn't ended; then twice as long each time.
const LOOK_AFTER: Millis = Millis::new(100);
/// The longest that grows.
const LOOK_AFTER_MAX: Millis = Millis::from_secs(5);

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

    /// Waits until it has ended, however long that takes, and gives its result, or why there is none. A task without a
    /// result has `null`.
    ///
    /// It looks again and again, after 100 ms at first and every five seconds in the end: each look is a call.
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
        let (mut retries, mut pause) = (Retries::default(), LOOK_AFTER);
        loop {
            let found = self.client.api.task(&self.id).await;
            match found.and_then(|found| TaskOutcome::of(&found.task)) {
                Ok(Some(outcome)) => return outcome.into_result(),
                Ok(None) => {
                    retries = Retries::default();
                    self.client.api.sleep(pause).await;
                    pause = pause.saturating_mul(2).min(LOOK_AFTER_MAX);
                }
                Err(error) => retries.bear(error, &self.client).await?,
            }
        }
    }

    /// How it stands now, with its payloads, and what happens to it next by itself.
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

    /// Asks it to end. One that waits has ended with the answer.
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

    /// Ends it at once, even while a worker has it: what that reports is refused.
    pub async fn terminate(&self) -> Result<Ended, ClientError> {
        self.client.api.cancel_task(&self.id, true).await?.outcome.try_into()
    }

    /// Gives it another life after it ended without a result. Its old deadline is gone; its timeout then counts for
    /// each attempt. Refused with `not_terminal` where it hadn't ended, and with `already_terminal` where it has a
    /// result.
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
