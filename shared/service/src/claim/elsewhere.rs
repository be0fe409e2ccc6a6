//! Claims of workers in other processes that run workflows.

use tickover_core::execution::Execution;
use tickover_core::id::QueueName;
use tickover_core::payload::Json;

use super::{ClaimRequest, FoundWork, REDELIVERY_DELAY, Suspect, Wanted};
use crate::error::ServiceError;
use crate::executions::Work;
use crate::service::Service;

/// A queue's work for a worker in another process.
#[derive(Clone, Debug, Default)]
pub struct WorkElsewhere {
    /// To be done at the same time.
    pub work: Vec<Work>,
    /// Work that may have killed another worker. The caller runs no other work of this kind beside it.
    pub alone: Option<Work>,
    /// Executions that begin once a claim says what limits their begin, each with its input.
    pub asks: Vec<(Execution, Option<Json>)>,
}

impl Service {
    /// Claims work from a queue: tasks of kinds that the caller knows, and turns. `alone` says whether it may get work that
    /// may have killed another worker; such work that isn't taken comes back within a second.
    pub async fn work_elsewhere(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
        knows: &(dyn Fn(&str) -> bool + Send + Sync),
        alone: bool,
    ) -> Result<WorkElsewhere, ServiceError> {
        let wanted = Wanted { inside: false, ..Wanted::apart(request, knows) };
        let FoundWork { work, suspects, asks } = self.find_work(queue, wanted).await?;
        let mut found = WorkElsewhere { work, ..WorkElsewhere::default() };
        let mut left: &[Suspect] = &suspects;
        while let (true, None, Some((first, rest))) = (alone, &found.alone, left.split_first()) {
            match self.take_alone(queue, first, wanted).await {
                Ok(taken) => found.alone = taken,
                Err(error) => tracing::debug!(%error, "suspect work not claimed"),
            }
            left = rest;
        }
        for Suspect(message) in left {
            self.put_back(queue, message, REDELIVERY_DELAY).await;
        }
        for execution in asks {
            match self.payload(execution.input.as_ref()).await {
                Ok(input) => found.asks.push((execution, input)),
                // Its message comes back.
                Err(error) => tracing::debug!(%error, "an input wasn't read"),
            }
        }
        Ok(found)
    }
}
