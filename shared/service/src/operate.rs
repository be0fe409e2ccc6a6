//! What operators do to tasks: cancel and retry.

use tickover_core::error::Reject;
use tickover_core::id::TaskId;
use tickover_core::task::Task;
use tickover_core::task::command::Command;
use tickover_core::task::decision::{CancelReply, Reply};

use crate::drive::Known;
use crate::error::ServiceError;
use crate::service::Service;

impl Service {
    /// Ends a task, or asks its worker to; by force at once.
    pub async fn cancel(&self, id: &TaskId, force: bool) -> Result<(Task, CancelReply), ServiceError> {
        let driven = self.drive(id, Known::Unread, &Command::Cancel { force }).await?;
        match (driven.task, driven.outcome) {
            (Some(task), Ok(Reply::Cancel(reply))) => Ok((task, reply)),
            (_, Err(reject)) => Err(reject.into()),
            (_, Ok(_)) => Err(Reject::NotFound.into()),
        }
    }

    /// Revives a task that ended without a result: its old deadline is gone, its timeout counts per attempt.
    pub async fn retry(&self, id: &TaskId) -> Result<Task, ServiceError> {
        let driven = self.drive(id, Known::Unread, &Command::Retry).await?;
        match (driven.task, driven.outcome) {
            (Some(task), Ok(_)) => Ok(task),
            (_, Err(reject)) => Err(reject.into()),
            (None, Ok(_)) => Err(Reject::NotFound.into()),
        }
    }
}
