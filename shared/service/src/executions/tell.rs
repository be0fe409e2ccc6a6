//! Telling an execution that something it may wait for has happened.

use tickover_core::decision::Write;
use tickover_core::duration::Millis;
use tickover_core::execution::message::TurnHint;
use tickover_core::execution::{Execution, ExecutionState, Parent};
use tickover_core::id::QueueName;

use crate::drive::turning;
use crate::error::ServiceError;
use crate::service::Service;
use crate::telemetry::field;

impl Service {
    /// Tells an execution that a remote step or child of its has ended. Where that fails, it looks for itself.
    pub(crate) async fn tell_parent(&self, parent: &Parent) {
        if let Err(error) = self.try_to_tell(parent).await {
            tracing::warn!({ field::EXECUTION_ID } = %parent.execution, %error, "not told; it will look");
        }
    }

    async fn try_to_tell(&self, parent: &Parent) -> Result<(), ServiceError> {
        if let Some(slot) = parent.slot {
            // Whoever marks the last place tells; those before have nothing to tell of yet.
            let expires_at = self.now().plus(self.limits.retention.saturating_mul(2));
            let marked = self.patiently(|| self.ports.store.join(parent, slot, expires_at)).await?;
            if marked < slot.of {
                return Ok(());
            }
        }
        let Some(execution) = self.load_execution(&parent.execution).await? else { return Ok(()) };
        let same = execution.incarnation == parent.incarnation && execution.run == parent.run;
        if !same || execution.closed().is_some() {
            // It has moved on without us.
            return Ok(());
        }
        let writes = [Write::Wake { id: execution.id.clone(), incarnation: execution.incarnation }];
        self.patiently(|| self.ports.store.commit(&writes)).await?;
        if is_asleep(&execution) {
            tracing::info!({ field::EXECUTION_ID } = %execution.id, "resuming");
        }
        self.send_turn(&execution.queue, &TurnHint::of(&execution), Millis::ZERO).await;
        Ok(())
    }

    /// Sends the hint of a turn, to arrive after this long.
    pub(crate) async fn send_turn(&self, queue: &QueueName, hint: &TurnHint, after: Millis) {
        if let Some(message) = turning(hint, after) {
            self.send(queue, &[message]).await;
        }
    }
}

fn is_asleep(execution: &Execution) -> bool {
    matches!(execution.state, ExecutionState::Waiting(_))
}
