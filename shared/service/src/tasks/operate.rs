//! The operations of operators on tasks: cancel and retry.

use tickover_core::id::TaskId;
use tickover_core::payload::Json;
use tickover_core::task::command::NewInput;
use tickover_core::task::{Command, Reply, Task};
use tickover_core::time::Timestamp;

use crate::drive::Known;
use crate::error::ServiceError;
use crate::service::Service;

/// The result of cancelling a task or an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReply {
    /// It has ended.
    Cancelled,
    /// Its worker will be notified.
    Requested,
    /// It had ended before.
    AlreadyFinished,
}

impl CancelReply {
    /// From whether it has ended now, and whether the call changed anything.
    pub(crate) const fn of(ended: bool, changed: bool) -> Self {
        match (ended, changed) {
            (false, _) => Self::Requested,
            (true, true) => Self::Cancelled,
            (true, false) => Self::AlreadyFinished,
        }
    }
}

impl Service {
    /// Ends a task, or asks its worker to end it; with `force`, ends it at once.
    pub async fn cancel(&self, id: &TaskId, force: bool) -> Result<(Task, CancelReply), ServiceError> {
        let (task, reply) =
            self.drive(id, Known::Unread, &self.operated(Command::Cancel { force })).await?.outcome?;
        let changed = reply == Reply::Cancel { changed: true };
        let reply = CancelReply::of(task.ended().is_some(), changed);
        Ok((task, reply))
    }

    /// Restarts a task that ended without a result: its old deadline no longer applies, its timeouts apply to each
    /// attempt.
    pub async fn retry(&self, id: &TaskId) -> Result<Task, ServiceError> {
        self.retry_of(id, None).await
    }

    /// The same for a remote step, with another input.
    pub async fn retry_with(&self, id: &TaskId, input: Json) -> Result<Task, ServiceError> {
        let given = NewInput { input, blob_id: self.new_blob_id() };
        let command = self.operated(Command::Retry(Some(Box::new(given))));
        Ok(self.drive(id, Known::Unread, &command).await?.outcome?.0)
    }

    /// The same for a task that had ended by then.
    pub(crate) async fn retry_of(
        &self,
        id: &TaskId,
        ended_by: Option<Timestamp>,
    ) -> Result<Task, ServiceError> {
        let command = self.operated(Command::Retry(None)).if_ended_by(ended_by);
        Ok(self.drive(id, Known::Unread, &command).await?.outcome?.0)
    }
}
