//! What is around the loop for executions: whoever closes one sees to what follows from that.

use tickover_core::decision::{Change, Write};
use tickover_core::duration::Millis;
use tickover_core::execution::{Command, Decision, Execution, ExecutionState};
use tickover_core::id::ExecutionId;
use tickover_core::time::Timestamp;

use super::close::Share;
use crate::drive::Known;
use crate::error::ServiceError;
use crate::service::Service;
use crate::telemetry::field;

/// How long the caller of any command waits for what follows an execution's end, before that is left to others.
pub(crate) const CALLER_WAITS: Millis = Millis::from_secs(5);

impl Service {
    /// Carries a command out and tells others of it. An execution that it closes is seen to the end, if that can be
    /// done while its caller waits. One that was closing already isn't: somebody else goes on with that.
    pub(crate) async fn drive_execution(
        &self,
        id: &ExecutionId,
        known: Known<Execution>,
        command: &Command,
    ) -> Result<Decision, ServiceError> {
        let stop_at = self.now().plus(CALLER_WAITS);
        // Each caller's future would hold all of this, though it is mostly waiting for one answer.
        let decision = Box::pin(self.drive(id, known, command)).await?;
        // Without a queue of timers, a turn's hint is the message that a close goes on by.
        let goes_on = matches!(command, Command::StartTurn(_)) && !self.has_timers();
        if !closes(&decision) && !goes_on {
            return Ok(decision);
        }
        Ok(Box::pin(self.see_to_the_end(decision, stop_at, Share::Page)).await)
    }

    /// One that is closing is finished at once. If that fails, the tick does it.
    pub(super) async fn see_to_the_end(
        &self,
        mut decision: Decision,
        stop_at: Timestamp,
        share: Share,
    ) -> Decision {
        if let Some(execution) = decision.record_mut().filter(|execution| is_closing(execution)) {
            // What it leaves open may close others in turn.
            match self.finish(execution, stop_at, share).await {
                Ok(finished) => *execution = finished,
                Err(error) => {
                    tracing::warn!({ field::EXECUTION_ID } = %execution.id, %error, "still closing");
                }
            }
        }
        decision
    }

    /// Reads an execution; one whose retention has passed doesn't exist any more.
    pub(crate) async fn load_execution(&self, id: &ExecutionId) -> Result<Option<Execution>, ServiceError> {
        let execution = self.with_retries(|| self.ports.store.execution(id)).await?;
        Ok(execution.filter(|execution| !execution.is_gone(self.now())))
    }
}

/// Whether a decision has closed an execution that left something to be ended: its caller begins with that.
pub(super) fn closes(decision: &Decision) -> bool {
    decision.writes.iter().filter_map(Write::change).any(|change| match change {
        Change::Execution(Some(before), after) => before.closed().is_none() && is_closing(after),
        Change::Execution(None, _) | Change::Task(..) | Change::Cron(..) => false,
    })
}

/// Whether what an execution left open at its end is still to be ended.
pub(super) const fn is_closing(execution: &Execution) -> bool {
    matches!(execution.state, ExecutionState::Closing(_))
}
