//! How the loop handles tasks.

use tickover_core::command::Context;
use tickover_core::id::TaskId;
use tickover_core::task::command::Claim;
use tickover_core::task::{Command, Decision, Reply, Task};

use super::{Drive, TryOf};
use crate::error::ServiceError;
use crate::service::{Rules, Service};

impl Drive for Command {
    type Record = Task;
    type Reply = Reply;
    type Id = TaskId;
    const KIND: &'static str = "task";
    const NOTIFIES_PARENT_FIRST: bool = false;

    fn decide(&self, rules: &dyn Rules, task: Option<&Task>, context: &Context<'_>) -> Decision {
        rules.decide_task(task, self, context)
    }

    fn id(task: &Task) -> &TaskId {
        &task.id
    }

    /// The tick's hint of a later start, or of a retry after a timeout: the record may be started at that instant anyway, and
    /// no message brings the tick again if it dies after the commit.
    fn hints_first(&self, task: Option<&Task>) -> bool {
        let is_sure = |task: &Task| task.is_hinted_later() || task.running().is_some();
        matches!(self, Self::Due(_)) && task.is_some_and(is_sure)
    }

    async fn first(&self, service: &Service, task: &Task) -> Result<Option<TryOf<Self>>, ServiceError> {
        // A claim knows whether the execution is paused.
        let knows = matches!(self, Self::Hold | Self::Claim(Claim { held: true, .. }));
        if knows || !task.depends_on_a_pause(service.now()) {
            return Ok(None);
        }
        // Boxed, because the future of each command would contain all of this, and few tasks come here.
        Box::pin(service.hold_if_paused(task)).await
    }
}
