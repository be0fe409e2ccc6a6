//! Capabilities: what the workers of each queue say that they provide, and to which queue a task goes that requires
//! some.

use tickover_core::id::{Capability, QueueName};
use tickover_core::queue::QueueRecord;
use tickover_core::task::{State, Task};

use crate::error::ServiceError;
use crate::service::Service;

impl Service {
    /// Announces that a worker of this queue provides these. What is already recorded is not written again.
    pub async fn announce_provided(
        &self,
        queue: &QueueName,
        provided: &[Capability],
    ) -> Result<(), ServiceError> {
        let lacks = |record: &QueueRecord| provided.iter().any(|name| !record.provides.contains_key(name));
        if provided.is_empty() || self.record(queue).await?.is_some_and(|record| !lacks(&record)) {
            return Ok(());
        }
        let now = self.now();
        let change = |record: &QueueRecord| lacks(record).then(|| record.with_provided(provided, now));
        self.write_queue(queue, change).await.map(drop)
    }

    /// The queue whose workers provide all of these. Of several, it is the one of which this was known last. The answer
    /// may be a few seconds old. If nothing is required, it is none, and no record is read.
    pub async fn queue_providing(&self, required: &[Capability]) -> Option<QueueName> {
        if required.is_empty() {
            return None;
        }
        let known = self.queue_records().await.into_iter();
        let providing = known.filter_map(|record| Some((record.provides_since(required)?, record.name)));
        providing.max().map(|(_, name)| name)
    }

    /// What a waiting task requires and no worker of its queue has said that it provides. Only for a task that requires
    /// something, a record may be read.
    pub async fn unprovided(&self, task: &Task) -> Result<Vec<Capability>, ServiceError> {
        match &task.state {
            State::Pending(_) if !required(task).is_empty() => {
                let provides = self.record(&task.queue).await?.map(|record| record.provides);
                let provides = provides.unwrap_or_default();
                let lacks = |name: &&Capability| !provides.contains_key(*name);
                Ok(required(task).iter().filter(lacks).cloned().collect())
            }
            State::Pending(_) | State::Running(_) | State::Ended(_) => Ok(vec![]),
        }
    }
}

/// Whether a worker that provides these may have the task. One that says nothing provides nothing.
pub(crate) fn fulfils(provided: &[Capability], task: &Task) -> bool {
    required(task).iter().all(|name| provided.contains(name))
}

fn required(task: &Task) -> &[Capability] {
    task.flow.as_ref().map_or(&[], |flow| &flow.requires)
}
