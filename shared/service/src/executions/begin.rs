//! What a turn starts: remote steps and children, in one call.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use serde::{Deserialize, Serialize};
use tickover_core::error::Reject;
use tickover_core::execution::journal::{Entry, Happened, StepOutcome};
use tickover_core::execution::{Execution, Parent};
use tickover_core::failure::Failure;
use tickover_core::id::StepName;
use tickover_core::payload::Json;

use super::remote::AT_ONCE;
use super::{RemoteStep, StartRequest, remote_id};
use crate::error::ServiceError;
use crate::service::Service;

/// What a turn asks to be started.
#[derive(Clone, Debug, Default)]
pub struct ToStart {
    /// A step that exists already stays as it is.
    pub steps: Vec<RemoteStep>,
    /// The steps among them that an operator has had run again: a failure from before isn't their outcome.
    pub again: Vec<StepName>,
    /// Those among these whose input here takes the place of the one that their task has.
    pub with_input: Vec<StepName>,
    pub children: Vec<ChildToStart>,
}

/// A child that a turn asks to be started.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildToStart {
    /// Its name in the run.
    pub name: StepName,
    /// With an id.
    pub start: Box<StartRequest>,
}

/// What was done of it.
#[derive(Clone, Debug, Default)]
pub struct StartedWork {
    /// The steps that exist now, or whose start is refused.
    pub steps: Vec<(StepName, Result<(), Failure>)>,
    /// The children that exist now, or whose start is refused.
    pub children: Vec<(StepName, Result<(), Failure>)>,
    /// Why the others weren't started. The same call may start them later.
    pub trouble: Option<ServiceError>,
}

fn failure_of(reject: &Reject) -> Failure {
    Failure::new(reject.code(), reject.to_string())
}

impl Service {
    /// Starts what a turn of this execution asks for.
    pub async fn start_work(&self, execution: &Execution, work: ToStart) -> StartedWork {
        let ToStart { steps, again, with_input, children } = work;
        let mut started = StartedWork::default();
        let inputs = steps.iter().filter(|step| with_input.contains(&step.name));
        let inputs = inputs.filter_map(|step| Some((&step.name, step.input.clone()?))).collect();
        if let Err(error) = self.revive(execution, &again, inputs).await {
            return StartedWork { trouble: Some(error), ..started };
        }
        if !steps.is_empty() {
            let begun = self.start_remote(execution, steps).await;
            let refused = begun.refused.iter().map(|(name, reject)| (name.clone(), Err(failure_of(reject))));
            started.steps = begun.names.into_iter().map(|name| (name, Ok(()))).chain(refused).collect();
            started.trouble = begun.error;
        }
        let mut starts = Vec::with_capacity(children.len());
        for child in children {
            starts.push(self.start_child_of(execution, child).boxed());
        }
        let started_children: Vec<_> = stream::iter(starts).buffered(AT_ONCE).collect().await;
        for (name, start) in started_children {
            match start {
                Ok(()) => started.children.push((name, Ok(()))),
                Err(ServiceError::Rejected(reject)) => {
                    started.children.push((name, Err(failure_of(&reject))));
                }
                Err(error) => started.trouble = Some(error),
            }
        }
        started
    }

    /// Retries the tasks of steps that an operator has reopened, some with other inputs.
    async fn revive(
        &self,
        execution: &Execution,
        names: &[StepName],
        mut inputs: BTreeMap<&StepName, Json>,
    ) -> Result<(), ServiceError> {
        if names.is_empty() {
            return Ok(());
        }
        let journal = self.journal_of(execution).await?;
        for (name, ended) in self.remote_outcomes(execution, names).await? {
            let is_its =
                |entry: &&Entry| matches!(&entry.what, Happened::Reopened { name: of, .. } if *of == name);
            // What has ended since an operator reopened the step is its outcome: this call may be a repeated one.
            let counts = journal.iter().rev().find(is_its).is_none_or(|entry| entry.at < ended.ended_at);
            if counts || matches!(ended.outcome, StepOutcome::Completed { .. }) {
                continue;
            }
            let id = remote_id(execution, &name);
            let retried = match inputs.remove(&name) {
                Some(input) => self.retry_with(&id, input).await,
                None => self.retry(&id).await,
            };
            match retried {
                Ok(_) | Err(ServiceError::Rejected(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A child belongs to the execution whose turn starts it, whatever the request says.
    async fn start_child_of(
        &self,
        execution: &Execution,
        child: ChildToStart,
    ) -> (StepName, Result<(), ServiceError>) {
        let ChildToStart { name, start } = child;
        let asked = start.parent.as_ref();
        let again = asked.map_or(0, |parent| parent.again);
        let on_close = asked.map(|parent| parent.on_close).unwrap_or_default();
        let parent = Parent { again, on_close, ..Parent::of(execution) };
        let is_same_work = execution.repeats_as(&name).is_some() || again > 0;
        let start = StartRequest { trace: execution.trace, parent: Some(parent), ..*start };
        let started = self.start_child(start, is_same_work).await;
        (name, started.map(drop))
    }
}
