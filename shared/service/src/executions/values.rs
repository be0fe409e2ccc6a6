//! The values that an execution has published: read, and waited for.

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::execution::values::{Value, Values};
use tickover_core::id::{ExecutionId, StepName};
use tickover_core::limits::WAIT_MAX;

use super::describe::{LOOK_AFTER, LOOK_AFTER_MAX};
use crate::error::ServiceError;
use crate::service::Service;
use crate::waits;

impl Service {
    /// All values that an execution has published.
    pub async fn values(&self, id: &ExecutionId) -> Result<Values, ServiceError> {
        let Some(execution) = self.load_execution(id).await? else { return Err(Reject::NoExecution.into()) };
        self.values_of(&execution).await
    }

    /// The values of this record.
    pub async fn values_of(&self, execution: &Execution) -> Result<Values, ServiceError> {
        let Some(document) = self.payload(execution.values.as_ref()).await? else {
            return Ok(Values::default());
        };
        Values::parse(&document).ok_or_else(|| ServiceError::Corrupt {
            reason: format!("the published values of execution {} can't be read", execution.id),
        })
    }

    /// Reads a value once it has a later version than this one, once the execution has its outcome, or after `wait` (at most
    /// 20 s), whichever comes first. `None` if nothing is published under the name.
    pub async fn wait_for_value(
        &self,
        id: &ExecutionId,
        name: &StepName,
        after: u32,
        wait: Millis,
    ) -> Result<Option<Value>, ServiceError> {
        let wait = wait.min(WAIT_MAX);
        let until = self.now().plus(wait);
        let mut pause = LOOK_AFTER;
        loop {
            let Some(execution) = self.load_execution(id).await? else {
                return Err(Reject::NoExecution.into());
            };
            let value = self.values_of(&execution).await?.value(name).cloned();
            let left = self.left(until, wait);
            let is_later = value.as_ref().is_some_and(|value| value.version > after);
            if is_later || execution.closed().is_some() || left.is_zero() || waits::are_over() {
                return Ok(value);
            }
            self.wait_until(self.now().plus(pause.min(left))).await;
            pause = pause.saturating_mul(2).min(LOOK_AFTER_MAX);
        }
    }
}
