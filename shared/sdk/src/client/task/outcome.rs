//! How a task ended.

use serde::de::DeserializeOwned;
use tickover_core::payload::Json;
use tickover_core::task::Status;
use tickover_core::timeout::TimeoutKind;

use crate::client::outcome::{failure, known, null, read};
use crate::client::{ClientError, TaskDescription, TaskError};
use crate::error::Failure;

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskOutcome {
    /// With a result, as JSON. `None` if the answer left it out because it is large, or if there is no result.
    Completed(Option<Json>),
    /// With an error that isn't retried, or with no attempts left.
    Failed(Failure),
    /// A timeout passed.
    TimedOut {
        /// Which timeout.
        kind: TimeoutKind,
        /// The reason, with the last attempt's error if there was one.
        error: Failure,
    },
    /// It was cancelled, or a timeout passed that doesn't count as an error.
    Cancelled {
        /// The timeout, if it was one.
        timeout: Option<TimeoutKind>,
    },
    /// It never ran: its retry policy allows no attempt.
    Skipped,
}

impl TaskOutcome {
    /// How this task ended, if it has.
    ///
    /// ```no_run
    /// use tickover::client::TaskOutcome;
    ///
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let task = client.task_handle::<()>("mail-7")?.describe().await?;
    /// if let Some(TaskOutcome::Failed(error)) = TaskOutcome::of(&task)? {
    ///     println!("it failed with {error}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ClientError::Unreadable`] if the system is newer than this crate, and this crate doesn't know the outcome.
    pub fn of(task: &TaskDescription) -> Result<Option<Self>, ClientError> {
        let timeout = task.timeout_kind.as_ref().map(|kind| known("timeout", kind)).transpose()?;
        let error = |code| failure(task.error.as_ref(), code);
        Ok(match known("status", &task.status)? {
            Status::Pending | Status::Running => None,
            Status::Completed => Some(Self::Completed(task.output.clone().map(Json::from))),
            Status::Failed => Some(Self::Failed(error("failed"))),
            Status::TimedOut => {
                let kind = timeout.unwrap_or(TimeoutKind::ScheduleToClose);
                Some(Self::TimedOut { kind, error: error("timed_out") })
            }
            Status::Cancelled => Some(Self::Cancelled { timeout }),
            Status::Skipped => Some(Self::Skipped),
        })
    }

    /// The result, read as its type, or why there is none. A task without a result has `null`.
    pub(super) fn into_result<O: DeserializeOwned>(self) -> Result<O, TaskError> {
        match self {
            Self::Completed(output) => read(&output.unwrap_or_else(null))
                .map_err(|(type_name, problem)| TaskError::Unreadable { type_name, problem }),
            Self::Failed(error) => Err(TaskError::Failed(error)),
            Self::TimedOut { kind, error } => Err(TaskError::TimedOut { kind, error }),
            Self::Cancelled { timeout } => Err(TaskError::Cancelled { timeout }),
            Self::Skipped => Err(TaskError::Skipped),
        }
    }
}
