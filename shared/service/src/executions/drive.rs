//! What happens around the loop for executions: the caller that closes one also does what follows from that.

use tickover_core::decision::{Change, Write};
use tickover_core::duration::Millis;
use tickover_core::execution::{Command, Decision, Execution, ExecutionState, Reply};
use tickover_core::id::ExecutionId;
use tickover_core::time::Timestamp;

use super::close::Share;
use crate::drive::{Drive, Known};
use crate::error::ServiceError;
use crate::service::Service;
use crate::telemetry::field;
use crate::warn_unless_logged;

/// How long a caller waits for what follows an execution's end, before the rest is left to messages.
pub(crate) const CALLER_WAITS: Millis = Millis::from_secs(5);

impl Service {
    /// Carries out a command and sends its messages. If the command closes the execution, the close is finished as far
    /// as there is time while the caller waits. A close that was already in progress is left alone: another call
    /// continues it.
    pub(crate) async fn drive_execution(
        &self,
        id: &ExecutionId,
        known: Known<Execution>,
        command: &Command,
    ) -> Result<Decision, ServiceError> {
        // Without a timers queue, a turn's hint is the message that continues a close. If it was received before, the
        // process that closed the execution may have died.
        let continues = matches!(command, Command::StartTurn(start) if start.again || !self.has_timers());
        self.drive_to_close(id, known, command, continues).await
    }

    /// The same for any form of a command. With `continues`, a close that was in progress is finished too.
    pub(super) async fn drive_to_close<C>(
        &self,
        id: &ExecutionId,
        known: Known<Execution>,
        command: &C,
        continues: bool,
    ) -> Result<Decision, ServiceError>
    where
        C: Drive<Record = Execution, Reply = Reply, Id = ExecutionId> + Send,
    {
        let stop_at = self.now().plus(CALLER_WAITS);
        // Boxed, because the future of each caller would contain all of this, though it mostly waits for one answer.
        let decision = Box::pin(self.drive(id, known, command)).await?;
        if !closes(&decision) && !continues {
            return Ok(decision);
        }
        Ok(Box::pin(self.finish_close(decision, stop_at, Share::Page)).await)
    }

    /// Finishes an execution that is closing. If that fails, the tick does it.
    pub(super) async fn finish_close(
        &self,
        mut decision: Decision,
        stop_at: Timestamp,
        share: Share,
    ) -> Decision {
        if let Some(execution) = decision.record_mut().filter(|execution| is_closing(execution)) {
            // To end its open children may close other executions in turn.
            match self.finish(execution, stop_at, share).await {
                Ok(finished) => *execution = finished,
                Err(error) => {
                    warn_unless_logged!(error; { field::EXECUTION_ID } = %execution.id, %error, "still closing");
                }
            }
        }
        decision
    }

    /// Reads an execution; `None` after its retention.
    pub(crate) async fn load_execution(&self, id: &ExecutionId) -> Result<Option<Execution>, ServiceError> {
        let execution = self.with_retries(|| self.ports.store.execution(id)).await?;
        Ok(execution.filter(|execution| !execution.is_gone(self.now())))
    }
}

/// Whether a decision has closed an execution with steps or children to end: then its caller starts with that.
pub(super) fn closes(decision: &Decision) -> bool {
    decision.writes.iter().filter_map(Write::change).any(|change| match change {
        Change::Execution(Some(before), after) => before.closed().is_none() && is_closing(after),
        Change::Execution(None, _) | Change::Task(..) | Change::Cron(..) => false,
    })
}

/// Whether an execution has its outcome, but its open steps and children must still be ended.
pub(super) const fn is_closing(execution: &Execution) -> bool {
    matches!(execution.state, ExecutionState::Closing(_))
}
