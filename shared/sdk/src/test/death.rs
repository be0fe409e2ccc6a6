//! The state of the table when the system died.

use std::sync::Arc;

use tickover_core::execution::Execution;
use tickover_core::execution::journal::{Entry, Happened, open_steps};
use tickover_core::id::WorkflowName;
use tickover_service::executions::remote_id;

use super::system::World;
use crate::ctx::CHUNK;
use crate::registry::Registry;

/// Executions of each workflow that are read after a death.
const EXECUTIONS_READ_MAX: usize = 100;

/// A death of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Death {
    /// The number of the last write before it.
    pub after_write: u64,
    /// The idempotency keys of all steps of each execution's last run that had ended. None of these steps may run
    /// again.
    pub completed: Vec<String>,
}

/// The closure that is called after a death.
pub(super) type DeathHook = Arc<dyn Fn(&Death) + Send + Sync>;

/// The idempotency keys of the steps that had ended.
pub(super) async fn completed(world: &World, registry: &Registry) -> Vec<String> {
    let service = world.outside();
    let mut keys = Vec::new();
    // Items of paged maps run in executions of a workflow that every worker has.
    for workflow in registry.workflows().map(|workflow| workflow.name).chain([CHUNK]) {
        let Ok(name) = WorkflowName::parse(workflow) else { continue };
        let Ok(page) = world.store.list_executions(&name, EXECUTIONS_READ_MAX, None).await else { continue };
        let Ok(executions) = world.store.executions(&page.items).await else { continue };
        for execution in executions {
            let Ok(journal) = service.journal_of(&execution).await else { continue };
            keys.extend(journal.iter().filter_map(|entry| ended(&execution, entry)));
            for entry in open_steps(&journal) {
                let Happened::Remote { name } = &entry.what else { continue };
                let id = remote_id(&execution, name);
                if matches!(world.store.task(&id).await, Ok(Some(task)) if task.ended().is_some()) {
                    keys.push(id.to_string());
                }
            }
        }
    }
    keys
}

/// The key of a step, if the entry is its end.
fn ended(execution: &Execution, entry: &Entry) -> Option<String> {
    let Happened::Step { name, attempts, .. } = &entry.what else { return None };
    // The end of a remote step has no number of attempts.
    Some(match attempts {
        Some(_) => format!("{}:{}:{}:{name}", execution.id, execution.incarnation, execution.run),
        None => remote_id(execution, name).to_string(),
    })
}
