//! How the loop handles tasks.

use tickover_core::command::Context;
use tickover_core::id::TaskId;
use tickover_core::task::{Command, Decision, Reply, Task};

use super::Drive;
use crate::ports::{Current, Store, StoreError};
use crate::service::Rules;

impl Drive for Command {
    type Record = Task;
    type Reply = Reply;
    type Id = TaskId;
    const NOTIFIES_PARENT_FIRST: bool = false;

    fn decide(&self, rules: &dyn Rules, task: Option<&Task>, context: &Context<'_>) -> Decision {
        rules.decide_task(task, self, context)
    }

    async fn read(store: &dyn Store, id: &TaskId) -> Result<Option<Task>, StoreError> {
        store.task(id).await
    }

    fn current(current: Current) -> Option<Box<Task>> {
        current.task()
    }

    fn id(task: &Task) -> &TaskId {
        &task.id
    }
}
