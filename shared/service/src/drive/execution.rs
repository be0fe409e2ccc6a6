//! How the loop handles executions.

use tickover_core::command::Context;
use tickover_core::execution::journal::Happened;
use tickover_core::execution::{Command, Decision, Execution, Reply};
use tickover_core::id::ExecutionId;

use super::{Drive, TryOf};
use crate::error::ServiceError;
use crate::metric;
use crate::service::{Rules, Service};

impl Drive for Command {
    type Record = Execution;
    type Reply = Reply;
    type Id = ExecutionId;
    const KIND: &'static str = "execution";
    /// The last commit of an execution takes it out of the due index. If the process died between that commit and the
    /// notification, no tick would find the execution.
    const NOTIFIES_PARENT_FIRST: bool = true;

    fn decide(&self, rules: &dyn Rules, execution: Option<&Execution>, context: &Context<'_>) -> Decision {
        rules.decide_execution(execution, self, context)
    }

    fn id(execution: &Execution) -> &ExecutionId {
        &execution.id
    }

    /// The tick's hint of a later start: the record may be started at that instant anyway, and no message brings the tick
    /// again if it dies after the commit.
    fn hints_first(&self, execution: Option<&Execution>) -> bool {
        matches!(self, Self::Due(_)) && execution.is_some_and(Execution::is_hinted_later)
    }

    async fn first(
        &self,
        _service: &Service,
        _execution: &Execution,
    ) -> Result<Option<TryOf<Self>>, ServiceError> {
        Ok(None)
    }

    async fn again(
        &self,
        service: &Service,
        seen: &Execution,
        current: &Execution,
    ) -> Result<Option<Self>, ServiceError> {
        service.rebased(self, seen, current).await
    }

    /// Counts the steps whose end a worker has just recorded.
    fn count(&self, execution: &Execution) {
        for entry in self.entries() {
            if let Happened::Step { outcome, .. } = &entry.what {
                metric::step_ended(&execution.queue, outcome.as_str());
            }
        }
    }
}
